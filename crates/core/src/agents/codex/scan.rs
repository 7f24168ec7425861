//! One home of Codex: its locks and rollouts, and what they claim.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use whosup_process::{Access, Among, FileId, Pid};
use whosup_sidecar::file::{FileFacts, Links, ReadFileError, facts};
use whosup_sidecar::{AgentId, SessionId};

use super::header::Origin;
use super::hints::Hints;
use super::locks::{ThreadLock, process_of, read_locks};
use super::process::is_headless;
use super::rollout::Rollout;
use super::tail::Tail;
use super::thread::{Segment, newest_segments};
use super::thread_id;
use super::tree::Tree;
use crate::agents::bad_lines::BadLines;
use crate::agents::{AgentProcess, AgentScan, Depth, Home, Look, PairingRule, Role, Sketch};
use crate::claim::{
    CLOCK_SLACK_MS, Claim, ClaimedScope, Evidence, EvidenceKind, Exclusivity, Serving, SessionKey,
    Subject, Trust,
};
use crate::problem::{Found, Problem};
use crate::trust::trust_of;

/// How long ago a thread was born whose rollout must lie near its birth, in
/// milliseconds: a day.
const YOUNG_MS: i64 = 86_400_000;

/// Reads the claims and sketches of one home.
pub(super) fn scan(look: &Look<'_>, home: &Home, agent: &AgentId) -> Found<AgentScan> {
    let mut problems = Vec::new();
    let locks = read_locks(look, &home.root, agent, &mut problems);
    let mut tree = Tree::new(&home.root, agent);
    let mut scanning = Scanning {
        look,
        home,
        agent,
        locks: locks
            .into_iter()
            .map(|lock| (lock.id.clone(), lock))
            .collect(),
        segments: BTreeMap::new(),
        open: BTreeMap::new(),
        hints: Hints::new(&home.root, agent),
        problems,
    };
    scanning.find_locked_threads(&mut tree);
    scanning.find_open_rollouts(&mut tree);
    if *look.depth == Depth::All {
        let all = tree.all();
        scanning.add_segments(all);
    }
    scanning.read_hints();
    scanning.problems.append(&mut tree.problems);
    scanning.finish()
}

struct Scanning<'a> {
    look: &'a Look<'a>,
    home: &'a Home,
    agent: &'a AgentId,
    /// The locks, by thread.
    locks: BTreeMap<SessionId, ThreadLock>,
    /// The segment that each thread goes on in, as far as it was looked for.
    segments: BTreeMap<SessionId, Segment>,
    /// Processes of Codex that have a thread's rollout open for writing.
    open: BTreeMap<SessionId, BTreeSet<Pid>>,
    /// What the index and the database tell of threads.
    hints: Hints<'a>,
    problems: Vec<Problem>,
}

impl Scanning<'_> {
    /// Finds the rollouts of the threads that have a lock. One that is younger
    /// than a day, or has not been prompted, has it near its birth or not at all.
    fn find_locked_threads(&mut self, tree: &mut Tree<'_>) {
        let threads: Vec<SessionId> = self.locks.keys().cloned().collect();
        let mut rollouts = Vec::new();
        let mut missing = Vec::new();
        for thread in threads {
            let near = tree.near_birth(thread.as_str());
            let is_young = thread_id::born_at_ms(thread.as_str())
                .is_some_and(|born| born.saturating_add(YOUNG_MS) > self.look.machine.now_ms());
            // An older one may have gone on in another file since.
            if !is_young {
                missing.push((thread, near.is_empty()));
            }
            rollouts.extend(near);
        }
        if !missing.is_empty() {
            rollouts.extend(self.find_elsewhere(tree, &missing));
        }
        self.add_segments(rollouts);
    }

    /// Where the database says that threads go on, and for those of which it
    /// says nothing, everywhere.
    fn find_elsewhere(
        &mut self,
        tree: &mut Tree<'_>,
        threads: &[(SessionId, bool)],
    ) -> Vec<Rollout> {
        let ids: Vec<&str> = threads.iter().map(|(id, _)| id.as_str()).collect();
        let has_answered = self.hints.ask_database(&ids);
        let mut found = Vec::new();
        for (thread, is_missing) in threads {
            let hint = self.hints.of(thread.as_str());
            let rollout = hint.and_then(|hint| self.rollout_at(hint.rollout.as_deref()?));
            // A thread without a row has not been prompted.
            let may_have_one = !has_answered || hint.is_some();
            if rollout.is_none() && *is_missing && may_have_one {
                found.extend(tree.anywhere(thread.as_str()));
            }
            found.extend(rollout);
        }
        found
    }

    /// The rollout at a path that the database names, if it is one of this home.
    fn rollout_at(&self, path: &Path) -> Option<Rollout> {
        let below = path.strip_prefix(&self.home.root).ok()?;
        let is_archived = below.starts_with("archived_sessions");
        let rollout = Rollout::of(path.parent()?, path.file_name()?.to_str()?, is_archived)?;
        facts(path, Links::Follow).ok().map(|_| rollout)
    }

    /// Finds the rollouts that processes of Codex have open for writing: of
    /// the threads known so far, and of processes that hold no lock, as
    /// releases without locks do.
    fn find_open_rollouts(&mut self, tree: &mut Tree<'_>) {
        let serving: Vec<&AgentProcess> = self
            .look
            .processes_of(self.home)
            .filter(|its| matches!(its.role, Role::Session | Role::Host))
            .collect();
        let known: Vec<Rollout> = self
            .segments
            .values()
            .map(|segment| segment.rollout.clone())
            .collect();
        self.add_open(&serving, known);

        let has_lock = |pid: Pid| self.locks.values().any(|lock| lock.holders.contains(&pid));
        let unlocked: Vec<&AgentProcess> = serving
            .iter()
            .copied()
            .filter(|its| !has_lock(its.process.pid))
            .collect();
        let began = unlocked
            .iter()
            .map(|its| its.process.began_at_ms.clone().ok())
            .min();
        let Some(began) = began else { return };
        let since = tree.since(began.unwrap_or(i64::MIN));
        self.add_open(&unlocked, since);

        // One without a lock, an open rollout, and a host whose client it may
        // be: the thread may be older than the process.
        let has_host = serving.iter().any(|its| its.role == Role::Host);
        let has_open = |pid: &Pid| self.open.values().any(|pids| pids.contains(pid));
        let unexplained: Vec<&AgentProcess> = unlocked
            .into_iter()
            .filter(|its| its.role == Role::Session && !has_open(&its.process.pid))
            .collect();
        if !has_host && !unexplained.is_empty() {
            let all = tree.all();
            self.add_open(&unexplained, all);
        }
    }

    fn add_open(&mut self, processes: &[&AgentProcess], rollouts: Vec<Rollout>) {
        let plain = rollouts
            .into_iter()
            .filter(|rollout| !rollout.is_compressed);
        let files: HashMap<FileId, Rollout> = plain
            .filter_map(|rollout| Some((self.file_of(&rollout)?, rollout)))
            .collect();
        if files.is_empty() || processes.is_empty() {
            return;
        }
        let ids: Vec<FileId> = files.keys().copied().collect();
        let pids: Vec<Pid> = processes.iter().map(|its| its.process.pid).collect();
        let holders = match self.look.machine.table().holders(&ids, Among::These(&pids)) {
            Ok(holders) => holders,
            Err(error) => {
                self.problems.push(Problem::of(self.agent, error));
                return;
            }
        };
        // Who only reads it looks at it.
        for holder in holders
            .found
            .iter()
            .filter(|holder| Access::is_writer(holder.access))
        {
            let Some(rollout) = files.get(&holder.file) else {
                continue;
            };
            let threads = newest_segments(vec![rollout.clone()], self.agent, &mut self.problems);
            for (thread, segment) in threads {
                self.open
                    .entry(thread.clone())
                    .or_default()
                    .insert(holder.pid);
                self.segments.entry(thread).or_insert(segment);
            }
        }
    }

    fn file_of(&mut self, rollout: &Rollout) -> Option<FileId> {
        match facts(&rollout.path, Links::Follow) {
            Ok(facts) => Some(FileId {
                device: facts.device,
                inode: facts.inode,
            }),
            Err(ReadFileError::NotFound { .. }) => None,
            Err(error) => {
                let problem = Problem::at(self.agent, &rollout.path, error.reason());
                if !self.problems.contains(&problem) {
                    self.problems.push(problem);
                }
                None
            }
        }
    }

    fn add_segments(&mut self, rollouts: Vec<Rollout>) {
        let found = newest_segments(rollouts, self.agent, &mut self.problems);
        for (thread, segment) in found {
            match self.segments.get(&thread) {
                Some(known) if !known.is_older_than(&segment) => {}
                _ => {
                    self.segments.insert(thread, segment);
                }
            }
        }
    }

    /// Reads names and, where they or the files leave something open, the
    /// database.
    fn read_hints(&mut self) {
        let threads: BTreeSet<&SessionId> = self.locks.keys().chain(self.segments.keys()).collect();
        let threads: Vec<SessionId> = threads.into_iter().cloned().collect();
        if threads.is_empty() {
            return;
        }
        let ids: Vec<&str> = threads.iter().map(SessionId::as_str).collect();
        self.hints.read_names(&ids);
        // The same for a claimed thread in every look, however far it goes.
        let is_claimed =
            |thread: &SessionId| self.locks.contains_key(thread) || self.open.contains_key(thread);
        let unclear: Vec<&str> = threads
            .iter()
            .filter(|thread| !is_claimed(thread) || self.is_unnamed_conversation(thread))
            .map(SessionId::as_str)
            .collect();
        self.hints.ask_database(&unclear);
    }

    /// It has a rollout, and a name that the index does not have.
    fn is_unnamed_conversation(&self, thread: &SessionId) -> bool {
        let is_named = self
            .hints
            .of(thread.as_str())
            .is_some_and(|hint| hint.title.is_some());
        let is_conversation = self
            .segments
            .get(thread)
            .is_some_and(|segment| segment.header.origin == Some(Origin::Other));
        !is_named && is_conversation
    }

    fn finish(self) -> Found<AgentScan> {
        let mut found = AgentScan::default();
        for lock in self.locks.values() {
            found.claims.extend(self.claims_of_lock(lock));
        }
        for (thread, pids) in &self.open {
            found.claims.extend(
                pids.iter()
                    .filter_map(|pid| self.claim_of_open(thread, *pid)),
            );
        }
        let threads: BTreeSet<&SessionId> = self.locks.keys().chain(self.segments.keys()).collect();
        let mut problems = Vec::new();
        for thread in threads {
            let sketch = self.sketch(thread, &mut problems);
            found.claims.extend(self.claim_of_ended(&sketch));
            found.sketches.push(sketch);
        }
        for claim in &found.claims {
            if let (Trust::Untrusted { because }, Some(path)) = (&claim.trust, &claim.evidence.path)
            {
                problems.push(Problem::at(self.agent, path, because));
            }
        }
        problems.extend(self.problems);
        problems.extend(self.hints.problems);
        Found { found, problems }
    }

    fn claims_of_lock(&self, lock: &ThreadLock) -> Vec<Claim> {
        let claim = |subject, serving, says: String| {
            let evidence = Evidence {
                kind: EvidenceKind::Lock,
                path: Some(lock.path.clone()),
                says,
            };
            Claim {
                dated_at_ms: self.loaded_at_ms(lock),
                modified_at_ms: lock.facts.modified_ms,
                ..self.claim(&lock.id, subject, serving, &lock.facts, evidence)
            }
        };
        if lock.holders.is_empty() {
            let is_everyone_asked = lock.is_everyone_asked;
            let says = if is_everyone_asked {
                "nobody holds it"
            } else {
                "nobody was found to hold it, and not everybody could be asked"
            };
            let subject = Subject::LockFree { is_everyone_asked };
            return vec![claim(subject, Serving::One, says.to_owned())];
        }
        let holders = lock.holders.iter();
        holders
            .map(|pid| {
                let serving = self.serving(&lock.id, *pid);
                claim(
                    Subject::Holder(*pid),
                    serving,
                    format!("held by process {pid}"),
                )
            })
            .collect()
    }

    fn claim_of_open(&self, thread: &SessionId, pid: Pid) -> Option<Claim> {
        let rollout = &self.segments.get(thread)?.rollout;
        let facts = facts(&rollout.path, Links::Follow).ok()?;
        let evidence = Evidence {
            kind: EvidenceKind::OpenFile,
            path: Some(rollout.path.clone()),
            says: format!("open for writing in process {pid}"),
        };
        let serving = self.serving(thread, pid);
        Some(Claim {
            dated_at_ms: thread_id::born_at_ms(thread.as_str()),
            exclusivity: Exclusivity::Shared,
            ..self.claim(thread, Subject::Holder(pid), serving, &facts, evidence)
        })
    }

    /// A sub-agent has a lock of its own while it runs, and a rollout held open:
    /// without either it has ended, also while its parent goes on.
    fn claim_of_ended(&self, sketch: &Sketch) -> Option<Claim> {
        let thread = &sketch.key.session;
        sketch.parent.as_ref()?;
        if self.locks.contains_key(thread) || self.open.contains_key(thread) {
            return None;
        }
        let path = sketch.transcript.clone()?;
        let facts = facts(&path, Links::Follow).ok()?;
        let evidence = Evidence {
            kind: EvidenceKind::OpenFile,
            path: Some(path),
            says: "no process of Codex has it open, and it has no lock".to_owned(),
        };
        Some(self.claim(thread, Subject::Released, Serving::One, &facts, evidence))
    }

    fn claim(
        &self,
        thread: &SessionId,
        subject: Subject,
        serving: Serving,
        facts: &FileFacts,
        evidence: Evidence,
    ) -> Claim {
        let mounts = self.look.machine.mounts();
        let path = evidence.path.as_deref().unwrap_or(&self.home.root);
        Claim {
            key: self.key(thread),
            subject,
            scope: ClaimedScope::default(),
            stamp: None,
            dated_at_ms: None,
            modified_at_ms: None,
            executable: None,
            work_dir: None,
            exclusivity: Exclusivity::Exclusive,
            serving,
            trust: trust_of(facts, self.home, self.look.machine),
            placement: mounts.placement_of(path),
            evidence,
        }
    }

    fn key(&self, thread: &SessionId) -> SessionKey {
        SessionKey {
            agent: self.agent.clone(),
            session: thread.clone(),
            home: self.home.root.clone(),
        }
    }

    /// When its process took up the thread: the lock is made then, and a new
    /// thread is born then. Decides which thread of a terminal is current.
    fn loaded_at_ms(&self, lock: &ThreadLock) -> Option<i64> {
        let latest = self.look.machine.now_ms().saturating_add(CLOCK_SLACK_MS);
        let made = lock.facts.born_ms.filter(|made| *made <= latest);
        made.max(thread_id::born_at_ms(lock.id.as_str()))
    }

    /// A terminal goes from one thread of its own to the next. The sub-agents
    /// that run beside it are no such step, and a second thread of which
    /// nothing is known may be one.
    fn serving(&self, thread: &SessionId, pid: Pid) -> Serving {
        let is_single =
            process_of(self.look.processes, pid).is_some_and(|its| its.role == Role::Session);
        let is_own_step = match self.segments.get(thread) {
            Some(segment) => segment.header.parent().is_none(),
            None => self.is_terminals_thread(thread) || !self.holds_another(thread, pid),
        };
        if is_single && is_own_step {
            Serving::One
        } else {
            Serving::Many
        }
    }

    fn holds_another(&self, thread: &SessionId, pid: Pid) -> bool {
        let mut others = self.locks.values().filter(|lock| lock.id != *thread);
        others.any(|lock| lock.holders.contains(&pid))
    }

    /// A terminal has begun it: it leaves a mark, from the thread's first
    /// moment on, that is never removed.
    fn is_terminals_thread(&self, thread: &SessionId) -> bool {
        let marks = self.home.root.join("tui-thread-reference-capabilities");
        facts(&marks.join(thread.as_str()), Links::Refuse).is_ok()
    }

    fn sketch(&self, thread: &SessionId, problems: &mut Vec<Problem>) -> Sketch {
        let id = thread.as_str();
        let hint = self.hints.of(id);
        let segment = self.segments.get(thread);
        let header = segment.map(|segment| &segment.header);
        let holders: Vec<&AgentProcess> = self
            .locks
            .get(thread)
            .into_iter()
            .flat_map(|lock| &lock.holders)
            .chain(self.open.get(thread).into_iter().flatten())
            .filter_map(|pid| process_of(self.look.processes, *pid))
            .collect();
        let is_hosted = holders.iter().any(|holder| holder.role == Role::Host);
        let parent = header
            .and_then(|header| header.parent())
            .or_else(|| hint.and_then(|hint| hint.parent.as_deref()));
        let origin = header
            .and_then(|header| header.origin.as_ref())
            .or_else(|| hint.and_then(|hint| hint.origin.as_ref()));
        let is_headless = origin == Some(&Origin::Headless)
            || holders.iter().any(|holder| is_headless(&holder.program()));
        let born_at_ms =
            thread_id::born_at_ms(id).or_else(|| header.and_then(|header| header.born_at_ms));
        Sketch {
            parent: parent
                .and_then(|parent| SessionId::parse(parent).ok())
                .filter(|parent| parent != thread),
            work_dir: header
                .and_then(|header| header.work_dir.clone())
                .or_else(|| hint.and_then(|hint| hint.work_dir.clone())),
            born_at_ms,
            last_record_at_ms: segment
                .filter(|_| is_hosted)
                .and_then(|segment| self.last_record_at_ms(segment, problems)),
            transcript: segment.map(|segment| segment.rollout.path.clone()),
            pairing: if is_hosted {
                PairingRule::Client
            } else {
                PairingRule::Never
            },
            is_orphan_when_stale: self.locks.contains_key(thread),
            is_headless: is_headless.then_some(true),
            title: hint.and_then(|hint| hint.title.clone()),
            agent_version: header.and_then(|header| header.version.clone()),
            started_at_ms: born_at_ms,
            ..Sketch::new(self.key(thread))
        }
    }

    fn last_record_at_ms(&self, segment: &Segment, problems: &mut Vec<Problem>) -> Option<i64> {
        if segment.rollout.is_compressed {
            return None;
        }
        let path = &segment.rollout.path;
        match Tail::read(path, &mut BadLines::default()) {
            Ok(tail) => tail.last_record_at_ms,
            Err(error) => {
                problems.push(Problem::at(self.agent, path, error.reason()));
                None
            }
        }
    }
}
