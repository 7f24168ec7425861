//! One home of Codex: its locks and rollouts, and what they claim.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use whosup_process::{Access, Among, FileId, Pid};
use whosup_sidecar::file::{Links, ReadFileError, facts};
use whosup_sidecar::{AgentId, SessionId};

use super::header::Origin;
use super::hints::Hints;
use super::locks::{ThreadLock, locks_in, read_locks};
use super::rollout::Rollout;
use super::thread::{Segment, newest_segments};
use super::thread_id;
use super::tree::Tree;
use crate::adapter::{AgentProcess, AgentScan, Depth, Home, Look, Role};
use crate::machine::problem::{Found, Problem};
use crate::sources::agents::kit::folder::is_directory;

/// The rollout of a thread that is younger than this must lie near its birth date, in
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
        has_locks: is_directory(&locks_in(&home.root)),
        hints: Hints::new(&home.root, agent),
        possible_terminals: BTreeMap::new(),
        problems,
    };
    scanning.find_locked_threads(&mut tree);
    scanning.find_open_rollouts(&mut tree);
    if look.depth.is_walk() {
        let mut all = tree.all();
        if let Depth::Sessions(threads) = look.depth {
            all.retain(|rollout| threads.iter().any(|id| rollout.may_be_of(id.as_str())));
        }
        scanning.add_segments(all);
    }
    scanning.read_hints();
    scanning.find_terminals();
    scanning.problems.append(&mut tree.problems);
    scanning.finish()
}

/// Everything found in one home so far.
pub(super) struct Scanning<'a> {
    pub(super) look: &'a Look<'a>,
    pub(super) home: &'a Home,
    pub(super) agent: &'a AgentId,
    /// The locks, by thread.
    pub(super) locks: BTreeMap<SessionId, ThreadLock>,
    /// The newest segment of each thread, as far as it was looked for.
    pub(super) segments: BTreeMap<SessionId, Segment>,
    /// Processes of Codex that have a thread's rollout open for writing.
    pub(super) open: BTreeMap<SessionId, BTreeSet<Pid>>,
    /// The releases that use this home lock their threads.
    pub(super) has_locks: bool,
    /// Facts about threads from the index and the database.
    pub(super) hints: Hints<'a>,
    /// The terminals that may show a thread, where the terminal's log records it.
    pub(super) possible_terminals: BTreeMap<SessionId, BTreeSet<Pid>>,
    pub(super) problems: Vec<Problem>,
}

impl Scanning<'_> {
    /// Finds the rollouts of the threads that have a lock. A thread that is younger than a
    /// day, or has no prompt, has its rollout near its birth date or not at all.
    fn find_locked_threads(&mut self, tree: &mut Tree<'_>) {
        let threads: Vec<SessionId> = self.locks.keys().cloned().collect();
        let mut rollouts = Vec::new();
        let mut missing = Vec::new();
        for thread in threads {
            let near = tree.near_birth(thread.as_str());
            let is_young = thread_id::born_at_ms(thread.as_str())
                .is_some_and(|born| born.saturating_add(YOUNG_MS) > self.look.machine.now_ms());
            // An older thread may continue in another file.
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

    /// Looks for threads where the database records them, and for threads without a record,
    /// everywhere.
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

    /// Finds the rollouts that Codex processes have open for writing: of the threads known
    /// so far, and of processes that hold no lock, as in releases without locks.
    fn find_open_rollouts(&mut self, tree: &mut Tree<'_>) {
        let serving: Vec<&AgentProcess> = self
            .look
            .processes_of(self.home)
            .filter(|process| matches!(process.role, Role::Session | Role::Host))
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
            .filter(|process| !has_lock(process.process.pid))
            .collect();
        let began = unlocked
            .iter()
            .map(|process| process.process.began_at_ms.clone().ok())
            .min();
        let Some(began) = began else { return };
        let since = tree.since(began.unwrap_or(i64::MIN));
        self.add_open(&unlocked, since);

        // A process without a lock or an open rollout that may be the client of a host: the
        // thread may be older than the process.
        let has_host = serving.iter().any(|process| process.role == Role::Host);
        let has_open = |pid: &Pid| self.open.values().any(|pids| pids.contains(pid));
        let unexplained: Vec<&AgentProcess> = unlocked
            .into_iter()
            .filter(|process| process.role == Role::Session && !has_open(&process.process.pid))
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
        let pids: Vec<Pid> = processes
            .iter()
            .map(|process| process.process.pid)
            .collect();
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
}

#[cfg(test)]
#[allow(
    clippy::disallowed_methods,
    reason = "tests make their own files and processes"
)]
#[path = "scan_tests.rs"]
mod tests;
