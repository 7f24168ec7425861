//! One home of Vibe: its leases and sessions, and what they claim.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use whosup_process::{Pid, Process};
use whosup_sidecar::SessionId;

use super::early::{self, Named};
use super::lease::{self, Lease, Leases, lock_of};
use super::process::PROGRAMS;
use super::storage::roots;
use super::store::{is_of_kind, read_meta, sessions_in};
use super::{AGENT, state};
use crate::adapter::claim::{
    CLOCK_SLACK_MS, Claim, Evidence, EvidenceKind, Exclusivity, Serving, Subject,
};
use crate::adapter::{
    AgentProcess, AgentScan, Depth, Home, KnownClient, Look, Program, Role, Sketch,
};
use crate::machine::problem::{Found, Problem};
use crate::sources::agents::kit::folder::{is_directory, is_there};
use crate::sources::agents::kit::one_per_session::OnePerSession;
use crate::sources::agents::kit::scan::Scan;
use crate::sources::agents::kit::uuid::is_uuid;
use crate::sources::recognize::what_it_runs;

/// How many sessions of a home are read.
const SESSIONS_MAX: usize = 100_000;
/// How long a session may last that was begun only to be left for another session, in
/// milliseconds: two seconds were seen on a quiet machine, fifteen on a busy machine.
const PASSING_MS_MAX: i64 = 20_000;
/// How long after its start a server opens its first session, in milliseconds.
const START_MS_MAX: i64 = 60_000;

/// Reads the claims and sketches of one home.
pub(super) fn scan(look: &Look<'_>, home: &Home) -> Found<AgentScan> {
    let mut scanning = Scanning {
        scan: Scan::new(AGENT, look, home),
        sketches: OnePerSession::new(|transcript| match early::is_early(transcript) {
            true => early::said(transcript),
            false => state::said(transcript),
        }),
        added: BTreeSet::new(),
        unclear: BTreeSet::new(),
    };
    let problems = &mut scanning.scan.problems;
    let storages = roots(&home.root, look.machine.mounts(), problems);
    for storage in &storages {
        scanning.added.clear();
        let leases = lease::read(&mut scanning.scan, storage);
        for lease in &leases.leases {
            scanning.add_lease(storage, &leases, lease);
        }
        for (id, path) in &leases.unreadable {
            if let Some(id) = id {
                scanning.add_unreadable(storage, id, path);
            }
        }
        if look.depth.is_walk() {
            scanning.add_all(storage, &leases);
        }
    }
    // If a session exists in both forms, the current form comes first.
    for storage in storages.iter().filter(|_| look.depth.is_walk()) {
        scanning.add_early(storage, None);
    }
    scanning.scan.problems.sort();
    scanning.scan.problems.dedup();
    scanning.scan.finish(scanning.sketches)
}

struct Scanning<'a> {
    scan: Scan<'a>,
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
    fn add_lease(&mut self, storage: &Path, leases: &Leases, lease: &Lease) {
        let directory = stored_in(storage, &lease.id);
        let chain = lease.held.by.iter().find_map(|pid| self.chain_of(*pid));
        if is_taken_to_tidy_up(leases, lease)
            || (directory.is_none() && chain.is_some_and(|chain| self.is_passing(lease, chain)))
        {
            return;
        }
        let mut sketch = self.sketch(&lease.id, directory);
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
        for claim in self.claims_of(lease, &sketch) {
            self.scan.claim(claim);
        }
        self.added.insert(lease.id.clone());
        self.sketches.add(sketch, lease.held.by.iter().copied());
    }

    /// Adds a session whose lease cannot be examined: a process may hold it.
    fn add_unreadable(&mut self, storage: &Path, id: &SessionId, path: &Path) {
        let sketch = self.sketch(id, stored_in(storage, id));
        self.scan.claim(self.unknown_claim(id, path));
        self.added.insert(id.clone());
        self.sketches.add(sketch, []);
    }

    /// Every session that is stored, also without a lease.
    fn add_all(&mut self, storage: &Path, leases: &Leases) {
        let root = sessions_in(storage);
        let names = self.scan.names(&root, SESSIONS_MAX);
        for name in names.texts().filter(|name| is_uuid(name)) {
            let Ok(id) = SessionId::parse(name) else {
                continue;
            };
            if self.added.contains(&id) || !self.scan.look.depth.reaches(&id) {
                continue;
            }
            let Some(directory) = stored_in(storage, &id) else {
                continue;
            };
            match leases.unreadable.iter().find(|(one, _)| one.is_none()) {
                Some((_, path)) => self.add_unreadable(storage, &id, path),
                None => {
                    let sketch = self.sketch(&id, Some(directory));
                    let ended = self.claim_of_closed(storage, &sketch);
                    self.sketches.add_sub_agent(sketch, ended);
                }
            }
        }
    }

    /// Adds the sessions of releases before 3 in a directory, or the sessions below one of
    /// them.
    fn add_early(&mut self, directory: &Path, above: Option<&SessionId>) {
        let report = |message| self.scan.problem(directory, message);
        for named in early::named_in(directory, report) {
            if self.may_reach(&named.id_begins)
                && is_there(&named.transcript)
                && let Err(problem) = self.add_one_early(named, above)
            {
                self.scan.problems.push(problem);
            }
        }
    }

    fn add_one_early(&mut self, named: Named, above: Option<&SessionId>) -> Result<(), Problem> {
        let meta = early::read_meta(&named.transcript)?;
        let id = SessionId::parse(meta.id.as_deref().unwrap_or_default());
        let id = id.map_err(|error| Problem::at(&AGENT, &named.transcript, error))?;
        if above.is_none() && named.is_directory() {
            self.add_early(&named.agents(), Some(&id));
        }
        if self.scan.look.depth.reaches(&id) {
            let mut sketch = Sketch::new(self.scan.key(&id));
            sketch.transcript = Some(named.transcript);
            sketch.parent = above.cloned();
            meta.add_to(&mut sketch);
            self.sketches.add(sketch, []);
        }
        Ok(())
    }

    /// Returns whether a session with such an id may be looked for.
    fn may_reach(&self, id_begins: &str) -> bool {
        match self.scan.look.depth {
            Depth::Sessions(ids) => ids.iter().any(|id| id.as_str().starts_with(id_begins)),
            Depth::All | Depth::Live => true,
        }
    }

    fn sketch(&mut self, id: &SessionId, directory: Option<PathBuf>) -> Sketch {
        let mut sketch = Sketch::new(self.scan.key(id));
        let Some(directory) = directory else {
            // It has no prompt: Vibe drops it when the process leaves it.
            sketch.is_provisional = true;
            sketch.is_resumable = false;
            sketch.lacks_transcript = true;
            return sketch;
        };
        let mut meta = self
            .read_or_unclear(id, read_meta(&directory, id.as_str()))
            .unwrap_or_default();
        let parent = meta.parent.take();
        if let Some(parent) = parent.filter(|parent| parent != id.as_str())
            // A fork has a parent too.
            && self.read_or_unclear(id, is_of_kind(&directory, "subagent"))
        {
            sketch.parent = SessionId::parse(&parent).ok();
        }
        sketch.transcript = Some(directory);
        sketch.title = meta.title.take();
        meta.add_to(&mut sketch);
        sketch
    }

    /// What was read of a session. If it can't be read, the session may be a sub-agent.
    fn read_or_unclear<T: Default>(&mut self, id: &SessionId, read: Result<T, Problem>) -> T {
        read.unwrap_or_else(|problem| {
            self.scan.problems.push(problem);
            self.unclear.insert(id.clone());
            T::default()
        })
    }

    fn claims_of(&self, lease: &Lease, sketch: &Sketch) -> Vec<Claim> {
        let held = &lease.held;
        if lease.is_only_looked_at(self.scan.look) {
            let by: Vec<String> = held.by.iter().map(ToString::to_string).collect();
            let by = by.join(", ");
            let says = format!("process {by} has it locked, and the lease names another one");
            return vec![self.claim(lease, Subject::Unreadable, says)];
        }
        if held.by.is_empty() {
            let (subject, says) = held.free_lock();
            return vec![self.claim(lease, subject, says)];
        }
        // A session that may be a sub-agent, or may be no session, has replaced no other
        // session.
        let is_clear = sketch.parent.is_none() && !self.unclear.contains(&lease.id);
        let claim = |pid: &Pid| {
            // An interface shows one session at a time; an editor that started
            // the server itself may have several.
            let chain = self.chain_of(*pid);
            let has_interface = chain.is_some_and(|chain| chain.interface.is_some());
            let says = format!("held by process {pid}");
            let mut claim = self.claim(lease, Subject::Holder(*pid), says);
            if !has_interface || !is_clear {
                claim.serving = Serving::Many;
            }
            claim
        };
        held.by.iter().map(claim).collect()
    }

    fn claim(&self, lease: &Lease, subject: Subject, says: String) -> Claim {
        let now_ms = self.scan.look.machine.now_ms();
        let latest = now_ms.saturating_add(CLOCK_SLACK_MS);
        let evidence = Evidence::new(EvidenceKind::Lock, lease.path.clone(), says);
        let scan = &self.scan;
        Claim {
            dated_at_ms: lease.acquired_at_ms().filter(|at| *at <= latest),
            exclusivity: Exclusivity::Exclusive,
            ..scan.claim_by_file(&lease.id, subject, evidence, &lease.facts)
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
        let evidence = Evidence::new(EvidenceKind::Lock, lock, "it has no lease");
        let session = &sketch.key.session;
        Some(self.scan.ended(session, evidence, None, None))
    }

    /// Claims that a lease, or all of them, cannot be examined.
    fn unknown_claim(&self, id: &SessionId, path: &Path) -> Claim {
        let says = "it can't be looked at";
        let evidence = Evidence::new(EvidenceKind::Lock, path.to_owned(), says);
        let scan = &self.scan;
        Claim {
            exclusivity: Exclusivity::Exclusive,
            ..scan.claim_without_facts(id, Subject::Unreadable, evidence)
        }
    }

    /// A server that is Vibe's, and its parent if that is an interface.
    fn chain_of(&self, pid: Pid) -> Option<Chain<'a>> {
        let look = self.scan.look;
        let server = look.machine.table().seen(pid)?;
        let program = Program {
            process: server,
            details: &what_it_runs(look.machine, server),
        };
        if PROGRAMS.recognize(&program) != Some(Role::Host) {
            return None;
        }
        let interface = look.processes.iter().find(|process| {
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
        let now_ms = self.scan.look.machine.now_ms();
        let within = |from: i64, to: i64, max: i64| to.saturating_sub(from) < max;
        let began = chain.server.began_ms();
        let is_at_start = |acquired: i64| {
            began.is_some_and(|began| within(began, acquired, START_MS_MAX))
                && within(acquired, now_ms, PASSING_MS_MAX)
        };
        PROGRAMS.continues(&interface.program())
            && !interface.names(&lease.id)
            && lease.acquired_at_ms().is_some_and(is_at_start)
    }
}

/// Returns whether the holder has taken a lease only for cleanup: the holder is cleaning up
/// now, and had another session open before that.
fn is_taken_to_tidy_up(leases: &Leases, lease: &Lease) -> bool {
    let cleanup = leases.cleanup;
    let Some((pid, since_ms)) = cleanup.and_then(|by| Some((by.pid, by.since_ms?))) else {
        return false;
    };
    let is_before = |lease: &Lease| lease.acquired_at_ms().is_none_or(|at| at < since_ms);
    let is_its = |lease: &Lease| lease.held.by.contains(&pid);
    let mut others = leases.leases.iter().filter(|other| other.id != lease.id);
    is_its(lease) && !is_before(lease) && others.any(|other| is_its(other) && is_before(other))
}

/// The directory of a session, if it is stored.
fn stored_in(storage: &Path, id: &SessionId) -> Option<PathBuf> {
    let directory = sessions_in(storage).join(id.as_str());
    is_directory(&directory).then_some(directory)
}

fn client(lease: &Lease, server: &Process, interface: &AgentProcess) -> KnownClient {
    let (client, server) = (interface.process.pid, server.pid);
    let says = format!("client: process {client} started process {server}, which holds it");
    KnownClient {
        process: interface.process.clone(),
        evidence: Evidence::new(EvidenceKind::Lock, lease.path.clone(), says),
    }
}

#[cfg(test)]
#[allow(
    clippy::disallowed_methods,
    reason = "tests make their own files and processes"
)]
#[path = "scan_tests.rs"]
mod tests;
