//! `whosup conformance`, on a correct writer and on an incorrect writer.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]
#![allow(clippy::print_stderr, reason = "what is skipped is said")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use serde_json::Value;

#[allow(unreachable_pub, reason = "tests of several crates use this module")]
#[path = "../../core/tests/world/wire_schema.rs"]
mod wire_schema;

/// Runs the kit.
fn run(options: &[&str], command: &[&str]) -> Output {
    let home = tempfile::tempdir().unwrap();
    Command::new(env!("CARGO_BIN_EXE_whosup"))
        .arg("conformance")
        .args(options)
        .arg("--")
        .args(command)
        .env("HOME", home.path())
        .output()
        .unwrap()
}

/// The result of each check, by its name for `--only`.
fn kit(timeout: &str, command: &[&str]) -> (i32, BTreeMap<String, String>) {
    let output = run(&["--json", "--timeout", timeout], command);
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    for schema in [
        wire_schema::bundled("conformance"),
        wire_schema::strict("conformance", &[]),
    ] {
        jsonschema::validate(&schema, &document).unwrap();
    }
    let checks = document["checks"].as_array().unwrap();
    let said = checks.iter().map(|checked| {
        let said = [&checked["result"], &checked["message"]].map(|it| it.as_str().unwrap_or(""));
        let id = checked["id"].as_str().unwrap();
        (
            id.to_owned(),
            said.join(": ").trim_end_matches(": ").to_owned(),
        )
    });
    (output.status.code().unwrap(), said.collect())
}

/// The example of `whosup-sidecar`, built on first use.
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
    let (status, said) = kit("120", &[driver.to_str().unwrap()]);
    for (id, said) in said.iter().filter(|(_, said)| !said.starts_with("passed")) {
        assert!(said.starts_with("skipped"), "{id}: {said}");
        eprintln!("{id}: {said}");
    }
    assert_eq!((status, said.len()), (0, 38));
}

#[test]
fn one_check_is_made_and_shown_by_its_name() {
    let driver = driver();
    let output = run(&["--only", "name"], &[driver.to_str().unwrap()]);
    let table = String::from_utf8(output.stdout).unwrap();
    assert_eq!(
        table,
        "the file has a name that readers look for             passed\n"
    );
    assert_eq!(output.stderr, b"1 passed, 0 failed, 0 skipped\n");
    assert_eq!(output.status.code(), Some(0));
}

/// Common mistakes: writes in place, removes any file of that name, checks no ID, invents a word.
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
fn the_mistakes_of_a_naive_writer_are_reported() {
    if Command::new("python3").arg("--version").output().is_err() {
        eprintln!("skipped: there is no python3 here");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let script = directory.path().join("naive.py");
    std::fs::write(&script, NAIVE).unwrap();
    // It blocks on the FIFO that lies in its way.
    let (status, said) = kit("20", &["python3", script.to_str().unwrap()]);
    assert_eq!(status, 1);
    let fails_with = |name: &str, why: &str| {
        let said = &said[name];
        assert!(
            said.starts_with("failed: ") && said.contains(why),
            "{name}: {said}"
        );
    };
    let identity = &said["identity"];
    assert!(
        identity.starts_with("passed: without process_start"),
        "{identity}"
    );
    fails_with("mode", "the mode of");
    fails_with("burst", "");
    fails_with("second", "wrote over");
    fails_with("second-end", "");
    fails_with("refused-ids", "answered Ok");
    fails_with("left", "a living process's claim");
    fails_with("fields", "`serves` is `several`, neither `one` nor `many`");
    assert!(said["phase"].starts_with("skipped"));
    assert!(!Path::new("/escaped.runtime.json").exists());
}

#[track_caller]
fn check_not_checked(options: &[&str], command: &[&str], why: &str) {
    let output = run(options, command);
    let err = String::from_utf8(output.stderr).unwrap();
    assert!(err.contains(why), "{command:?}: {err}");
    assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0));
}

#[test]
fn a_program_that_is_not_there_or_silent_ends_the_run_at_once() {
    check_not_checked(
        &[],
        &["/no/such/program"],
        "cannot start `/no/such/program`",
    );
    check_not_checked(&[], &["true"], "it ended without an answer");
    check_not_checked(
        &[],
        &["sh", "-c", "read line; echo hello"],
        "it answered `hello`",
    );
    let silent = ["sh", "-c", "while read line; do :; done"];
    check_not_checked(&["--timeout", "1"], &silent, "it did not answer for 1 s");
}

#[test]
fn children_of_the_program_do_not_keep_the_kit_waiting() {
    let began = Instant::now();
    let with_child = ["sh", "-c", "sleep 600 & read line; exit"];
    check_not_checked(
        &["--timeout", "300"],
        &with_child,
        "it ended without an answer",
    );
    assert!(began.elapsed() < Duration::from_secs(120));
}
