//! Walks the table of agents and names whatever an adapter lacks.

#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test makes its own world, and fails where that fails"
)]

mod fixtures;
mod recognition;
mod resume;
mod scans;
#[path = "../world/mod.rs"]
mod world;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;
use whosup_core::adapter::claim::SessionKey;
use whosup_core::adapter::{
    Adapter, AgentScan, Depth, Home, Look, Program, Role, Sketch, Unclaimed,
};
use whosup_core::machine::command::NoCommands;
use whosup_core::machine::mounts::Mounts;
use whosup_core::machine::problem::Found;
use whosup_core::machine::{Environment, Machine};
use whosup_core::sources::agents::{AGENTS, id_of};
use whosup_process::{ProcessTable, Recorded, RecordedProcess};
use whosup_sidecar::{AgentId, SessionId};

/// How long a name may be that the kernel keeps of a process, in bytes.
const COMM_BYTES_MAX: usize = 15;
/// How many fixtures an agent has at least.
const FIXTURES_MIN: usize = 5;

/// Runs a check on every agent and reports what each of them lacks.
#[track_caller]
fn check_all(check: fn(&'static dyn Adapter) -> Vec<String>) {
    let mut report = String::new();
    for adapter in AGENTS {
        for lack in check(*adapter) {
            let _ = writeln!(report, "{}: {lack}", adapter.profile().id);
        }
    }
    assert!(report.is_empty(), "\n{report}");
}

/// The lacks of those things that are not as they should be.
fn lacks<'a>(things: impl IntoIterator<Item = (bool, &'a str)>) -> Vec<String> {
    let things = things.into_iter();
    things
        .filter(|(is_right, _)| !is_right)
        .map(|(_, lack)| lack.to_owned())
        .collect()
}

#[test]
fn ids_are_valid_and_no_two_agents_share_one() {
    let ids: BTreeSet<_> = AGENTS.iter().map(|adapter| adapter.profile().id).collect();
    assert_eq!(ids.len(), AGENTS.len());
    let homes: BTreeSet<_> = AGENTS
        .iter()
        .map(|one| one.profile().default_home)
        .collect();
    assert_eq!(homes.len(), AGENTS.len());
    check_all(|adapter| {
        let id = adapter.profile().id;
        lacks([
            (AgentId::parse(id).is_ok(), "its id is not valid"),
            (id_of(adapter).as_str() == id, "its id has another text"),
        ])
    });
}

#[test]
fn every_profile_is_filled_in() {
    check_all(|adapter| {
        let profile = adapter.profile();
        let default_home = Path::new(profile.default_home);
        let names = || adapter.profile().programs.names();
        lacks([
            (!profile.name.trim().is_empty(), "it has no name"),
            (
                default_home.is_relative() && !profile.default_home.is_empty(),
                "its default home is not below the user's",
            ),
            (
                !profile.detection.trim().is_empty(),
                "it does not say how sessions are found",
            ),
            (
                profile.checked_against.contains("20"),
                "it does not say when it was checked, and against what",
            ),
            (names().next().is_some(), "it has no process names"),
            (
                names().all(|name| !name.is_empty()),
                "a process name is empty",
            ),
            (
                profile.home_variables.iter().all(|name| !name.is_empty()),
                "a variable has no name",
            ),
        ])
    });
}

fn environment(variables: &[(&str, &str)]) -> Environment {
    let variables = variables.iter();
    Environment::new(
        Some(PathBuf::from("/home/dev")),
        Some(PathBuf::from("/work")),
        variables.map(|(name, value)| ((*name).to_owned(), OsString::from(value))),
    )
}

#[test]
fn homes_follow_their_variables_and_an_empty_one_is_unset() {
    check_all(|adapter| {
        let profile = adapter.profile();
        let default = Path::new("/home/dev").join(profile.default_home);
        let without = adapter.homes(&environment(&[]));
        let mut lack = lacks([
            (
                without.contains(&default),
                "without variables its default home is not a home",
            ),
            (
                adapter.homes(&Environment::default()).is_empty(),
                "without a user's home it invents homes",
            ),
        ]);
        let mut moves = profile.home_variables.is_empty();
        for name in profile.home_variables {
            let with = |value| adapter.homes(&environment(&[(name, value)]));
            let moved = with("/elsewhere/its");
            moves |= moved.iter().any(|home| home.starts_with("/elsewhere/its"));
            let both = with("/elsewhere/its/") == moved && with("") == without;
            let is_relative = with("its").iter().all(|home| home.is_absolute());
            // Some agents take it literally, so that another reading follows.
            let tilde = with("~/its");
            let is_tilde = tilde
                .first()
                .is_none_or(|home| !home.to_string_lossy().contains('~'));
            for (is_right, lack_of) in [
                (
                    both,
                    "counts when it is empty, or with a slash at its end for another home",
                ),
                (is_relative, "makes a relative home"),
                (is_tilde, "keeps a `~` first"),
            ] {
                if !is_right {
                    lack.push(format!("`{name}` {lack_of}"));
                }
            }
        }
        if !moves {
            lack.push("no variable moves its home".to_owned());
        }
        lack
    });
}
