//! Agents that embed the writers of `bindings`, listed with nothing configured.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]
#![allow(clippy::print_stderr, reason = "what is skipped is said")]

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::{Value, json};

fn bindings() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bindings")
}

/// An agent that obeys the lines on its standard input; it ends with the test.
struct Agent {
    child: Child,
    answers: BufReader<ChildStdout>,
}

impl Agent {
    fn start(home: &Path, program: &str, arguments: &[&Path]) -> Self {
        let mut child = Command::new(program)
            .args(arguments)
            .env("HOME", home)
            .env_remove("XDG_STATE_HOME")
            .env_remove("KIMI_SHARE_DIR")
            .env_remove("QWEN_HOME")
            .env("PYTHONPATH", bindings().join("python/src"))
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .current_dir(home)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let answers = BufReader::new(child.stdout.take().unwrap());
        Self { child, answers }
    }

    fn send(&self, line: &str) {
        writeln!(self.child.stdin.as_ref().unwrap(), "{line}").unwrap();
    }

    #[track_caller]
    fn must(&mut self, line: &str) {
        self.send(line);
        let mut answer = String::new();
        self.answers.read_line(&mut answer).unwrap();
        assert_eq!(answer.trim_end(), "ok", "{line}");
    }

    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn whosup(home: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_whosup"))
        .args(arguments)
        .env("HOME", home)
        .env_remove("XDG_STATE_HOME")
        .env_remove("XDG_CONFIG_HOME")
        .env_remove("KIMI_SHARE_DIR")
        .env_remove("QWEN_HOME")
        .current_dir(home)
        .output()
        .unwrap();
    (
        output.status.code(),
        String::from_utf8(output.stdout).unwrap(),
    )
}

/// The fields of a session in a list.
fn listed(home: &Path, id: &str, options: &[&str]) -> Option<Value> {
    let arguments = [&["list", "--json"], options].concat();
    let list: Value = serde_json::from_str(&whosup(home, &arguments).1).unwrap();
    let sessions = list["sessions"].as_array().unwrap();
    let mut of_id = sessions.iter().filter(|it| it["session_id"] == id);
    let session = of_id.next().cloned();
    assert!(of_id.next().is_none(), "it is listed twice");
    session
}

#[track_caller]
fn check_said(session: &Value, said: Value) {
    for (key, value) in said.as_object().unwrap() {
        // Another process may have the PID of an exited process by now.
        if *value == "no-such-process" && session[key] == "pid-reused" {
            continue;
        }
        assert_eq!(session[key], *value, "{key}: {session:#}");
    }
}

#[track_caller]
fn check_example(agent: &str, program: &str, script: &str) {
    let (one, two) = (&session_id(), &session_id());
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let mut running = Agent::start(home, program, &[&bindings().join(script)]);
    running.must(&format!("start {one}"));
    running.must("phase waiting");
    let session = listed(home, one, &[]).expect("it is listed");
    let said = json!({
        "agent": agent, "liveness": "live", "reason": "start-stamp", "confidence": "proven",
        "phase": "waiting", "waiting_for": "permission",
    });
    check_said(&session, said);
    assert_eq!(session["owner"]["pid"], running.child.id());
    running.must(&format!("switch {two}"));
    assert!(listed(home, one, &["--all"]).is_none());
    assert_eq!(whosup(home, &["check", two]).0, Some(0));
    let pid = whosup(home, &["pid", two]).1;
    assert_eq!(pid.trim(), running.child.id().to_string());
    running.kill();
    let session = listed(home, two, &["--all"]).expect("its file is there");
    let said = json!({ "liveness": "exited", "reason": "no-such-process" });
    check_said(&session, said);
    assert_eq!(whosup(home, &["check", two]).0, Some(1));
}

/// An ID that no other running test uses: every process leads to the home that its own
/// environment names, and two homes may have the same ID.
fn session_id() -> String {
    static MADE: AtomicU32 = AtomicU32::new(0);
    let made = MADE.fetch_add(1, Ordering::Relaxed);
    format!("{made:08x}-0000-4000-8000-{:012x}", std::process::id())
}

/// The life of an agent whose files lie like those of another agent: a prompt, a switch, a
/// kill, a resumed session, a clean exit.
#[track_caller]
fn check_life(agent: &str, version: &str, home: &Path, start: &dyn Fn() -> Agent) {
    let (one, two) = (&session_id(), &session_id());
    let mut running = start();
    running.must(&format!("start {one}"));
    running.must("phase working");
    let session = listed(home, one, &[]).expect("it is listed before the first prompt");
    let said = json!({
        "agent": agent, "liveness": "live", "reason": "start-stamp", "confidence": "proven",
        "phase": "working", "agent_version": version, "work_dir": home, "home": null,
    });
    check_said(&session, said);
    assert_eq!(session["owner"]["pid"], running.child.id());
    running.must("prompt Tidy the attic");
    running.must("phase waiting");
    let session = listed(home, one, &[]).expect("it is listed");
    let said = json!({
        "title": "Tidy the attic", "phase": "waiting", "waiting_for": "permission",
    });
    check_said(&session, said);

    running.must(&format!("switch {two}"));
    let session = listed(home, two, &[]).expect("the new one is listed");
    assert_eq!(session["owner"]["pid"], running.child.id());
    assert!(listed(home, one, &[]).is_none());
    let left = listed(home, one, &["--all"]).expect("the old one is on disk");
    check_said(&left, json!({ "liveness": "exited", "orphan": false }));

    running.kill();
    let session = listed(home, two, &["--all"]).expect("its data are there");
    check_said(
        &session,
        json!({ "liveness": "exited", "reason": "no-such-process" }),
    );
    assert_eq!(whosup(home, &["check", two]).0, Some(1));

    let mut running = start();
    running.must(&format!("start {two}"));
    let session = listed(home, two, &[]).expect("it lives again");
    check_said(
        &session,
        json!({ "liveness": "live", "reason": "start-stamp" }),
    );
    assert_eq!(session["owner"]["pid"], running.child.id());
    running.send("exit");
    assert!(running.child.wait().unwrap().success());
    assert!(listed(home, two, &[]).is_none());
    let session = listed(home, two, &["--all"]).expect("its data are there");
    check_said(&session, json!({ "liveness": "exited", "orphan": false }));
}

/// The writer for TypeScript, as npm would install it into `home`.
fn node_package(home: &Path) -> bool {
    let built = bindings().join("node");
    if !built.join("dist/esm/index.js").is_file() {
        eprintln!("skipped: `bindings/node` has not been built (npm install there builds it)");
        return false;
    }
    std::fs::create_dir_all(home.join("node_modules")).unwrap();
    std::os::unix::fs::symlink(
        built.canonicalize().unwrap(),
        home.join("node_modules/whosup"),
    )
    .unwrap();
    true
}

fn has_python() -> bool {
    let is_there = Command::new("python3").arg("--version").output().is_ok();
    if !is_there {
        eprintln!("skipped: there is no python3 here");
    }
    is_there
}

/// Puts a program where an installation would put it, so that it is recognized.
fn install(name: &str, at: PathBuf) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/agents");
    std::fs::create_dir_all(at.parent().unwrap()).unwrap();
    std::fs::copy(source.join(name), &at).unwrap();
    at
}

/// An agent whose own data lie beside its sidecars passes the conformance kit.
#[track_caller]
fn check_kit(home: &Path, program: &str, script: &Path) {
    let output = Command::new(env!("CARGO_BIN_EXE_whosup"))
        .args(["conformance", "--timeout", "120", "--", program])
        .arg(script)
        .env("HOME", home)
        .env_remove("KIMI_SHARE_DIR")
        .env_remove("QWEN_HOME")
        .env("PYTHONPATH", bindings().join("python/src"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
        .unwrap();
    let table = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{table}");
    let (done, skipped): (Vec<_>, Vec<_>) =
        table.lines().partition(|line| !line.contains("  skipped"));
    skipped.iter().for_each(|line| eprintln!("{line}"));
    assert!(done.len() >= 18, "{table}");
}

fn check_kimi(options: &[&str]) {
    if !has_python() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let script = install("kimi", home.path().join(".local/bin/kimi"));
    let mut arguments = vec![script.as_path()];
    arguments.extend(options.iter().map(Path::new));
    let start = || Agent::start(home.path(), "python3", &arguments);
    check_life("kimi-cli", "1.60.0", home.path(), &start);
}

fn check_qwen(options: &[&str]) {
    let home = tempfile::tempdir().unwrap();
    if !node_package(home.path()) {
        return;
    }
    let package = home.path().join("node_modules/@qwen-code/qwen-code");
    let script = install("qwen.mjs", package.join("cli.js"));
    std::fs::write(package.join("package.json"), r#"{"type":"module"}"#).unwrap();
    let mut arguments = vec![script.as_path()];
    arguments.extend(options.iter().map(Path::new));
    let start = || Agent::start(home.path(), "node", &arguments);
    check_life("qwen-code", "0.24.4", home.path(), &start);
}

#[test]
fn an_agent_like_kimi_is_listed_by_a_sidecar_beside_its_own_data() {
    check_kimi(&[]);
}

#[test]
fn agents_like_kimi_and_qwen_pass_the_conformance_kit() {
    let home = tempfile::tempdir().unwrap();
    if has_python() {
        let script = install("kimi", home.path().join("bin/kimi"));
        check_kit(home.path(), "python3", &script);
    }
    if node_package(home.path()) {
        let script = install("qwen.mjs", home.path().join("qwen.mjs"));
        check_kit(home.path(), "node", &script);
    }
}

#[test]
fn an_agent_like_kimi_is_listed_by_a_sidecar_in_the_common_place() {
    check_kimi(&["--common"]);
}

#[test]
fn an_agent_like_qwen_is_listed_by_a_sidecar_beside_its_own_data() {
    check_qwen(&[]);
}

#[test]
fn an_agent_like_qwen_is_listed_by_a_sidecar_in_the_common_place() {
    check_qwen(&["--common"]);
}

#[test]
fn an_agent_in_python_is_listed_with_nothing_configured() {
    if has_python() {
        check_example("driver-py", "python3", "python/examples/driver.py");
    }
}

#[test]
fn an_agent_in_typescript_is_listed_with_nothing_configured() {
    if bindings().join("node/dist/esm/index.js").is_file() {
        check_example("driver-node", "node", "node/examples/driver.mjs");
    } else {
        eprintln!("skipped: `bindings/node` has not been built (npm install there builds it)");
    }
}
