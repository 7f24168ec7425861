//! Which facts the records of a transcript give.

#![allow(clippy::disallowed_methods, reason = "tests make their own files")]

use super::*;
use crate::adapter::Description;
use crate::sources::agents::kit::bad_lines::BadLines;
use crate::sources::agents::kit::dialect::testing::{file_of, messages_in};

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

fn described(lines: &[&str]) -> Description {
    let (_directory, file) = file_of(lines);
    let read = DIALECT.read(&file, &mut BadLines::default());
    read.expect("a transcript")
}

#[track_caller]
fn check_phase(lines: &[&str], right: (Phase, Option<WaitingFor>)) {
    let found = described(lines);
    assert_eq!((found.phase, found.waiting_for), (Some(right.0), right.1));
}

#[test]
fn head_and_tail_tell_prompt_model_and_dates() {
    let (_directory, file) = file_of(&[METADATA, MODE, PROMPT, REQUEST, SAID, END, COUNT]);
    let found = described(&[METADATA, MODE, PROMPT, REQUEST, SAID, END, COUNT]);
    assert_eq!(found.title.as_deref(), Some("hello two"));
    assert_eq!(found.model.as_deref(), Some("k-3"));
    assert_eq!(found.started_at_ms, Some(1_795_813_271_000));
    assert_eq!(found.last_activity_at_ms, Some(1_795_813_271_434));
    assert_eq!(found.phase, Some(Phase::Idle));
    let dates = read_dates(&file).expect("dates");
    assert_eq!(dates.prompted_at_ms, Some(1_795_813_271_242));
    assert_eq!(dates.last_at_ms, found.last_activity_at_ms);
    assert_eq!(dates.created_at_ms, found.started_at_ms);
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
fn what_is_said_and_called_is_a_message() {
    let messages = messages_in(&DIALECT, &[METADATA, PROMPT, CALL, RESULT, SAID, END]);
    assert_eq!(messages, ["hello\n two", "Bash", "hi"]);
}

#[test]
fn context_and_requests_are_counted_apart() {
    let end = r#"{"type":"context.append_loop_event","event":{"type":"step.end","usage":{"inputOther":234,"output":56,"inputCacheRead":1000,"inputCacheCreation":0}},"time":5}"#;
    let (_directory, file) = file_of(&[METADATA, PROMPT, end, COUNT, END]);
    let right = TokenCount {
        context: Some(9),
        input: Some(234),
        cached_input: Some(1000),
        cache_writes: Some(0),
        output: Some(56),
        ..TokenCount::default()
    };
    assert_eq!(DIALECT.last_tokens(&file).expect("a file"), right);
}

#[test]
fn only_what_a_person_sent_is_a_prompt() {
    let from = |kind: &str, text: &str| {
        format!(
            r#"{{"type":"turn.prompt","origin":{{"kind":"{kind}"}},"input":[{{"type":"text","text":"{text}"}}],"time":1795813271300}}"#
        )
    };
    let (init, job) = (from("system_trigger", "init"), from("cron_job", "check"));
    let typed = from("user", "fix it");
    assert_eq!(
        messages_in(&DIALECT, &[METADATA, &init, &typed, &job]),
        ["fix it"]
    );
    let title = described(&[METADATA, &init, &typed]).title;
    assert_eq!(title.as_deref(), Some("fix it"));
    // The turn has begun all the same.
    check_phase(&[METADATA, &job], (Phase::Working, None));
    let (_directory, file) = file_of(&[METADATA, &init, SAID]);
    assert_eq!(read_dates(&file).expect("dates").prompted_at_ms, None);
}
