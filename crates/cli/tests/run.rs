//! `whosup run`, with real programs.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use signal_hook::consts::{SIGHUP, SIGINT};
use tempfile::TempDir;

/// How long to wait for a condition.
const PATIENCE: Duration = Duration::from_secs(60);

struct World {
    home: TempDir,
}

impl World {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir(home.path().join("work")).unwrap();
        Self { home }
    }

    fn whosup(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_whosup"));
        command
            .args(arguments)
            .env("HOME", self.home.path())
            .env_remove("XDG_STATE_HOME")
            .env_remove("XDG_CONFIG_HOME")
            .current_dir(self.home.path().join("work"))
            .stdin(Stdio::null());
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let words: Vec<&str> = ["run"]
            .into_iter()
            .chain(arguments.iter().copied())
            .collect();
        self.whosup(&words).output().unwrap()
    }

    fn start(&self, arguments: &[&str]) -> Running {
        let words: Vec<&str> = ["run"]
            .into_iter()
            .chain(arguments.iter().copied())
            .collect();
        let mut command = self.whosup(&words);
        // Whatever becomes of the test, no process waits for what it started.
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        Running(command.spawn().unwrap())
    }

    fn session(&self, id: &str) -> Option<Value> {
        let output = self.whosup(&["list", "--all", "--json"]).output().unwrap();
        let list: Value = serde_json::from_slice(&output.stdout).unwrap();
        let sessions = list["sessions"].as_array().unwrap();
        sessions.iter().find(|it| it["session_id"] == id).cloned()
    }

    /// Waits for a session for which `is_it` is true.
    #[track_caller]
    fn wait_for(&self, id: &str, is_it: impl Fn(&Value) -> bool) -> Value {
        let began = Instant::now();
        loop {
            let session = self.session(id);
            match session {
                Some(session) if is_it(&session) => return session,
                session => assert!(began.elapsed() < PATIENCE, "{session:#?}"),
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn state(&self) -> PathBuf {
        self.home.path().join(".local/state")
    }

    fn record(&self, agent: &str, id: &str) -> Value {
        let path = self
            .state()
            .join(format!("whosup/sessions/{agent}/{id}.json"));
        serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
    }

    fn sidecar(&self, agent: &str, id: &str) -> PathBuf {
        let name = format!("agent-sessions/{agent}/{id}.runtime.json");
        self.state().join(name)
    }
}

/// A run of whosup that ends with the test.
struct Running(Child);

impl Running {
    #[track_caller]
    fn code(&mut self) -> Option<i32> {
        let began = Instant::now();
        loop {
            if let Some(status) = self.0.try_wait().unwrap() {
                return status.code();
            }
            assert!(began.elapsed() < PATIENCE, "it does not end");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

fn is_live(session: &Value) -> bool {
    session["liveness"] == "live"
}

/// A program that runs until the file `go` is in its directory.
const UNTIL_GO: &str = "while [ ! -e go ] && [ -d ../work ]; do sleep 0.02; done";

fn go(world: &World) {
    std::fs::write(world.home.path().join("work/go"), "").unwrap();
}

#[test]
fn a_program_that_runs_is_listed_as_live_with_its_own_pid() {
    let world = World::new();
    let script = format!("echo $$; {UNTIL_GO}; exit 7");
    let mut run = world.start(&[
        "--agent", "my-agent", "--id", "s1", "--", "sh", "-c", &script,
    ]);
    let session = world.wait_for("s1", is_live);
    assert_eq!(session["agent"], "my-agent");
    assert_eq!(
        (&session["reason"], &session["confidence"]),
        (&"start-stamp".into(), &"proven".into())
    );
    let work_dir = world.home.path().join("work").canonicalize().unwrap();
    assert_eq!(session["work_dir"], work_dir.to_str().unwrap());
    assert!(world.sidecar("my-agent", "s1").is_file());
    go(&world);
    assert_eq!(run.code(), Some(7));
    let mut said = String::new();
    std::io::Read::read_to_string(&mut run.0.stdout.take().unwrap(), &mut said).unwrap();
    assert_eq!(session["owner"]["pid"].to_string(), said.trim());
    assert!(!world.sidecar("my-agent", "s1").exists());
    let session = world.session("s1").unwrap();
    assert_eq!(
        (&session["liveness"], &session["phase"]),
        (&"exited".into(), &"ended".into())
    );
    assert_eq!(session["orphan"], false);
}

#[test]
fn how_a_program_ended_is_passed_on_and_recorded() {
    let world = World::new();
    for (id, script, code, cause, how) in [
        ("s1", "exit 0", 0, "exit code 0", "exit status 0"),
        ("s2", "exit 42", 42, "exit code 42", "exit status 42"),
        (
            "s3",
            "kill -TERM $$",
            143,
            "signal 15",
            "signal 15 (SIGTERM)",
        ),
        ("s4", "kill -KILL $$", 137, "signal 9", "signal 9 (SIGKILL)"),
    ] {
        let output = world.run(&["--id", id, "--", "sh", "-c", script]);
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        let record = world.record("sh", id);
        assert_eq!(record["phase"], "ended");
        assert_eq!(record["end_cause"], cause);
        assert_eq!(record["end_reason"], how);
        assert!(record["owner"]["start_stamp"].is_string());
        let output_of = |command: &str| {
            let output = world.whosup(&[command, id]).output().unwrap();
            String::from_utf8(output.stdout).unwrap()
        };
        let shown = output_of("show");
        assert!(
            shown.contains(&format!("end cause     {cause}\n")),
            "{shown}"
        );
        let explained = output_of("why");
        assert!(
            explained.contains(&format!("has ended ({cause})")),
            "{explained}"
        );
    }
}

fn signal(pid: u32, name: &str) {
    let pid = pid.to_string();
    let status = Command::new("kill").args(["-s", name, &pid]).status();
    assert!(status.unwrap().success());
}

#[test]
fn signals_are_passed_on_to_the_program() {
    let world = World::new();
    // Whoever started the tests may ignore some (nohup). What a process handles itself, its
    // children begin with as usual.
    for handled in [SIGHUP, SIGINT] {
        signal_hook::flag::register(handled, Arc::default()).unwrap();
    }
    for (name, id) in [("TERM", "s1"), ("HUP", "s2"), ("INT", "s3"), ("USR1", "s4")] {
        let script =
            format!("trap 'exit 55' {name}; echo ready; while [ -d ../work ]; do sleep 0.02; done");
        let mut run = world.start(&["--id", id, "--", "sh", "-c", &script]);
        let mut ready = [0; 6];
        std::io::Read::read_exact(run.0.stdout.as_mut().unwrap(), &mut ready).unwrap();
        signal(run.0.id(), name);
        assert_eq!(run.code(), Some(55), "SIG{name}");
    }
}

#[test]
fn standard_streams_are_those_of_the_program() {
    let world = World::new();
    let mut run = world
        .whosup(&["run", "--", "sh", "-c", "cat; echo words >&2"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    run.stdin.take().unwrap().write_all(b"typed").unwrap();
    let output = run.wait_with_output().unwrap();
    assert_eq!(output.stdout, b"typed");
    assert_eq!(output.stderr, b"words\n");
}

#[test]
fn a_terminal_of_its_own_shows_what_the_program_announces() {
    let world = World::new();
    let script = format!(
        "test -t 0 && test -t 1 || exit 9; printf '\\033]7501;state=working\\007'; {UNTIL_GO}; \
         printf '\\033]7501;state=blocked:kind=question\\033\\\\'; \
         while [ ! -e end ] && [ -d ../work ]; do sleep 0.02; done; exit 6"
    );
    let mut run = world.start(&["--pty", "--id", "s1", "--", "sh", "-c", &script]);
    let session = world.wait_for("s1", |session| session["phase"] == "working");
    assert!(is_live(&session));
    assert_ne!(session["owner"]["executable"], env!("CARGO_BIN_EXE_whosup"));
    go(&world);
    let session = world.wait_for("s1", |session| session["phase"] == "waiting");
    assert_eq!(session["waiting_for"], "question");
    std::fs::write(world.home.path().join("work/end"), "").unwrap();
    assert_eq!(run.code(), Some(6));
}

#[test]
fn the_end_of_standard_input_is_the_end_in_a_terminal_of_its_own() {
    let world = World::new();
    for input in ["", "one\n", "one", "one\ntwo"] {
        let mut run = Running(
            world
                .whosup(&["run", "--pty", "--", "cat"])
                .stdin(Stdio::piped())
                .stdout(Stdio::null())
                .spawn()
                .unwrap(),
        );
        let mut typed = run.0.stdin.take().unwrap();
        typed.write_all(input.as_bytes()).unwrap();
        drop(typed);
        assert_eq!(run.code(), Some(0), "{input:?}");
    }
}

#[test]
fn what_can_not_be_written_does_not_keep_a_program_from_running() {
    let world = World::new();
    std::fs::write(world.home.path().join(".local"), "no directory").unwrap();
    let output = world.run(&["--", "sh", "-c", "echo it runs"]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(output.stdout, b"it runs\n");
    let words = String::from_utf8(output.stderr).unwrap();
    assert!(
        words.starts_with("whosup: not announced: cannot make directory `"),
        "{words}"
    );
}

#[test]
fn what_can_not_be_run_is_reported() {
    let world = World::new();
    let plain = world.home.path().join("plain");
    std::fs::write(&plain, "no program").unwrap();
    let cases = [("/no/such/program", 127), (plain.to_str().unwrap(), 126)];
    for (program, code) in cases {
        for options in [&[][..], &["--pty"]] {
            let output = world.run(&[options, &["--agent", "a", "--", program]].concat());
            assert_eq!(output.status.code(), Some(code), "{output:?}");
            assert_eq!(output.stdout, b"");
            let words = String::from_utf8(output.stderr).unwrap();
            let right = format!("error: cannot run `{program}`");
            assert!(words.starts_with(&right), "{words}");
        }
    }
    for bad in [
        ["--id", "../x"],
        ["--agent", "My Agent"],
        ["--agent", "schema"],
    ] {
        let output = world.run(&[bad[0], bad[1], "--", "true"]);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
    }
    assert!(!Path::new(&world.state()).join("agent-sessions").exists());
    assert!(!Path::new(&world.state()).join("whosup").exists());
}

#[test]
fn a_program_that_announces_nothing_is_live_without_a_phase() {
    let world = World::new();
    let mut run = world.start(&["--id", "s1", "--", "sh", "-c", UNTIL_GO]);
    let session = world.wait_for("s1", is_live);
    assert_eq!(session["phase"], Value::Null);
    assert_eq!(session["phase_since"], Value::Null);
    go(&world);
    assert_eq!(run.code(), Some(0));
    let session = world.wait_for("s1", |session| session["liveness"] == "exited");
    assert_eq!(
        (&session["reason"], &session["orphan"]),
        (&"released".into(), &false.into())
    );
    // The same session once more.
    std::fs::remove_file(world.home.path().join("work/go")).unwrap();
    let mut run = world.start(&["--id", "s1", "--", "sh", "-c", UNTIL_GO]);
    let session = world.wait_for("s1", is_live);
    assert_eq!(session["phase"], Value::Null);
    assert_eq!(session["phase_since"], Value::Null);
    go(&world);
    assert_eq!(run.code(), Some(0));
}

#[test]
fn a_script_that_becomes_another_program_is_followed() {
    let world = World::new();
    let script = format!("{UNTIL_GO}; exec sleep 600");
    let mut run = world.start(&["--id", "s1", "--", "sh", "-c", &script]);
    let before = world.wait_for("s1", is_live);
    go(&world);
    let is_other = |session: &Value| {
        let executable = session["owner"]["executable"].as_str().unwrap_or_default();
        executable.ends_with("/sleep") || executable.contains("coreutils")
    };
    let after = world.wait_for("s1", |session| !is_live(session) || is_other(session));
    assert!(is_live(&after), "{after:#}");
    assert_eq!(after["confidence"], "proven");
    assert_eq!(after["owner"]["pid"], before["owner"]["pid"]);
    let pid = u32::try_from(after["owner"]["pid"].as_i64().unwrap()).unwrap();
    signal(pid, "KILL");
    // It was killed, so it did not release the session.
    let gone = world.wait_for("s1", |session| session["reason"] == "process-gone");
    assert_eq!(gone["orphan"], true);
    assert_eq!(run.code(), Some(128 + 9));
}

#[test]
fn the_end_of_a_program_is_passed_on() {
    let world = World::new();
    let home = world.home.path();
    std::fs::create_dir_all(home.join(".config/whosup")).unwrap();
    let passed = home.join("passed");
    let config = format!(
        "on_end = [[\"cp\", \"/dev/stdin\", \"{}\"]]\n",
        passed.display()
    );
    std::fs::write(home.join(".config/whosup/config.toml"), config).unwrap();
    let output = world.run(&["--id", "s1", "--", "true"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let began = Instant::now();
    let is_passed = || std::fs::read_to_string(&passed).is_ok_and(|text| text.contains("\"s1\""));
    while !is_passed() {
        assert!(began.elapsed() < PATIENCE);
        std::thread::sleep(Duration::from_millis(20));
    }
}
