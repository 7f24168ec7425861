//! Sessions that were used after the end of the log, so that the log does not name the run.
//!
//! A process logs each prompt in the same moment. So a later use in the database means that
//! the end of the log is missing (a full disk, a copy, a torn write), or that the process
//! does not log. (A missing part in the middle leaves a broken line.) Nothing else shows
//! that the end of the log is missing. Without a later use, a missing end does not matter.

use std::collections::{BTreeMap, BTreeSet};

use whosup_process::Pid;
use whosup_sidecar::SessionId;

use super::log::Run;
use super::scan::Scanning;
use super::session::Row;
use crate::adapter::{AgentProcess, Role};

/// How much later than its log line a use may appear, in milliseconds: a prompt is in the
/// database just before it is logged.
const LAG_MS: i64 = 2_000;

impl Scanning<'_> {
    /// Finds the terminals that may have moved to a session outside of their runs in the
    /// log, and the candidate sessions.
    pub(super) fn find_strayed(&mut self) {
        let programs = self.agent.profile.programs;
        let mut strayed: BTreeMap<Pid, BTreeSet<SessionId>> = BTreeMap::new();
        for row in self.rows.iter().filter(|row| self.is_untold(row)) {
            let may_have_gone_on = |terminal: &&AgentProcess| {
                self.is_known(terminal)
                    && !programs.is_headless(&terminal.program())
                    && self.was_used_beside(terminal, row)
            };
            let terminals = self.scan.of_role(Role::Session);
            for terminal in terminals.filter(may_have_gone_on) {
                let candidates = strayed.entry(terminal.process.pid).or_default();
                candidates.insert(row.id.clone());
            }
        }
        self.strayed = strayed;
    }

    /// It was used after the log ends, and not where the process is that was in it
    /// then.
    pub(super) fn is_untold(&self, row: &Row) -> bool {
        let Some(runs) = &self.runs else { return false };
        let id = row.id.as_str();
        let used_at_ms = row.created_at_ms.max(row.last_message_at_ms);
        let is_after = |end: i64| used_at_ms.is_some_and(|at| at > end.saturating_add(LAG_MS));
        // If a part of the log is missing, the use may have been logged there.
        let is_in_hole = runs.log.hole_until_ms.zip(used_at_ms);
        let is_in_hole = is_in_hole.is_some_and(|(until, at)| at <= until.saturating_add(LAG_MS));
        let logged_until_ms = match runs.last_on(id) {
            _ if !is_in_hole => runs.log.ends_at_ms,
            Some((_, run)) => run.worked_on.get(id).copied(),
            None => Some(i64::MIN),
        };
        if row.parent.is_some() || !logged_until_ms.is_some_and(is_after) {
            return false;
        }
        let is_logged = runs.last_on(id).is_some_and(|(name, run)| {
            let mut hosts = self.scan.of_role(Role::Host);
            let mut is_host = |pid: Pid| hosts.any(|host| host.process.pid == pid);
            let by = runs.process_of(name);
            by.is_some_and(|pid| is_host(pid) || runs.log.last_session_of(run) == Some(id))
        });
        !is_logged
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

    /// It is not known for certain in which session it is, though its run is.
    pub(super) fn has_strayed(&self, process: &AgentProcess) -> bool {
        self.strayed.contains_key(&process.process.pid)
    }

    /// The terminals that may have moved to a session without a log line, or away from it.
    pub(super) fn strayed_about(&self, session: &SessionId) -> BTreeSet<Pid> {
        let is_about = |(pid, to): &(&Pid, &BTreeSet<SessionId>)| {
            let run = self.runs.as_ref().and_then(|runs| {
                let (_, run) = runs.of(**pid)?;
                runs.log.last_session_of(run)
            });
            to.contains(session) || run == Some(session.as_str())
        };
        let strayed = self.strayed.iter().filter(is_about);
        strayed.map(|(pid, _)| *pid).collect()
    }
}
