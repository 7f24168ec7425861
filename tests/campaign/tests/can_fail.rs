//! The campaign reports a `whosup` that answers wrongly, and only that.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test makes its own programs, and fails where that fails"
)]

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// Lists every session of Claude Code in the home, by its transcript or its
/// record, and says the same of all of them.
const LIST: &str = r#"
rows() {
  first=yes
  printf '{"sessions":['
  {
    for file in "$HOME"/.claude/sessions/*.json; do
      sed 's/.*"sessionId":"\([^"]*\)".*/\1/' "$file"
      echo
    done
    for file in "$HOME"/.claude/projects/*/*.jsonl; do basename "$file" .jsonl; done
  } 2>/dev/null | sort -u | while read -r id; do
    case "$id" in '' | '*') continue;; esac
    [ "$first" = yes ] || printf ,
    first=no
    printf '{"agent":"claude-code","session_id":"%s","liveness":"%s","reason":"made-up","owner":{"pid":%s}}' "$id" "$1" "$OWNER"
  done
  printf '],"problems":[]}'
}
"#;

/// What a made-up `whosup` does for `list --all`, `list`, `check` and the rest.
struct Fake {
    whole: &'static str,
    default: &'static str,
    check: i32,
    owner: &'static str,
}

impl Fake {
    const fn saying(liveness: &'static str, check: i32) -> Self {
        Self {
            whole: liveness,
            default: liveness,
            check,
            owner: "1",
        }
    }

    /// Runs some steps of one world with it. Returns the exit status and the report.
    #[track_caller]
    fn run(&self) -> (i32, Value) {
        let directory = tempfile::tempdir().unwrap();
        let program = directory.path().join("whosup");
        let script = format!(
            "#!/bin/sh\nOWNER={}\n{LIST}\ncase \"$1 $2\" in\n\
             'list --all') {};;\n'check '*) exit {};;\nhook*) ;;\n*) {};;\nesac\n",
            self.owner,
            self.whole_rows(),
            self.check,
            self.default_rows()
        );
        write_program(&program, &script);
        let report = directory.path().join("report.json");
        let status = Command::new(env!("CARGO_BIN_EXE_whosup-campaign"))
            .args([
                "--agents",
                "claude-code",
                "--seed",
                "3",
                "--worlds",
                "1",
                "--steps",
                "7",
                "--jobs",
                "1",
            ])
            .arg("--whosup")
            .arg(&program)
            .arg("--json")
            .arg(&report)
            .output()
            .unwrap();
        let text =
            std::fs::read_to_string(&report).unwrap_or_else(|error| panic!("{error}: {status:?}"));
        (
            status.status.code().unwrap(),
            serde_json::from_str(&text).unwrap(),
        )
    }

    fn whole_rows(&self) -> String {
        format!("rows {}", self.whole)
    }

    fn default_rows(&self) -> String {
        format!("rows {}", self.default)
    }
}

fn write_program(path: &Path, script: &str) {
    std::fs::write(path, script).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

fn count(report: &Value, class: &str) -> u64 {
    report["classes"][class].as_u64().unwrap_or_default()
}

#[test]
fn who_never_says_anything_is_not_wrong_but_could_know_more() {
    let (status, report) = Fake::saying("unknown", 3).run();
    assert_eq!(status, 0, "{}", report["classes"]);
    assert!(
        count(&report, "unknown-knowable") > 3,
        "{}",
        report["classes"]
    );
    assert_eq!(count(&report, "disagreement"), 0, "{}", report["classes"]);
}

#[test]
fn who_calls_living_sessions_exited_is_reported_with_the_seed_and_the_step() {
    let (status, report) = Fake::saying("exited", 1).run();
    assert_eq!(status, 1);
    assert!(count(&report, "false-dead") > 3, "{}", report["classes"]);
    let wrongs = report["wrongs"].as_array().unwrap();
    let wrong = wrongs
        .iter()
        .find(|wrong| wrong["class"] == "false-dead")
        .unwrap();
    assert_eq!((&wrong["seed"], &wrong["world"]), (&3.into(), &0.into()));
    assert_eq!(wrong["answer"], "exited (made-up)");
    let printout = wrong["printout"].as_str().unwrap();
    assert!(printout.contains("process 0: claude-code"), "{printout}");
}

#[test]
fn who_names_the_wrong_process_is_reported() {
    let (status, report) = Fake::saying("live", 0).run();
    assert_eq!(status, 1);
    assert!(count(&report, "wrong-owner") > 3, "{}", report["classes"]);
}

#[test]
fn commands_that_disagree_are_reported() {
    let fake = Fake {
        default: "exited",
        ..Fake::saying("unknown", 0)
    };
    let (status, report) = fake.run();
    assert_eq!(status, 1);
    assert!(count(&report, "disagreement") > 3, "{}", report["classes"]);
    assert_eq!(count(&report, "false-dead"), 0, "{}", report["classes"]);
}

#[test]
fn who_prints_nothing_is_reported() {
    let fake = Fake {
        owner: "1; exit 101",
        ..Fake::saying("unknown", 3)
    };
    let (status, report) = fake.run();
    assert_eq!(status, 1);
    assert!(count(&report, "crash") > 3, "{}", report["classes"]);
}

#[test]
fn who_changes_a_file_by_looking_is_reported() {
    let fake = Fake {
        owner: "1; echo >>\"$HOME/.claude/looked\"",
        ..Fake::saying("unknown", 3)
    };
    let (status, report) = fake.run();
    assert_eq!(status, 1);
    assert!(count(&report, "changed") > 0, "{}", report["classes"]);
}
