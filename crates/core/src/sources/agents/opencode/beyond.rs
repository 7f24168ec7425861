//! Sessions whose last use is not in the log, so that the log does not name the run.
//!
//! A process logs each prompt in the same moment. So a later use in the database means that
//! a part of the log is missing (a full disk, a copy, a torn write), or that the process
//! does not log. Without a later use, a missing part does not matter.

use whosup_process::Pid;
use whosup_sidecar::SessionId;

use super::log::Run;
use super::scan::Scanning;
use super::session::Row;
use crate::adapter::{AgentProcess, Clue, Role};
use crate::sources::agents::kit::unlogged::{Strayed, is_unlogged};

impl Scanning<'_> {
    /// Finds the terminals that may have moved to a session outside of their runs in the
    /// log: a use of it that is later than all that the run did.
    pub(super) fn find_strayed(&mut self) {
        let programs = self.agent.profile.programs;
        let mut strayed = Strayed::default();
        for terminal in self.scan.of_role(Role::Session) {
            let Some(run) = self.run_of(terminal) else {
                continue;
            };
            if programs.is_headless(&terminal.program()) {
                continue;
            }
            let last_at_ms = run.worked_on.values().max().copied();
            let later = self.rows.iter().filter(|row| row.used_at_ms() > last_at_ms);
            let possible =
                later.filter(|row| self.was_used_beside(terminal, row) && self.is_untold(row));
            strayed.add(terminal.process.pid, possible.map(|row| &row.id));
        }
        self.strayed = strayed;
    }

    /// The log lacks its last use, and the process that the log has in it last is not known,
    /// or has moved to another session.
    pub(super) fn is_untold(&self, row: &Row) -> bool {
        let Some(runs) = &self.runs else { return false };
        let id = row.id.as_str();
        let last = runs.last_on(id);
        let logged_at_ms = last.and_then(|(_, run)| run.worked_on.get(id).copied());
        let has_process = || {
            last.is_some_and(|(name, run)| {
                let mut hosts = self.scan.of_role(Role::Host);
                let mut is_host = |pid: Pid| hosts.any(|host| host.process.pid == pid);
                let by = runs.process_of(name);
                by.is_some_and(|pid| is_host(pid) || runs.log.last_session_of(run) == Some(id))
            })
        };
        row.parent.is_none() && is_unlogged(row.used_at_ms(), logged_at_ms) && !has_process()
    }

    /// The run of a process, if the log shows it.
    pub(super) fn run_of(&self, process: &AgentProcess) -> Option<&Run> {
        let (_, run) = self.runs.as_ref()?.of(process.process.pid)?;
        Some(run)
    }

    /// The log shows which run belongs to a process.
    pub(super) fn is_known(&self, process: &AgentProcess) -> bool {
        self.run_of(process).is_some()
    }

    /// The terminals that may have moved to a session without a log line, or away from it.
    pub(super) fn gaps(&self, session: &SessionId) -> Vec<Clue> {
        let is_in = |pid: Pid| {
            self.runs.as_ref().is_some_and(|runs| {
                let run = runs.of(pid).map(|(_, run)| run);
                run.and_then(|run| runs.log.last_session_of(run)) == Some(session.as_str())
            })
        };
        self.strayed.gaps(session, is_in)
    }
}
