//! One home of Codex: its locks and rollouts, and what they claim.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use whosup_process::{Among, FileId, Pid};
use whosup_sidecar::SessionId;
use whosup_sidecar::file::{Links, ReadFileError, facts};

use super::header::Origin;
use super::hints::Hints;
use super::locks::{ThreadLock, locks_in, read_locks};
use super::rollout::Rollout;
use super::thread::{Segment, keep_newest, newest_segments};
use super::tree::Tree;
use super::{AGENT, thread_id};
use crate::adapter::{AgentProcess, AgentScan, Depth, Home, Look, Role};
use crate::machine::problem::{Found, Problem};
use crate::sources::agents::kit::folder::is_directory;
use crate::sources::agents::kit::held::file_id;
use crate::sources::agents::kit::scan::Scan;

/// The rollout of a thread that is younger than this must lie near its birth date, in
/// milliseconds: a day.
const YOUNG_MS: i64 = 86_400_000;

/// Reads the claims and sketches of one home.
pub(super) fn scan(look: &Look<'_>, home: &Home) -> Found<AgentScan> {
    let mut scan = Scan::new(AGENT, look, home);
    let locks = read_locks(&mut scan);
    let mut tree = Tree::new(&home.root);
    let mut scanning = Scanning {
        scan,
        locks,
        segments: BTreeMap::new(),
        open: BTreeMap::new(),
        has_locks: is_directory(&locks_in(&home.root)),
        hints: Hints::new(&home.root),
        possible_terminals: BTreeMap::new(),
    };
    scanning.find_locked_threads(&mut tree);
    scanning.find_open_rollouts(&mut tree);
    scanning.find_named_threads(&mut tree);
    if look.depth.is_walk() {
        let mut all = tree.all();
        if let Depth::Sessions(threads) = look.depth {
            all.retain(|rollout| threads.iter().any(|id| rollout.may_be_of(id.as_str())));
        }
        scanning.add_segments(all);
    }
    scanning.read_hints();
    scanning.find_terminals();
    scanning.scan.problems.append(&mut tree.problems);
    scanning.finish()
}

/// Everything found in one home so far.
pub(super) struct Scanning<'a> {
    pub(super) scan: Scan<'a>,
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
}

impl<'a> Scanning<'a> {
    /// The process of Codex with this id.
    pub(super) fn process_of(&self, pid: Pid) -> Option<&'a AgentProcess> {
        let mut processes = self.scan.look.processes.iter();
        processes.find(|process| process.process.pid == pid)
    }

    /// A process holds the lock of a thread.
    pub(super) fn has_lock(&self, pid: Pid) -> bool {
        let mut locks = self.locks.values();
        locks.any(|lock| lock.held.by.contains(&pid))
    }

    /// A process has the rollout of a thread open.
    pub(super) fn has_open(&self, pid: Pid) -> bool {
        self.open.values().any(|pids| pids.contains(&pid))
    }

    /// Finds the rollouts of the threads that have a lock.
    fn find_locked_threads(&mut self, tree: &mut Tree<'_>) {
        let threads = self.locks.keys().cloned().collect();
        self.find_threads(tree, threads);
    }

    /// Finds the rollouts of the threads that arguments name: Codex locks a thread some time
    /// after it was started to resume it.
    fn find_named_threads(&mut self, tree: &mut Tree<'_>) {
        let named = self.scan.seekers().filter(|process| {
            let pid = process.process.pid;
            !self.has_lock(pid) && !self.has_open(pid)
        });
        let named = named.filter_map(|process| Some(process.named_session()?.to_ascii_lowercase()));
        let named = named.filter_map(|named| SessionId::parse(&named).ok());
        let new = named.filter(|thread| !self.segments.contains_key(thread));
        let new = new.collect();
        self.find_threads(tree, new);
    }

    /// Finds the rollouts of threads. A thread that is younger than a day, or has no prompt,
    /// has its rollout near its birth date or not at all.
    fn find_threads(&mut self, tree: &mut Tree<'_>, threads: Vec<SessionId>) {
        let mut rollouts = Vec::new();
        let mut missing = Vec::new();
        for thread in threads {
            let near = tree.near_birth(thread.as_str());
            let is_young = thread_id::born_at_ms(thread.as_str()).is_some_and(|born| {
                born.saturating_add(YOUNG_MS) > self.scan.look.machine.now_ms()
            });
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
        let below = path.strip_prefix(&self.scan.home.root).ok()?;
        let is_archived = below.starts_with("archived_sessions");
        let rollout = Rollout::of(path.parent()?, path.file_name()?.to_str()?, is_archived)?;
        facts(path, Links::Follow).ok().map(|_| rollout)
    }

    /// Finds the rollouts that Codex processes have open for writing: of the threads known
    /// so far, and of processes that hold no lock, as in releases without locks.
    fn find_open_rollouts(&mut self, tree: &mut Tree<'_>) {
        let processes = self.scan.processes();
        let serving: Vec<&AgentProcess> = processes
            .filter(|process| matches!(process.role, Role::Session | Role::Host))
            .collect();
        let known = self.segments.values();
        let known = known.map(|segment| segment.rollout.clone()).collect();
        self.add_open(&serving, known);

        let mut unlocked = serving.clone();
        unlocked.retain(|process| !self.has_lock(process.process.pid));
        let began = unlocked
            .iter()
            .map(|process| process.process.began_ms())
            .min();
        let Some(began) = began else { return };
        let since = tree.since(began.unwrap_or(i64::MIN));
        self.add_open(&unlocked, since);

        // A process without a lock or an open rollout that may be the client of a host: the
        // thread may be older than the process.
        let has_host = serving.iter().any(|process| process.role == Role::Host);
        let mut unexplained = unlocked;
        unexplained
            .retain(|process| process.role == Role::Session && !self.has_open(process.process.pid));
        if !has_host && !unexplained.is_empty() {
            let all = tree.all();
            self.add_open(&unexplained, all);
        }
    }

    fn add_open(&mut self, processes: &[&AgentProcess], mut rollouts: Vec<Rollout>) {
        rollouts.retain(|rollout| !rollout.is_compressed);
        let files: HashMap<FileId, Rollout> = rollouts
            .into_iter()
            .filter_map(|rollout| Some((self.file_of(&rollout)?, rollout)))
            .collect();
        if files.is_empty() || processes.is_empty() {
            return;
        }
        let ids: Vec<FileId> = files.keys().copied().collect();
        let pids = processes.iter().map(|process| process.process.pid);
        let pids: Vec<Pid> = pids.collect();
        let table = self.scan.look.machine.table();
        let holders = match table.holders(&ids, Among::These(&pids)) {
            Ok(holders) => holders.found,
            Err(error) => {
                self.scan.problems.push(Problem::of(&AGENT, error));
                return;
            }
        };
        // Who only reads it looks at it.
        let writers = holders.iter().filter(|holder| holder.access.is_writer());
        for (pid, rollout) in
            writers.filter_map(|writer| Some((writer.pid, files.get(&writer.file)?)))
        {
            let threads = newest_segments(vec![rollout.clone()], &mut self.scan.problems);
            for (thread, segment) in threads {
                self.open.entry(thread.clone()).or_default().insert(pid);
                self.segments.entry(thread).or_insert(segment);
            }
        }
    }

    fn file_of(&mut self, rollout: &Rollout) -> Option<FileId> {
        match facts(&rollout.path, Links::Follow) {
            Ok(facts) => return Some(file_id(&facts)),
            Err(ReadFileError::NotFound { .. }) => {}
            Err(error) => {
                let problem = Problem::at(&AGENT, &rollout.path, error.reason());
                if !self.scan.problems.contains(&problem) {
                    self.scan.problems.push(problem);
                }
            }
        }
        None
    }

    fn add_segments(&mut self, rollouts: Vec<Rollout>) {
        for (thread, segment) in newest_segments(rollouts, &mut self.scan.problems) {
            keep_newest(&mut self.segments, thread, segment);
        }
    }

    /// The threads that were found so far.
    pub(super) fn threads(&self) -> BTreeSet<SessionId> {
        let threads = self.locks.keys().chain(self.segments.keys());
        threads.cloned().collect()
    }

    /// Reads names and, where they or the files leave something open, the
    /// database.
    fn read_hints(&mut self) {
        let threads = self.threads();
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
        let hint = self.hints.of(thread.as_str());
        let segment = self.segments.get(thread);
        hint.is_none_or(|hint| hint.title.is_none())
            && segment.is_some_and(|segment| segment.header.origin == Some(Origin::Other))
    }
}

#[cfg(test)]
#[allow(
    clippy::disallowed_methods,
    reason = "tests make their own files and processes"
)]
#[path = "scan_tests.rs"]
mod tests;
