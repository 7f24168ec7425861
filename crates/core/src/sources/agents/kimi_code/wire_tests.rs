//! What the records of a transcript tell.

#![allow(clippy::disallowed_methods, reason = "tests make their own files")]

use super::*;
use crate::sources::agents::kit::last_messages::last_messages;

const METADATA: &str = r#"{"type":"metadata","protocol_version":"1.5","created_at":1795813271000}"#;
const MODE: &str =
    r#"{"type":"permission.set_mode","agentId":"main","mode":"manual","time":1795813271138}"#;
const PROMPT: &str = r#"{"type":"turn.prompt","agentId":"main","input":[{"type":"text","text":"hello\n two"}],"turnId":0,"time":1795813271242}"#;
const REQUEST: &str = r#"{"type":"llm.request","kind":"loop","provider":"openai","model":"k-3","time":1795813271332}"#;
const SAID: &str = r#"{"type":"context.append_loop_event","event":{"type":"content.part","part":{"type":"text","text":"hi"}},"time":1795813271370}"#;
const CALL: &str = r#"{"type":"context.append_loop_event","event":{"type":"tool.call","toolCallId":"c","name":"Bash"},"time":1795813271371}"#;
const RESULT: &str = r#"{"type":"context.append_loop_event","event":{"type":"tool.result","toolCallId":"c"},"time":1795813271380}"#;
const ASK: &str = r#"{"type":"interaction.request","id":"a","kind":"approval","toolCallId":"c","time":1795813271372}"#;
const ANSWER: &str =
    r#"{"type":"interaction.resolved","id":"a","response":{},"time":1795813271373}"#;
const END: &str = r#"{"type":"turn.ended","turnId":0,"reason":"completed","time":1795813271434}"#;
const COUNT: &str =
    r#"{"type":"token_counting.turn_recorded","turnId":0,"tokens":9,"time":1795813271445}"#;
const INJECTED: &str = r#"{"type":"context.append_message","message":{"role":"user","content":[]},"time":1795813271500}"#;

fn file_of(lines: &[&str]) -> (tempfile::TempDir, TranscriptFile) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("wire.jsonl");
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    std::fs::write(&path, text).expect("a file");
    let file = TranscriptFile::open(&path).expect("a transcript");
    (directory, file)
}

#[track_caller]
fn check_phase(lines: &[&str], right: (Phase, Option<WaitingFor>)) {
    let (_directory, file) = file_of(lines);
    let told = DIALECT.read(&file).expect("a transcript");
    assert_eq!((told.phase, told.waiting_for), (Some(right.0), right.1));
}

#[test]
fn head_and_tail_tell_prompt_model_and_dates() {
    let (_directory, file) = file_of(&[METADATA, MODE, PROMPT, REQUEST, SAID, END, COUNT]);
    let told = DIALECT.read(&file).expect("a transcript");
    assert_eq!(told.prompt.as_deref(), Some("hello two"));
    assert_eq!(told.model.as_deref(), Some("k-3"));
    assert_eq!(told.born_at_ms, Some(1_795_813_271_000));
    assert_eq!(told.last_at_ms, Some(1_795_813_271_434));
    assert_eq!(told.phase, Some(Phase::Idle));
    assert_eq!(told.problem, None);
    let dates = read_dates(&file).expect("dates");
    assert_eq!(dates.prompted_at_ms, Some(1_795_813_271_242));
    assert_eq!(dates.last_at_ms, told.last_at_ms);
    assert_eq!(dates.created_at_ms, told.born_at_ms);
}

#[test]
fn a_session_without_a_prompt_has_no_record_of_a_conversation() {
    let (_directory, file) = file_of(&[METADATA, MODE]);
    let dates = read_dates(&file).expect("dates");
    assert_eq!((dates.prompted_at_ms, dates.last_at_ms), (None, None));
    check_phase(&[METADATA, MODE], (Phase::Idle, None));
}

#[test]
fn a_turn_lasts_from_its_prompt_to_its_end() {
    let idle = (Phase::Idle, None);
    let working = (Phase::Working, None);
    check_phase(&[METADATA, PROMPT], working);
    check_phase(&[METADATA, PROMPT, REQUEST, CALL], working);
    check_phase(&[METADATA, PROMPT, SAID, END, COUNT], idle);
    check_phase(&[METADATA, PROMPT, SAID, END, INJECTED], idle);
    check_phase(&[METADATA, PROMPT, SAID, END, PROMPT, SAID], working);
}

#[test]
fn an_unanswered_request_is_waited_for() {
    let permission = (Phase::Waiting, Some(WaitingFor::Permission));
    let working = (Phase::Working, None);
    check_phase(&[PROMPT, CALL, ASK], permission);
    check_phase(&[PROMPT, CALL, ASK, COUNT], permission);
    check_phase(&[PROMPT, CALL, ASK, ANSWER], working);
    check_phase(&[PROMPT, CALL, ASK, RESULT], working);
    check_phase(
        &[PROMPT, CALL, ASK, ANSWER, RESULT, END],
        (Phase::Idle, None),
    );
    let question = r#"{"type":"interaction.request","id":"q","kind":"question","time":5}"#;
    check_phase(
        &[PROMPT, question],
        (Phase::Waiting, Some(WaitingFor::Question)),
    );
    let other = r#"{"type":"interaction.request","id":"q","kind":"new","time":5}"#;
    check_phase(&[PROMPT, other], (Phase::Waiting, None));
}

#[test]
fn bad_lines_are_counted_and_the_rest_is_told() {
    let fused = format!("{PROMPT}{END}");
    let (_directory, file) = file_of(&[METADATA, &fused, "{\"c\":"]);
    let told = DIALECT.read(&file).expect("a transcript");
    assert_eq!(told.phase, Some(Phase::Idle));
    assert_eq!(told.prompt.as_deref(), Some("hello two"));
    assert!(told.problem.is_some());
}

#[test]
fn the_last_messages_come_oldest_first() {
    let (directory, _file) = file_of(&[METADATA, PROMPT, CALL, RESULT, SAID, END]);
    let path = directory.path().join("wire.jsonl");
    let found = last_messages(
        &crate::sources::agents::kimi_code::AGENT,
        Some(&path),
        2,
        messages_of,
    );
    let (messages, problems) = (found.found, found.problems);
    let texts: Vec<&str> = messages
        .iter()
        .map(|message| message.text.as_str())
        .collect();
    assert_eq!(texts, ["Bash", "hi"]);
    assert_eq!(problems, []);
}

#[test]
fn the_first_prompt_and_model_are_looked_for_in_the_beginning() {
    let own = PROMPT.replace(
        "hello\\n two",
        "<notification id=\\\"1\\\">x</notification>",
    );
    let progress = format!(
        r#"{{"type":"turn.progress","text":"{}","time":1795813271500}}"#,
        "x".repeat(4000)
    );
    let mut lines = vec![METADATA, own.as_str(), PROMPT, REQUEST];
    lines.extend(std::iter::repeat_n(progress.as_str(), 600));
    let (_directory, file) = file_of(&lines);
    let told = DIALECT.read(&file).expect("a transcript");
    assert_eq!(told.prompt.as_deref(), Some("hello two"));
    assert_eq!(told.model.as_deref(), Some("k-3"));
}
