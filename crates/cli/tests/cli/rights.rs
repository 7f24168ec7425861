//! Homes without read or write permission.
//!
//! Root may do anything, so as root these tests run the program as another user; otherwise they
//! would test nothing.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt, chown};
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use serde_json::json;

use super::shell_agent::event;
use super::world::{Said, WHOSUP, World, said};

/// A user that owns no files.
const NOBODY_UID: u32 = 65_534;

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Every path below `root`, the root included.
fn walk(root: &Path) -> Vec<PathBuf> {
    let mut found = vec![root.to_owned()];
    let mut at = 0;
    while let Some(path) = found.get(at).cloned() {
        at += 1;
        if std::fs::symlink_metadata(&path).unwrap().is_dir() {
            let entries = std::fs::read_dir(&path).unwrap();
            found.extend(entries.map(|entry| entry.unwrap().path()));
        }
    }
    found
}

/// What must not change: names, sizes, modes, owners, change times.
fn facts(root: &Path) -> BTreeMap<PathBuf, (u64, u32, u32, i64, i64)> {
    let fact = |path: PathBuf| {
        let its = std::fs::symlink_metadata(&path).unwrap();
        let times = (its.mtime_nsec(), its.ctime_nsec());
        (path, (its.len(), its.mode(), its.uid(), times.0, times.1))
    };
    walk(root).into_iter().map(fact).collect()
}

/// The program as a user without rights, or the reason why there is none.
struct Unprivileged {
    world: World,
    program: PathBuf,
}

impl Unprivileged {
    fn new(world: World) -> Option<Self> {
        if !is_root() {
            return Some(Self {
                world,
                program: WHOSUP.into(),
            });
        }
        let has_setpriv = std::process::Command::new("setpriv")
            .arg("--version")
            .output()
            .is_ok();
        if !has_setpriv {
            eprintln!("skipped: root may read everything, and there is no setpriv");
            return None;
        }
        // Other users may have no access to the build directory.
        let program = world.root().join("whosup");
        crate::world::copy_program(WHOSUP, &program);
        for path in [world.root(), program.as_path()] {
            std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
        }
        for path in walk(&world.home()) {
            chown(path, Some(NOBODY_UID), Some(NOBODY_UID)).unwrap();
        }
        Some(Self { world, program })
    }

    #[track_caller]
    fn run<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Said {
        said(self.whosup().args(arguments))
    }

    fn whosup(&self) -> Command {
        let mut command = if is_root() {
            let mut command = Command::new("setpriv");
            let ids = NOBODY_UID.to_string();
            command
                .args(["--reuid", &ids, "--regid", &ids, "--clear-groups", "--"])
                .arg(&self.program);
            command
        } else {
            Command::new(&self.program)
        };
        command
            .env_clear()
            .env("HOME", self.world.home())
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .current_dir("/");
        command
    }
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
}

#[test]
fn an_unreadable_home_is_a_problem_and_the_rest_is_listed() {
    let world = World::new();
    world.write_claude_transcript(".claude", &world.s1);
    world.write_claude_transcript("other", &world.s2);
    world.write(
        ".config/whosup/config.toml",
        "[homes]\nclaude-code = [\"~/other\"]\n",
    );
    let Some(user) = Unprivileged::new(world) else {
        return;
    };
    let projects = user.world.home().join(".claude/projects");
    set_mode(&projects, 0o000);
    let said = user.run(["list", "--all", "--json"]);
    assert_eq!(said.status, 0, "{}", said.err);
    let sessions = said.sessions();
    assert!(
        sessions
            .iter()
            .any(|one| one["session_id"] == user.world.s2),
        "{}",
        said.out
    );
    assert!(
        !sessions
            .iter()
            .any(|one| one["session_id"] == user.world.s1),
        "{}",
        said.out
    );
    let answer = said.json();
    let problems = answer["problems"].as_array().unwrap();
    let is_reported = problems
        .iter()
        .any(|one| one["path"] == projects.to_str().unwrap());
    assert!(is_reported, "{problems:?}");

    // It may be there: that is unknown, and never "no such session".
    for command in ["check", "pid", "show", "why"] {
        let said = user.run([command, user.world.s1.as_str()]);
        assert_eq!(said.status, 3, "{command}: {}", said.err);
    }
    assert_eq!(user.run(["check", user.world.s2.as_str()]).status, 1);
    let said = user.run(["list", "--all"]);
    assert!(said.err.contains("could not be read"), "{}", said.err);
    // So that it can be removed.
    set_mode(&projects, 0o755);
}

#[test]
fn an_unreadable_configuration_is_reported_and_the_rest_is_listed() {
    let world = World::new();
    world.write_claude_transcript(".claude", &world.s1);
    let config = world.write(".config/whosup/config.toml", "x");
    let Some(user) = Unprivileged::new(world) else {
        return;
    };
    set_mode(&config, 0o000);
    let said = user.run(["list", "--all", "--json"]);
    assert_eq!(said.status, 0, "{}", said.err);
    assert_eq!(said.sessions().len(), 1);
    assert_eq!(said.json()["problems"][0]["path"], config.to_str().unwrap());
}

#[test]
fn looking_works_in_a_read_only_home_and_changes_nothing() {
    let world = World::new();
    let posing = world.pose_as_claude();
    world.write_claude_record(posing.pid(), &posing.start(), &world.s1);
    world.write_claude_transcript(".claude", &world.s1);
    world.write_claude_transcript(".claude", &world.s2);
    world.write(".claude/sessions/9.json", "");
    world.write(
        ".codex/thread-writer-locks/01a21ec8-c5bb-78f0-959a-e72776985ddc.lock",
        "",
    );
    world.write(".config/whosup/config.toml", "prompts = \"hide\"\n");
    let Some(user) = Unprivileged::new(world) else {
        return;
    };
    let home = user.world.home();
    for path in walk(&home) {
        let mode = std::fs::symlink_metadata(&path).unwrap().mode();
        set_mode(&path, mode & !0o222);
    }
    let before = facts(&home);
    for arguments in [
        &["list"][..],
        &["list", "--all", "--json"],
        &["list", "--problems"],
        &["show", user.world.s2.as_str(), "--tail", "3"],
        &["why", user.world.s1.as_str()],
        &["check", user.world.s2.as_str()],
        &["pid", user.world.s1.as_str()],
        &["agents"],
    ] {
        let said = user.run(arguments);
        assert_ne!(said.status, 2, "{arguments:?}: {}", said.err);
        assert_eq!(facts(&home), before, "{arguments:?}");
    }
    // So that it can be removed.
    for path in walk(&home) {
        set_mode(&path, 0o755);
    }
}

/// datadog-agent#29320: a failed write must neither fail a command that only looks, nor the agent.
#[test]
fn a_hook_in_a_read_only_home_stops_no_agent_and_a_sweep_is_no_failure() {
    let world = World::new();
    world.write_claude_transcript(".claude", &world.s1);
    let Some(user) = Unprivileged::new(world) else {
        return;
    };
    let (home, session) = (user.world.home(), user.world.s1.clone());
    for path in walk(&home) {
        let mode = std::fs::symlink_metadata(&path).unwrap().mode();
        set_mode(&path, mode & !0o222);
    }
    let before = facts(&home);
    for name in ["SessionStart", "UserPromptSubmit", "Stop", "SessionEnd"] {
        let hook_event = event(&user.world, &session, name, json!({}));
        let mut hook = user.whosup();
        let hook = hook.args(["hook", "claude-code"]);
        let answer = said(hook.write_stdin(hook_event.to_string()));
        let silent = (answer.status, answer.out.as_str(), answer.err.as_str());
        assert_eq!(silent, (0, "", ""), "{name}");
    }
    for arguments in [&["status"][..], &["doctor"], &["orphans"], &["sweep"]] {
        let answer = user.run(arguments);
        assert!(
            !answer.err.contains("error:"),
            "{arguments:?}: {}",
            answer.err
        );
    }
    let listed = user.run(["list", "--all", "--json"]).sessions();
    assert_eq!(listed[0]["session_id"], session.as_str());
    assert_eq!(facts(&home), before);
    // So that it can be removed.
    for path in walk(&home) {
        set_mode(&path, 0o755);
    }
}
