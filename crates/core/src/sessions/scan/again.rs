//! Judges what a look has found once more, after one of its processes has exited.

use std::collections::BTreeSet;

use whosup_process::{Pid, Process, StartStamp};
use whosup_sidecar::AgentId;

use super::finish::finish;
use crate::adapter::claim::{EvidenceKind, Serving, SessionKey, Subject};
use crate::judging::observe::{JudgedClaim, judge_again};
use crate::judging::verdict::Liveness;
use crate::machine::Machine;
use crate::sessions::merge::{Parts, merge};
use crate::sessions::session::Session;
use crate::sources::panes::Panes;

/// How many sessions are kept to be judged again.
const SESSIONS_MAX: usize = 2_048;

/// What the verdicts of a look were made from.
#[derive(Debug)]
pub struct Judged(Parts);

impl Judged {
    /// `None` if there are too many sessions to keep.
    pub(super) fn of(parts: &Parts) -> Option<Self> {
        (parts.sketches.len() <= SESSIONS_MAX).then(|| Self(parts.clone()))
    }

    /// Returns the sessions that the process claimed, which has exited, judged again by the
    /// rules of a look without the process. `machine` is that of the look.
    ///
    /// `None` if only a look can decide: its sessions rest on more than claims which name
    /// it, another agent's process runs above or below it, or a session may live on.
    pub fn without(
        &mut self,
        machine: &Machine,
        pid: Pid,
        stamp: &StartStamp,
    ) -> Option<Vec<Session>> {
        let process = machine.table().seen(pid)?;
        if process.stamp != *stamp || self.has_relative(machine, process) {
            return None;
        }
        let parts = &mut self.0;
        let its = |judged: &JudgedClaim| {
            let owner = judged.process.as_deref();
            owner.is_some_and(|owner| owner.pid == pid) || judged.claim.subject.pid() == Some(pid)
        };
        let claims = || parts.claims.iter().filter(|judged| its(judged));
        if !claims().all(is_by_pid) || parts.unseen.values().any(|unseen| *unseen == pid) {
            return None;
        }
        let served: BTreeSet<SessionKey> = claims().map(|one| one.claim.key.clone()).collect();
        parts.processes.retain(|other| other.process.pid != pid);
        parts.possible.retain(|other| other.process.pid != pid);
        parts.terminal_titles.remove(&pid);
        if served.is_empty() {
            // What it may have served is for the look.
            return Some(Vec::new());
        }
        let Parts {
            claims,
            places,
            processes,
            ..
        } = parts;
        judge_again(machine, claims, places, processes, its);
        let merged = merge(parts_of(parts, &served));
        let mut candidates = merged.unattributed.iter().flat_map(|one| &one.candidates);
        if candidates.any(|one| served.iter().any(|key| key.session == *one)) {
            return None;
        }
        let panes = Panes::default();
        let again = finish(machine, merged, &panes, &parts.processes, Vec::new());
        let sessions = again.sessions.into_iter();
        let sessions: Vec<Session> = sessions.filter(|one| served.contains(&one.key)).collect();
        let is_over = |session: &Session| session.liveness() == Liveness::Exited;
        sessions.iter().all(is_over).then_some(sessions)
    }

    /// Another process that may be an agent's runs above or below this one: what it is may
    /// depend on this one.
    fn has_relative(&self, machine: &Machine, process: &Process) -> bool {
        let table = machine.table();
        let agents = self.0.processes.iter().map(|one| &one.process);
        let mut others = agents.chain(self.0.possible.iter().map(|one| &one.process));
        let is_above = |one: &Process, other: &Process| {
            let mut ancestors = table.ancestors(other);
            ancestors.any(|ancestor| ancestor.pid == one.pid)
        };
        others.any(|other| is_above(process, other) || is_above(other, process))
    }
}

/// What sessions of the agents of these are judged from.
fn parts_of(parts: &mut Parts, sessions: &BTreeSet<SessionKey>) -> Parts {
    let is_wanted = |agent: &AgentId| sessions.iter().any(|one| one.agent == *agent);
    let claims = std::mem::take(&mut parts.claims);
    let sketches = std::mem::take(&mut parts.sketches);
    let processes = std::mem::take(&mut parts.processes);
    let wanted_claims = claims.iter().filter(|one| is_wanted(&one.claim.key.agent));
    let wanted_sketches = sketches.iter().filter(|one| is_wanted(&one.key.agent));
    let wanted_processes = processes.iter().filter(|one| is_wanted(&one.agent));
    let wanted = Parts {
        claims: wanted_claims.cloned().collect(),
        sketches: wanted_sketches.cloned().collect(),
        processes: wanted_processes.cloned().collect(),
        ..parts.clone()
    };
    parts.claims = claims;
    parts.sketches = sketches;
    parts.processes = processes;
    wanted
}

/// A file that is about one process names the process, which lives, and no other session's
/// life rests on it. Who is in a log or in a database may depend on who else lives.
fn is_by_pid(judged: &JudgedClaim) -> bool {
    use EvidenceKind::{LockFile, Record, Registry, Sidecar};
    let claim = &judged.claim;
    matches!(claim.subject, Subject::Process(_))
        && matches!(claim.evidence.kind, Registry | Sidecar | LockFile | Record)
        && claim.serving != Serving::Many
        && judged.verdict.liveness() == Liveness::Live
}
