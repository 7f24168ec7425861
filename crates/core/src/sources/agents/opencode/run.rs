//! The runs of the log, and the processes that they are.

use std::collections::BTreeSet;

use whosup_process::Pid;

use super::log::{Log, Run};
use crate::adapter::{AgentProcess, LoggedRun, PlacedRuns};
use crate::judging::attribution::place_runs;
use crate::sources::agents::kit::scan::Scan;

/// The runs of a log, as the solver has placed them.
#[derive(Debug)]
pub(super) struct Runs {
    pub(super) log: Log,
    placed: PlacedRuns,
}

impl Runs {
    /// Has the runs of `log` placed.
    pub(super) fn new(log: Log, scan: &Scan<'_>) -> Self {
        let processes: Vec<&AgentProcess> = scan.look.processes_of(scan.home).collect();
        let runs = log.runs.iter().filter_map(|(name, run)| {
            Some(LoggedRun {
                name: name.clone(),
                first_at_ms: run.first_at_ms,
                start: log.start_of(run)?,
                directory: run.directory.clone(),
            })
        });
        let runs: Vec<LoggedRun> = runs.collect();
        let placed = place_runs(&runs, &processes, scan.look.machine);
        Self { log, placed }
    }

    /// The run that a process is, where that is known, and its name.
    pub(super) fn of(&self, pid: Pid) -> Option<(&str, &Run)> {
        let name = self.placed.run_of.get(&pid)?;
        Some((name, self.log.runs.get(name)?))
    }

    /// The run that last worked on a session.
    pub(super) fn last_on(&self, session: &str) -> Option<(&str, &Run)> {
        let on_it = self.log.runs.iter().filter_map(|(name, run)| {
            let at = run.worked_on.get(session)?;
            Some((*at, name.as_str(), run))
        });
        let (_, name, run) = on_it.max_by_key(|(at, name, _)| (*at, *name))?;
        Some((name, run))
    }

    /// The process that a run is, where that is known.
    pub(super) fn process_of(&self, run: &str) -> Option<Pid> {
        let mut placed = self.placed.run_of.iter();
        let found = placed.find(|(_, placed)| *placed == run);
        found.map(|(pid, _)| *pid)
    }

    /// The run of no process is known.
    pub(super) fn is_empty(&self) -> bool {
        self.placed.run_of.is_empty()
    }

    /// The processes without a known run that may be this run.
    pub(super) fn owners(&self, run: &str) -> BTreeSet<Pid> {
        self.placed.open.get(run).cloned().unwrap_or_default()
    }
}
