//! Which facts chats give, record by record.

use super::*;
use crate::adapter::phase::Phase;
use crate::sources::agents::kit::dialect::TokenCount;
use crate::sources::agents::kit::dialect::testing::{file_of, messages_in};

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

fn description(lines: &[&str]) -> Description {
    let (_directory, file) = file_of(lines);
    describe(file.path()).expect("a description").0
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
fn the_last_messages_come_oldest_first_and_each_once() {
    let said = messages_in(
        &DIALECT,
        &[HEADER, CONTEXT, PROMPT, CALLS, CALLED, RESULTS, REPLY],
    );
    assert_eq!(said, ["hello\n one", "run_shell_command", "hi"]);
}

#[test]
fn a_reply_counts_its_tokens() {
    let reply = REPLY.replace(
        r#"{"input":1}"#,
        r#"{"input":1234,"output":48,"cached":1000,"thoughts":8,"tool":0,"total":1290}"#,
    );
    let (_directory, file) = file_of(&[HEADER, PROMPT, &reply, UPDATED]);
    let right = TokenCount {
        context: Some(1234),
        input: Some(234),
        cached_input: Some(1000),
        output: Some(56),
        reasoning: Some(8),
        ..TokenCount::default()
    };
    assert_eq!(DIALECT.last_tokens(&file).expect("a file"), right);
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
    assert_eq!(
        messages(&path, 1)
            .found
            .first()
            .map(|message| message.text.as_str()),
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
fn what_was_typed_is_shown_and_not_what_was_put_in() {
    let file = r#"{"id":"p","timestamp":"2026-11-27T20:53:27.000Z","type":"user","content":[{"text":"why is @key.pem refused?"},{"text":"-----BEGIN PRIVATE KEY-----"}],"displayContent":[{"text":"why is @key.pem refused?"}]}"#;
    let command = r#"{"id":"q","timestamp":"2026-11-27T20:53:28.000Z","type":"user","content":[{"text":"You are a careful reviewer."}],"displayContent":"/review it"}"#;
    let described = description(&[HEADER, CONTEXT, file, REPLY]);
    assert_eq!(described.title.as_deref(), Some("why is @key.pem refused?"));
    let messages = messages_in(&DIALECT, &[HEADER, CONTEXT, file, command]);
    assert_eq!(messages, ["why is @key.pem refused?", "/review it"]);
}
