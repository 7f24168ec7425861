//! What events say of a session, event by event.

use std::path::Path;

use super::*;

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

fn file_of(lines: &[String]) -> (tempfile::TempDir, TranscriptFile) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("events.jsonl");
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    std::fs::write(&path, text).expect("a file");
    let file = TranscriptFile::open(&path).expect("a transcript");
    (directory, file)
}

fn last(lines: &[String]) -> Last {
    let (_directory, file) = file_of(lines);
    Last::read(&file, &mut BadLines::default()).expect("events")
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
    let last = last(lines);
    assert_eq!((last.phase, last.waiting_for), right, "{lines:#?}");
}

#[test]
fn head_and_tail_describe_a_session() {
    let moved = event(
        "00:09.000",
        "session.context_changed",
        r#"{"cwd":"/w/other","branch":"topic"}"#,
    );
    let lines = [start(), prompt(), turn_start(), reply(), turn_end(), moved];
    let (_directory, file) = file_of(&lines);
    let first = First::read(&file, &mut BadLines::default()).expect("events");
    assert_eq!(first.prompt.as_deref(), Some("hello one"));
    assert_eq!(first.version.as_deref(), Some("1.0.102"));
    assert_eq!(first.started_at_ms, Some(1_795_813_199_000));
    let last = last(&lines);
    assert_eq!(last.model.as_deref(), Some("gpt-5-mini"));
    assert_eq!(last.work_dir.as_deref(), Some(Path::new("/w/other")));
    assert_eq!(last.branch.as_deref(), Some("topic"));
    assert_eq!(last.at_ms, Some(1_795_813_209_000));
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
    assert_eq!(last(&below).model.as_deref(), Some("gpt-5"));
}

#[test]
fn what_cannot_be_read_makes_the_phase_uncertain_only_at_the_end() {
    let long = "x".repeat(2 * crate::sources::transcript::LINE_BYTES_MAX);
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
fn bad_lines_are_counted_and_the_rest_is_told() {
    let fused = format!("{}{}", start(), prompt());
    let lines = [
        fused,
        "{\"c\":".to_owned(),
        turn_start(),
        reply(),
        turn_end(),
    ];
    let (_directory, file) = file_of(&lines);
    let mut bad_lines = BadLines::default();
    let last = Last::read(&file, &mut bad_lines).expect("events");
    assert_eq!(last.phase, Some(Phase::Idle));
    assert!(bad_lines.message().is_some());
}

#[test]
fn the_last_messages_come_oldest_first() {
    let [asked, started] = calls("bash");
    let lines = [
        start(),
        prompt(),
        turn_start(),
        asked,
        started,
        of_subagent(&reply()),
        completes(),
        reply(),
    ];
    let (_directory, file) = file_of(&lines);
    let messages = messages(&file, 2, &mut BadLines::default()).expect("messages");
    let texts: Vec<&str> = messages
        .iter()
        .map(|message| message.text.as_str())
        .collect();
    assert_eq!(texts, ["bash", "hi"]);
}

#[test]
fn the_first_prompt_and_model_are_looked_for_in_the_beginning() {
    let own = prompt().replace("hello\\n one", "<system_reminder>x</system_reminder>");
    let command = prompt().replace("hello\\n one", "/review it");
    let progress = event(
        "00:09.000",
        "tool.execution_partial_result",
        &format!(r#"{{"partialOutput":"{}"}}"#, "x".repeat(4000)),
    );
    let mut lines = vec![start(), own, command, prompt(), reply()];
    lines.extend(std::iter::repeat_n(progress, 600));
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("events.jsonl");
    std::fs::write(&path, lines.join("\n")).expect("a file");
    let file = TranscriptFile::open(&path).expect("a transcript");
    let first = First::read(&file, &mut BadLines::default()).expect("a beginning");
    assert_eq!(first.prompt.as_deref(), Some("hello one"));
    assert_eq!(first.model.as_deref(), Some("gpt-5-mini"));
}
