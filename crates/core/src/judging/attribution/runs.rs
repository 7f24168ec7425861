//! Which process wrote which run of a log. Pure.
//!
//! A process writes its first line some seconds after it began (a second on an idle
//! machine, sixteen on a loaded one, seen with opencode 1.18.33, 2026-11) and names its
//! directory there. So a process can be few runs only, often just one. A process that could
//! be several runs, one of which may be that of a process which is gone, stays open.

use std::collections::{BTreeMap, BTreeSet};

use whosup_process::Pid;

use super::launch::{Event, Launched, match_launches};
use crate::adapter::{AgentProcess, LoggedRun, PlacedRuns, Role, RunStart};
use crate::machine::mounts::Mounts;

/// How long after it began a process may write its first line, in milliseconds.
const START_MS_MAX: i64 = 60_000;
/// How much earlier than its process a line may look, in milliseconds: for rounding.
const ROUNDING_MS: i64 = 50;

/// Matches runs with processes: a run is a launch of which every process has one.
pub(super) fn place_runs(
    runs: &[LoggedRun],
    processes: &[&AgentProcess],
    mounts: &Mounts,
) -> PlacedRuns {
    let writing: Vec<&AgentProcess> = processes.iter().copied().filter(may_write).collect();
    let events: Vec<Event> = runs
        .iter()
        .map(|run| Event {
            processes: places(&writing, |its| may_be(runs, run, its, mounts)),
            is_sure: is_start_known(run),
        })
        .collect();
    let launched = vec![Launched { has_event: true }; writing.len()];
    let matched = match_launches(&launched, &events);
    let run_of: BTreeMap<Pid, String> = matched
        .iter()
        .filter_map(|(process, run)| {
            let pid = writing.get(*process)?.process.pid;
            Some((pid, runs.get(*run)?.name.clone()))
        })
        .collect();
    let is_placed = |run: usize| matched.values().any(|placed| *placed == run);
    let is_open = |process: &usize| {
        !matched.contains_key(process)
            && writing
                .get(*process)
                .is_some_and(|its| its.role == Role::Session)
    };
    let unplaced = || {
        events
            .iter()
            .enumerate()
            .filter(|(run, _)| !is_placed(*run))
    };
    let open = unplaced().filter_map(|(run, event)| {
        let possible: Vec<usize> = event.processes.iter().copied().filter(is_open).collect();
        let others = |process: &usize| {
            unplaced()
                .filter(|(_, other)| other.processes.contains(process))
                .count()
        };
        let may_be_gone = matches!(possible.as_slice(), [only] if others(only) > 1);
        let pids = || -> BTreeSet<Pid> {
            let its = possible.iter().filter_map(|process| writing.get(*process));
            its.map(|its| its.process.pid).collect()
        };
        Some((runs.get(run)?.name.clone(), (!may_be_gone).then(pids)))
    });
    PlacedRuns {
        open: open.collect(),
        run_of,
    }
}

fn places(processes: &[&AgentProcess], is_wanted: impl Fn(&AgentProcess) -> bool) -> Vec<usize> {
    let all = processes.iter().enumerate();
    let wanted = all.filter(|(_, process)| is_wanted(process));
    wanted.map(|(place, _)| place).collect()
}

/// The process writes to the log. One that only shows sessions does not.
fn may_write(process: &&AgentProcess) -> bool {
    !matches!(process.role, Role::Client | Role::Launcher)
}

/// A run without a known start may be that of a process which is gone.
fn is_start_known(run: &LoggedRun) -> bool {
    !matches!(run.start, RunStart::Unread | RunStart::Missing)
}

/// The process may be this run: the run began soon after it, in its directory.
fn may_be(runs: &[LoggedRun], run: &LoggedRun, process: &AgentProcess, mounts: &Mounts) -> bool {
    let Ok(began) = process.process.began_at_ms else {
        return false;
    };
    let earliest = began.saturating_sub(ROUNDING_MS);
    let latest = began.saturating_add(START_MS_MAX);
    let is_of_its_time = (earliest..=latest).contains(&run.first_at_ms);
    let is_host = process.role == Role::Host;
    // A run writes what its shell called the directory, which may be a link.
    let is_its = || {
        let written = run.directory.as_deref().zip(process.work_dir());
        written.is_some_and(|(written, its)| mounts.leads_to(written, its))
    };
    match run.start {
        RunStart::Unread => run.first_at_ms >= earliest,
        RunStart::Missing => {
            let mut begun = runs.iter().filter(|run| is_start_known(run));
            let is_known = begun.any(|run| may_be(runs, run, process, mounts));
            run.first_at_ms >= earliest && !is_known
        }
        RunStart::Host => is_of_its_time && is_host,
        RunStart::Directory => is_of_its_time && !is_host && is_its(),
        RunStart::Either => is_of_its_time && (is_host || is_its()),
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::sync::Arc;

    use whosup_process::RecordedProcess;

    use super::*;
    use crate::sources::agents::opencode::OPENCODE;

    const T: i64 = 1_795_813_200_000;

    fn process(pid: i32, began: i64, work_dir: &str, role: Role) -> AgentProcess {
        let mut made = RecordedProcess::new(pid, 1_000, T + began);
        made.details.cwd = Ok(PathBuf::from(work_dir));
        AgentProcess {
            agent: whosup_sidecar::AgentId::from_static("opencode"),
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

    fn run(name: &str, first_at: i64, directory: &str) -> LoggedRun {
        LoggedRun {
            name: name.to_owned(),
            first_at_ms: T + first_at,
            start: RunStart::Directory,
            directory: Some(PathBuf::from(directory)),
        }
    }

    fn place(runs: &[LoggedRun], processes: &[AgentProcess]) -> PlacedRuns {
        let processes: Vec<_> = processes.iter().collect();
        place_runs(runs, &processes, &Mounts::of_this_machine())
    }

    #[track_caller]
    fn check(runs: &[LoggedRun], processes: &[AgentProcess], right: &[(i32, &str)]) {
        let placed = place(runs, processes);
        let found: Vec<_> = placed
            .run_of
            .iter()
            .map(|(pid, run)| (pid.get(), run.as_str()))
            .collect();
        assert_eq!(found, right);
    }

    #[test]
    fn a_run_goes_with_the_process_that_began_before_it_in_its_directory() {
        let runs = [
            run("a", 9_000, "/w"),
            run("b", 9_000, "/other"),
            run("c", 70_000, "/w"),
        ];
        check(&runs, &[terminal(1, 0)], &[(1, "a")]);
        check(&runs, &[terminal(1, 80_000)], &[]);
        check(&[], &[terminal(1, 0)], &[]);
    }

    #[test]
    fn of_two_in_one_directory_the_one_that_can_only_be_one_run_decides() {
        // Both runs began after the first, one of them before the second.
        let runs = [run("a", 9_000, "/w"), run("b", 30_000, "/w")];
        let processes = [terminal(1, 0), terminal(2, 20_000)];
        check(&runs, &processes, &[(1, "a"), (2, "b")]);
        // They began together.
        let runs = [run("a", 29_000, "/w"), run("b", 30_000, "/w")];
        check(&runs, &processes, &[]);
        // The first has not written yet, or the second.
        check(&runs[..1], &processes, &[]);
    }

    #[test]
    fn a_process_that_may_be_the_run_of_one_that_is_gone_is_neither() {
        let runs = [run("a", 9_000, "/w"), run("gone", 12_000, "/w")];
        let placed = place(&runs, &[terminal(1, 0)]);
        assert_eq!(placed.run_of, BTreeMap::new());
        assert_eq!(placed.open["a"], None);
    }

    #[test]
    fn an_open_run_is_one_of_the_processes_that_it_may_be() {
        let runs = [run("a", 9_000, "/w"), run("elsewhere", 9_000, "/other")];
        let placed = place(&runs, &[terminal(1, 0), terminal(2, 1)]);
        let pids = [1, 2].map(|pid| Pid::new(pid).expect("a PID"));
        assert_eq!(placed.open["a"], Some(BTreeSet::from(pids)));
        assert_eq!(placed.open["elsewhere"], Some(BTreeSet::new()));
    }

    #[test]
    fn a_server_begins_in_another_way() {
        let mut server = run("s", 3_000, "/w");
        server.start = RunStart::Host;
        let runs = [run("a", 4_000, "/w"), server];
        let host = process(8, 0, "/elsewhere", Role::Host);
        check(&runs, &[terminal(1, 0), host], &[(1, "a"), (8, "s")]);
        let client = process(9, 0, "/w", Role::Client);
        check(&runs, &[client], &[]);
    }

    #[test]
    fn a_run_whose_beginning_was_not_read_is_placed_nowhere_and_may_be_any() {
        for start in [RunStart::Unread, RunStart::Missing] {
            let mut later = run("a", 5_000, "/w");
            later.start = start;
            check(std::slice::from_ref(&later), &[terminal(1, 0)], &[]);
            let both = [later, run("b", 6_000, "/w")];
            // What is missing is not that of a process that another run may be.
            let of_first: &[_] = match start {
                RunStart::Missing => &[(1, "b")],
                _ => &[],
            };
            check(&both, &[terminal(1, 0)], of_first);
            check(&both, &[terminal(1, 5_500)], &[(1, "b")]);
        }
    }
}
