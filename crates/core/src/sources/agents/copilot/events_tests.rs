//! Which facts events give, event by event.

use std::path::Path;

use super::*;
use crate::adapter::Description;
use crate::adapter::phase::Phase;
use crate::sources::agents::kit::bad_lines::BadLines;
use crate::sources::agents::kit::dialect::testing::{file_of, messages_in};

fn event(at: &str, kind: &str, data: &str) -> String {
    format!(
        r#"{{"type":"{kind}","data":{data},"id":"e","timestamp":"2026-11-27T21:{at}Z","parentId":null}}"#
    )
}

fn of_subagent(line: &str) -> String {
    line.replacen('{', r#"{"agentId":"sub-1","#, 1)
}

fn start() -> String {
    event(
        "00:00.000",
        "session.start",
        r#"{"sessionId":"s","copilotVersion":"1.0.102","startTime":"2026-11-27T20:59:59.000Z","selectedModel":"gpt-5","context":{"cwd":"/w/app","branch":"main"}}"#,
    )
}

fn prompt() -> String {
    event("00:01.000", "user.message", r#"{"content":"hello\n one"}"#)
}

fn turn_start() -> String {
    event("00:02.000", "assistant.turn_start", r#"{"turnId":"0"}"#)
}

fn reply() -> String {
    event(
        "00:03.000",
        "assistant.message",
        r#"{"model":"gpt-5-mini","content":"hi","toolRequests":[]}"#,
    )
}

fn calls(tool: &str) -> [String; 2] {
    [
        event(
            "00:03.000",
            "assistant.message",
            &format!(
                r#"{{"model":"gpt-5","content":"","toolRequests":[{{"toolCallId":"c","name":"{tool}"}}]}}"#
            ),
        ),
        event(
            "00:04.000",
            "tool.execution_start",
            &format!(r#"{{"toolCallId":"c","toolName":"{tool}"}}"#),
        ),
    ]
}

fn asks() -> String {
    event("00:05.000", "permission.requested", r#"{"requestId":"r"}"#)
}

fn answers() -> String {
    event(
        "00:06.000",
        "permission.completed",
        r#"{"requestId":"r","toolCallId":"c"}"#,
    )
}

fn completes() -> String {
    event(
        "00:07.000",
        "tool.execution_complete",
        r#"{"toolCallId":"c"}"#,
    )
}

fn turn_end() -> String {
    event("00:08.000", "assistant.turn_end", r#"{"turnId":"0"}"#)
}

fn plain(kind: &str) -> String {
    event("00:09.000", kind, "{}")
}

fn described(lines: &[String]) -> Description {
    let (_directory, file) = file_of(lines);
    let read = DIALECT.read(&file, &mut BadLines::default());
    read.expect("events")
}

const IDLE: (Option<Phase>, Option<WaitingFor>) = (Some(Phase::Idle), None);
const WORKING: (Option<Phase>, Option<WaitingFor>) = (Some(Phase::Working), None);
const ENDED: (Option<Phase>, Option<WaitingFor>) = (Some(Phase::Ended), None);
const PERMISSION: (Option<Phase>, Option<WaitingFor>) =
    (Some(Phase::Waiting), Some(WaitingFor::Permission));
const QUESTION: (Option<Phase>, Option<WaitingFor>) =
    (Some(Phase::Waiting), Some(WaitingFor::Question));

#[track_caller]
fn check_phase(lines: &[String], right: (Option<Phase>, Option<WaitingFor>)) {
    let found = described(lines);
    assert_eq!((found.phase, found.waiting_for), right, "{lines:#?}");
}

#[test]
fn head_and_tail_describe_a_session() {
    let moved = event(
        "00:09.000",
        "session.context_changed",
        r#"{"cwd":"/w/other","branch":"topic"}"#,
    );
    let lines = [start(), prompt(), turn_start(), reply(), turn_end(), moved];
    let found = described(&lines);
    assert_eq!(found.title.as_deref(), Some("hello one"));
    assert_eq!(found.agent_version.as_deref(), Some("1.0.102"));
    assert_eq!(found.started_at_ms, Some(1_795_813_199_000));
    assert_eq!(found.model.as_deref(), Some("gpt-5-mini"));
    assert_eq!(found.work_dir.as_deref(), Some(Path::new("/w/other")));
    assert_eq!(found.git_branch.as_deref(), Some("topic"));
    assert_eq!(found.last_activity_at_ms, Some(1_795_813_209_000));
}

#[test]
fn a_turn_lasts_until_a_reply_that_calls_no_tool() {
    let [asked, started] = calls("bash");
    check_phase(&[start()], IDLE);
    check_phase(&[start(), plain("session.model_change")], IDLE);
    check_phase(&[start(), prompt()], WORKING);
    check_phase(&[start(), prompt(), turn_start()], WORKING);
    check_phase(&[start(), prompt(), turn_start(), reply()], WORKING);
    check_phase(
        &[start(), prompt(), turn_start(), reply(), turn_end()],
        IDLE,
    );
    let called = [start(), prompt(), turn_start(), asked, started];
    check_phase(&called, WORKING);
    let done = [called.as_slice(), &[completes(), turn_end()]].concat();
    check_phase(&done, WORKING);
    let again = [done.as_slice(), &[turn_start()]].concat();
    check_phase(&again, WORKING);
    check_phase(&[again.as_slice(), &[reply(), turn_end()]].concat(), IDLE);
    check_phase(
        &[again.as_slice(), &[reply(), turn_end(), prompt()]].concat(),
        WORKING,
    );
}

#[test]
fn hooks_and_usage_are_asides() {
    let idle = [start(), prompt(), turn_start(), reply(), turn_end()];
    let hooks = [
        plain("hook.start"),
        plain("hook.end"),
        plain("session.usage_record"),
    ];
    check_phase(&[idle.as_slice(), &hooks].concat(), IDLE);
    check_phase(&[&idle[..3], &hooks].concat(), WORKING);
}

#[test]
fn an_unanswered_request_is_waited_for() {
    let [asked, started] = calls("bash");
    let asking = [start(), prompt(), turn_start(), asked, started, asks()];
    check_phase(&asking, PERMISSION);
    check_phase(
        &[asking.as_slice(), &[plain("hook.end")]].concat(),
        PERMISSION,
    );
    check_phase(&[asking.as_slice(), &[answers()]].concat(), WORKING);
    let done = [answers(), completes(), turn_end()];
    check_phase(&[asking.as_slice(), &done].concat(), WORKING);
    let [asked, started] = calls("ask_user");
    let asking = [start(), prompt(), turn_start(), asked, started];
    check_phase(&asking, QUESTION);
    check_phase(&[asking.as_slice(), &[completes()]].concat(), WORKING);
    let [asked, started] = calls("exit_plan_mode");
    check_phase(
        &[start(), prompt(), turn_start(), asked, started],
        PERMISSION,
    );
}

#[test]
fn an_interruption_ends_the_turn_and_a_shutdown_the_session() {
    let working = [start(), prompt(), turn_start()];
    check_phase(&[working.as_slice(), &[plain("abort")]].concat(), IDLE);
    check_phase(
        &[working.as_slice(), &[plain("abort"), turn_end()]].concat(),
        IDLE,
    );
    check_phase(
        &[working.as_slice(), &[turn_end(), plain("abort")]].concat(),
        IDLE,
    );
    let ended = [
        working.as_slice(),
        &[reply(), turn_end(), plain("session.shutdown")],
    ]
    .concat();
    check_phase(&ended, ENDED);
    check_phase(
        &[working.as_slice(), &[plain("session.shutdown")]].concat(),
        ENDED,
    );
    let resumed = [ended.as_slice(), &[plain("session.resume")]].concat();
    check_phase(&resumed, IDLE);
    check_phase(&[resumed.as_slice(), &[prompt()]].concat(), WORKING);
}

#[test]
fn turns_of_sub_agents_are_not_the_sessions() {
    let [asked, started] = calls("task");
    let below = [
        start(),
        prompt(),
        turn_start(),
        asked,
        started,
        of_subagent(&turn_start()),
        of_subagent(&reply()),
        of_subagent(&turn_end()),
    ];
    check_phase(&below, WORKING);
    assert_eq!(described(&below).model.as_deref(), Some("gpt-5"));
}

#[test]
fn what_cannot_be_read_makes_the_phase_uncertain_only_at_the_end() {
    let long = "x".repeat(17 << 20);
    let long = event(
        "00:01.000",
        "tool.execution_complete",
        &format!(r#"{{"result":"{long}"}}"#),
    );
    let idle = [start(), prompt(), turn_start(), reply(), turn_end()];
    check_phase(
        &[idle.as_slice(), std::slice::from_ref(&long)].concat(),
        (None, None),
    );
    check_phase(&[vec![long], idle.to_vec()].concat(), IDLE);
}

#[test]
fn prompts_replies_and_calls_are_messages_and_those_of_sub_agents_are_not() {
    let [asked, started] = calls("bash");
    let below = of_subagent(&reply());
    let lines = [
        start(),
        prompt(),
        turn_start(),
        asked,
        started,
        below,
        completes(),
        reply(),
    ];
    assert_eq!(messages_in(&DIALECT, &lines), ["hello\n one", "bash", "hi"]);
}

#[test]
fn a_record_of_usage_counts_tokens() {
    let usage = event(
        "00:08.500",
        "session.usage_record",
        r#"{"usage":{"inputTokens":1234,"outputTokens":56,"cacheReadTokens":1000,"cacheWriteTokens":0,"maxPromptTokens":128000}}"#,
    );
    let (_directory, file) = file_of(&[start(), prompt(), usage, turn_end()]);
    let right = TokenCount {
        context: Some(1234),
        window: Some(128_000),
        input: Some(234),
        cached_input: Some(1000),
        cache_writes: Some(0),
        output: Some(56),
        reasoning: None,
        ..TokenCount::default()
    };
    assert_eq!(DIALECT.last_tokens(&file).expect("a file"), right);
}
