use std::fs;

use serde_json::json;
use whosup_sidecar::AgentId;

use super::*;
use crate::adapter::Context;
use crate::adapter::claim::SessionKey;
use crate::sources::agents::kit::dialect::testing::messages_in;

const ID: &str = "0a022b20-e8f2-410e-9552-8385582a8e8b";

struct Made {
    directory: tempfile::TempDir,
}

impl Made {
    fn new() -> Self {
        Self {
            directory: tempfile::tempdir().unwrap(),
        }
    }

    fn path(&self) -> PathBuf {
        self.directory
            .path()
            .join("-w-app")
            .join(format!("{ID}.jsonl"))
    }

    fn write(&self, content: impl AsRef<[u8]>) -> &Self {
        fs::create_dir_all(self.path().parent().unwrap()).unwrap();
        fs::write(self.path(), content).unwrap();
        self
    }

    fn describe(&self) -> Found<Description> {
        describe(&sketch(), &self.path())
    }

    fn opening(&self) -> Opening {
        read_opening(&self.path()).unwrap()
    }
}

fn sketch() -> Sketch {
    Sketch::new(SessionKey {
        agent: AgentId::parse("claude-code").unwrap(),
        session: SessionId::parse(ID).unwrap(),
        home: PathBuf::from("/home/dev/.claude").into(),
    })
}

fn lines(values: &[Value]) -> String {
    values.iter().map(|value| format!("{value}\n")).collect()
}

/// A record of the main conversation, `seconds` after its beginning.
fn record(kind: &str, seconds: u32, message: &Value) -> Value {
    json!({
        "type": kind, "isSidechain": false, "sessionId": ID, "cwd": "/w/app", "version": "2.1.197",
        "gitBranch": "main", "entrypoint": "cli", "message": message,
        "timestamp": format!("2026-11-27T20:{:02}:{:02}.000Z", seconds / 60, seconds % 60),
    })
}

fn prompt(seconds: u32, text: &str) -> Value {
    record("user", seconds, &json!({ "role": "user", "content": text }))
}

fn reply(seconds: u32, model: &str, stop: &str, content: &Value) -> Value {
    let message = json!({
        "role": "assistant", "model": model, "stop_reason": stop, "content": content,
    });
    record("assistant", seconds, &message)
}

fn said(text: &str) -> Value {
    json!([{ "type": "text", "text": text }])
}

fn time(seconds: i64) -> Option<i64> {
    let start: jiff::Timestamp = "2026-11-27T20:00:00Z".parse().unwrap();
    Some(start.as_millisecond() + seconds * 1000)
}

#[test]
fn a_conversation_tells_its_title_model_branch_and_dates() {
    let made = Made::new();
    made.write(lines(&[
        json!({"type": "mode", "mode": "normal", "sessionId": ID}),
        prompt(1, "fix the\n build"),
        reply(2, "claude-old", "end_turn", &said("done")),
        prompt(60, "and now the tests"),
        reply(62, "claude-new", "end_turn", &said("done")),
        json!({"type": "system", "subtype": "turn_duration", "isSidechain": false, "timestamp": "2026-11-27T20:01:03Z",
               "cwd": "/w/app/sub", "gitBranch": "fix", "version": "2.1.198", "sessionId": ID}),
    ]));
    let found = made.describe();
    assert!(found.problems.is_empty());
    let description = found.found;
    assert_eq!(description.title.as_deref(), Some("fix the build"));
    assert!(description.is_title_a_prompt);
    assert_eq!(description.model.as_deref(), Some("claude-new"));
    assert_eq!(description.git_branch.as_deref(), Some("fix"));
    assert_eq!(description.agent_version.as_deref(), Some("2.1.198"));
    assert_eq!(
        description.work_dir.as_deref(),
        Some(Path::new("/w/app/sub"))
    );
    assert_eq!(description.started_at_ms, time(1));
    assert_eq!(description.last_activity_at_ms, time(63));
    assert_eq!(description.phase, Some(Phase::Idle));
    assert_eq!(description.is_headless, Some(false));
    assert_eq!(description.transcript, Some(made.path()));
}

#[track_caller]
fn check_title(records: &[Value], title: Option<&str>, is_a_prompt: bool) {
    let made = Made::new();
    let description = made.write(lines(records)).describe().found;
    assert_eq!(description.title.as_deref(), title);
    assert_eq!(description.is_title_a_prompt, is_a_prompt);
}

#[test]
fn a_title_that_was_given_comes_before_one_that_was_made_and_before_a_prompt() {
    let custom = json!({"type": "custom-title", "customTitle": "mine", "sessionId": ID});
    let agent = json!({"type": "agent-name", "agentName": "its name", "sessionId": ID});
    let made = json!({"type": "ai-title", "aiTitle": "made up", "sessionId": ID});
    let summary = json!({"type": "summary", "summary": "summed up", "leafUuid": "x"});
    let mut typed = prompt(1, "typed");
    typed["uuid"] = json!("x");
    let all = [
        summary.clone(),
        typed.clone(),
        made.clone(),
        agent.clone(),
        custom.clone(),
    ];
    check_title(&all, Some("mine"), false);
    check_title(&all[..4], Some("its name"), false);
    check_title(&all[..3], Some("made up"), false);
    check_title(&all[..2], Some("summed up"), false);
    check_title(&[typed], Some("typed"), true);
    let again = json!({"type": "custom-title", "customTitle": "mine now", "sessionId": ID});
    check_title(&[custom, again], Some("mine now"), false);
}

#[test]
fn a_given_title_far_from_both_ends_stands_in_the_folder_of_the_session() {
    let made = Made::new();
    let title = |records: &[Value]| made.write(lines(records)).describe().found.title;
    let folder = made.path().with_extension("");
    fs::create_dir_all(&folder).unwrap();
    let kept = json!({"customTitle": "mine", "by": "user", "at": 5});
    fs::write(folder.join("custom-title.json"), kept.to_string()).unwrap();
    assert_eq!(title(&[prompt(1, "typed")]).as_deref(), Some("mine"));
    let custom = json!({"type": "custom-title", "customTitle": "mine now", "sessionId": ID});
    let found = title(&[prompt(1, "typed"), custom]);
    assert_eq!(found.as_deref(), Some("mine now"));
    fs::write(folder.join("custom-title.json"), "{").unwrap();
    assert_eq!(title(&[prompt(1, "typed")]).as_deref(), Some("typed"));
}

/// Older releases begin a file with the summaries of other sessions.
#[test]
fn a_summary_of_another_session_is_no_title() {
    let foreign = json!({"type": "summary", "summary": "of another one", "leafUuid": "y"});
    let own = json!({"type": "summary", "summary": "of this one", "leafUuid": "x"});
    let mut typed = prompt(1, "typed");
    typed["uuid"] = json!("x");
    check_title(&[foreign.clone(), typed.clone()], Some("typed"), true);
    check_title(&[typed.clone(), foreign.clone()], Some("typed"), true);
    let both = [foreign.clone(), typed.clone(), own, foreign];
    check_title(&both, Some("of this one"), false);
    let unnamed = json!({"type": "summary", "summary": "of whom?"});
    check_title(&[typed, unnamed], Some("typed"), true);
}

#[test]
fn a_command_with_arguments_is_the_title_where_no_prompt_is() {
    let command = |name: &str, arguments: &str| {
        let text = format!(
            "<command-message>{name}</command-message>\n<command-name>/{name}</command-name>\n<command-args>{arguments}</command-args>"
        );
        prompt(1, &text)
    };
    let review = command("review", "the parser");
    check_title(&[command("clear", "")], None, true);
    check_title(
        &[command("clear", ""), review.clone()],
        Some("/review the parser"),
        true,
    );
    check_title(&[review.clone(), prompt(2, "typed")], Some("typed"), true);
    let last = |text: &str| json!({"type": "last-prompt", "lastPrompt": text, "sessionId": ID});
    check_title(&[review, last("typed last")], Some("typed last"), true);
    check_title(&[last("/review it")], Some("/review it"), true);
    check_title(
        &[last("<teammate-message a=\"b\">x</teammate-message>")],
        None,
        true,
    );
}

#[test]
fn what_no_person_typed_is_no_title() {
    let mut meta = prompt(1, "do not answer this");
    meta["isMeta"] = json!(true);
    let mut compact = prompt(1, "this session is continued");
    compact["isCompactSummary"] = json!(true);
    let mut sidechain = prompt(1, "a sub-agent's task");
    sidechain["isSidechain"] = json!(true);
    let result = record(
        "user",
        1,
        &json!({"content": [{"type": "tool_result", "content": "42"}]}),
    );
    let others = [
        meta,
        compact,
        sidechain,
        result,
        prompt(1, "<command-name>/clear</command-name>"),
        prompt(1, "<local-command-stdout></local-command-stdout>"),
        prompt(1, "Caveat: The messages below were generated by the user"),
        prompt(1, "<system-reminder>"),
        prompt(
            1,
            "<ide_opened_file>The user opened /w/app/a.rs</ide_opened_file>",
        ),
        prompt(
            1,
            "<teammate-message teammate_id=\"lead\">hello</teammate-message>",
        ),
        prompt(1, "Operation stopped by hook: not now"),
        prompt(1, "[Request interrupted by user]"),
        prompt(1, " \n"),
    ];
    check_title(&others, None, true);
    let mut with_real = others.to_vec();
    let parts = json!({"content": [{"type": "image"},
        {"type": "text", "text": "<ide_selection>The user selected a line</ide_selection>"},
        {"type": "text", "text": "look at this"}]});
    with_real.push(record("user", 2, &parts));
    check_title(&with_real, Some("look at this"), true);
}

#[track_caller]
fn check_phase(records: &[Value], right: Option<Phase>) {
    let made = Made::new();
    assert_eq!(made.write(lines(records)).describe().found.phase, right);
}

#[test]
fn the_last_records_tell_the_phase_where_they_can() {
    let call = json!([{"type": "tool_use", "name": "Bash"}]);
    let result = record("user", 3, &json!({"content": [{"type": "tool_result"}]}));
    check_phase(&[prompt(1, "go")], Some(Phase::Working));
    check_phase(
        &[prompt(1, "go"), reply(2, "m", "end_turn", &said("done"))],
        Some(Phase::Idle),
    );
    // Runs, or asks a person whether it may.
    check_phase(&[prompt(1, "go"), reply(2, "m", "tool_use", &call)], None);
    check_phase(
        &[reply(2, "m", "tool_use", &call), result.clone()],
        Some(Phase::Working),
    );
    check_phase(
        &[result.clone(), prompt(4, "[Request interrupted by user]")],
        Some(Phase::Idle),
    );
    check_phase(
        &[
            prompt(1, "go"),
            prompt(2, "<command-name>/cost</command-name>"),
        ],
        Some(Phase::Working),
    );
    let mut headless = reply(2, "m", "tool_use", &call);
    headless["entrypoint"] = json!("sdk-cli");
    check_phase(&[headless], Some(Phase::Working));
    check_phase(&[], None);
}

#[test]
fn a_reply_that_the_agent_made_up_names_no_model_and_a_sub_agent_not_the_sessions() {
    let made = Made::new();
    let mut sidechain = reply(4, "claude-small", "end_turn", &said("done"));
    sidechain["isSidechain"] = json!(true);
    made.write(lines(&[
        reply(2, "claude-big", "end_turn", &said("done")),
        reply(
            3,
            "<synthetic>",
            "stop_sequence",
            &said("No response requested."),
        ),
        sidechain,
    ]));
    assert_eq!(made.describe().found.model.as_deref(), Some("claude-big"));
}

#[test]
fn torn_and_fused_lines_hide_nothing_and_are_counted() {
    let made = Made::new();
    let mut text = lines(&[prompt(1, "first")]);
    text.push_str(&format!(
        "{}{}\n",
        prompt(2, "second"),
        reply(3, "m1", "end_turn", &said("x"))
    ));
    text.push_str("{\"type\":\"assist\n");
    text.push_str("\0\0\0\0\n");
    text.push_str(&lines(&[reply(9, "m2", "end_turn", &said("y"))]));
    text.push_str("{\"type\":\"user\",\"mess");
    let found = made.write(text).describe();
    assert_eq!(found.found.model.as_deref(), Some("m2"));
    assert_eq!(found.found.title.as_deref(), Some("first"));
    assert_eq!(found.found.last_activity_at_ms, time(9));
    assert_eq!(found.problems.len(), 1);
    let message = &found.problems[0].message;
    assert!(
        message.starts_with("2 lines can't be read, the first one at offset "),
        "{message}"
    );
}

#[test]
fn an_empty_or_broken_transcript_tells_nothing_and_is_still_described() {
    let made = Made::new();
    assert_eq!(
        made.write("").describe().found.transcript,
        Some(made.path())
    );
    let found = made.write([0, 0, 0, b'\n', 0xff, 0xfe, b'\n']).describe();
    assert_eq!(found.found.title, None);
    assert_eq!(found.problems.len(), 1);
    fs::remove_file(made.path()).unwrap();
    let gone = made.describe();
    assert!(gone.problems.is_empty() && gone.found.transcript.is_none());
    fs::create_dir(made.path()).unwrap();
    assert_eq!(made.describe().problems.len(), 1);
}

#[test]
fn what_is_far_from_the_end_of_a_large_transcript_is_not_needed() {
    let made = Made::new();
    let mut text = lines(&[
        prompt(1, "the first prompt"),
        reply(2, "m", "end_turn", &said("x")),
    ]);
    let image = "A".repeat(3 << 20);
    text.push_str(&lines(&[record(
        "user",
        3,
        &json!({"content": [{"type": "tool_result", "content": image}]}),
    )]));
    for at in 0..400 {
        text.push_str(&lines(&[reply(
            100 + at,
            "m2",
            "end_turn",
            &said(&"w".repeat(500)),
        )]));
    }
    let found = made.write(text).describe();
    assert!(found.problems.is_empty());
    assert_eq!(found.found.title.as_deref(), Some("the first prompt"));
    assert_eq!(found.found.model.as_deref(), Some("m2"));
    assert_eq!(found.found.started_at_ms, time(1));
    assert_eq!(found.found.last_activity_at_ms, time(499));
}

/// A shell's `cd` shows in the records alone; that a session was moved or resumed
/// elsewhere shows in its registry record first.
#[test]
fn a_session_works_where_it_went_last() {
    let at = |second, directory: &str| {
        let mut record = prompt(second, "x");
        record["cwd"] = json!(directory);
        record
    };
    let check = |records: &[Value], began: Option<i64>, registered: &str, expected: &str| {
        let made = Made::new();
        made.write(lines(records));
        let mut sketch = sketch();
        sketch.work_dir = Some(PathBuf::from(registered));
        sketch.started_at_ms = began;
        let work_dir = describe(&sketch, &made.path()).found.work_dir;
        assert_eq!(
            work_dir.as_deref(),
            Some(Path::new(expected)),
            "{records:?}"
        );
    };
    let stayed = [at(1, "/w/app"), at(2, "/w/app")];
    let went = [at(1, "/w/app"), at(2, "/w/app/sub")];
    let returned = [at(1, "/w/app"), at(2, "/w/app/sub"), at(3, "/w/app")];
    for began in [None, time(1)] {
        check(&stayed, began, "/w/app", "/w/app");
        check(&went, began, "/w/app", "/w/app/sub");
        check(&returned, began, "/w/app", "/w/app");
        check(&stayed, began, "/w/other", "/w/other");
    }
    check(&went, time(9), "/w/app", "/w/app");
}

#[test]
fn an_opening_tells_directory_and_birth_and_whose_conversation_it_is() {
    let made = Made::new();
    let mut moved = prompt(5, "x");
    moved["cwd"] = json!("/w/app/sub");
    made.write(lines(&[
        json!({"type": "mode", "sessionId": ID}),
        moved,
        prompt(9, "y"),
    ]));
    let opening = made.opening();
    assert_eq!(opening.work_dir.as_deref(), Some(Path::new("/w/app")));
    assert_eq!(opening.born_at_ms, time(5));
    assert!(!opening.is_sidechain && !opening.is_without_words());
    let mut sidechain = prompt(5, "x");
    sidechain["isSidechain"] = json!(true);
    made.write(lines(&[
        json!({"type": "a"}),
        json!({"type": "b"}),
        sidechain.clone(),
    ]));
    assert!(made.opening().is_sidechain);
    made.write(lines(&[prompt(4, "look"), sidechain]));
    assert!(!made.opening().is_sidechain);
}

#[test]
fn an_opening_with_long_first_lines_is_read_further() {
    let made = Made::new();
    let snapshot = json!({"type": "file-history-snapshot", "snapshot": "s".repeat(20_000)});
    made.write(lines(&[snapshot, prompt(5, "x")]));
    assert_eq!(
        made.opening().work_dir.as_deref(),
        Some(Path::new("/w/app"))
    );
}

#[test]
fn a_transcript_without_messages_is_not_taken_for_a_broken_one() {
    let made = Made::new();
    let snapshot = json!({"type": "file-history-snapshot", "messageId": "x"});
    assert!(
        made.write(lines(std::slice::from_ref(&snapshot)))
            .opening()
            .is_without_words()
    );
    assert!(!made.write("").opening().is_without_words());
    assert!(!made.write("\0\0\0\n").opening().is_without_words());
    assert!(
        !made
            .write(lines(&[snapshot, prompt(1, "x")]))
            .opening()
            .is_without_words()
    );
}

#[test]
fn the_last_messages_are_those_that_a_person_would_read() {
    let mut meta = prompt(2, "hidden");
    meta["isMeta"] = json!(true);
    let both =
        json!([{"type": "text", "text": "I will look"}, {"type": "tool_use", "name": "Bash"}]);
    let result = json!({"content": [{"type": "tool_result", "content": "42"}]});
    let records = [
        prompt(1, "first"),
        meta,
        reply(3, "m", "tool_use", &both),
        record("user", 4, &result),
        reply(5, "m", "end_turn", &said("done")),
    ];
    let records = records.map(|record| record.to_string());
    let texts = messages_in(&DIALECT, &records);
    assert_eq!(texts, ["first", "I will look", "Bash", "done"]);
}

#[test]
fn the_last_reply_of_the_conversation_counts_its_tokens() {
    let counted = |seconds: u32, output: u64| {
        let mut record = reply(seconds, "m", "end_turn", &said("done"));
        record["message"]["usage"] = json!({
            "input_tokens": 234, "cache_creation_input_tokens": 100,
            "cache_read_input_tokens": 1000, "output_tokens": output,
        });
        record
    };
    let mut of_sub_agent = counted(6, 7);
    of_sub_agent["isSidechain"] = json!(true);
    let records = [prompt(1, "first"), counted(5, 56), of_sub_agent];
    let made = Made::new();
    let lines = records.map(|record| record.to_string() + "\n").concat();
    made.write(lines.as_bytes());
    let found = made.describe().found;
    let right = Context {
        tokens: 1334,
        window: None,
        is_window_assumed: true,
    };
    assert_eq!(found.context, Some(right));
    let output = found.turn.and_then(|turn| turn.output_tokens);
    assert_eq!(output, Some(56));
}

proptest::proptest! {
    #[test]
    fn no_content_makes_a_transcript_unreadable(content: Vec<u8>) {
        let made = Made::new();
        made.write(&content);
        made.describe();
        made.opening();
        let agent = AgentId::from_static("claude-code");
        DIALECT.messages(&agent, Some(&made.path()), 3);
    }
}
