//! `whosup conformance`, on a writer that is right and on one that is not.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]
#![allow(clippy::print_stderr, reason = "what is skipped is said")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What each check said: its name, and the rest of its line.
fn kit(command: &[&str]) -> (i32, BTreeMap<String, String>) {
    let home = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_whosup"))
        .args(["conformance", "--timeout", "120", "--"])
        .args(command)
        .env("HOME", home.path())
        .output()
        .unwrap();
    let table = String::from_utf8(output.stdout).unwrap();
    let lines = table.lines().map(|line| {
        let (name, said) = line.split_once("  ").unwrap();
        (name.trim().to_owned(), said.trim().to_owned())
    });
    (output.status.code().unwrap(), lines.collect())
}

/// The example of `whosup-sidecar`, which is built if it is not there yet.
fn driver() -> PathBuf {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = Command::new(cargo);
    build.args(["build", "--quiet", "--package", "whosup-sidecar"]);
    build.args(["--example", "driver"]);
    build.current_dir(env!("CARGO_MANIFEST_DIR"));
    assert!(build.status().unwrap().success());
    let tests = std::env::current_exe().unwrap();
    let profile = tests.parent().unwrap().parent().unwrap();
    profile.join("examples/driver")
}

#[test]
fn the_writer_of_whosup_sidecar_passes_every_check() {
    let driver = driver();
    let (status, said) = kit(&[driver.to_str().unwrap()]);
    let not_passed: Vec<_> = said.iter().filter(|(_, said)| *said != "passed").collect();
    for (name, said) in &not_passed {
        assert!(said.starts_with("skipped"), "{name}: {said}");
        eprintln!("{name}: {said}");
    }
    assert_eq!(status, 0);
    assert_eq!(said.len(), 19);
}

/// What many agents do: write in place, remove what has the name, check no id, make up a word.
const NAIVE: &str = r#"
import json, os, sys, time
directory = os.path.join(os.environ["XDG_STATE_HOME"], "agent-sessions", "naive")
os.makedirs(directory, exist_ok=True)
current = None
def write(session):
    path = os.path.join(directory, session + ".runtime.json")
    with open(path, "w") as file:
        json.dump({"schema_version": 1, "pid": os.getpid(), "session_id": session,
                   "work_dir": os.getcwd(), "hostname": os.uname().nodename,
                   "started_at": time.time(), "naive_version": "1", "serves": "several"}, file)
    return path
for line in sys.stdin:
    command, _, session = line.rstrip("\n").partition(" ")
    if command == "exit":
        if current and os.path.exists(current):
            os.remove(current)
        break
    if command == "crash":
        os.abort()
    if command not in ("start", "switch"):
        print("unsupported", flush=True)
        continue
    if current and os.path.exists(current):
        os.remove(current)
    try:
        current = write(session)
        print("ok", flush=True)
    except OSError as error:
        print("error", error, flush=True)
"#;

#[test]
fn a_naive_writer_is_told_what_is_wrong_with_it() {
    if Command::new("python3").arg("--version").output().is_err() {
        eprintln!("skipped: there is no python3 here");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let script = directory.path().join("naive.py");
    std::fs::write(&script, NAIVE).unwrap();
    let (status, said) = kit(&["python3", script.to_str().unwrap()]);
    assert_eq!(status, 1);
    let fails_with = |name: &str, why: &str| {
        let said = &said[name];
        assert!(
            said.starts_with("FAILED: ") && said.contains(why),
            "{name}: {said}"
        );
    };
    let identity = &said["the process is named so that no other can be meant"];
    assert!(
        identity.starts_with("passed: without process_start"),
        "{identity}"
    );
    fails_with("only its owner may read the file", "mode is");
    fails_with("in a burst every file is whole and one is there", "");
    fails_with(
        "a second process leaves the first one's file alone",
        "wrote over",
    );
    fails_with("a second process's end leaves the first one's file", "");
    fails_with(
        "ids that could leave their directory are refused",
        "answered Ok",
    );
    fails_with(
        "a session has one sidecar, with every field",
        "`serves` is `several`, neither `one` nor `many`",
    );
    assert!(said["a phase is written whole (optional)"].starts_with("skipped"));
    assert!(!Path::new("/escaped.runtime.json").exists());
}

#[test]
fn a_program_that_does_not_answer_fails_every_check() {
    let (status, said) = kit(&["true"]);
    assert_eq!(status, 1);
    assert!(
        said.values().all(|said| said.starts_with("FAILED: ")),
        "{said:#?}"
    );
    let (status, said) = kit(&["/no/such/program"]);
    assert_eq!(status, 1);
    let first = &said["a session has one sidecar, with every field"];
    assert!(first.contains("cannot start `/no/such/program`"), "{first}");
}
