use std::path::PathBuf;

use serde_json::{Value, json};
use whosup_sidecar::SessionId;

use super::*;
use crate::adapter::claim::SessionKey;
use crate::adapter::phase::Phase;

const ID: &str = "01a21ecc-2bd5-7f30-b93d-89bcac6028bb";

fn record(second: u32, kind: &str, payload: Value) -> String {
    let timestamp = format!("2026-11-27T20:57:{second:02}.000Z");
    json!({"timestamp": timestamp, "type": kind, "payload": payload}).to_string() + "\n"
}

fn header() -> String {
    record(
        11,
        "session_meta",
        json!({"id": ID, "session_id": ID, "timestamp": "2026-11-27T20:57:06.830Z",
            "cwd": "/home/dev/app", "source": "cli", "cli_version": "0.171.0",
            "base_instructions": {"text": "x".repeat(20_000)}, "git": {"branch": "main"}}),
    )
}

fn message(second: u32, role: &str, text: &str) -> String {
    let kind = if role == "assistant" {
        "output_text"
    } else {
        "input_text"
    };
    let content = json!([{"type": kind, "text": text}]);
    record(
        second,
        "response_item",
        json!({"type": "message", "role": role, "content": content}),
    )
}

fn event(second: u32, payload: Value) -> String {
    record(second, "event_msg", payload)
}

fn sketch(path: PathBuf) -> Sketch {
    Sketch {
        transcript: Some(path),
        born_at_ms: Some(1_795_813_026_773),
        ..Sketch::new(SessionKey {
            agent: AGENT,
            session: SessionId::parse(ID).unwrap(),
            home: PathBuf::from("/home/dev/.codex").into(),
        })
    }
}

/// A rollout with these lines, and the sketch of its session.
fn rollout(lines: &[String]) -> (tempfile::TempDir, Sketch) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir
        .path()
        .join(format!("rollout-2026-11-27T20-57-06-{ID}.jsonl"));
    std::fs::write(&path, lines.concat()).unwrap();
    let sketch = sketch(path);
    (dir, sketch)
}

#[test]
fn a_rollout_tells_of_its_session() {
    let (_dir, sketch) = rollout(&[
        header(),
        event(12, json!({"type": "task_started", "turn_id": "t"})),
        record(
            13,
            "turn_context",
            json!({"model": "gpt-5", "cwd": "/home/dev/app/sub"}),
        ),
        message(14, "user", "<environment_context>"),
        message(15, "user", "fix it"),
        event(16, json!({"type": "task_complete", "turn_id": "t"})),
        event(59, json!({"type": "thread_settings_applied"})),
    ]);
    let Found { found, problems } = describe(&sketch);
    assert_eq!(problems, []);
    assert_eq!(found.title.as_deref(), Some("fix it"));
    assert!(found.is_title_a_prompt);
    assert_eq!(found.model.as_deref(), Some("gpt-5"));
    assert_eq!(found.agent_version.as_deref(), Some("0.171.0"));
    assert_eq!(found.git_branch.as_deref(), Some("main"));
    assert_eq!(found.work_dir, Some(PathBuf::from("/home/dev/app/sub")));
    assert_eq!(found.started_at_ms, sketch.born_at_ms);
    assert_eq!(found.last_activity_at_ms, Some(1_795_813_036_000));
    assert_eq!(found.phase, Some(Phase::Idle));
    assert_eq!(found.is_headless, None);
}

#[test]
fn a_thread_without_a_rollout_waits_and_what_others_announce_has_no_phase() {
    let mut thread = sketch(PathBuf::new());
    thread.transcript = None;
    thread.lacks_transcript = true;
    assert_eq!(describe(&thread).found.phase, Some(Phase::Idle));
    thread.lacks_transcript = false;
    assert_eq!(describe(&thread).found.phase, None);
}

#[test]
fn a_rollout_of_2025_without_types_tells_of_its_session_and_what_was_said() {
    let said = |role: &str, text: &str| {
        let content = json!([{"type": "input_text", "text": text}]);
        json!({"type": "message", "role": role, "content": content}).to_string() + "\n"
    };
    let (_dir, sketch) = rollout(&[
        json!({"id": ID, "timestamp": "2025-08-18T01:16:13.522Z", "instructions": null})
            .to_string()
            + "\n",
        "{\"record_type\":\"state\"}\n".to_owned(),
        said(
            "user",
            "<environment_context>\n  <cwd>/home/dev/app</cwd>\n</environment_context>",
        ),
        said("user", "fix it"),
        json!({"type": "function_call", "name": "shell", "call_id": "c"}).to_string() + "\n",
        said("assistant", "done"),
    ]);
    let Found { found, problems } = describe(&sketch);
    assert_eq!(problems, []);
    assert_eq!(found.title.as_deref(), Some("fix it"));
    assert_eq!(found.work_dir, Some(PathBuf::from("/home/dev/app")));
    assert_eq!(found.phase, None);
    let Found { found, problems } = messages(&sketch, 10);
    assert_eq!(problems, []);
    let texts: Vec<&str> = found.iter().map(|message| message.text.as_str()).collect();
    assert_eq!(texts, ["fix it", "shell", "done"]);
}

#[test]
fn the_first_prompt_is_found_after_300_kb_of_instructions() {
    let (_dir, sketch) = rollout(&[
        header(),
        message(12, "developer", &"x".repeat(300_000)),
        message(
            12,
            "user",
            &format!("# AGENTS.md instructions\n{}", "y".repeat(300_000)),
        ),
        message(15, "user", "at last"),
    ]);
    let found = describe(&sketch).found;
    assert_eq!(found.title.as_deref(), Some("at last"));
}

#[test]
fn a_prompt_out_of_reach_leaves_only_the_title_empty() {
    let (_dir, sketch) = rollout(&[
        header(),
        message(12, "developer", &"x".repeat(3_000_000)),
        message(15, "user", "too late"),
    ]);
    let Found { found, problems } = describe(&sketch);
    assert_eq!(problems, []);
    assert_eq!(found.title, None);
    assert_eq!(found.work_dir, Some(PathBuf::from("/home/dev/app")));
}

#[test]
fn a_name_that_is_the_first_prompt_is_reported_as_a_prompt() {
    let lines = [header(), message(15, "user", "fix the parser, please")];
    for (name, is_prompt) in [("fix the parser…", true), ("The parser", false)] {
        let (_dir, mut sketch) = rollout(&lines);
        sketch.title = Some(name.to_owned());
        let found = describe(&sketch).found;
        assert_eq!(found.title.as_deref(), Some(name));
        assert_eq!(found.is_title_a_prompt, is_prompt, "{name}");
    }
}

#[test]
fn what_is_no_rollout_is_a_problem_that_names_it_once() {
    let (_dir, mut sketch) = rollout(&[]);
    let dir = tempfile::tempdir().unwrap();
    sketch.transcript = Some(dir.path().to_owned());
    let problems = describe(&sketch).problems;
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert_eq!(problems[0].path, sketch.transcript);
    assert_eq!(problems[0].message, "it is a directory");
}

#[test]
fn a_compressed_rollout_is_left_alone() {
    let mut sketch = sketch(PathBuf::from("/nowhere/rollout.jsonl.zst"));
    sketch.title = Some("A name".to_owned());
    let Found { found, problems } = describe(&sketch);
    assert_eq!(problems, []);
    assert_eq!(found.title.as_deref(), Some("A name"));
    assert_eq!(messages(&sketch, 3).problems.len(), 1);
}

#[test]
fn the_last_messages_are_listed_oldest_first() {
    let call = json!({"type": "function_call", "name": "exec_command", "call_id": "c"});
    let (_dir, sketch) = rollout(&[
        header(),
        message(12, "user", "one"),
        message(13, "assistant", "two"),
        record(14, "response_item", call),
        event(15, json!({"type": "user_message", "message": "three"})),
        message(15, "user", "three"),
        message(16, "assistant", "four"),
    ]);
    let texts = |messages_max| {
        let Found { found, problems } = messages(&sketch, messages_max);
        assert_eq!(problems, []);
        found
            .into_iter()
            .map(|message| message.text)
            .collect::<Vec<_>>()
    };
    assert_eq!(texts(3), ["exec_command", "three", "four"]);
    assert_eq!(texts(99), ["one", "two", "exec_command", "three", "four"]);
    assert_eq!(texts(0), Vec::<String>::new());
}
