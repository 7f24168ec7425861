//! One home of Vibe: its leases and sessions, and what they claim.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use whosup_process::{Pid, Process};
use whosup_sidecar::SessionId;

use super::early;
use super::lease::{Lease, Leases, is_session, lock_of, read as read_leases};
use super::process::PROGRAMS;
use super::storage::roots;
use super::store::{Meta, of_newest, read_meta, sessions_in};
use super::{AGENT, state};
use crate::adapter::claim::{
    CLOCK_SLACK_MS, Claim, Evidence, EvidenceKind, Exclusivity, Serving, SessionKey, Subject,
};
use crate::adapter::{
    AgentProcess, AgentScan, Depth, Home, KnownClient, Look, Program, Role, Sketch,
};
use crate::machine::problem::{Found, Problem};
use crate::sources::agents::kit::folder::names_in;
use crate::sources::agents::kit::folder::{is_directory, is_there};
use crate::sources::agents::kit::one_per_session::OnePerSession;
use crate::sources::recognize::what_it_runs;
use crate::sources::trust::trust_of;

/// How many sessions of a home are read.
const SESSIONS_MAX: usize = 100_000;
/// How long a session may last that was begun only to be left for another session, in
/// milliseconds: two seconds were seen on a quiet machine, fifteen on a busy machine.
const PASSING_MS_MAX: i64 = 20_000;
/// How long after its start a server opens its first session, in milliseconds.
const START_MS_MAX: i64 = 60_000;

/// Reads the claims and sketches of one home.
pub(super) fn scan(look: &Look<'_>, home: &Home) -> Found<AgentScan> {
    let mut problems = Vec::new();
    let mut scanning = Scanning {
        look,
        home,
        claims: Vec::new(),
        sketches: OnePerSession::new(|transcript| match early::is_early(transcript) {
            true => early::said(transcript),
            false => state::said(transcript),
        }),
        added: BTreeSet::new(),
        unclear: BTreeSet::new(),
    };
    let storages = roots(&home.root, look.machine.mounts(), &mut problems);
    for storage in &storages {
        scanning.added.clear();
        let leases = read_leases(look, storage, &mut problems);
        for lease in &leases.leases {
            scanning.add_lease(storage, &leases, lease, &mut problems);
        }
        for (id, path) in &leases.unreadable {
            if let Some(id) = id {
                scanning.add_unreadable(storage, id, path, &mut problems);
            }
        }
        if look.depth.is_walk() {
            scanning.add_all(storage, &leases, &mut problems);
        }
    }
    // If a session exists in both forms, the current form comes first.
    for storage in storages.iter().filter(|_| look.depth.is_walk()) {
        scanning.add_early(storage, None, &mut problems);
    }
    problems.sort();
    problems.dedup();
    Found {
        found: scanning.sketches.into_scan(scanning.claims),
        problems,
    }
}

struct Scanning<'a> {
    look: &'a Look<'a>,
    home: &'a Home,
    claims: Vec<Box<Claim>>,
    sketches: OnePerSession,
    /// Sessions that were added from the storage that is being read.
    added: BTreeSet<SessionId>,
    /// Sessions that may be sub-agents, because their files cannot be read.
    unclear: BTreeSet<SessionId>,
}

/// The server that holds a lease, and the interface that started it.
#[derive(Clone, Copy)]
struct Chain<'a> {
    server: &'a Process,
    interface: Option<&'a AgentProcess>,
}

impl<'a> Scanning<'a> {
    fn add_lease(
        &mut self,
        storage: &Path,
        leases: &Leases,
        lease: &Lease,
        problems: &mut Vec<Problem>,
    ) {
        let directory = sessions_in(storage).join(lease.id.as_str());
        let chain = lease.held.by.iter().find_map(|pid| self.chain_of(*pid));
        let is_stored = is_directory(&directory);
        if is_taken_to_tidy_up(leases, lease)
            || (!is_stored && chain.is_some_and(|chain| self.is_passing(lease, chain)))
        {
            return;
        }
        let mut sketch = self.sketch(&lease.id, is_stored.then_some(&directory), problems);
        let acquired_at_ms = lease.file.map(|file| file.acquired_at_ms);
        sketch.born_at_ms = sketch.born_at_ms.or(acquired_at_ms);
        sketch.is_orphan_when_stale = true;
        let interface = chain.and_then(|chain| chain.interface);
        sketch.is_headless = interface.map(|interface| PROGRAMS.is_headless(&interface.program()));
        if sketch.parent.is_none()
            && let (Some(chain), Some(interface)) = (chain, interface)
            && interface.role == Role::Client
        {
            sketch.client = Some(Box::new(client(lease, chain.server, interface)));
        }
        let is_perhaps_to_tidy_up = leases.cleanup.is_some_and(|cleanup| {
            cleanup.since_ms.is_none() && lease.held.by.contains(&cleanup.pid)
        });
        if is_perhaps_to_tidy_up || lease.is_file_unread {
            self.unclear.insert(lease.id.clone());
        }
        let claims = self.claims_of(lease, &sketch);
        self.claims.extend(claims.into_iter().map(Box::new));
        self.added.insert(lease.id.clone());
        self.sketches.add(sketch, lease.held.by.iter().copied());
    }

    /// Adds a session whose lease cannot be examined: a process may hold it.
    fn add_unreadable(
        &mut self,
        storage: &Path,
        id: &SessionId,
        path: &Path,
        problems: &mut Vec<Problem>,
    ) {
        let directory = sessions_in(storage).join(id.as_str());
        let directory = Some(&directory).filter(|directory| is_directory(directory));
        let sketch = self.sketch(id, directory, problems);
        let claim = self.unknown_claim(id, path);
        self.claims.push(Box::new(claim));
        self.added.insert(id.clone());
        self.sketches.add(sketch, []);
    }

    /// Every session that is stored, also without a lease.
    fn add_all(&mut self, storage: &Path, leases: &Leases, problems: &mut Vec<Problem>) {
        let root = sessions_in(storage);
        let names = match names_in(&root, SESSIONS_MAX) {
            Ok(names) => names,
            Err(error) => {
                let message = format!("cannot list this directory: {error}");
                problems.push(Problem::at(&AGENT, &root, message));
                return;
            }
        };
        if names.is_cut {
            let message = format!("more than {SESSIONS_MAX} sessions: the rest is left out");
            problems.push(Problem::at(&AGENT, &root, message));
        }
        for name in names.texts().filter(|name| is_session(name)) {
            let directory = root.join(name);
            let Ok(id) = SessionId::parse(name) else {
                continue;
            };
            if self.added.contains(&id)
                || !self.look.depth.reaches(&id)
                || !is_directory(&directory)
            {
                continue;
            }
            let all = leases.unreadable.iter().find(|(one, _)| one.is_none());
            match all {
                Some((_, path)) => self.add_unreadable(storage, &id, path, problems),
                None => {
                    let sketch = self.sketch(&id, Some(&directory), problems);
                    let ended = self.claim_of_closed(storage, &sketch);
                    self.sketches.add_sub_agent(sketch, ended);
                }
            }
        }
    }

    /// Adds the sessions of releases before 3 in a directory, or the sessions below one of
    /// them.
    fn add_early(
        &mut self,
        directory: &Path,
        above: Option<&SessionId>,
        problems: &mut Vec<Problem>,
    ) {
        let report = |message| problems.push(Problem::at(&AGENT, directory, message));
        for named in early::named_in(directory, report) {
            if !self.may_reach(&named.id_begins) || !is_there(&named.transcript) {
                continue;
            }
            let read = early::read_meta(&named.transcript).and_then(|meta| {
                let id = SessionId::parse(meta.id.as_deref().unwrap_or_default());
                let id = id.map_err(|error| (named.transcript.clone(), error.to_string()))?;
                Ok((id, meta))
            });
            let (id, meta) = match read {
                Ok(read) => read,
                Err((path, message)) => {
                    problems.push(Problem::at(&AGENT, &path, message));
                    continue;
                }
            };
            if above.is_none() && named.is_directory() {
                self.add_early(&named.agents(), Some(&id), problems);
            }
            if !self.look.depth.reaches(&id) {
                continue;
            }
            let sketch = Sketch {
                transcript: Some(named.transcript),
                parent: above.cloned(),
                work_dir: meta.work_dir,
                born_at_ms: meta.started_at_ms,
                started_at_ms: meta.started_at_ms,
                last_record_at_ms: meta.last_at_ms,
                ..Sketch::new(self.key(&id))
            };
            self.sketches.add(sketch, []);
        }
    }

    /// Returns whether a session with such an id may be looked for.
    fn may_reach(&self, id_begins: &str) -> bool {
        match self.look.depth {
            Depth::Sessions(ids) => ids.iter().any(|id| id.as_str().starts_with(id_begins)),
            Depth::All | Depth::Live => true,
        }
    }

    fn sketch(
        &mut self,
        id: &SessionId,
        directory: Option<&PathBuf>,
        problems: &mut Vec<Problem>,
    ) -> Sketch {
        let mut sketch = Sketch::new(self.key(id));
        let Some(directory) = directory else {
            // It has no prompt: Vibe drops it when the process leaves it.
            sketch.is_provisional = true;
            sketch.is_resumable = false;
            return sketch;
        };
        sketch.transcript = Some(directory.clone());
        let meta = match read_meta(directory, id.as_str()) {
            Ok(meta) => meta.unwrap_or_default(),
            Err((path, message)) => {
                problems.push(Problem::at(&AGENT, &path, message));
                self.unclear.insert(id.clone());
                Meta::default()
            }
        };
        let parent = meta.parent.filter(|parent| parent != id.as_str());
        if let Some(parent) = parent {
            match is_sub_agent(directory, problems) {
                Some(true) => sketch.parent = SessionId::parse(&parent).ok(),
                Some(false) => {}
                None => {
                    self.unclear.insert(id.clone());
                }
            }
        }
        sketch.work_dir = meta.work_dir;
        sketch.born_at_ms = meta.started_at_ms;
        sketch.started_at_ms = meta.started_at_ms;
        sketch.last_record_at_ms = meta.last_at_ms;
        sketch.title = meta.title;
        sketch
    }

    fn claims_of(&self, lease: &Lease, sketch: &Sketch) -> Vec<Claim> {
        let held = &lease.held;
        if lease.is_only_looked_at(self.look) {
            let by: Vec<String> = held.by.iter().map(ToString::to_string).collect();
            let says = format!(
                "process {} has it locked, and the lease names another one",
                by.join(", ")
            );
            let subject = Subject::Unreadable;
            return vec![self.claim(lease, subject, Serving::One, says)];
        }
        if held.by.is_empty() {
            let is_everyone_asked = held.is_everyone_asked;
            let says = if is_everyone_asked {
                "nobody holds it"
            } else {
                "nobody was found to hold it, and not everybody could be asked"
            };
            let subject = Subject::LockFree { is_everyone_asked };
            return vec![self.claim(lease, subject, Serving::One, says.to_owned())];
        }
        let claim = |pid: &Pid| {
            // An interface shows one session at a time; an editor that started
            // the server itself may have several.
            let has_interface = self
                .chain_of(*pid)
                .is_some_and(|chain| chain.interface.is_some());
            // A session that may be a sub-agent, or may be no session, has replaced no other
            // session.
            let is_clear = sketch.parent.is_none() && !self.unclear.contains(&lease.id);
            let serving = if has_interface && is_clear {
                Serving::One
            } else {
                Serving::Many
            };
            let says = format!("held by process {pid}");
            self.claim(lease, Subject::Holder(*pid), serving, says)
        };
        held.by.iter().map(claim).collect()
    }

    fn claim(&self, lease: &Lease, subject: Subject, serving: Serving, says: String) -> Claim {
        let machine = self.look.machine;
        let latest = machine.now_ms().saturating_add(CLOCK_SLACK_MS);
        Claim {
            subject,
            dated_at_ms: lease.acquired_at_ms().filter(|at| *at <= latest),
            modified_at_ms: lease.facts.modified_ms,
            serving,
            trust: trust_of(&lease.facts, self.home, machine),
            evidence: Evidence::new(EvidenceKind::Lock, Some(lease.path.clone()), says),
            ..self.unknown_claim(&lease.id, &lease.path)
        }
    }

    /// A sub-agent has a lease of its own while it is open, even between its turns (read in
    /// the sources of 3.0, 2026-11). Its parent may live on without it.
    fn claim_of_closed(&self, storage: &Path, sketch: &Sketch) -> Option<Claim> {
        sketch.parent.as_ref()?;
        let lock = lock_of(storage, &sketch.key.session);
        // It may have been opened since the leases were listed.
        if is_there(&lock) {
            return None;
        }
        let mut claim = self.unknown_claim(&sketch.key.session, &lock);
        claim.subject = Subject::Released;
        claim.evidence.says = "it has no lease".to_owned();
        Some(claim)
    }

    /// Claims that a lease, or all of them, cannot be examined.
    fn unknown_claim(&self, id: &SessionId, path: &Path) -> Claim {
        Claim {
            exclusivity: Exclusivity::Exclusive,
            placement: self.look.machine.mounts().placement_of(path),
            ..Claim::new(
                self.key(id),
                Subject::Unreadable,
                Evidence::new(
                    EvidenceKind::Lock,
                    Some(path.to_owned()),
                    "it can't be looked at".to_owned(),
                ),
            )
        }
    }

    fn key(&self, id: &SessionId) -> SessionKey {
        SessionKey {
            agent: AGENT,
            session: id.clone(),
            home: self.home.root.clone(),
        }
    }

    /// A server that is Vibe's, and its parent if that is an interface.
    fn chain_of(&self, pid: Pid) -> Option<Chain<'a>> {
        let table = self.look.machine.table();
        let server = table.seen(pid)?;
        let program = Program {
            process: server,
            details: &what_it_runs(self.look.machine, server),
        };
        if PROGRAMS.recognize(&program) != Some(Role::Host) {
            return None;
        }
        let interface = self.look.processes.iter().find(|process| {
            Some(process.process.pid) == server.ppid
                && matches!(process.role, Role::Client | Role::Launcher)
        });
        Some(Chain { server, interface })
    }

    /// Returns whether a session without a message is only the first session of a server
    /// that is about to resume the requested session.
    fn is_passing(&self, lease: &Lease, chain: Chain<'_>) -> bool {
        let Some(interface) = chain.interface else {
            return false;
        };
        let program = interface.program();
        let is_named = PROGRAMS
            .session(&program)
            .is_some_and(|named| lease.id.as_str().starts_with(named));
        let within = |from: Option<i64>, to: Option<i64>, max: i64| {
            from.zip(to)
                .is_some_and(|(from, to)| to.saturating_sub(from) < max)
        };
        let acquired = lease.acquired_at_ms();
        let began = chain.server.began_at_ms.as_ref().ok().copied();
        PROGRAMS.continues(&program)
            && !is_named
            && within(began, acquired, START_MS_MAX)
            && within(acquired, Some(self.look.machine.now_ms()), PASSING_MS_MAX)
    }
}

/// Returns whether the holder has taken a lease only for cleanup: the holder is cleaning up
/// now, and had another session open before that.
fn is_taken_to_tidy_up(leases: &Leases, lease: &Lease) -> bool {
    let Some(cleanup) = leases.cleanup else {
        return false;
    };
    let Some(since_ms) = cleanup.since_ms else {
        return false;
    };
    let is_before = |lease: &Lease| {
        lease
            .acquired_at_ms()
            .is_none_or(|acquired| acquired < since_ms)
    };
    let is_its = |lease: &Lease| lease.held.by.contains(&cleanup.pid);
    let has_another = leases
        .leases
        .iter()
        .any(|other| other.id != lease.id && is_its(other) && is_before(other));
    is_its(lease) && !is_before(lease) && has_another
}

fn client(lease: &Lease, server: &Process, interface: &AgentProcess) -> KnownClient {
    KnownClient {
        process: interface.process.clone(),
        evidence: Evidence::new(
            EvidenceKind::Lock,
            Some(lease.path.clone()),
            format!(
                "client: process {} started process {}, which holds it",
                interface.process.pid, server.pid
            ),
        ),
    }
}

/// Returns whether a session with a parent is a sub-agent of the parent, if that can be
/// read. A fork has a parent too.
fn is_sub_agent(directory: &Path, problems: &mut Vec<Problem>) -> Option<bool> {
    match of_newest(directory, super::store::Generation::kind) {
        Ok(kind) => Some(kind.flatten().as_deref() == Some("subagent")),
        Err((path, message)) => {
            problems.push(Problem::at(&AGENT, &path, message));
            None
        }
    }
}

#[cfg(test)]
#[allow(
    clippy::disallowed_methods,
    reason = "tests make their own files and processes"
)]
#[path = "scan_tests.rs"]
mod tests;
