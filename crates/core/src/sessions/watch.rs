//! What can change the answer of a look: files, processes, programs and the clock.
//!
//! A look reads more than this names, but all that it reads lies under one of these paths, as
//! a test over the fixtures shows (`crates/live/tests/covered.rs`).

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use whosup_process::{Pid, StartStamp};

use crate::adapter::WatchPath;
use crate::judging::verdict::Liveness;
use crate::machine::{Environment, Machine};
use crate::sessions::session::{ORPHAN_SHOWN_MS, Session, Snapshot, Unattributed};
use crate::sources::agents::AGENTS;
use crate::sources::common_place;
use crate::sources::dismissal::dismissals_root_of;
use crate::sources::record::{histories_root_of, records_root_of};

/// How many directories of `PATH` are searched.
const PATH_DIRECTORIES_MAX: usize = 64;
/// How many files that could not be read are watched.
const PROBLEMS_MAX: usize = 64;
/// How much dates of two clocks may differ, in milliseconds, with a margin.
const SLACK_MS: i64 = 2_100;

/// What can change the answer of a look.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Watch {
    /// Files and directories.
    pub paths: BTreeSet<WatchPath>,
    /// Processes that may exit.
    pub processes: BTreeMap<Pid, StartStamp>,
    /// Files that are opened when an agent is launched.
    pub programs: BTreeSet<PathBuf>,
    /// When the answer changes without an event, in milliseconds since 1970.
    pub changes_at_ms: Option<i64>,
}

impl Watch {
    /// Adds what the answer about a shown session depends on.
    pub fn add_session(&mut self, session: &Session, now_ms: i64) {
        let others = session.other_live.iter().map(|other| &other.process);
        let processes = session.owner.iter().chain(&session.client).chain(others);
        for process in processes.filter(|process| !process.is_exited) {
            self.processes.insert(process.pid, process.stamp.clone());
        }
        if session.liveness() == Liveness::Exited {
            if session.is_orphan()
                && let Some(last) = session.last_heard_of_ms()
            {
                self.changes_at(last.saturating_add(ORPHAN_SHOWN_MS + 1), now_ms);
            }
            return;
        }
        let evidence = session.evidence.iter();
        let evidence = evidence.filter_map(|judged| judged.evidence.path.as_deref());
        let files = session.sketch.transcript.as_deref().into_iter();
        let directories = files.chain(evidence).filter_map(Path::parent);
        let directories = directories.filter(|directory| !directory.starts_with("/proc"));
        self.paths
            .extend(directories.map(|directory| WatchPath::at(directory.to_owned())));
    }

    /// Adds what the rest of a look depends on: homes, reports of hooks and agents, and
    /// processes.
    pub fn add_look(&mut self, machine: &Machine, snapshot: &Snapshot) {
        for looked_at in &snapshot.looked_at {
            self.paths.extend(match looked_at.adapter {
                Some(adapter) => adapter.watch_paths(machine, &looked_at.home),
                None => vec![WatchPath::at(looked_at.home.root.to_path_buf())],
            });
        }
        self.paths.extend(of_all_agents(machine.environment()));
        let problems = snapshot.problems.iter().take(PROBLEMS_MAX);
        let spoilt = problems.filter_map(|problem| problem.path.clone());
        self.paths.extend(spoilt.map(WatchPath::at));
        for seen in &snapshot.processes {
            self.processes.insert(seen.pid, seen.stamp.clone());
            self.programs.extend(seen.program.clone());
        }
        for one in &snapshot.unattributed {
            self.add_launch(one, snapshot.taken_at_ms);
        }
    }

    /// A process that was just launched has not shown its session yet; what it may serve changes
    /// when its launch window is over.
    fn add_launch(&mut self, one: &Unattributed, now_ms: i64) {
        let profile = one.process.adapter.profile();
        let Ok(began) = one.process.process.began_at_ms else {
            return;
        };
        let windows = [profile.launch_window_ms, profile.announces_within_ms];
        for window in windows.into_iter().flatten() {
            self.changes_at(began.saturating_add(window + SLACK_MS), now_ms);
        }
    }

    fn changes_at(&mut self, at_ms: i64, now_ms: i64) {
        if at_ms > now_ms {
            let sooner = self.changes_at_ms.map_or(at_ms, |known| known.min(at_ms));
            self.changes_at_ms = Some(sooner);
        }
    }
}

/// What hooks recorded, what a person dismissed, what any agent announces, and the
/// configuration.
fn of_all_agents(environment: &Environment) -> impl Iterator<Item = WatchPath> {
    let trees = [
        records_root_of(environment),
        histories_root_of(environment),
        dismissals_root_of(environment),
        common_place::root(environment),
    ];
    let config = environment.xdg_directory("XDG_CONFIG_HOME", ".config");
    let config = config.map(|directory| WatchPath::at(directory.join("whosup/config.toml")));
    let trees = trees.into_iter().flatten().map(WatchPath::tree);
    trees.chain(config)
}

/// The programs of agents that a shell would find now, links followed.
#[must_use]
pub fn programs_on_path(machine: &Machine) -> BTreeSet<PathBuf> {
    let names: BTreeSet<&str> = AGENTS
        .iter()
        .flat_map(|adapter| {
            let profile = adapter.profile();
            adapter.profile().programs.names().chain([profile.id])
        })
        .collect();
    let path = machine.environment().variable("PATH");
    let directories = std::env::split_paths(path.unwrap_or(OsStr::new("")));
    let mounts = machine.mounts();
    let mut found = BTreeSet::new();
    for directory in directories.take(PATH_DIRECTORIES_MAX) {
        let is_there = mounts.touchable(&directory).is_ok_and(|path| path.is_dir());
        if !directory.is_absolute() || !is_there {
            continue;
        }
        let paths = names.iter().map(|name| directory.join(name));
        let there = paths.filter(|path| mounts.touchable(path).is_ok_and(|path| path.is_file()));
        found.extend(there.map(|path| mounts.real_path(&path)));
    }
    found
}
