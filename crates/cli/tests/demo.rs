//! The demo shows every condition, and leaves nothing behind.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test that can't go on fails, and one that is skipped says so"
)]

use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pipe::{PipeFlags, fcntl_setpipe_size, pipe_with};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

const WORKING: &str = "4f1c0a52-6b0e-4c59-8a1d-2f6f0c9b7d11";
const SUB_AGENT: &str = "a17f3c92";
const WAITING: &str = "9d27b6e0-1c44-4f0b-b5a7-60d2f8e1c322";
const IDLE: &str = "c3a85f14-77d9-4e1e-9c02-5b8a4d0f6e33";
const STARTING: &str = "1b6e9d73-02fa-4d67-8e35-c1a97b4f2d44";
const CRASHED: &str = "e80d4c36-5e9b-43a8-a6f1-7d3c0b2e9f55";
const TWICE: &str = "72f5ab18-d3c6-4b7a-8f90-1e6d5c4a3b66";
const HEADLESS: &str = "5d90e3c7-8a21-4c3f-97be-f04b6a1d8c77";
const UNTRUSTED: &str = "b24c7f69-3f58-4e92-a01c-8d7e6f5b4a88";
const DONE: &str = "08e6d1fa-94b3-4a5d-b8c7-3a2f1e0d9c99";
const YOUNGER: &str = "36c9f0d8-e1b7-4a42-9d53-0b8f7e6a5cbb";
const ELSEWHERE: &str = "fb81d2c4-6a05-4e7b-a3c9-5d4f3e2b1acc";
const PAIRED: &str = "6e4b1d97-58c0-4f3a-bd26-a7c90e8f1ddd";
const EITHER: &str = "2c7f9ae3-b164-4d08-95e7-e3d2c1b0a4ee";
const OTHER: &str = "a95d0b6c-7e32-4c81-8fa4-4b5c6d7e8fff";

/// How long to wait for anything: machines that run tests are busy.
const PATIENCE: Duration = Duration::from_secs(60);
/// The time between two looks.
const STEP: Duration = Duration::from_millis(20);
/// The smallest possible pipe: output that does not fit blocks the demo.
const PIPE_BYTES: usize = 4096;

/// A temporary directory and a home for one test.
struct Place {
    temporary: TempDir,
    home: TempDir,
}

impl Place {
    fn new() -> Self {
        let directory = |prefix| {
            let builder = tempfile::Builder::new().prefix(prefix).tempdir();
            builder.unwrap()
        };
        Self {
            temporary: directory("whosup-test-tmp-"),
            home: directory("whosup-test-home-"),
        }
    }

    fn demo(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_whosup"));
        command
            .arg("demo")
            .args(arguments)
            .env("TMPDIR", self.temporary.path())
            .env("HOME", self.home.path())
            .env_remove("CLAUDE_CONFIG_DIR")
            .env_remove("CODEX_HOME")
            .stdin(Stdio::null());
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.demo(arguments).output().unwrap()
    }

    #[track_caller]
    fn json(&self, arguments: &[&str]) -> Value {
        let output = self.run(arguments);
        assert!(output.status.success(), "{output:?}");
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// The files in the temporary directory.
    fn left(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.temporary.path()).unwrap();
        entries.map(|entry| entry.unwrap().path()).collect()
    }

    /// The programs that processes execute from there.
    fn processes(&self) -> Vec<PathBuf> {
        let place = self.temporary.path().canonicalize().unwrap();
        let entries = std::fs::read_dir("/proc").unwrap();
        let programs = entries.filter_map(|entry| {
            let program = entry.ok()?.path().join("exe").read_link().ok()?;
            program.starts_with(&place).then_some(program)
        });
        programs.collect()
    }

    #[track_caller]
    fn check_nothing_is_left(&self) {
        assert_eq!(self.processes(), [] as [PathBuf; 0]);
        assert_eq!(self.left(), [] as [PathBuf; 0]);
    }
}

/// A demo that can't end, since its output is not read.
struct Held {
    child: Child,
    _unread: OwnedFd,
}

impl Held {
    fn start(place: &Place) -> Self {
        let (read, write) = pipe_with(PipeFlags::CLOEXEC).unwrap();
        fcntl_setpipe_size(&write, PIPE_BYTES).unwrap();
        let child = place
            .demo(&["--", "list", "--all", "--json"])
            .stdout(write)
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut waited = [PollFd::new(&read, PollFlags::IN)];
        let patience = Timespec::try_from(PATIENCE).unwrap();
        let answered = poll(&mut waited, Some(&patience)).unwrap();
        assert_eq!(answered, 1, "the demo says nothing");
        assert!(!place.processes().is_empty());
        assert_eq!(place.left().len(), 1);
        Self {
            child,
            _unread: read,
        }
    }

    fn end_by(mut self, signal: Signal) -> ExitStatus {
        let pid = Pid::from_raw(self.child.id().try_into().unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < deadline, "the demo goes on");
            std::thread::sleep(STEP);
        }
    }
}

#[track_caller]
fn check(sessions: &Value, id: &str, expected: &[(&str, &str)]) {
    let sessions = sessions["sessions"].as_array().unwrap();
    let mut its = sessions
        .iter()
        .filter(|session| session["session_id"] == id);
    let (Some(session), None) = (its.next(), its.next()) else {
        panic!("`{id}` is not there once");
    };
    for (key, expected) in expected {
        let expected: Value = serde_json::from_str(expected).unwrap();
        assert_eq!(session[key], expected, "`{key}` of `{id}`: {session:#}");
    }
}

#[test]
fn a_demo_shows_live_sessions_in_every_phase() {
    let shown = Place::new().json(&["--", "list", "--json"]);
    let live = ("liveness", r#""live""#);
    let proven = ("confidence", r#""proven""#);
    let phase = |name| ("phase", name);
    check(&shown, WORKING, &[live, proven, phase(r#""working""#)]);
    check(
        &shown,
        WORKING,
        &[("title", r#""Fix the flaky login test""#)],
    );
    check(
        &shown,
        WORKING,
        &[("detached", "false"), ("headless", "false")],
    );
    let permission = ("waiting_for", r#""permission""#);
    check(
        &shown,
        WAITING,
        &[live, proven, phase(r#""waiting""#), permission],
    );
    check(&shown, IDLE, &[live, proven, phase(r#""idle""#)]);
    check(&shown, STARTING, &[live, proven, phase(r#""starting""#)]);
    check(&shown, HEADLESS, &[live, proven, ("headless", "true")]);
    let inferred = ("confidence", r#""inferred""#);
    check(&shown, PAIRED, &[live, inferred, phase(r#""working""#)]);
    let parent = format!("{WORKING:?}");
    check(&shown, SUB_AGENT, &[live, ("parent_session_id", &parent)]);
}

#[test]
fn a_demo_shows_what_became_of_the_others() {
    let shown = Place::new().json(&["--", "list", "--all", "--json"]);
    let reason = |name| ("reason", name);
    let orphan = ("orphan", "true");
    check(&shown, CRASHED, &[reason(r#""no-such-process""#), orphan]);
    check(
        &shown,
        DONE,
        &[("liveness", r#""exited""#), ("orphan", "false")],
    );
    check(&shown, UNTRUSTED, &[reason(r#""untrusted-claim""#)]);
    check(&shown, ELSEWHERE, &[reason(r#""other-host""#)]);
    check(&shown, YOUNGER, &[reason(r#""younger-than-claim""#)]);
    check(&shown, EITHER, &[reason(r#""may-be-served-by""#)]);
    check(&shown, OTHER, &[reason(r#""may-be-served-by""#)]);

    let unattributed = shown["unattributed"].as_array().unwrap();
    let mut candidates: Vec<usize> = unattributed
        .iter()
        .map(|one| one["candidates"].as_array().unwrap().len())
        .collect();
    candidates.sort_unstable();
    assert_eq!(candidates, [0, 2, 2]);
    let problems = shown["problems"].as_array().unwrap();
    let is_about = |text: &str| {
        let mut problems = problems.iter();
        problems.any(|problem| problem["path"].as_str().unwrap_or_default().ends_with(text))
    };
    assert!(is_about("/.qwen/sessions/31337.json"), "{problems:#?}");
}

#[test]
fn a_demo_shows_sessions_with_several_processes_and_processes_with_several_sessions() {
    let shown = Place::new().json(&["--", "list", "--all", "--json"]);
    let sessions = shown["sessions"].as_array().unwrap();
    let titled = |title: &str| {
        let mut its = sessions.iter().filter(|session| session["title"] == title);
        let (Some(session), None) = (its.next(), its.next()) else {
            panic!("`{title}` is not there once");
        };
        session
    };
    let twice = titled("Tidy up the release notes");
    assert_eq!(twice["session_id"], TWICE);
    assert_eq!(twice["other_live"].as_array().unwrap().len(), 1);

    let client = titled("Dark mode for the settings screen");
    let detached = titled("Split the user service in two");
    for thread in [client, detached] {
        assert_eq!(thread["reason"], "lock-held");
        assert_eq!(thread["owner"]["pid"], client["owner"]["pid"]);
    }
    assert!(client["client"]["pid"].is_number());
    assert_eq!(client["detached"], false);
    assert_eq!(client["waiting_for"], "question");
    assert_eq!(detached["client"], Value::Null);
    assert_eq!(detached["detached"], true);

    let current = titled("Cache dependencies in CI");
    let left = titled("Shorten the build");
    assert_eq!(current["liveness"], "live");
    assert_eq!(left["reason"], "superseded");
    assert_eq!(left["superseded_by"], current["session_id"]);
}

#[test]
fn a_demo_says_that_it_is_one_and_leaves_nothing_behind() {
    let place = Place::new();
    let output = place.run(&[]);
    assert_eq!(output.status.code(), Some(0));
    let words = String::from_utf8(output.stderr).unwrap();
    assert!(words.starts_with("This is a demo: "), "{words}");
    let table = String::from_utf8(output.stdout).unwrap();
    assert!(table.contains("Fix the flaky login test"), "{table}");
    assert!(table.contains("~/src/shop"), "{table}");
    place.check_nothing_is_left();
}

#[test]
fn a_demo_knows_nothing_of_the_home_it_is_started_from() {
    let place = Place::new();
    let file = place.home.path().join(".claude/sessions/4711.json");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, "{").unwrap();
    let shown = place.json(&["--", "list", "--all", "--json"]);
    let text = shown.to_string();
    assert!(
        !text.contains(place.home.path().to_str().unwrap()),
        "{text}"
    );
    let entries = |path: &Path| std::fs::read_dir(path).unwrap().count();
    assert_eq!(entries(place.home.path()), 1);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "{");
}

#[test]
fn a_signal_ends_a_demo_and_all_that_belongs_to_it() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let place = Place::new();
        let status = Held::start(&place).end_by(signal);
        assert_eq!(status.signal(), Some(signal.as_raw()));
        place.check_nothing_is_left();
    }
}

#[test]
fn after_a_kill_no_process_of_a_demo_is_left() {
    let place = Place::new();
    let status = Held::start(&place).end_by(Signal::KILL);
    assert_eq!(status.signal(), Some(Signal::KILL.as_raw()));
    let deadline = Instant::now() + PATIENCE;
    while !place.processes().is_empty() {
        assert!(Instant::now() < deadline, "{:?}", place.processes());
        std::thread::sleep(STEP);
    }
}

#[test]
fn two_demos_at_once_do_not_see_each_other() {
    let place = Place::new();
    let held = Held::start(&place);
    let shown = place.json(&["--", "list", "--json"]);
    check(&shown, WORKING, &[("other_live", "[]")]);
    assert_eq!(shown["unattributed"].as_array().unwrap().len(), 3);
    assert_eq!(place.left().len(), 1, "the other one stays");
    held.end_by(Signal::TERM);
    place.check_nothing_is_left();
}

#[test]
fn a_demo_ends_with_the_status_of_its_command() {
    let place = Place::new();
    for (id, status) in [(WORKING, 0), (CRASHED, 1), (YOUNGER, 3), ("77777777", 4)] {
        let output = place.run(&["--", "check", id]);
        assert_eq!(output.status.code(), Some(status), "{id}: {output:?}");
    }
    for wrong in [&["list", "--sort", "colour"][..], &["demo"], &["nothing"]] {
        let arguments: Vec<&str> = ["--"].iter().chain(wrong).copied().collect();
        let output = place.run(&arguments);
        assert_eq!(output.status.code(), Some(2), "{wrong:?}: {output:?}");
    }
    place.check_nothing_is_left();
}

#[test]
fn where_no_program_may_run_a_demo_says_so() {
    let place = Place::new();
    let script = "mount -t tmpfs -o noexec none \"$TMPDIR\" || exit 77; exec \"$0\" demo";
    let output = Command::new("unshare")
        .args(["--mount", "sh", "-c", script, env!("CARGO_BIN_EXE_whosup")])
        .env("TMPDIR", place.temporary.path())
        .output();
    let output = match output {
        Ok(output) if output.status.code() != Some(77) && output.status.code() != Some(1) => output,
        other => {
            eprintln!("skipped: cannot mount a file system here: {other:?}");
            return;
        }
    };
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let words = String::from_utf8(output.stderr).unwrap();
    assert!(
        words.contains("noexec") && words.contains("TMPDIR"),
        "{words}"
    );
    place.check_nothing_is_left();
}
