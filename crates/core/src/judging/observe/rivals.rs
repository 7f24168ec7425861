//! Compares the claims that may be about one process, where several PID namespaces have
//! the PID and the claim does not name its namespace.
//!
//! Two containers that share a home have an agent as PID 1 each, and sidecars that both
//! name `pid: 1`. One of the agents is gone. Only all sidecars together show which of them
//! is about the live agent.

use whosup_process::{Details, Pid, Process};
use whosup_sidecar::file::owner_of;

use crate::adapter::claim::{CLOCK_SLACK_MS, Claim, EvidenceKind, Serving, Subject, TakenUp};
use crate::judging::attribution::{Beside, Places};
use crate::judging::verdict::Rival;
use crate::machine::Machine;
use crate::machine::composed::is_same;
use crate::sources::agents::adapter;

/// How long after its start a process writes its first sidecar, at most (qwen-code 0.24.4
/// on a slow machine: 13 seconds).
const START_MS_MAX: i64 = 20_000;
/// How much later than a registry's record a sidecar of the same run is written.
const SAME_RUN_MS_MAX: u64 = 60_000;

/// A process that a claim may be about.
pub(super) struct Candidate<'a> {
    pub(super) machine: &'a Machine,
    pub(super) process: &'a Process,
    pub(super) details: &'a Details,
}

impl Candidate<'_> {
    /// It is another user's than the claim's file. Not known is not another.
    pub(super) fn is_of_another_user(&self, claim: &Claim) -> bool {
        let owner = claim.evidence.path.as_deref().and_then(owner_of);
        matches!((owner, &self.details.uid), (Some(owner), Ok(uid)) if owner != *uid)
    }

    /// How `others`, the claims with the same PID, compare with `claim`.
    pub(super) fn rival(&self, claim: &Claim, others: &[&Claim]) -> Rival {
        // A stamp identifies the process; no other evidence is stronger.
        if claim.stamp.is_some() || claim.serving == Serving::Many {
            return Rival::None;
        }
        if self.is_of_this_process(claim, others) {
            return Rival::None;
        }
        if let Some(other) = self.about_another(claim, others) {
            let ours = self.machine.table().scope().pid_namespace.as_ref().ok();
            let is_of_ours = ours.is_some() && other.scope.pid_namespace.as_ref() == ours;
            return if is_of_ours {
                Rival::Past
            } else {
                Rival::Elsewhere
            };
        }
        let of_other_sessions = others
            .iter()
            .filter(|other| other.key.session != claim.key.session)
            .filter(|other| self.about_another(other, others).is_none());
        let rivals = of_other_sessions.map(|other| {
            let rival = self.rival_of_other_session(claim, other);
            // The process may serve both sessions.
            let may_be_beside = [claim, other]
                .iter()
                .any(|one| one.serving == Serving::NotRecorded);
            if may_be_beside {
                rival.min(Rival::Equal)
            } else {
                rival
            }
        });
        rivals.max().unwrap_or(Rival::None)
    }

    /// It cannot work in the directory of the claim, and the agent takes up a session
    /// nowhere else: a PID namespace that is gone had a process with its number there.
    pub(super) fn works_elsewhere(&self, claim: &Claim, places: &Places) -> bool {
        let is_bound = adapter(&claim.key.agent)
            .is_some_and(|adapter| !adapter.profile().resumes_from_anywhere);
        let is_nameless = claim.stamp.is_none() && claim.serving != Serving::Many;
        let work_dir = claim.work_dir.as_deref();
        let beside = || places.beside(self.process, self.details, work_dir);
        is_bound && is_nameless && beside() == Beside::Excluded
    }

    /// Another claim of the same session has the start of this process.
    fn is_of_this_process(&self, claim: &Claim, others: &[&Claim]) -> bool {
        others.iter().any(|other| {
            let stamp = other.stamp.as_ref();
            is_of_session(other, claim)
                && !matches!(other.taken_up, TakenUp::Left(_))
                && stamp.is_some_and(|stamp| stamp.is_same_as(&self.process.stamp) == Some(true))
        })
    }

    /// Another claim of the same session and the same run of the agent that has more details,
    /// and names another process.
    fn about_another<'c>(&self, claim: &Claim, others: &[&'c Claim]) -> Option<&'c Claim> {
        let is_of_same_run = |other: &Claim| match (claim.dated_at_ms, other.dated_at_ms) {
            (Some(claim), Some(other)) => claim.abs_diff(other) <= SAME_RUN_MS_MAX,
            _ => false,
        };
        let names_another = |other: &Claim| {
            let stamp = other.stamp.as_ref();
            stamp.is_some_and(|stamp| stamp.is_same_as(&self.process.stamp) == Some(false))
        };
        let mut others = others.iter().filter(|_| claim.stamp.is_none());
        let other = others.find(|other| {
            is_of_session(other, claim) && is_of_same_run(other) && names_another(other)
        });
        other.copied()
    }

    fn rival_of_other_session(&self, claim: &Claim, other: &Claim) -> Rival {
        let is_left = matches!(other.taken_up, TakenUp::Left(_));
        if is_left || !self.may_be_about(other) || other.serving == Serving::Many {
            return Rival::None;
        }
        let is_proven = other.stamp.is_some()
            || other.scope.pid_namespace.is_some()
            || matches!(other.subject, Subject::Holder(_));
        if is_proven {
            // Hooks come late: the process may have gone on to the session of this claim.
            return match other.taken_up {
                TakenUp::At(at_ms) if claim.dated_at_ms > Some(at_ms) => Rival::Equal,
                _ => Rival::Better,
            };
        }
        let is_sidecar = |one: &Claim| one.evidence.kind == EvidenceKind::Sidecar;
        if other.key.agent != claim.key.agent || !(is_sidecar(claim) && is_sidecar(other)) {
            return Rival::None;
        }
        let works_there = |one: &Claim| self.is_in_directory_of(one);
        if works_there(claim) == Some(false) && works_there(other) == Some(true) {
            return Rival::Elsewhere;
        }
        // A process that goes over to another session removes its sidecar of the first:
        // one that was written at the start of the process and is still there is about
        // it, or about one that began at the same moment elsewhere.
        match (self.is_of_its_start(claim), self.is_of_its_start(other)) {
            (true, false) => Rival::None,
            (false, true) => Rival::Better,
            _ => Rival::Equal,
        }
    }

    /// It names this process, by the fields that it has.
    fn may_be_about(&self, other: &Claim) -> bool {
        let namespaces = (other.scope.pid_namespace, &self.details.pid_namespace);
        let is_in_its_namespace = match namespaces {
            (Some(named), Ok(actual)) => named == *actual,
            (Some(_), Err(_)) => false,
            (None, _) => true,
        };
        let has_its_number = match other.subject.pid() {
            Some(pid) if matches!(other.subject, Subject::Holder(_)) => pid == self.process.pid,
            pid => pid.is_some() && (pid == self.details.innermost_pid() || self.is_here(pid)),
        };
        let has_its_stamp = other
            .stamp
            .as_ref()
            .is_none_or(|stamp| stamp.is_same_as(&self.process.stamp) == Some(true));
        let began = self.process.began_ms();
        let is_younger = match (other.dated_at_ms, began) {
            (Some(dated), Some(began)) => dated.saturating_add(CLOCK_SLACK_MS) >= began,
            _ => other.stamp.is_some(),
        };
        let is_in_its_directory =
            other.stamp.is_some() || self.is_in_directory_of(other) != Some(false);
        is_in_its_namespace
            && has_its_number
            && has_its_stamp
            && is_younger
            && is_in_its_directory
            && !self.is_of_another_user(other)
    }

    /// `None`: it names none, or that of the process can't be read.
    fn is_in_directory_of(&self, claim: &Claim) -> Option<bool> {
        let named = claim.work_dir.as_deref()?;
        let cwd = self.details.cwd.as_deref().ok()?;
        Some(is_same(named, cwd))
    }

    fn is_here(&self, pid: Option<Pid>) -> bool {
        pid == Some(self.process.pid)
            && self.details.pid_namespace == self.machine.table().scope().pid_namespace
    }

    fn is_of_its_start(&self, claim: &Claim) -> bool {
        let began = self.process.began_ms();
        match (claim.dated_at_ms, began) {
            (Some(dated), Some(began)) => {
                dated.saturating_add(CLOCK_SLACK_MS) >= began
                    && dated <= began.saturating_add(START_MS_MAX)
            }
            _ => false,
        }
    }
}

fn is_of_session(one: &Claim, other: &Claim) -> bool {
    (&one.key.agent, &one.key.session) == (&other.key.agent, &other.key.session)
}
