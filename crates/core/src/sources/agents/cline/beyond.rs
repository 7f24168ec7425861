//! Sessions that are not in the log, so that the log does not name their process.
//!
//! A terminal logs the start of each session. So where that is not in the log, a part of the
//! log is missing (a full disk, a copy, a torn write), and a terminal that logged nothing since
//! may have moved to that session by `/clear`. A terminal resumes older sessions only at its
//! start.

use std::collections::BTreeMap;

use whosup_process::Pid;

use super::log::Said;
use super::row::Row;
use super::scan::Scanning;
use crate::adapter::{Clue, Role};
use crate::sources::agents::kit::unlogged::{Strayed, is_unlogged};

impl Scanning<'_> {
    /// Finds the terminals that may have moved to a session outside of the log: one that was
    /// begun after all that the log has of the terminal.
    pub(super) fn find_strayed(&mut self) {
        let mut strayed = Strayed::default();
        for terminal in self.scan.of_role(Role::Session) {
            let pid = terminal.process.pid;
            let said = self.log.iter().flat_map(|log| &log.said);
            let by_it = said.filter(|((by, _), _)| *by == pid);
            let last_at_ms = by_it.map(|(_, said)| said.at_ms).max();
            if last_at_ms.is_none() || self.is_named_by_a_row(pid) {
                continue;
            }
            let rows = self.rows.values();
            let later = rows.filter(|row| row.started_at_ms > last_at_ms);
            let possible =
                later.filter(|row| self.was_used_beside(terminal, row) && self.is_untold(row));
            strayed.add(pid, possible.map(|row| &row.id));
        }
        self.strayed = strayed;
    }

    /// A session that has not ended has this PID in its row: `/clear` would have ended
    /// it, where no hub has it.
    fn is_named_by_a_row(&self, pid: Pid) -> bool {
        let mut rows = self.rows.values();
        rows.any(|row| row.pid == Some(pid) && !row.is_ended())
    }

    /// A person began it, the log does not have that, and no terminal is named by the row.
    fn is_untold(&self, row: &Row) -> bool {
        let logged_at_ms = self.said_of(&row.id).map(|said| said.at_ms);
        let is_named = || {
            let process = row.pid.and_then(|pid| self.scan.process(pid));
            process.is_some_and(|process| process.role == Role::Session)
        };
        row.parent.is_none()
            && row.is_interactive != Some(false)
            && is_unlogged(row.started_at_ms, logged_at_ms)
            && !is_named()
    }

    /// The terminals that may have moved to a session outside of the log, or away from it,
    /// and the terminal that has left it.
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
        let gaps = self.strayed.gaps(&row.id, |pid| about.contains_key(&pid));
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
