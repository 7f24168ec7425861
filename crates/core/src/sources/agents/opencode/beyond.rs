//! Sessions that were used after the end of the log, so that it does not tell by whom.
//!
//! Whoever prompts a session logs that in the same moment. So the end of the log is
//! missing (a full disk, a copy, a torn write) if the database has a later use, unless
//! whoever that was logs nothing. (Of a part in the middle that is missing, the broken
//! line there tells.) That a log which just ends is no longer whole can't
//! be told in any other way; nor does it matter then, for nothing was said since.

use std::collections::{BTreeMap, BTreeSet};

use whosup_process::Pid;
use whosup_sidecar::SessionId;

use super::fit::is_since;
use super::scan::Scanning;
use super::session::Row;
use crate::adapter::{AgentProcess, Role};

/// How much later than the last line a use may look that this line tells of, in
/// milliseconds: a prompt is in the database just before it is logged.
const LAG_MS: i64 = 2_000;

impl<'a> Scanning<'a> {
    /// Finds the terminals that may have gone on to another session than their runs
    /// tell, and which these may be.
    pub(super) fn find_strayed(&mut self) {
        let rows = std::mem::take(&mut self.rows);
        let mut strayed: BTreeMap<Pid, BTreeSet<SessionId>> = BTreeMap::new();
        let untold: Vec<&Row> = rows.iter().filter(|row| self.is_untold(row)).collect();
        for row in untold {
            let known = self.of_role(Role::Session).filter(|its| self.is_known(its));
            let known: Vec<&AgentProcess> = known.collect();
            for terminal in known {
                let programs = self.agent.programs;
                let may_have_gone_on = !programs.is_headless(&terminal.program())
                    && is_since(terminal, row)
                    && self.real_paths.are_beside(terminal, row);
                if may_have_gone_on {
                    let its = strayed.entry(terminal.process.pid).or_default();
                    its.insert(row.id.clone());
                }
            }
        }
        self.rows = rows;
        self.strayed = strayed;
    }

    /// It was used after the log ends, and not where the process is that was in it
    /// then.
    pub(super) fn is_untold(&self, row: &Row) -> bool {
        let Some(runs) = &self.runs else { return false };
        let id = row.id.as_str();
        let used_at_ms = row.created_at_ms.max(row.last_message_at_ms);
        let is_after = |end: i64| used_at_ms.is_some_and(|at| at > end.saturating_add(LAG_MS));
        // Where a part is missing, somebody may have used it there.
        let is_in_hole = runs.log.hole_until_ms.zip(used_at_ms);
        let is_in_hole = is_in_hole.is_some_and(|(until, at)| at <= until.saturating_add(LAG_MS));
        let told_until_ms = match runs.last_on(id) {
            _ if !is_in_hole => runs.log.ends_at_ms,
            Some((_, run)) => run.worked_on.get(id).copied(),
            None => Some(i64::MIN),
        };
        if row.parent.is_some() || !told_until_ms.is_some_and(is_after) {
            return false;
        }
        let is_told = runs.last_on(id).is_some_and(|(name, run)| {
            let is_host = |pid| self.processes.iter().any(|its| is_host(its, pid));
            let by = runs.process_of(name);
            by.is_some_and(|pid| is_host(pid) || runs.log.last_session_of(run) == Some(id))
        });
        !is_told
    }

    /// The log tells which run a process is.
    pub(super) fn is_known(&self, process: &AgentProcess) -> bool {
        let runs = self.runs.as_ref();
        runs.is_some_and(|runs| runs.of(process.process.pid).is_some())
    }

    /// It is not known for certain in which session it is, though its run is.
    pub(super) fn has_strayed(&self, process: &AgentProcess) -> bool {
        self.strayed.contains_key(&process.process.pid)
    }

    /// The terminals that may have gone on to a session unsaid, or from it.
    pub(super) fn strayed_about(&self, session: &SessionId) -> BTreeSet<Pid> {
        let is_about = |(pid, to): &(&Pid, &BTreeSet<SessionId>)| {
            let run = self.runs.as_ref().and_then(|runs| {
                let (_, run) = runs.of(**pid)?;
                runs.log.last_session_of(run)
            });
            to.contains(session) || run == Some(session.as_str())
        };
        let its = self.strayed.iter().filter(is_about);
        its.map(|(pid, _)| *pid).collect()
    }
}

fn is_host(process: &AgentProcess, pid: Pid) -> bool {
    process.process.pid == pid && process.role == Role::Host
}
