//! Claims from the locks and rollouts of a home, and the sketches of the threads.

use std::path::Path;

use whosup_process::Pid;
use whosup_sidecar::SessionId;
use whosup_sidecar::file::{Links, facts};

use super::header::{Header, Origin};
use super::locks::ThreadLock;
use super::process::{PROGRAMS, endpoint};
use super::scan::Scanning;
use super::tail::Tail;
use super::{AGENT, thread_id};
use crate::adapter::claim::{
    CLOCK_SLACK_MS, Claim, Evidence, EvidenceKind, Exclusivity, Serving, Subject,
};
use crate::adapter::{AgentProcess, AgentScan, Clue, ClueKind, Role, Sketch, Unclaimed};
use crate::machine::problem::{Found, Problem};
use crate::sources::agents::kit::bad_lines::BadLines;

/// How long a thread may have no sign of its owner, in milliseconds. About ten were seen.
const UNKNOWN_MS_MAX: i64 = 10_000;
/// The folder of the marks that terminals leave for their threads.
const MARKS: &str = "tui-thread-reference-capabilities";

impl<'a> Scanning<'a> {
    /// Makes claims and sketches of what was found.
    pub(super) fn finish(mut self) -> Found<AgentScan> {
        let locks = self.locks.values();
        let (unknown, known): (Vec<_>, Vec<_>) =
            locks.partition(|lock| self.is_not_known_yet(lock));
        let claims = known.into_iter().flat_map(|lock| self.claims_of_lock(lock));
        let mut claims: Vec<Claim> = claims.collect();
        for (thread, pids) in &self.open {
            let pids = pids.iter();
            claims.extend(pids.filter_map(|pid| self.claim_of_open(thread, *pid)));
        }
        let mut threads = self.threads();
        threads.retain(|thread| unknown.iter().all(|lock| lock.id != *thread));
        let mut problems = Vec::new();
        let mut sketches = Vec::new();
        for thread in &threads {
            let sketch = self.sketch(thread, &mut problems);
            claims.extend(self.claim_of_ended(&sketch));
            sketches.push(Box::new(sketch));
        }
        self.scan.claims = claims.into_iter().map(Box::new).collect();
        self.scan.problems.splice(..0, problems);
        self.scan.problems.extend(self.hints.problems);
        self.scan.finish_with(sketches)
    }

    fn claims_of_lock(&self, lock: &ThreadLock) -> Vec<Claim> {
        let claim = |subject, serving, says: String| {
            let evidence = Evidence::new(EvidenceKind::Lock, lock.path.clone(), says);
            let scan = &self.scan;
            Claim {
                dated_at_ms: self.loaded_at_ms(lock),
                exclusivity: Exclusivity::Exclusive,
                serving,
                ..scan.claim_by_file(&lock.id, subject, evidence, &lock.facts)
            }
        };
        if lock.held.by.is_empty() {
            let (subject, says) = lock.held.free_lock();
            return vec![claim(subject, Serving::One, says)];
        }
        let held_by = |pid: &Pid| {
            let serving = self.serving(&lock.id, *pid);
            let says = format!("held by process {pid}");
            claim(Subject::Holder(*pid), serving, says)
        };
        lock.held.by.iter().map(held_by).collect()
    }

    fn claim_of_open(&self, thread: &SessionId, pid: Pid) -> Option<Claim> {
        let path = &self.segments.get(thread)?.rollout.path;
        let facts = facts(path, Links::Follow).ok()?;
        let says = format!("open for writing in process {pid}");
        let evidence = Evidence::new(EvidenceKind::OpenFile, path.clone(), says);
        let (scan, subject) = (&self.scan, Subject::Holder(pid));
        Some(Claim {
            dated_at_ms: thread_id::born_at_ms(thread.as_str()),
            serving: self.serving(thread, pid),
            ..scan.claim_by_file(thread, subject, evidence, &facts)
        })
    }

    /// A running sub-agent has a lock of its own and an open rollout: without either it has
    /// ended, even while its parent runs. (In a home without locks, that is unknown.)
    fn claim_of_ended(&self, sketch: &Sketch) -> Option<Claim> {
        let thread = &sketch.key.session;
        sketch.parent.as_ref()?;
        let may_run = self.locks.contains_key(thread) || self.open.contains_key(thread);
        if may_run || !self.has_locks {
            return None;
        }
        let path = sketch.transcript.clone()?;
        let facts = facts(&path, Links::Follow).ok()?;
        let says = "no process of Codex has it open, and it has no lock";
        let evidence = Evidence::new(EvidenceKind::OpenFile, path, says);
        Some(self.scan.ended(thread, evidence, Some(&facts), None))
    }

    /// When the process opened the thread: the lock is made then, and a new thread is born
    /// then. The date decides which thread of a terminal is current.
    fn loaded_at_ms(&self, lock: &ThreadLock) -> Option<i64> {
        let now_ms = self.scan.look.machine.now_ms();
        let latest = now_ms.saturating_add(CLOCK_SLACK_MS);
        let made = lock.facts.born_ms.filter(|made| *made <= latest);
        made.max(thread_id::born_at_ms(lock.id.as_str()))
    }

    /// A terminal moves from one of its own threads to the next. The sub-agents beside a
    /// thread are no such step. A second thread without known facts may be one.
    fn serving(&self, thread: &SessionId, pid: Pid) -> Serving {
        let is_own_step = match self.segments.get(thread) {
            Some(segment) if segment.header.shows_parent() => segment.header.parent().is_none(),
            _ => self.is_terminals_thread(thread) || !self.holds_another(thread, pid),
        };
        match self.is_single(pid) && is_own_step {
            true => Serving::One,
            false => Serving::Many,
        }
    }

    /// The process runs one thread at a time.
    fn is_single(&self, pid: Pid) -> bool {
        let process = self.process_of(pid);
        process.is_some_and(|process| process.role == Role::Session)
    }

    /// A terminal has just opened the thread beside another thread. Whether it resumed the
    /// thread or runs a sub-agent is unknown until a mark or a rollout follows, which
    /// happens at once.
    fn is_not_known_yet(&self, lock: &ThreadLock) -> bool {
        let id = lock.id.as_str();
        let born = thread_id::born_at_ms(id).or(lock.facts.born_ms);
        let now_ms = self.scan.look.machine.now_ms();
        let is_young = born > Some(now_ms.saturating_sub(UNKNOWN_MS_MAX));
        let of_terminal = |pid: &Pid| self.is_single(*pid) && self.holds_another(&lock.id, *pid);
        is_young
            && !self.segments.contains_key(&lock.id)
            && lock.held.by.iter().any(of_terminal)
            && !self.is_terminals_thread(&lock.id)
    }

    fn holds_another(&self, thread: &SessionId, pid: Pid) -> bool {
        let mut others = self.locks.values().filter(|lock| lock.id != *thread);
        others.any(|lock| lock.held.by.contains(&pid))
    }

    /// A terminal has begun it: it leaves a mark, from the thread's first
    /// moment on, that is never removed.
    fn is_terminals_thread(&self, thread: &SessionId) -> bool {
        let marks = self.scan.home.root.join(MARKS);
        facts(&marks.join(thread.as_str()), Links::Refuse).is_ok()
    }

    fn sketch(&self, thread: &SessionId, problems: &mut Vec<Problem>) -> Sketch {
        let id = thread.as_str();
        let hint = self.hints.of(id);
        let segment = self.segments.get(thread);
        let header = segment.map(|segment| &segment.header);
        let holders = self.holders_of(thread);
        let is_hosted = holders.iter().any(|holder| holder.role == Role::Host);
        let hinted_parent = || hint?.parent.as_deref();
        let parent = header.and_then(Header::parent).or_else(hinted_parent);
        let origin = header.and_then(|header| header.origin.as_ref());
        let origin = origin.or_else(|| hint?.origin.as_ref());
        let runs_headless = |holder: &&AgentProcess| PROGRAMS.is_headless(&holder.program());
        // The current holder decides, whichever process began the thread.
        let is_headless = match holders.is_empty() {
            true => (origin == Some(&Origin::Headless)).then_some(true),
            false => Some(holders.iter().all(runs_headless)),
        };
        let born_at_ms = thread_id::born_at_ms(id).or_else(|| header?.born_at_ms);
        let rollout = segment.map(|segment| &segment.rollout);
        let plain = rollout.filter(|rollout| is_hosted && !rollout.is_compressed);
        let tail = plain.map(|rollout| read_tail(&rollout.path, problems));
        let tail = tail.unwrap_or_default();
        let parent = parent.and_then(|parent| SessionId::parse(parent).ok());
        let work_dir = header.and_then(|header| header.work_dir.clone());
        let work_dir = work_dir.or_else(|| hint?.work_dir.clone());
        let own_dir = || {
            let mut own = holders.iter().filter(|holder| holder.role == Role::Session);
            own.find_map(|holder| holder.named_or_own_dir())
        };
        Sketch {
            parent: parent.filter(|parent| parent != thread),
            // Before the first prompt, only the owner process has the directory.
            work_dir: work_dir.or_else(own_dir),
            born_at_ms,
            last_record_at_ms: tail.found.last_activity_at_ms,
            perhaps_until_ms: tail.perhaps_until_ms,
            transcript: rollout.map(|rollout| rollout.path.clone()),
            lacks_transcript: rollout.is_none(),
            unclaimed: match is_hosted {
                true => Unclaimed::Client,
                false => Unclaimed::NoProcess,
            },
            clues: self.clues_of(thread, header, born_at_ms),
            launched_at_ms: born_at_ms.into_iter().collect(),
            is_orphan_when_stale: self.locks.contains_key(thread),
            is_headless,
            title: hint.and_then(|hint| hint.title.clone()),
            agent_version: header.and_then(|header| header.version.clone()),
            endpoint: self.endpoint_of(&holders),
            started_at_ms: born_at_ms,
            ..Sketch::new(self.scan.key(thread))
        }
    }

    /// The processes of Codex that run a thread.
    fn holders_of(&self, thread: &SessionId) -> Vec<&'a AgentProcess> {
        let locking = self.locks.get(thread).into_iter();
        let locking = locking.flat_map(|lock| &lock.held.by);
        let all = locking.chain(self.open.get(thread).into_iter().flatten());
        all.filter_map(|pid| self.process_of(*pid)).collect()
    }

    /// Where the only process that runs a thread listens, if it is a host.
    fn endpoint_of(&self, holders: &[&AgentProcess]) -> Option<String> {
        let (first, others) = holders.split_first()?;
        let is_only = |other: &&AgentProcess| other.process.pid == first.process.pid;
        let is_host = first.role == Role::Host && others.iter().all(is_only);
        is_host.then(|| endpoint(&first.program(), &self.scan.home.root))?
    }

    /// Which terminals show the thread, by the log and by the arguments of a fork.
    fn clues_of(
        &self,
        thread: &SessionId,
        header: Option<&Header>,
        born_at_ms: Option<i64>,
    ) -> Vec<Clue> {
        let mut clues = Vec::new();
        if let Some(possible) = self.possible_terminals.get(thread) {
            let terminals = self.scan.seekers().map(|process| process.process.pid);
            let others = terminals.filter(|pid| !possible.contains(pid));
            let says = "by the log another terminal opened it";
            clues.extend(others.map(|pid| Clue::new(pid, ClueKind::Untouched, says)));
            if let (1, Some(pid), Some(at_ms)) = (possible.len(), possible.first(), born_at_ms) {
                let says = format!("by the log, process {pid} opened it when it was born");
                clues.push(Clue::new(*pid, ClueKind::Run { at_ms }, says));
            }
        }
        let forked_by = header.and_then(|header| self.forked_by(thread, header));
        clues.extend(forked_by.map(|pid| {
            let from = "the session that it was forked from";
            let says = format!("the arguments of process {pid} name {from}");
            Clue::new(pid, ClueKind::Names, says)
        }));
        clues
    }

    /// The only process that forked this thread, by the arguments and the header: `codex
    /// fork` names the forked thread. `None` if other processes or threads match too.
    fn forked_by(&self, thread: &SessionId, header: &Header) -> Option<Pid> {
        let from = header.forked_from.as_deref()?;
        let forking = self.scan.seekers().filter(|process| {
            let named = PROGRAMS.forked_session(&process.program());
            named.is_some_and(|named| named.eq_ignore_ascii_case(from))
        });
        let fits = |thread: &SessionId, process: &AgentProcess| {
            process.had_begun_at_one_of([thread_id::born_at_ms(thread.as_str())])
        };
        let mut fitting = forking.filter(|process| fits(thread, process));
        let (Some(process), None) = (fitting.next(), fitting.next()) else {
            return None;
        };
        let mut others = self.segments.iter().filter(|(other, segment)| {
            *other != thread
                && self.locks.contains_key(other)
                && segment.header.forked_from.as_deref() == Some(from)
        });
        let is_only_one = !others.any(|(other, _)| fits(other, process));
        is_only_one.then_some(process.process.pid)
    }
}

fn read_tail(rollout: &Path, problems: &mut Vec<Problem>) -> Tail {
    Tail::read(rollout, &mut BadLines::default()).unwrap_or_else(|error| {
        problems.push(Problem::at(&AGENT, rollout, error.reason()));
        Tail::default()
    })
}
