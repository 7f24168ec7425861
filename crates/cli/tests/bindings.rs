//! Agents that embed the writers of `bindings`, listed with nothing configured.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]
#![allow(clippy::print_stderr, reason = "what is skipped is said")]

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

fn bindings() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bindings")
}

/// An agent that does what lines tell it; it ends with the test.
struct Agent {
    child: Child,
    answers: BufReader<ChildStdout>,
    home: TempDir,
}

impl Agent {
    fn start(program: &str, script: &str) -> Self {
        let home = tempfile::tempdir().unwrap();
        let mut child = Command::new(program)
            .arg(bindings().join(script))
            .env("HOME", home.path())
            .env_remove("XDG_STATE_HOME")
            .env("PYTHONPATH", bindings().join("python/src"))
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .current_dir(home.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let answers = BufReader::new(child.stdout.take().unwrap());
        Self {
            child,
            answers,
            home,
        }
    }

    #[track_caller]
    fn must(&mut self, line: &str) {
        writeln!(self.child.stdin.as_ref().unwrap(), "{line}").unwrap();
        let mut answer = String::new();
        self.answers.read_line(&mut answer).unwrap();
        assert_eq!(answer.trim_end(), "ok", "{line}");
    }

    fn whosup(&self, arguments: &[&str]) -> (Option<i32>, String) {
        let output = Command::new(env!("CARGO_BIN_EXE_whosup"))
            .args(arguments)
            .env("HOME", self.home.path())
            .env_remove("XDG_STATE_HOME")
            .env_remove("XDG_CONFIG_HOME")
            .current_dir(self.home.path())
            .output()
            .unwrap();
        (
            output.status.code(),
            String::from_utf8(output.stdout).unwrap(),
        )
    }

    fn session(&self, id: &str, all: bool) -> Option<Value> {
        let arguments = if all {
            &["list", "--all", "--json"][..]
        } else {
            &["list", "--json"]
        };
        let list: Value = serde_json::from_str(&self.whosup(arguments).1).unwrap();
        let sessions = list["sessions"].as_array().unwrap();
        sessions.iter().find(|it| it["session_id"] == id).cloned()
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn check(agent: &str, program: &str, script: &str) {
    let mut running = Agent::start(program, script);
    running.must("start s-one");
    running.must("phase waiting");
    let session = running.session("s-one", false).expect("it is listed");
    assert_eq!(session["agent"], agent);
    assert_eq!(session["liveness"], "live");
    assert_eq!(
        (&session["reason"], &session["confidence"]),
        (&"start-stamp".into(), &"proven".into())
    );
    assert_eq!(
        (&session["phase"], &session["waiting_for"]),
        (&"waiting".into(), &"permission".into())
    );
    assert_eq!(session["owner"]["pid"], running.child.id());
    running.must("switch s-two");
    assert!(running.session("s-one", true).is_none());
    assert_eq!(running.whosup(&["check", "s-two"]).0, Some(0));
    let pid = running.whosup(&["pid", "s-two"]).1;
    assert_eq!(pid.trim(), running.child.id().to_string());
    running.child.kill().unwrap();
    running.child.wait().unwrap();
    let session = running.session("s-two", true).expect("its file is there");
    assert_eq!(
        (&session["liveness"], &session["reason"]),
        (&"exited".into(), &"no-such-process".into())
    );
    assert_eq!(running.whosup(&["check", "s-two"]).0, Some(1));
}

#[test]
fn an_agent_in_python_is_listed_with_nothing_configured() {
    if Command::new("python3").arg("--version").output().is_err() {
        eprintln!("skipped: there is no python3 here");
        return;
    }
    check("driver-py", "python3", "python/examples/driver.py");
}

#[test]
fn an_agent_in_typescript_is_listed_with_nothing_configured() {
    if !bindings().join("node/dist/esm/index.js").is_file() {
        eprintln!("skipped: `bindings/node` has not been built (npm install there builds it)");
        return;
    }
    check("driver-node", "node", "node/examples/driver.mjs");
}
