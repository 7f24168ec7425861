//! What chats tell, record by record.

use super::*;

const HEADER: &str = r#"{"sessionId":"s","projectHash":"a","startTime":"2026-11-27T20:53:03.261Z","lastUpdated":"2026-11-27T20:53:03.261Z","kind":"main"}"#;
const CONTEXT: &str = r#"{"$set":{"messages":[{"id":"c","timestamp":"2026-11-27T20:53:03.269Z","type":"user","content":[{"text":"<session_context>\nx"}]}],"lastUpdated":"2026-11-27T20:53:03.269Z"}}"#;
const PROMPT: &str = r#"{"id":"p","timestamp":"2026-11-27T20:53:27.000Z","type":"user","content":[{"text":"hello\n one"}]}"#;
const REPLY: &str = r#"{"id":"r","timestamp":"2026-11-27T20:53:32.000Z","type":"gemini","content":"hi","thoughts":[],"tokens":{"input":1},"model":"gemini-2.5-pro"}"#;
const CALLS: &str = r#"{"id":"t","timestamp":"2026-11-27T20:53:34.000Z","type":"gemini","content":"","model":"gemini-2.5-pro"}"#;
const CALLED: &str = r#"{"id":"t","timestamp":"2026-11-27T20:53:34.000Z","type":"gemini","content":"","model":"gemini-2.5-pro","toolCalls":[{"id":"x","name":"run_shell_command","status":"success"}]}"#;
const RESULTS: &str = r#"{"id":"u","timestamp":"2026-11-27T20:53:40.000Z","type":"user","content":[{"functionResponse":{"id":"x","name":"run_shell_command"}}]}"#;
const CANCELLED: &str = r#"{"id":"i","timestamp":"2026-11-27T20:53:50.000Z","type":"info","content":"Request cancelled."}"#;
const UPDATED: &str = r#"{"$set":{"lastUpdated":"2026-11-27T20:54:00.000Z"}}"#;
const SUMMARY: &str = r#"{"$set":{"summary":"About\nnothing","memoryScratchpad":{"version":1}}}"#;

fn file_of(lines: &[&str]) -> (tempfile::TempDir, std::path::PathBuf) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("session-2026-11-27T20-53-s.jsonl");
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    std::fs::write(&path, text).expect("a file");
    (directory, path)
}

fn description(lines: &[&str]) -> Description {
    let (_directory, path) = file_of(lines);
    describe(&path).expect("a description").0
}

#[test]
fn head_and_tail_describe_a_session() {
    let described = description(&[HEADER, CONTEXT, PROMPT, REPLY, UPDATED]);
    assert_eq!(described.title.as_deref(), Some("hello one"));
    assert!(described.is_title_a_prompt);
    assert_eq!(described.model.as_deref(), Some("gemini-2.5-pro"));
    assert_eq!(described.started_at_ms, Some(1_795_812_783_261));
    assert_eq!(described.last_activity_at_ms, Some(1_795_812_840_000));
}

#[test]
fn a_summary_is_the_title_and_no_activity() {
    let described = description(&[HEADER, CONTEXT, PROMPT, REPLY, UPDATED, SUMMARY]);
    assert_eq!(described.title.as_deref(), Some("About nothing"));
    assert!(!described.is_title_a_prompt);
    assert_eq!(described.last_activity_at_ms, Some(1_795_812_840_000));
}

#[test]
fn what_may_be_two_things_is_no_phase() {
    let phase = |lines: &[&str]| description(&[&[HEADER, CONTEXT], lines].concat()).phase;
    let rewound = r#"{"$rewindTo":"p"}"#;
    assert_eq!(phase(&[]), Some(Phase::Idle));
    assert_eq!(phase(&[PROMPT]), Some(Phase::Working));
    assert_eq!(phase(&[PROMPT, UPDATED]), Some(Phase::Working));
    assert_eq!(phase(&[PROMPT, REPLY, UPDATED]), None);
    assert_eq!(phase(&[PROMPT, CALLS]), None);
    assert_eq!(phase(&[PROMPT, CALLS, CALLED]), None);
    assert_eq!(
        phase(&[PROMPT, CALLS, CALLED, RESULTS]),
        Some(Phase::Working)
    );
    assert_eq!(phase(&[PROMPT, CANCELLED, CONTEXT]), Some(Phase::Idle));
    assert_eq!(phase(&[PROMPT, REPLY, rewound]), Some(Phase::Idle));
}

#[test]
fn a_line_too_long_to_read_makes_the_phase_uncertain() {
    let long = PROMPT.replace(
        "one",
        &"x".repeat(2 * crate::sources::transcript::LINE_BYTES_MAX),
    );
    assert_eq!(description(&[HEADER, PROMPT, CANCELLED, &long]).phase, None);
}

#[test]
fn bad_lines_are_counted_and_the_rest_is_told() {
    let fused = format!("{HEADER}{PROMPT}");
    let (_directory, path) = file_of(&[&fused, "{\"c\":", CANCELLED]);
    let (described, problem) = describe(&path).expect("a description");
    assert_eq!(described.title.as_deref(), Some("hello one"));
    assert_eq!(described.phase, Some(Phase::Idle));
    assert!(problem.is_some());
}

#[test]
fn the_last_messages_come_oldest_first_and_each_once() {
    let (_directory, path) = file_of(&[HEADER, CONTEXT, PROMPT, CALLS, CALLED, RESULTS, REPLY]);
    let (messages, problem) = messages(&path, 10).expect("messages");
    let texts: Vec<&str> = messages
        .iter()
        .map(|message| message.text.as_str())
        .collect();
    assert_eq!(texts, ["hello\n one", "run_shell_command", "hi"]);
    assert_eq!(problem, None);
}

#[test]
fn a_chat_of_an_earlier_version_is_described_too() -> std::io::Result<()> {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("session-2026-11-27T20-53-s.json");
    let object = format!(
        r#"{{"sessionId":"s","projectHash":"a","startTime":"2026-11-27T20:53:03.261Z","lastUpdated":"2026-11-27T20:54:00.000Z","messages":[{PROMPT},{REPLY}]}}"#
    );
    std::fs::write(&path, object)?;
    let described = describe(&path).expect("a description").0;
    assert_eq!(described.title.as_deref(), Some("hello one"));
    assert_eq!(described.last_activity_at_ms, Some(1_795_812_840_000));
    let (messages, _) = messages(&path, 1).expect("messages");
    assert_eq!(
        messages.first().map(|message| message.text.as_str()),
        Some("hi")
    );
    Ok(())
}

#[test]
fn the_first_prompt_is_what_a_person_typed() {
    let stopped = PROMPT.replace("hello\\n one", "Operation stopped by hook");
    let hooked = PROMPT.replace(
        "hello\\n one",
        "hello\\n one\\n<hook_context>from a hook</hook_context>",
    );
    let command = PROMPT.replace("hello\\n one", "/review it");
    let title = |lines: &[&str]| description(lines).title;
    assert_eq!(title(&[HEADER, CONTEXT, &stopped]), None);
    assert_eq!(
        title(&[HEADER, CONTEXT, &hooked]).as_deref(),
        Some("hello one")
    );
    assert_eq!(title(&[HEADER, &command]).as_deref(), Some("/review it"));
    assert_eq!(
        title(&[HEADER, &command, PROMPT]).as_deref(),
        Some("hello one")
    );
}

#[test]
fn the_model_is_in_the_beginning_where_the_end_is_all_progress() {
    let notice = format!(
        r#"{{"id":"n","timestamp":"2026-11-27T20:55:00.000Z","type":"info","content":"{}"}}"#,
        "x".repeat(4000)
    );
    let mut lines = vec![HEADER, PROMPT, REPLY];
    lines.extend(std::iter::repeat_n(notice.as_str(), 600));
    assert_eq!(description(&lines).model.as_deref(), Some("gemini-2.5-pro"));
}
