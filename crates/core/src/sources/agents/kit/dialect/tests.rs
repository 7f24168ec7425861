//! Properties that hold for the records of any agent.

use whosup_sidecar::AgentId;

use super::testing::{file_of, messages_in};
use super::*;
use crate::adapter::phase::WaitingFor;

/// An agent whose records are `{"at": 7, "KIND": VALUE}`.
const DIALECT: Dialect = Dialect {
    wrapping: Wrapping {
        elements: &["own"],
        notices: &[],
    },
    ..Dialect::of(record_of)
};

fn record_of(record: &Value) -> Record<'_> {
    let text = |key: &str| record.get(key).and_then(Value::as_str);
    let is = |key: &str| record.get(key).is_some();
    Record {
        at_ms: record.get("at").and_then(Value::as_i64),
        is_aside: is("title") || is("aside"),
        born_at_ms: record.get("born").and_then(Value::as_i64),
        id: text("id"),
        typed: texts_in(record.get("prompt")).collect(),
        repeated: text("command").into_iter().collect(),
        reply: texts_in(record.get("reply")).collect(),
        calls: text("call").into_iter().collect(),
        step: match text("step") {
            Some("begun") => Step::Begun,
            Some("ended") => Step::Ended,
            Some("within") => Step::Within,
            Some("idle") => Step::Shows(Some(Phase::Idle)),
            Some("open") => Step::Shows(None),
            Some("called") => Step::Called,
            Some("refused") => Step::Refused,
            _ if is("ask") => Step::Asked {
                names: [text("ask"), text("about")],
                waiting_for: Some(WaitingFor::Permission),
            },
            _ if is("answer") => Step::Answered([text("answer"), None]),
            _ => Step::Aside,
        },
        model: text("model"),
        version: text("version"),
        work_dir: text("dir").filter(|dir| !dir.is_empty()),
        git_branch: text("branch"),
        is_headless: record.get("headless").and_then(Value::as_bool),
        title: text("title"),
        tokens: record.get("tokens").map(|tokens| TokenCount {
            context: count_at(tokens, "/context"),
            input: count_at(tokens, "/input"),
            output: count_at(tokens, "/output"),
            ..TokenCount::default()
        }),
        request: text("request"),
        is_compaction: is("compaction"),
        ..Record::default()
    }
}

const PROMPT: &str = r#"{"at":5,"prompt":"fix\n it","step":"begun"}"#;
const REPLY: &str = r#"{"at":6,"reply":"Done.","model":"m","step":"within"}"#;
const END: &str = r#"{"at":7,"step":"ended"}"#;

fn described(lines: &[&str]) -> Description {
    let (_directory, file) = file_of(lines);
    let read = DIALECT.read(&file, &mut BadLines::default());
    read.expect("a transcript")
}

/// A record of four kilobytes that shows only that the turn continues.
fn progress() -> String {
    format!(
        r#"{{"at":8,"step":"within","text":"{}"}}"#,
        "x".repeat(4000)
    )
}

#[test]
fn both_ends_show_what_a_session_is() {
    let born = r#"{"born":1,"at":1,"dir":"/w","branch":"b","version":"1"}"#;
    let moved = r#"{"at":7,"dir":"/w/other","version":"2"}"#;
    let aside = r#"{"at":9,"aside":1}"#;
    let found = described(&[born, PROMPT, REPLY, moved, END, aside]);
    assert_eq!(found.title.as_deref(), Some("fix it"));
    assert!(found.is_title_a_prompt);
    assert_eq!(found.model.as_deref(), Some("m"));
    assert_eq!(found.agent_version.as_deref(), Some("2"));
    assert_eq!(found.work_dir.as_deref(), Some(Path::new("/w/other")));
    // A directory outside of any repository has no branch.
    assert_eq!(found.git_branch, None);
    assert_eq!(found.started_at_ms, Some(1));
    assert_eq!(found.last_activity_at_ms, Some(7));
    assert_eq!(found.phase, Some(Phase::Idle));
}

#[test]
fn the_last_given_title_wins_until_it_is_taken_back() {
    let (first, second) = (r#"{"title":"one"}"#, r#"{"title":" two\n "}"#);
    let found = described(&[PROMPT, first, second, REPLY]);
    assert_eq!(found.title.as_deref(), Some("two"));
    assert!(!found.is_title_a_prompt);
    let found = described(&[PROMPT, first, r#"{"title":""}"#]);
    assert_eq!(found.title.as_deref(), Some("fix it"));
    assert!(found.is_title_a_prompt);
}

#[test]
fn the_first_prompt_is_what_a_person_typed_and_else_a_command() {
    let own = r#"{"prompt":"<own>x</own>"}"#;
    let stopped = r#"{"prompt":"Operation stopped by hook"}"#;
    let typed = r#"{"prompt":[{"type":"text","text":"/review it"},{"type":"image"}]}"#;
    let recorded = r#"{"command":"/review that"}"#;
    let title = |lines: &[&str]| described(lines).title;
    assert_eq!(title(&[own, stopped]), None);
    assert_eq!(title(&[own, typed]).as_deref(), Some("/review it"));
    assert_eq!(title(&[recorded, own]).as_deref(), Some("/review that"));
    assert_eq!(
        title(&[own, recorded, typed, PROMPT]).as_deref(),
        Some("fix it")
    );
}

#[test]
fn a_prompt_with_an_image_of_megabytes_is_the_title_and_a_message() {
    let image = "x".repeat(2 << 20);
    let parts = format!(
        r#"[{{"type":"text","text":"why is it red?"}},{{"type":"image","data":"{image}"}}]"#
    );
    let born = r#"{"born":1,"at":1}"#;
    let long = format!(r#"{{"at":5,"prompt":{parts},"step":"begun"}}"#);
    let lines = [born, &long, REPLY, PROMPT, REPLY];
    assert_eq!(described(&lines).title.as_deref(), Some("why is it red?"));
    // A line without an end is still being written.
    assert_eq!(described(&[born, &long[..long.len() - 9]]).title, None);
    let (_directory, file) = file_of(&lines);
    let mut bad_lines = BadLines::default();
    let messages = DIALECT.last_messages(&file, 9, &mut bad_lines).unwrap();
    let texts: Vec<&str> = messages.iter().map(|one| one.text.as_str()).collect();
    assert_eq!(texts, ["why is it red?", "Done.", "fix\n it", "Done."]);
    assert_eq!(bad_lines.message(), None);
}

#[test]
fn prompt_and_model_are_in_the_beginning_where_the_end_is_all_progress() {
    let progress = progress();
    let mut lines = vec![PROMPT, REPLY];
    lines.extend(std::iter::repeat_n(progress.as_str(), 600));
    let found = described(&lines);
    assert_eq!(found.title.as_deref(), Some("fix it"));
    assert_eq!(found.model.as_deref(), Some("m"));
    assert_eq!(found.phase, Some(Phase::Working));
}

#[track_caller]
fn check_phase(lines: &[&str], phase: Option<Phase>, dates: (Option<i64>, Option<i64>)) {
    let found = described(lines);
    assert_eq!(found.phase, phase, "{lines:?}");
    let waiting_for = (phase == Some(Phase::Waiting)).then_some(WaitingFor::Permission);
    assert_eq!(found.waiting_for, waiting_for, "{lines:?}");
    assert_eq!(
        (found.phase_at_ms, found.phase_since_ms),
        dates,
        "{lines:?}"
    );
}

#[test]
fn a_turn_lasts_from_its_beginning_to_its_end() {
    let aside = r#"{"at":9}"#;
    check_phase(&[], None, (None, None));
    check_phase(&[aside], None, (None, None));
    let working = Some(Phase::Working);
    check_phase(&[PROMPT], working, (Some(5), Some(5)));
    check_phase(&[PROMPT, REPLY, aside], working, (Some(6), Some(5)));
    check_phase(&[END, REPLY], working, (Some(6), Some(6)));
    check_phase(
        &[PROMPT, REPLY, END, aside],
        Some(Phase::Idle),
        (Some(7), Some(7)),
    );
    check_phase(&[PROMPT, END, PROMPT, REPLY], working, (Some(6), Some(5)));
}

#[test]
fn an_unanswered_request_is_waited_for() {
    let ask = r#"{"at":6,"ask":"r","about":"c"}"#;
    let answer = |name: &str| format!(r#"{{"at":8,"answer":"{name}"}}"#);
    let waiting = Some(Phase::Waiting);
    check_phase(&[PROMPT, ask], waiting, (Some(6), Some(6)));
    check_phase(&[PROMPT, ask, &answer("d")], waiting, (Some(8), Some(6)));
    for name in ["r", "c"] {
        let working = Some(Phase::Working);
        check_phase(&[PROMPT, ask, &answer(name)], working, (Some(8), Some(5)));
    }
    let idle = Some(Phase::Idle);
    check_phase(&[PROMPT, ask, END], idle, (Some(7), Some(7)));
    // What the interruption cancels is answered after it.
    check_phase(&[PROMPT, ask, END, &answer("r")], idle, (Some(8), Some(7)));
}

#[test]
fn a_record_alone_may_show_the_phase_or_that_it_is_uncertain() {
    let (idle, open) = (r#"{"at":8,"step":"idle"}"#, r#"{"at":9,"step":"open"}"#);
    check_phase(&[PROMPT, idle], Some(Phase::Idle), (Some(8), None));
    check_phase(&[PROMPT, idle, open], None, (Some(9), None));
}

#[test]
fn a_turn_ends_with_the_refusal_of_all_calls() {
    let step = |at: i64, step: &str| format!(r#"{{"at":{at},"step":"{step}"}}"#);
    let (called, refused, carried_out) = (step(6, "called"), step(7, "refused"), step(7, "open"));
    check_phase(&[&called], None, (Some(6), None));
    check_phase(&[&called, &refused], Some(Phase::Idle), (Some(7), None));
    check_phase(&[&called, &carried_out, &refused], None, (Some(7), None));
    check_phase(&[&refused], None, (Some(7), None));
}

#[test]
fn what_cannot_be_read_at_the_end_makes_the_phase_uncertain() {
    let image = format!(r#"{{"image":"{}"}}"#, "x".repeat(17 << 20));
    check_phase(&[PROMPT, END, &image], None, (None, None));
    check_phase(
        &[PROMPT, &image, REPLY],
        Some(Phase::Working),
        (Some(6), Some(6)),
    );
    let aside = format!(r#"{{"at":9,"text":"{}"}}"#, "x".repeat(4000));
    let mut lines = vec![PROMPT];
    lines.extend(std::iter::repeat_n(aside.as_str(), 600));
    check_phase(&lines, None, (None, None));
}

#[test]
fn a_last_record_of_megabytes_is_the_last_record() {
    let image = "x".repeat(3 << 20);
    let long = format!(r#"{{"at":8,"prompt":"see","step":"begun","image":"{image}"}}"#);
    let counted = r#"{"at":7,"tokens":{"context":3}}"#;
    let last = |lines: &[&str]| {
        let (_directory, file) = file_of(lines);
        let found = DIALECT.read(&file, &mut BadLines::default()).unwrap();
        let at_ms = found.last_activity_at_ms;
        assert_eq!(DIALECT.last_at_ms(&file).unwrap(), at_ms);
        assert_eq!(DIALECT.said(file.path()).last_at_ms, at_ms);
        let model = found.model.is_some();
        let context = found.context.map(|context| context.tokens);
        (at_ms, found.phase, model, context)
    };
    let working = (Some(8), Some(Phase::Working), true, Some(3));
    assert_eq!(last(&[PROMPT, REPLY, counted, &long]), working);
    // Several, and something beside the conversation behind them.
    let title = r#"{"title":"t"}"#;
    assert_eq!(last(&[REPLY, counted, &long, &long, title]), working);
    // A crash has left NUL bytes, or half a record.
    let idle = (Some(7), Some(Phase::Idle), true, Some(3));
    let nul = "\0".repeat(3 << 20);
    assert_eq!(last(&[PROMPT, REPLY, counted, END, &nul]), idle);
    let half = &long[..long.len() - 9];
    assert_eq!(last(&[PROMPT, REPLY, counted, END, half]), idle);
}

#[test]
fn torn_fused_and_bad_lines_leave_the_good_ones() {
    let fused = format!("{PROMPT}{END}");
    let (_directory, file) = file_of(&[&fused, "{\"c\":", "\0\0\0"]);
    let agent = AgentId::from_static("test");
    let found = DIALECT.describe(&agent, file.path()).expect("a file");
    assert_eq!(found.found.title.as_deref(), Some("fix it"));
    assert_eq!(found.found.phase, Some(Phase::Idle));
    let problems: Vec<&str> = found
        .problems
        .iter()
        .map(|problem| problem.message.as_str())
        .collect();
    // The file is read from both ends.
    let expected = "2 of its lines can't be read, the first because it is not valid JSON: \
                    EOF while parsing a value at line 1 column 5";
    assert_eq!(problems, [expected]);
    let messages = DIALECT.messages(&agent, Some(file.path()), 10);
    assert_eq!((messages.found.len(), messages.problems.len()), (1, 1));
}

#[test]
fn a_file_that_is_not_there_has_no_messages_and_no_description() {
    let agent = AgentId::from_static("test");
    let path = Path::new("/nowhere/transcript.jsonl");
    assert_eq!(DIALECT.describe(&agent, path), None);
    assert_eq!(DIALECT.messages(&agent, Some(path), 9), Found::default());
    assert_eq!(DIALECT.said(path), Said::UNREADABLE);
    let directory = tempfile::tempdir().expect("a directory");
    let found = DIALECT.messages(&agent, Some(directory.path()), 9);
    assert_eq!((found.found.len(), found.problems.len()), (0, 1));
}

#[test]
fn the_last_messages_come_oldest_first() {
    let both = r#"{"at":6,"reply":[{"text":"a"},{"text":"b"}],"call":"Shell"}"#;
    let lines = [
        PROMPT,
        both,
        r#"{"reply":" "}"#,
        r#"{"prompt":"<own>x</own>"}"#,
        REPLY,
    ];
    assert_eq!(
        messages_in(&DIALECT, &lines),
        ["fix\n it", "a\nb", "Shell", "Done."]
    );
    let (_directory, file) = file_of(&lines);
    let found = DIALECT.messages(&AgentId::from_static("test"), Some(file.path()), 2);
    let texts = found
        .found
        .iter()
        .map(|message| (message.text.as_str(), message.at_ms));
    assert_eq!(
        texts.collect::<Vec<_>>(),
        [("Shell", Some(6)), ("Done.", Some(6))]
    );
}

#[test]
fn a_message_that_is_written_again_counts_once_as_it_was_last() {
    let lines = [
        r#"{"id":"a","reply":"x"}"#,
        r#"{"id":"a","reply":"x","call":"Shell"}"#,
    ];
    assert_eq!(messages_in(&DIALECT, &lines), ["x", "Shell"]);
}

#[test]
fn records_that_were_read_as_a_whole_read_like_lines() {
    let records: Vec<Value> = [PROMPT, REPLY, END]
        .iter()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let found = joined(DIALECT.tail_of(&records), DIALECT.head_of(&records));
    let mut right = described(&[PROMPT, REPLY, END]);
    right.transcript = None;
    assert_eq!(found, right);
    assert_eq!(DIALECT.messages_in(&records, 1)[0].text, "Done.");
}

#[test]
fn a_long_message_is_cut() {
    let long = format!(r#"{{"reply":"{}"}}"#, "é".repeat(100_000));
    let messages = messages_in(&DIALECT, &[long]);
    assert_eq!(messages[0].chars().count(), TEXT_CHARS_MAX);
}

#[test]
fn the_last_date_is_that_of_an_activity_and_words_are_part_of_a_turn() {
    let said = |lines: &[&str]| {
        let (_directory, file) = file_of(lines);
        let said = DIALECT.said(file.path());
        let last = DIALECT.last_at_ms(&file).expect("a file");
        (said.has_words, said.last_at_ms, last)
    };
    let other = r#"{"at":8}"#;
    assert_eq!(said(&[]), (false, None, None));
    assert_eq!(said(&[other]), (false, None, Some(8)));
    let aside = r#"{"at":9,"aside":1}"#;
    assert_eq!(said(&[PROMPT, other, aside]), (true, Some(5), Some(8)));
}

#[test]
fn the_last_count_of_tokens_may_stand_in_two_records() {
    let (_directory, file) = file_of(&[
        r#"{"tokens":{"context":1,"output":2}}"#,
        r#"{"tokens":{"output":3,"input":4}}"#,
        r#"{"tokens":{"context":5}}"#,
        r#"{"tokens":{"context":6}}"#,
        REPLY,
    ]);
    let right = TokenCount {
        context: Some(6),
        input: Some(4),
        output: Some(3),
        ..TokenCount::default()
    };
    assert_eq!(DIALECT.last_tokens(&file).expect("a file"), right);
}

/// The tokens in the context, and when the turn began and what it produced.
type Counted = (Option<u64>, Option<(Option<i64>, Option<u64>)>);

#[track_caller]
fn check_counted(lines: &[&str], right: Counted) {
    let found = described(lines);
    let context = found.context.map(|context| context.tokens);
    let turn = found
        .turn
        .map(|turn| (turn.started_at_ms, turn.output_tokens));
    assert_eq!((context, turn), right, "{lines:?}");
}

#[test]
fn the_context_is_what_was_counted_last_and_never_what_it_was_before_a_summary() {
    let counted = r#"{"tokens":{"context":900,"output":5}}"#;
    let smaller = r#"{"tokens":{"context":20}}"#;
    let summary = r#"{"compaction":1}"#;
    let summed = r#"{"compaction":1,"tokens":{"context":30}}"#;
    let context = |lines: &[&str]| described(lines).context.map(|context| context.tokens);
    assert_eq!(context(&[PROMPT, counted]), Some(900));
    assert_eq!(context(&[PROMPT, counted, summary]), None);
    assert_eq!(context(&[PROMPT, counted, summed]), Some(30));
    assert_eq!(context(&[PROMPT, counted, summary, smaller]), Some(20));
}

#[test]
fn a_turn_produces_what_its_requests_did_each_counted_once_as_it_was_last() {
    let other = r#"{"tokens":{"output":100}}"#;
    let begun = r#"{"request":"a","tokens":{"output":1}}"#;
    let done = r#"{"request":"a","tokens":{"output":7}}"#;
    let steered = r#"{"at":6,"prompt":"rather","step":"within"}"#;
    check_counted(&[PROMPT, other], (None, Some((Some(5), Some(100)))));
    let turn = (None, Some((Some(5), Some(107))));
    check_counted(&[other, PROMPT, begun, done, other], turn);
    check_counted(&[other, PROMPT, begun, steered, done, other], turn);
    // Nothing was counted yet, which is not nothing.
    check_counted(&[other, PROMPT], (None, Some((Some(5), None))));
    let huge = r#"{"tokens":{"context":-1,"output":18446744073709551615}}"#;
    check_counted(
        &[PROMPT, huge, huge],
        (None, Some((Some(5), Some(u64::MAX)))),
    );
}

#[test]
fn a_turn_that_began_too_far_back_is_not_known() {
    let progress = progress();
    let mut lines = vec![PROMPT];
    lines.extend(std::iter::repeat_n(progress.as_str(), 300));
    lines.push(r#"{"tokens":{"context":3,"output":4}}"#);
    check_counted(&lines, (Some(3), None));
}

#[test]
fn texts_are_plain_or_typed_parts_and_thoughts_are_none() {
    let check = |content: &str, right: &[&str]| {
        let content: Value = serde_json::from_str(content).expect("JSON");
        assert_eq!(texts_in(Some(&content)).collect::<Vec<_>>(), right);
    };
    check(r#""a""#, &["a"]);
    check(
        r#"["a",{"text":"b"},{"type":"output_text","text":"c"}]"#,
        &["a", "b", "c"],
    );
    check(
        r#"[{"type":"thinking","text":"a"},{"text":"b","thought":true}]"#,
        &[],
    );
    check(r#"{"type":"text","text":"a"}"#, &["a"]);
    check("7", &[]);
}
