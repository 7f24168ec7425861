//! Sessions that were begun after the end of the log, so that it does not tell by whom.
//!
//! A terminal logs that it begins a session. So the end of the log is missing (a full
//! disk, a copy, a torn write) if there is a later session, and a terminal that the log
//! knows may have gone on to that by `/clear`. It takes up older ones at its start only.

use std::collections::{BTreeMap, BTreeSet};

use whosup_process::Pid;
use whosup_sidecar::SessionId;

use super::log::{Log, Said};
use super::row::Row;
use super::scan::Scanning;
use crate::adapter::{AgentProcess, Clue, Role};

/// How much later than the last line a session may have begun of which this line
/// tells, in milliseconds.
const LAG_MS: i64 = 2_000;

impl Scanning<'_> {
    /// Finds the terminals that may have gone on to another session than the log tells,
    /// and which these may be.
    pub(super) fn find_strayed(&mut self) {
        let Some(log) = &self.log else { return };
        let terminals: Vec<&AgentProcess> = self.of_role(Role::Session).collect();
        let mut strayed: BTreeMap<Pid, BTreeSet<SessionId>> = BTreeMap::new();
        for row in self.rows.values().filter(|row| self.is_untold(row)) {
            let may_be_in_it = terminals.iter().filter(|its| {
                let pid = its.process.pid;
                let is_known = log.said.keys().any(|(by, _)| *by == pid);
                is_known && !self.is_named_by_a_row(pid) && self.was_used_beside(its, row)
            });
            for terminal in may_be_in_it {
                let its = strayed.entry(terminal.process.pid).or_default();
                its.insert(row.id.clone());
            }
        }
        self.strayed = strayed;
    }

    /// A session that has not ended has this PID in its row: `/clear` would have ended
    /// it, where no hub has it.
    fn is_named_by_a_row(&self, pid: Pid) -> bool {
        let mut rows = self.rows.values();
        rows.any(|row| row.pid == Some(pid) && !row.is_ended())
    }

    /// A person began it after the log ends, in a terminal that nothing else names.
    fn is_untold(&self, row: &Row) -> bool {
        let log = self.log.as_ref();
        let is_told = |log: &Log| log.said.keys().any(|(_, session)| *session == row.id);
        // In a log with a hole it may have been there that somebody began it.
        let ends_at_ms = match log {
            Some(log) if log.has_hole && !is_told(log) => Some(i64::MIN),
            _ => log.and_then(|log| log.ends_at_ms),
        };
        let is_later = |end: i64| {
            let began = row.started_at_ms;
            began.is_some_and(|began| began > end.saturating_add(LAG_MS))
        };
        let is_named = || {
            let process = row.pid.and_then(|pid| self.process(pid));
            process.is_some_and(|its| its.role == Role::Session)
        };
        row.parent.is_none()
            && row.is_interactive != Some(false)
            && ends_at_ms.is_some_and(is_later)
            && !is_named()
    }

    /// The terminals that may have gone on to a session after the end of the log, or from
    /// it, and the one that has left it.
    pub(super) fn clues_about(&self, row: &Row) -> Vec<Clue> {
        let said = self.log.iter().flat_map(|log| &log.said);
        let left =
            said.filter(|((pid, session), said)| *session == row.id && has_left(row, *pid, said));
        let left = left.map(|((pid, _), said)| {
            let says = format!("its row says that process {pid} has left it");
            Clue::left(*pid, row.ended_at_ms.unwrap_or(said.at_ms), says)
        });
        left.chain(self.gaps_about(&row.id)).collect()
    }

    fn gaps_about(&self, session: &SessionId) -> Vec<Clue> {
        let said = |pid: Pid| {
            let log = self.log.as_ref();
            log.is_some_and(|log| log.said.contains_key(&(pid, session.clone())))
        };
        let its = self.strayed.iter();
        its.filter(|(pid, to)| to.contains(session) || said(**pid))
            .map(|(pid, _)| Clue::gap(*pid, "the log lacks a part in which it may have gone on"))
            .collect()
    }
}

/// The row was ended by the process that had the session open, after it had opened it:
/// it has gone on to another one by `/clear`.
pub(super) fn has_left(row: &Row, pid: Pid, said: &Said) -> bool {
    row.pid == Some(pid) && was_ended_since(row, pid, said)
}

/// The session was ended by a process that went on to another one, after this one had
/// opened it. The row keeps the PID of the first process, so that it may have been any; and
/// it keeps the end where another process has taken the session up since.
pub(super) fn was_ended_since(row: &Row, pid: Pid, said: &Said) -> bool {
    let is_taken_up_since = !row.is_ended();
    let is_by_its_process = row.pid == Some(pid) || row.is_finished();
    (is_taken_up_since || is_by_its_process) && row.ended_at_ms >= Some(said.at_ms)
}
