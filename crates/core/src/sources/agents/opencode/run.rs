//! Which process is which run of the log.
//!
//! A process writes its first line some seconds after it began (a second on an
//! idle machine, sixteen on a loaded one, seen with opencode 1.18.33, 2026-11)
//! and names its directory there. So a process can be few runs only, often just
//! one; and a run that is one process's is no other's. Who could be several runs,
//! one of which may be that of a process which is gone, stays open.

use std::collections::{BTreeMap, BTreeSet};

use whosup_process::Pid;

use super::log::{First, Log, Run};
use crate::adapter::{AgentProcess, Role};
use crate::machine::mounts::Mounts;

/// How long after it began a process may write its first line, in milliseconds.
const START_MS_MAX: i64 = 60_000;
/// How much earlier than its process a line may look, in milliseconds: for rounding.
const ROUNDING_MS: i64 = 50;

/// The runs of a log and the processes that they are.
#[derive(Debug)]
pub(super) struct Runs<'m> {
    mounts: &'m Mounts,
    pub(super) log: Log,
    /// The run of each process of which it is known.
    of_process: BTreeMap<Pid, String>,
}

impl<'m> Runs<'m> {
    /// Matches the runs of `log` with `processes`, to a fixed point.
    pub(super) fn new(log: Log, processes: &[&AgentProcess], mounts: &'m Mounts) -> Self {
        let mut open: BTreeMap<Pid, BTreeSet<&str>> = BTreeMap::new();
        for process in processes.iter().filter(|process| may_write(process)) {
            let runs = log
                .runs
                .iter()
                .filter(|(_, run)| may_be(&log, run, process, mounts));
            let names = runs.map(|(name, _)| name.as_str()).collect();
            open.insert(process.process.pid, names);
        }
        let mut of_process: BTreeMap<Pid, String> = BTreeMap::new();
        // Each round places a process or is the last.
        loop {
            // One whose beginning was not read may be that of a process which is gone.
            let is_whole = |run: &&str| {
                log.runs
                    .get(*run)
                    .is_some_and(|run| run.first != First::Later)
            };
            let sole = |runs: &BTreeSet<&str>| match runs.len() {
                1 => runs.first().copied().filter(is_whole).map(str::to_owned),
                _ => None,
            };
            let wanted: Vec<(Pid, String)> = open
                .iter()
                .filter_map(|(pid, runs)| Some((*pid, sole(runs)?)))
                .collect();
            let is_wanted_once =
                |run: &str| wanted.iter().filter(|(_, other)| other == run).count() == 1;
            let found: Vec<_> = wanted
                .iter()
                .filter(|(_, run)| is_wanted_once(run))
                .cloned()
                .collect();
            if found.is_empty() {
                break;
            }
            for (pid, run) in found {
                open.remove(&pid);
                for runs in open.values_mut() {
                    runs.remove(run.as_str());
                }
                of_process.insert(pid, run);
            }
        }
        Self {
            mounts,
            log,
            of_process,
        }
    }

    /// The run that a process is, where that is known, and its name.
    pub(super) fn of(&self, pid: Pid) -> Option<(&str, &Run)> {
        let name = self.of_process.get(&pid)?;
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

    /// Tells whether a run is that of a process which is known.
    pub(super) fn is_placed(&self, run: &str) -> bool {
        self.process_of(run).is_some()
    }

    /// The process that a run is, where that is known.
    pub(super) fn process_of(&self, run: &str) -> Option<Pid> {
        let mut placed = self.of_process.iter();
        placed
            .find(|(_, placed)| *placed == run)
            .map(|(pid, _)| *pid)
    }

    /// The run of no process is known.
    pub(super) fn is_empty(&self) -> bool {
        self.of_process.is_empty()
    }

    /// Of processes whose runs are not known, those that may be this one. `None`
    /// if there is but one and it may be another run as well: then this one may
    /// be that of a process which is gone.
    pub(super) fn owners<'a>(
        &self,
        run: &Run,
        processes: &[&'a AgentProcess],
    ) -> Option<Vec<&'a AgentProcess>> {
        let may_be_it = processes
            .iter()
            .filter(|its| may_be(&self.log, run, its, self.mounts));
        let possible: Vec<&AgentProcess> = may_be_it.copied().collect();
        if let [only] = possible.as_slice() {
            let open = self
                .log
                .runs
                .iter()
                .filter(|(name, _)| !self.is_placed(name));
            let runs = open.filter(|(_, run)| may_be(&self.log, run, only, self.mounts));
            if runs.count() > 1 {
                return None;
            }
        }
        Some(possible)
    }
}

/// It writes to the log. What only shows sessions does not.
fn may_write(process: &AgentProcess) -> bool {
    !matches!(process.role, Role::Client | Role::Launcher)
}

/// The process may be this run: the run began soon after it, in its directory.
fn may_be(log: &Log, run: &Run, process: &AgentProcess, mounts: &Mounts) -> bool {
    let Ok(began) = process.process.began_at_ms else {
        return false;
    };
    let earliest = began.saturating_sub(ROUNDING_MS);
    let latest = began.saturating_add(START_MS_MAX);
    let is_of_its_time = (earliest..=latest).contains(&run.first_at_ms);
    let is_host = process.role == Role::Host;
    // It writes what its shell called the directory, which may be a link.
    let is_its = || {
        let written = run.directory.as_deref().zip(process.work_dir());
        written.is_some_and(|(written, its)| mounts.leads_to(written, its))
    };
    match run.first {
        // If its beginning was within reach and is not in a part that is missing, it
        // began before any of them.
        First::Later => {
            let is_known = || {
                let mut begun = log.runs.values().filter(|run| run.first != First::Later);
                begun.any(|run| may_be(log, run, process, mounts))
            };
            let is_hidden =
                log.is_cut || (log.hole_until_ms >= Some(run.first_at_ms) && !is_known());
            is_hidden && run.first_at_ms >= earliest
        }
        First::Server => is_of_its_time && is_host,
        First::Directory => is_of_its_time && !is_host && is_its(),
        First::Either => is_of_its_time && (is_host || is_its()),
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::sync::Arc;

    use whosup_process::RecordedProcess;
    use whosup_sidecar::file::FileFacts;

    use super::*;
    use crate::sources::agents::opencode::OPENCODE;

    const T: i64 = 1_795_813_200_000;

    fn process(pid: i32, began: i64, work_dir: &str, role: Role) -> AgentProcess {
        let mut made = RecordedProcess::new(pid, 1_000, T + began);
        made.details.cwd = Ok(PathBuf::from(work_dir));
        AgentProcess {
            agent: OPENCODE.0.id(),
            adapter: &OPENCODE,
            process: made.process,
            details: Arc::new(made.details),
            role,
            homes: Vec::new(),
        }
    }

    fn terminal(pid: i32, began: i64) -> AgentProcess {
        process(pid, began, "/w", Role::Session)
    }

    fn run(first_at: i64, directory: &str) -> Run {
        Run {
            first_at_ms: T + first_at,
            first: First::Directory,
            directory: Some(PathBuf::from(directory)),
            ..Run::default()
        }
    }

    fn log(runs: &[(&str, Run)]) -> Log {
        let runs = runs
            .iter()
            .map(|(name, run)| ((*name).to_owned(), run.clone()));
        Log {
            path: PathBuf::from("/h/log/opencode.log"),
            facts: FileFacts {
                uid: None,
                mode: None,
                device: 0,
                inode: 0,
                len: 0,
                modified_ms: None,
                born_ms: None,
                mount: None,
            },
            runs: runs.collect(),
            sub_agents: BTreeSet::new(),
            is_cut: false,
            ends_at_ms: None,
            is_torn: false,
            hole_until_ms: None,
        }
    }

    #[track_caller]
    fn check(log: Log, processes: &[AgentProcess], right: &[(i32, &str)]) {
        let processes: Vec<_> = processes.iter().collect();
        let mounts = Mounts::of_this_machine();
        let runs = Runs::new(log, &processes, &mounts);
        let found: Vec<_> = runs
            .of_process
            .iter()
            .map(|(pid, run)| (pid.get(), run.as_str()))
            .collect();
        assert_eq!(found, right);
    }

    #[test]
    fn a_run_goes_with_the_process_that_began_before_it_in_its_directory() {
        let runs = [
            ("a", run(9_000, "/w")),
            ("b", run(9_000, "/other")),
            ("c", run(70_000, "/w")),
        ];
        check(log(&runs), &[terminal(1, 0)], &[(1, "a")]);
        check(log(&runs), &[terminal(1, 80_000)], &[]);
        check(log(&[]), &[terminal(1, 0)], &[]);
    }

    #[test]
    fn two_in_one_directory_are_told_apart_by_who_can_only_be_one() {
        // Both runs began after the first, one of them before the second.
        let runs = [("a", run(9_000, "/w")), ("b", run(30_000, "/w"))];
        let processes = [terminal(1, 0), terminal(2, 20_000)];
        check(log(&runs), &processes, &[(1, "a"), (2, "b")]);
        // They began together.
        let runs = [("a", run(29_000, "/w")), ("b", run(30_000, "/w"))];
        check(log(&runs), &processes, &[]);
        // The first has not written yet, or the second.
        check(log(&runs[..1]), &processes, &[]);
    }

    #[test]
    fn a_process_that_may_be_the_run_of_one_that_is_gone_is_neither() {
        let runs = [("a", run(9_000, "/w")), ("gone", run(12_000, "/w"))];
        check(log(&runs), &[terminal(1, 0)], &[]);
    }

    #[test]
    fn a_server_begins_in_another_way() {
        let mut server = run(3_000, "/w");
        server.first = First::Server;
        let runs = [("a", run(4_000, "/w")), ("s", server)];
        let host = process(8, 0, "/elsewhere", Role::Host);
        check(log(&runs), &[terminal(1, 0), host], &[(1, "a"), (8, "s")]);
        let client = process(9, 0, "/w", Role::Client);
        check(log(&runs), &[client], &[]);
    }

    #[test]
    fn a_run_whose_beginning_was_not_read_is_older_than_all_or_may_be_any() {
        let mut later = run(5_000, "/w");
        later.first = First::Later;
        let whole = log(&[("a", later.clone())]);
        check(whole, &[terminal(1, 0)], &[]);
        let mut cut = log(&[("a", later)]);
        cut.is_cut = true;
        check(cut.clone(), &[terminal(1, 0)], &[]);
        cut.runs.insert("b".to_owned(), run(6_000, "/w"));
        check(cut.clone(), &[terminal(1, 0)], &[]);
        check(cut, &[terminal(1, 5_500)], &[(1, "b")]);
    }
}
