//! What is read of a session's generation and journal.

use std::fs;

use serde_json::json;

use super::*;

const NUMBER: &str = "0000000000000007";

/// A session with one generation, two chunks and a journal.
struct Stored {
    dir: tempfile::TempDir,
}

impl Stored {
    fn new(journal: &str) -> Self {
        let stored = Self {
            dir: tempfile::tempdir().unwrap(),
        };
        let envelope = envelope(&json!({"type": "idle"}), 1_000);
        stored.write("CURRENT", &json!({"generation": NUMBER}).to_string());
        stored.write(
            &format!("generations/{NUMBER}/manifest.json"),
            &json!({
                "projection_state": {"chunks": ["aa", "bb"]},
                "recovery_journal_segment": {"path": "journal/8.jsonl"},
            })
            .to_string(),
        );
        stored.write(
            &format!("generations/{NUMBER}/projection-state.json"),
            &json!({"snapshot": envelope}).to_string(),
        );
        let old = json!([
            message("m-1", "user", "one"),
            message("m-2", "assistant", "two")
        ]);
        stored.write("chunks/aa.json", &old.to_string());
        let young = json!([
            {"type": "effect", "id": "e-1", "createdAt": 3, "detail": {"toolName": "file_system.bash"}},
            message("m-3", "assistant", "three"),
        ]);
        stored.write("chunks/bb.json", &young.to_string());
        stored.write("journal/8.jsonl", journal);
        stored
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.dir.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn state(&self) -> State {
        read(self.dir.path()).unwrap().unwrap()
    }

    fn texts(&self, messages_max: usize) -> Vec<String> {
        let messages = messages(self.dir.path(), messages_max).unwrap();
        messages.into_iter().map(|message| message.text).collect()
    }
}

fn envelope(status: &Value, updated_at_ms: i64) -> Value {
    json!({
        "activeCallbacks": [],
        "session": {
            "createdAt": 500, "updatedAt": updated_at_ms, "status": status,
            "title": null, "preview": "hello\nthere",
        },
    })
}

fn message(id: &str, role: &str, text: &str) -> Value {
    json!({"type": "message", "id": id, "role": role, "createdAt": 1,
        "content": [{"type": "text", "text": text}]})
}

fn delta(steps: &Value) -> Value {
    json!({"type": "projection_delta", "payload": {"delta": steps}})
}

fn lines(records: &[Value]) -> String {
    records.iter().map(|record| format!("{record}\n")).collect()
}

#[track_caller]
fn check_phase(journal: &str, phase: Option<Phase>, waiting_for: Option<WaitingFor>) {
    let state = Stored::new(journal).state();
    assert_eq!((state.phase, state.waiting_for), (phase, waiting_for));
}

#[test]
fn without_a_journal_the_state_is_the_generations() {
    let state = Stored::new("").state();
    assert_eq!(state.phase, Some(Phase::Idle));
    assert_eq!(state.preview.as_deref(), Some("hello there"));
    assert_eq!(state.title, None);
    assert_eq!(state.created_at_ms, Some(500));
    assert_eq!(state.updated_at_ms, Some(1_000));
}

#[test]
fn the_journals_last_state_counts_with_the_questions_after_it() {
    let running = || {
        let state = envelope(&json!({"type": "running"}), 2_000);
        delta(&json!([{"op": "set_envelope", "state": state}]))
    };
    let asked = |id: &str, kind: &str| json!({"type": "callback_registered", "payload": {"callback_id": id, "kind": kind}});
    let answered = |id: &str| json!({"type": "callback_resolved", "payload": {"callback_id": id}});
    let check = |records: &[Value], phase, waiting_for| {
        check_phase(&lines(records), Some(phase), waiting_for);
    };
    check(&[running()], Phase::Working, None);
    check(&[running(), asked("a", "hook")], Phase::Working, None);
    let permission = Some(WaitingFor::Permission);
    let question = Some(WaitingFor::Question);
    check(
        &[running(), asked("a", "approval")],
        Phase::Waiting,
        permission,
    );
    check(
        &[running(), asked("a", "user_input")],
        Phase::Waiting,
        question,
    );
    check(
        &[running(), asked("a", "approval"), answered("a")],
        Phase::Working,
        None,
    );
    check(
        &[
            running(),
            asked("a", "approval"),
            asked("b", "hook"),
            answered("b"),
        ],
        Phase::Waiting,
        permission,
    );
    // Answered before the state that is the last.
    check(&[asked("a", "approval"), running()], Phase::Working, None);
}

#[test]
fn a_state_may_have_the_question_itself() {
    let blocked = json!({"type": "blocked", "callbackKind": "user_input"});
    let state = envelope(&blocked, 2_000);
    let journal = lines(&[delta(&json!([{"op": "set_envelope", "state": state}]))]);
    check_phase(&journal, Some(Phase::Waiting), Some(WaitingFor::Question));
    let mut state = envelope(&json!({"type": "running"}), 2_000);
    state["activeCallbacks"] = json!([{"id": "a", "kind": "approval"}]);
    let open = delta(&json!([{"op": "set_envelope", "state": state}]));
    let journal = lines(std::slice::from_ref(&open));
    check_phase(&journal, Some(Phase::Waiting), Some(WaitingFor::Permission));
    let answered = json!({"type": "callback_resolved", "payload": {"callback_id": "a"}});
    check_phase(&lines(&[open, answered]), Some(Phase::Working), None);
    let unknown = envelope(&json!({"type": "dreaming"}), 2_000);
    let journal = lines(&[delta(&json!([{"op": "set_envelope", "state": unknown}]))]);
    check_phase(&journal, None, None);
}

#[test]
fn messages_are_those_of_the_chunks_and_of_the_journal_behind_them() {
    let journal = lines(&[
        delta(&json!([{"op": "append_entry", "entry": message("m-4", "user", "four")}])),
        delta(
            &json!([{"op": "replace_entry", "id": "m-3", "entry": message("m-3", "assistant", "3")}]),
        ),
        delta(&json!([
            {"op": "append_entry", "entry": message("m-5", "assistant", "fi")},
            {"op": "remove_entry", "id": "m-2"},
        ])),
        delta(
            &json!([{"op": "replace_entry", "id": "m-5", "entry": message("m-5", "assistant", "five")}]),
        ),
    ]);
    let stored = Stored::new(&journal);
    let all = ["one", "file_system.bash", "3", "four", "five"];
    assert_eq!(stored.texts(100), all);
    assert_eq!(stored.texts(2), ["four", "five"]);
    assert_eq!(stored.texts(3), ["3", "four", "five"]);
    let whole = json!([{"op": "set_history_entries", "entries": [message("m-9", "user", "nine")]}]);
    let stored = Stored::new(&lines(&[delta(&whole)]));
    assert_eq!(stored.texts(100), ["nine"]);
}

#[test]
fn what_is_no_generation_is_an_error_that_names_the_file() {
    let check = |path: &str, text: &str, named: &str| {
        let stored = Stored::new("");
        stored.write(path, text);
        let problem = read(stored.dir.path()).unwrap_err();
        let found = problem.path.unwrap();
        assert!(found.ends_with(named), "{}", found.display());
        assert!(!problem.message.is_empty());
    };
    check("CURRENT", "{", "CURRENT");
    check("CURRENT", r#"{"generation":"../x"}"#, "CURRENT");
    check(
        "CURRENT",
        r#"{"generation":"9"}"#,
        "generations/9/manifest.json",
    );
    let manifest = format!("generations/{NUMBER}/manifest.json");
    check(
        &manifest,
        r#"{"recovery_journal_segment":{"path":"../../x.jsonl"}}"#,
        &manifest,
    );
    check(
        &manifest,
        r#"{"recovery_journal_segment":{"path":"journal/9.jsonl"}}"#,
        "journal/9.jsonl",
    );
    let empty = tempfile::tempdir().unwrap();
    assert_eq!(read(empty.path()), Ok(None));
}

#[test]
fn torn_fused_and_huge_lines_hide_nothing() {
    let state = envelope(&json!({"type": "running"}), 2_000);
    let running = delta(&json!([{"op": "set_envelope", "state": state}]));
    let huge = format!(
        "{{\"type\":\"core_input\",\"x\":\"{}\"}}\n",
        "x".repeat(3 << 20)
    );
    let journal =
        format!("{running}{{\"type\":\"action_result\"}}\n\0\0\n{huge}{{\"type\":\"callb");
    let state = Stored::new(&journal).state();
    assert_eq!(state.phase, Some(Phase::Working));
    assert!(state.problem.is_some());
}
