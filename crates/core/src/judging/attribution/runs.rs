//! Decides which process wrote which run of a log. Pure.
//!
//! A process writes its first line some seconds after it began (a second on an idle
//! machine, sixteen on a loaded one, seen with opencode 1.18.33, 2026-11) and names its
//! directory there. So only few runs can be of one process, often a single run. If several
//! runs can be of one process, and an exited process may have written one of them, the
//! match stays open.

use std::collections::{BTreeMap, BTreeSet};

use whosup_process::Pid;

use super::directory::Beside;
use super::launch::{Event, Launched, match_launches};
use super::places::Places;
use crate::adapter::{AgentProcess, LoggedRun, PlacedRuns, Role, RunStart};
use crate::machine::Machine;

/// How long after it began a process may write its first line, in milliseconds.
const START_MS_MAX: i64 = 60_000;
/// How much earlier than its process a line may be dated, in milliseconds: for rounding.
const ROUNDING_MS: i64 = 50;

/// Finds the processes that wrote the runs of a log: a run is a launch of which every process
/// has one.
pub(crate) fn place_runs(
    runs: &[LoggedRun],
    processes: &[&AgentProcess],
    machine: &Machine,
) -> PlacedRuns {
    let writing: Vec<&AgentProcess> = processes.iter().copied().filter(may_write).collect();
    let mut found = Places::default();
    found.find_processes(machine.mounts(), &writing);
    for directory in runs.iter().filter_map(|run| run.directory.as_deref()) {
        found.find(machine.mounts(), directory);
    }
    let events: Vec<Event> = runs
        .iter()
        .map(|run| Event {
            processes: places(&writing, |process| {
                is_of(runs, run, process, &found) >= Fit::Possible
            }),
            sure: places(&writing, |process| {
                is_of(runs, run, process, &found) == Fit::Good
            }),
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
                .is_some_and(|process| process.role == Role::Session)
    };
    let unplaced = events
        .iter()
        .enumerate()
        .filter(|(run, _)| !is_placed(*run));
    let open = unplaced.filter_map(|(run, event)| {
        let possible = event.processes.iter().filter(|process| is_open(process));
        let possible = possible.filter_map(|process| writing.get(*process));
        let pids: BTreeSet<Pid> = possible.map(|process| process.process.pid).collect();
        Some((runs.get(run)?.name.clone(), pids))
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

/// Whether the process writes to the log. A process that only shows sessions does not.
fn may_write(process: &&AgentProcess) -> bool {
    !matches!(process.role, Role::Client | Role::Launcher)
}

/// A run without a known start may be that of a process which is gone.
fn is_start_known(run: &LoggedRun) -> bool {
    !matches!(run.start, RunStart::Unread | RunStart::Missing)
}

/// How well a process and a run go together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fit {
    /// The process did not write the run.
    None,
    /// The process may have written the run: it works elsewhere now, but one of the two
    /// directories may have been renamed, or nothing shows where or when the run began.
    Possible,
    /// The run began soon after the process, in its directory.
    Good,
}

fn is_of(runs: &[LoggedRun], run: &LoggedRun, process: &AgentProcess, places: &Places) -> Fit {
    let Ok(began) = process.process.began_at_ms else {
        return Fit::None;
    };
    let earliest = began.saturating_sub(ROUNDING_MS);
    let latest = began.saturating_add(START_MS_MAX);
    let is_of_its_time = (earliest..=latest).contains(&run.first_at_ms);
    let possible = |is_possible| {
        if is_possible {
            Fit::Possible
        } else {
            Fit::None
        }
    };
    // A run writes what its shell called the directory, which may be a link.
    let by_directory =
        || match places.beside(&process.process, &process.details, run.directory.as_deref()) {
            Beside::Same => Fit::Good,
            Beside::Unknown => Fit::Possible,
            Beside::Excluded => Fit::None,
        };
    match (run.start, process.role) {
        (RunStart::Unread, _) => possible(run.first_at_ms >= earliest),
        (RunStart::Missing, _) => {
            let mut begun = runs.iter().filter(|run| is_start_known(run));
            let is_known = begun.any(|run| is_of(runs, run, process, places) > Fit::None);
            possible(run.first_at_ms >= earliest && !is_known)
        }
        _ if !is_of_its_time => Fit::None,
        (RunStart::Host | RunStart::Either, Role::Host) => Fit::Good,
        (RunStart::Directory | RunStart::Either, role) if role != Role::Host => by_directory(),
        _ => Fit::None,
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::sync::Arc;

    use whosup_process::RecordedProcess;

    use super::*;
    use crate::sources::agents::opencode::OPENCODE;

    /// After every directory that is there was born: the year 2100.
    const T: i64 = 4_102_444_800_000;

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
            launched_in: crate::adapter::LaunchedIn::There,
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
        place_runs(runs, &processes, &Machine::here())
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
        let terminal = |began| process(1, began, "/proc", Role::Session);
        let runs = [
            run("a", 9_000, "/proc"),
            run("b", 9_000, "/sys"),
            run("c", 70_000, "/proc"),
        ];
        check(&runs[..1], &[terminal(0)], &[(1, "a")]);
        check(&runs[1..2], &[terminal(0)], &[]);
        check(&runs[2..], &[terminal(0)], &[]);
        check(&runs, &[terminal(80_000)], &[]);
        check(&[], &[terminal(0)], &[]);
    }

    #[test]
    fn a_run_whose_directory_is_no_longer_there_may_be_that_of_any_process() {
        // It was renamed, and the process of the run with it.
        let runs = [run("old-name", 1_000, "/gone"), run("ended", 9_000, "/w")];
        check(&runs, &[terminal(1, 0)], &[]);
        check(&runs[..1], &[terminal(1, 0)], &[]);
        check(&runs[1..], &[terminal(1, 0)], &[(1, "ended")]);
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
        let pid = Pid::new(1).expect("a PID");
        assert_eq!(placed.open["a"], BTreeSet::from([pid]));
        assert_eq!(placed.open["gone"], placed.open["a"]);
    }

    #[test]
    fn an_open_run_is_one_of_the_processes_that_it_may_be() {
        let runs = [run("a", 9_000, "/w"), run("elsewhere", 90_000, "/w")];
        let placed = place(&runs, &[terminal(1, 0), terminal(2, 1)]);
        let pids = [1, 2].map(|pid| Pid::new(pid).expect("a PID"));
        assert_eq!(placed.open["a"], BTreeSet::from(pids));
        assert_eq!(placed.open["elsewhere"], BTreeSet::new());
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
