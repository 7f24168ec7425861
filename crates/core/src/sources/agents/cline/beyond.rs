//! Sessions that began after the end of the log, so that the log does not name their
//! process.
//!
//! A terminal logs the start of each session. So a later session means that the end of the
//! log is missing (a full disk, a copy, a torn write), and a terminal in the log may have
//! moved to that session by `/clear`. A terminal resumes older sessions only at its start.

use std::collections::{BTreeMap, BTreeSet};

use whosup_process::Pid;
use whosup_sidecar::SessionId;

use super::log::{Log, Said};
use super::row::Row;
use super::scan::Scanning;
use crate::adapter::{AgentProcess, Clue, Role};

/// How much later than its line in the log a session may have begun, in milliseconds.
const LAG_MS: i64 = 2_000;

impl Scanning<'_> {
    /// Finds the terminals that may have moved to a session outside of the log, and the
    /// candidate sessions.
    pub(super) fn find_strayed(&mut self) {
        let Some(log) = &self.log else { return };
        let terminals: Vec<&AgentProcess> = self.scan.of_role(Role::Session).collect();
        let mut strayed: BTreeMap<Pid, BTreeSet<SessionId>> = BTreeMap::new();
        for row in self.rows.values().filter(|row| self.is_unlogged(row)) {
            let may_be_in_it = terminals.iter().filter(|process| {
                let pid = process.process.pid;
                let is_known = log.said.keys().any(|(by, _)| *by == pid);
                is_known && !self.is_named_by_a_row(pid) && self.was_used_beside(process, row)
            });
            for terminal in may_be_in_it {
                let candidates = strayed.entry(terminal.process.pid).or_default();
                candidates.insert(row.id.clone());
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
    fn is_unlogged(&self, row: &Row) -> bool {
        let log = self.log.as_ref();
        let is_logged = |log: &Log| log.said.keys().any(|(_, session)| *session == row.id);
        // If the log has a hole, the line of the session's start may have been there.
        let ends_at_ms = match log {
            Some(log) if log.has_hole && !is_logged(log) => Some(i64::MIN),
            _ => log.and_then(|log| log.ends_at_ms),
        };
        let is_later = |end: i64| row.started_at_ms > Some(end.saturating_add(LAG_MS));
        let is_named = || {
            let process = row.pid.and_then(|pid| self.scan.process(pid));
            process.is_some_and(|process| process.role == Role::Session)
        };
        row.parent.is_none()
            && row.is_interactive != Some(false)
            && ends_at_ms.is_some_and(is_later)
            && !is_named()
    }

    /// The terminals that may have moved to a session after the end of the log, or away from
    /// it, and the terminal that has left it.
    pub(super) fn clues_about(&self, row: &Row) -> Vec<Clue> {
        let said = self.log.iter().flat_map(|log| &log.said);
        let about = said.filter(|((_, session), _)| *session == row.id);
        let about: BTreeMap<Pid, &Said> = about.map(|((pid, _), said)| (*pid, said)).collect();
        // The process that had the session open ended the row, after it had opened the session:
        // it has moved to another session by `/clear`.
        let has_left =
            |pid: Pid, said: &Said| row.pid == Some(pid) && was_ended_since(row, pid, said);
        let left = about.iter().filter(|(pid, said)| has_left(**pid, said));
        let left = left.map(|(pid, said)| {
            let says = format!("its row says that process {pid} has left it");
            Clue::left(*pid, row.ended_at_ms.unwrap_or(said.at_ms), says)
        });
        let strayed = self.strayed.iter();
        let strayed = strayed.filter(|(pid, to)| to.contains(&row.id) || about.contains_key(pid));
        let says = "the log lacks a part in which it may have gone on";
        let gaps = strayed.map(|(pid, _)| Clue::gap(*pid, says));
        left.chain(gaps).collect()
    }
}

/// A process that moved to another session ended this session after this process had opened
/// it. The row keeps the PID of the first process, so that any process may have done this.
/// The row also keeps the end date if another process has resumed the session since.
pub(super) fn was_ended_since(row: &Row, pid: Pid, said: &Said) -> bool {
    let is_taken_up_since = !row.is_ended();
    let is_by_its_process = row.pid == Some(pid) || row.is_finished();
    (is_taken_up_since || is_by_its_process) && row.ended_at_ms >= Some(said.at_ms)
}
