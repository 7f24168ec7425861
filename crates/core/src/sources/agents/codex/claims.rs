//! Claims from the locks and rollouts of a home, and the sketches of the threads.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use whosup_process::Pid;
use whosup_sidecar::SessionId;
use whosup_sidecar::file::{FileFacts, Links, facts};

use super::header::{Header, Origin};
use super::locks::{ThreadLock, process_of};
use super::process::{PROGRAMS, endpoint};
use super::scan::Scanning;
use super::tail::Tail;
use super::thread::Segment;
use super::thread_id;
use crate::adapter::claim::{
    CLOCK_SLACK_MS, Claim, Evidence, EvidenceKind, Exclusivity, Serving, SessionKey, Subject, Trust,
};
use crate::adapter::{AgentProcess, AgentScan, Clue, ClueKind, Role, Sketch, Unclaimed};
use crate::machine::problem::{Found, Problem};
use crate::sources::agents::kit::bad_lines::BadLines;
use crate::sources::trust::trust_of;

/// How long a thread may have no sign of its owner, in milliseconds. About ten were seen.
const UNKNOWN_MS_MAX: i64 = 10_000;

impl Scanning<'_> {
    /// Makes claims and sketches of what was found.
    pub(super) fn finish(self) -> Found<AgentScan> {
        let mut found = AgentScan::default();
        let locks = self.locks.values();
        let (unknown, known): (Vec<_>, Vec<_>) =
            locks.partition(|lock| self.is_not_known_yet(lock));
        for lock in known {
            found.claim_all(self.claims_of_lock(lock));
        }
        for (thread, pids) in &self.open {
            let claims = pids.iter();
            found.claim_all(claims.filter_map(|pid| self.claim_of_open(thread, *pid)));
        }
        let mut threads: BTreeSet<&SessionId> =
            self.locks.keys().chain(self.segments.keys()).collect();
        threads.retain(|thread| unknown.iter().all(|lock| lock.id != **thread));
        let mut problems = Vec::new();
        for thread in threads {
            let sketch = self.sketch(thread, &mut problems);
            found.claim_all(self.claim_of_ended(&sketch));
            found.sketch(sketch);
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
            let evidence = Evidence::new(EvidenceKind::Lock, Some(lock.path.clone()), says);
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
        let evidence = Evidence::new(
            EvidenceKind::OpenFile,
            Some(rollout.path.clone()),
            format!("open for writing in process {pid}"),
        );
        let serving = self.serving(thread, pid);
        Some(Claim {
            dated_at_ms: thread_id::born_at_ms(thread.as_str()),
            exclusivity: Exclusivity::Shared,
            ..self.claim(thread, Subject::Holder(pid), serving, &facts, evidence)
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
        let evidence = Evidence::new(
            EvidenceKind::OpenFile,
            Some(path),
            "no process of Codex has it open, and it has no lock".to_owned(),
        );
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
            exclusivity: Exclusivity::Exclusive,
            serving,
            trust: trust_of(facts, self.home, self.look.machine),
            placement: mounts.placement_of(path),
            ..Claim::new(self.key(thread), subject, evidence)
        }
    }

    fn key(&self, thread: &SessionId) -> SessionKey {
        SessionKey {
            agent: self.agent.clone(),
            session: thread.clone(),
            home: self.home.root.clone(),
        }
    }

    /// When the process opened the thread: the lock is made then, and a new thread is born
    /// then. The date decides which thread of a terminal is current.
    fn loaded_at_ms(&self, lock: &ThreadLock) -> Option<i64> {
        let latest = self.look.machine.now_ms().saturating_add(CLOCK_SLACK_MS);
        let made = lock.facts.born_ms.filter(|made| *made <= latest);
        made.max(thread_id::born_at_ms(lock.id.as_str()))
    }

    /// A terminal moves from one of its own threads to the next. The sub-agents beside a
    /// thread are no such step. A second thread without known facts may be one.
    fn serving(&self, thread: &SessionId, pid: Pid) -> Serving {
        let is_single = process_of(self.look.processes, pid)
            .is_some_and(|process| process.role == Role::Session);
        let is_own_step = match self.segments.get(thread) {
            Some(segment) if segment.header.tells_parent() => segment.header.parent().is_none(),
            _ => self.is_terminals_thread(thread) || !self.holds_another(thread, pid),
        };
        if is_single && is_own_step {
            Serving::One
        } else {
            Serving::Many
        }
    }

    /// A terminal has just opened the thread beside another thread. Whether it resumed the
    /// thread or runs a sub-agent is unknown until a mark or a rollout follows, which
    /// happens at once.
    fn is_not_known_yet(&self, lock: &ThreadLock) -> bool {
        let id = lock.id.as_str();
        let born = thread_id::born_at_ms(id).or(lock.facts.born_ms);
        let since_ms = self.look.machine.now_ms().saturating_sub(UNKNOWN_MS_MAX);
        let is_young = born.is_some_and(|born| born > since_ms);
        let of_terminal = |pid: &Pid| {
            process_of(self.look.processes, *pid)
                .is_some_and(|process| process.role == Role::Session)
                && self.holds_another(&lock.id, *pid)
        };
        is_young
            && !self.segments.contains_key(&lock.id)
            && lock.holders.iter().any(of_terminal)
            && !self.is_terminals_thread(&lock.id)
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
        // The current holder decides, whichever process began the thread.
        let is_headless = if holders.is_empty() {
            (origin == Some(&Origin::Headless)).then_some(true)
        } else {
            Some(
                holders
                    .iter()
                    .all(|holder| PROGRAMS.is_headless(&holder.program())),
            )
        };
        let born_at_ms =
            thread_id::born_at_ms(id).or_else(|| header.and_then(|header| header.born_at_ms));
        let (last_record_at_ms, perhaps_until_ms) = segment
            .filter(|_| is_hosted)
            .map(|segment| self.last_record_at_ms(segment, problems))
            .unwrap_or_default();
        Sketch {
            parent: parent
                .and_then(|parent| SessionId::parse(parent).ok())
                .filter(|parent| parent != thread),
            work_dir: header
                .and_then(|header| header.work_dir.clone())
                .or_else(|| hint.and_then(|hint| hint.work_dir.clone()))
                // Before the first prompt, only the owner process has the directory.
                .or_else(|| holders.iter().find_map(|holder| work_dir_of(holder))),
            born_at_ms,
            last_record_at_ms,
            perhaps_until_ms,
            transcript: segment.map(|segment| segment.rollout.path.clone()),
            unclaimed: if is_hosted {
                Unclaimed::Client
            } else {
                Unclaimed::Nobody
            },
            clues: self.clues_of(thread, header, born_at_ms),
            launched_at_ms: born_at_ms.into_iter().collect(),
            is_orphan_when_stale: self.locks.contains_key(thread),
            is_headless,
            title: hint.and_then(|hint| hint.title.clone()),
            agent_version: header.and_then(|header| header.version.clone()),
            endpoint: match holders.as_slice() {
                [first, others @ ..] if first.role == Role::Host => others
                    .iter()
                    .all(|other| other.process.pid == first.process.pid)
                    .then(|| endpoint(&first.program(), &self.home.root))
                    .flatten(),
                _ => None,
            },
            started_at_ms: born_at_ms,
            ..Sketch::new(self.key(thread))
        }
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
            let terminals = self.look.processes_of(self.home);
            let others = terminals.filter(|process| {
                process.role == Role::Session && !possible.contains(&process.process.pid)
            });
            clues.extend(others.map(|process| {
                Clue::untouched(process.process.pid, "by the log another terminal opened it")
            }));
            if let (1, Some(pid), Some(at_ms)) = (possible.len(), possible.first(), born_at_ms) {
                let says = format!("by the log, process {pid} opened it when it was born");
                clues.push(Clue::run(*pid, at_ms, says));
            }
        }
        let forked_by = header.and_then(|header| self.forked_by(thread, header));
        clues.extend(forked_by.map(|pid| Clue {
            pid,
            kind: ClueKind::Names,
            says: format!(
                "the arguments of process {pid} name the session that it was forked from"
            ),
        }));
        clues
    }

    /// The only process that forked this thread, by the arguments and the header: `codex
    /// fork` names the forked thread. `None` if other processes or threads match too.
    fn forked_by(&self, thread: &SessionId, header: &Header) -> Option<Pid> {
        let from = header.forked_from.as_deref()?;
        let forking = self.look.processes_of(self.home).filter(|process| {
            process.role == Role::Session
                && PROGRAMS
                    .forked_session(&process.program())
                    .is_some_and(|named| named.eq_ignore_ascii_case(from))
        });
        let fits = |thread: &SessionId, process: &AgentProcess| {
            let born = thread_id::born_at_ms(thread.as_str());
            let began = process.process.began_at_ms.as_ref().ok();
            born.zip(began)
                .is_some_and(|(born, began)| born >= began.saturating_sub(CLOCK_SLACK_MS))
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

    /// The date of a thread's last record, and the latest possible date if the end is
    /// missing.
    fn last_record_at_ms(
        &self,
        segment: &Segment,
        problems: &mut Vec<Problem>,
    ) -> (Option<i64>, Option<i64>) {
        if segment.rollout.is_compressed {
            return (None, None);
        }
        let path = &segment.rollout.path;
        match Tail::read(path, &mut BadLines::default()) {
            Ok(tail) => (tail.found.last_activity_at_ms, tail.perhaps_until_ms),
            Err(error) => {
                problems.push(Problem::at(self.agent, path, error.reason()));
                (None, None)
            }
        }
    }
}

/// The directory of a process that runs its own thread.
fn work_dir_of(process: &AgentProcess) -> Option<PathBuf> {
    if process.role != Role::Session {
        return None;
    }
    PROGRAMS
        .directory(&process.program())
        .or_else(|| process.work_dir().map(Path::to_owned))
}
