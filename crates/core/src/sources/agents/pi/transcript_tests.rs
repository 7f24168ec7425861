//! Which facts the entries of a transcript give.

#![allow(clippy::disallowed_methods, reason = "tests make their own files")]

use super::*;
use crate::adapter::Description;
use crate::sources::agents::kit::bad_lines::BadLines;
use crate::sources::agents::kit::dialect::testing::{file_of, messages_in};

const HEADER: &str = r#"{"type":"session","version":3,"id":"01a2","timestamp":"2026-11-27T21:02:29.749Z","cwd":"/home/dev/app"}"#;
const MODEL: &str = r#"{"type":"model_change","id":"a","parentId":null,"timestamp":"2026-11-27T21:02:29.806Z","provider":"p","modelId":"m-1"}"#;
const PROMPT: &str = r#"{"type":"message","id":"b","parentId":"a","timestamp":"2026-11-27T21:03:11.145Z","message":{"role":"user","content":[{"type":"text","text":"fix\n it"}]}}"#;
const CALL: &str = r#"{"type":"message","id":"c","parentId":"b","timestamp":"2026-11-27T21:03:11.743Z","message":{"role":"assistant","content":[{"type":"text","text":"I look."},{"type":"toolCall","id":"t","name":"bash"}],"model":"m-2","stopReason":"toolUse"}}"#;
const RESULT: &str = r#"{"type":"message","id":"d","parentId":"c","timestamp":"2026-11-27T21:03:17.887Z","message":{"role":"toolResult","toolCallId":"t","content":[]}}"#;
const REPLY: &str = r#"{"type":"message","id":"e","parentId":"d","timestamp":"2026-11-27T21:03:17.959Z","message":{"role":"assistant","content":[{"type":"text","text":"Done."}],"model":"m-2","stopReason":"stop"}}"#;
const NAME: &str = r#"{"type":"session_info","id":"f","parentId":"e","timestamp":"2026-11-27T22:00:00Z","name":" the fix "}"#;
const NO_NAME: &str = r#"{"type":"session_info","id":"g","parentId":"f","timestamp":"2026-11-27T22:00:01Z","name":""}"#;

const BORN: i64 = 1_795_813_349_749;

fn described(lines: &[&str]) -> Description {
    let (_directory, file) = file_of(lines);
    DIALECT
        .read(&file, &mut BadLines::default())
        .expect("a transcript")
}

#[test]
fn head_and_tail_tell_what_a_session_is() {
    let found = described(&[HEADER, MODEL, PROMPT, CALL, RESULT, REPLY]);
    assert_eq!(found.title.as_deref(), Some("fix it"));
    assert!(found.is_title_a_prompt);
    assert_eq!(found.model.as_deref(), Some("m-2"));
    assert_eq!(found.work_dir, Some("/home/dev/app".into()));
    assert_eq!(found.started_at_ms, Some(BORN));
    assert_eq!(found.last_activity_at_ms, Some(BORN + 48_210));
    assert_eq!(found.phase, Some(Phase::Idle));
}

#[test]
fn a_name_is_the_title_until_it_is_taken_back() {
    let found = described(&[HEADER, PROMPT, REPLY, NAME]);
    assert_eq!(found.title.as_deref(), Some("the fix"));
    assert!(!found.is_title_a_prompt);
    assert_eq!(found.last_activity_at_ms, Some(BORN + 48_210));
    let found = described(&[HEADER, PROMPT, REPLY, NAME, NO_NAME]);
    assert_eq!(found.title.as_deref(), Some("fix it"));
}

#[test]
fn the_last_message_tells_the_phase() {
    let check = |lines: &[&str], right: Option<Phase>| {
        assert_eq!(described(lines).phase, right, "{lines:?}");
    };
    check(&[HEADER, PROMPT, CALL], Some(Phase::Working));
    check(&[HEADER, PROMPT, CALL, RESULT], Some(Phase::Working));
    check(&[HEADER, PROMPT, REPLY, NAME], Some(Phase::Idle));
    check(&[HEADER, PROMPT, REPLY, PROMPT], Some(Phase::Working));
    let failed = REPLY.replace("\"stop\"", "\"error\"");
    check(&[HEADER, PROMPT, &failed], None);
    check(&[HEADER, MODEL], None);
}

#[test]
fn a_header_may_follow_a_line_that_a_crash_has_left() {
    let of = |lines: &[&str]| header(&file_of(lines).1).expect("a file");
    let sound = of(&[HEADER, PROMPT]);
    assert!(sound.is_some());
    for first in ["", "\n\r\n", "\0\0\0"] {
        assert_eq!(of(&[first, HEADER, PROMPT]), sound, "{first:?}");
    }
    assert_eq!(of(&[PROMPT, HEADER]), None);
}

#[test]
fn an_outline_has_the_first_line_and_the_last_date() {
    let (_directory, file) = file_of(&[HEADER, MODEL, PROMPT, REPLY, NAME]);
    let header = header(&file).expect("a file").expect("a session");
    let outline = outline(&file, &header).expect("a file");
    let right = Header {
        is_anywhere: false,
        id: "01a2".to_owned(),
        work_dir: Some("/home/dev/app".to_owned()),
        born_at_ms: Some(BORN),
    };
    assert_eq!(header, right);
    assert_eq!(outline.last_at_ms, Some(BORN + 48_210));
    assert!(!outline.is_prompted_at_birth);
}

#[test]
fn a_prompt_of_the_arguments_comes_with_the_birth() {
    let at_once = PROMPT.replace("21:03:11.145", "21:02:29.769");
    let (_directory, file) = file_of(&[HEADER, MODEL, &at_once, REPLY]);
    let first = header(&file).expect("a file").expect("a session");
    assert!(outline(&file, &first).expect("a file").is_prompted_at_birth);
    let right = Prompts {
        name: None,
        last_typed_at_ms: Some(BORN + 20),
        may_be_one: true,
        are_all: true,
    };
    assert_eq!(prompts(&file).expect("a file"), right);
    // Records that a fork copied are older than the fork.
    let copied = PROMPT.replace("21:03:11.145", "20:00:00.000");
    let (_directory, file) = file_of(&[HEADER, &copied, REPLY, PROMPT, REPLY, NAME]);
    assert!(!outline(&file, &first).expect("a file").is_prompted_at_birth);
    let right = Prompts {
        name: Some("the fix".to_owned()),
        last_typed_at_ms: Some(BORN + 41_396),
        may_be_one: false,
        are_all: true,
    };
    assert_eq!(prompts(&file).expect("a file"), right);
}

#[test]
fn a_prompt_was_typed_when_its_message_says_though_it_had_to_wait() {
    let waited = PROMPT.replace(
        r#""role":"user","#,
        r#""role":"user","timestamp":1795813380000,"#,
    );
    let (_directory, file) = file_of(&[HEADER, PROMPT, REPLY, &waited, REPLY]);
    let found = prompts(&file).expect("a file");
    assert_eq!(found.last_typed_at_ms, Some(1_795_813_380_000));
}

#[test]
fn a_prompt_behind_a_long_turn_is_found_and_one_too_far_back_is_not_known() {
    let padded = format!(r#""toolCallId":"{}""#, "t".repeat(300_000));
    let result = RESULT.replace(r#""toolCallId":"t""#, &padded);
    assert!(result.len() > 300_000);
    let turn = |results: usize| {
        let mut lines = vec![HEADER, PROMPT, REPLY, PROMPT];
        lines.extend(std::iter::repeat_n(result.as_str(), results));
        let (_directory, file) = file_of(&lines);
        prompts(&file).expect("a file")
    };
    let far = turn(5);
    assert_eq!(far.last_typed_at_ms, Some(BORN + 41_396));
    assert!(far.are_all && !far.may_be_one);
    let too_far = turn(60);
    assert_eq!(too_far.last_typed_at_ms, None);
    assert!(!too_far.are_all && too_far.may_be_one);
}

#[test]
fn what_does_not_begin_as_a_session_is_none() {
    for lines in [
        &[PROMPT][..],
        &["{}"],
        &[r#"{"type":"session","id":7}"#],
        &[""],
        &[],
    ] {
        let (_directory, file) = file_of(lines);
        assert_eq!(header(&file).expect("a file"), None, "{lines:?}");
    }
}

#[test]
fn replies_and_calls_are_messages_and_results_are_not() {
    let said = messages_in(&DIALECT, &[HEADER, PROMPT, CALL, RESULT, REPLY]);
    assert_eq!(said, ["fix\n it", "I look.", "bash", "Done."]);
}

#[test]
fn a_reply_reports_its_tokens() {
    let usage =
        r#""usage":{"input":7,"output":5,"cacheRead":30,"cacheWrite":0,"totalTokens":42},"model""#;
    let reply = REPLY.replacen(r#""model""#, usage, 1);
    let (_directory, file) = file_of(&[HEADER, PROMPT, CALL, &reply, PROMPT]);
    let right = TokenCount {
        context: Some(42),
        input: Some(7),
        cached_input: Some(30),
        cache_writes: Some(0),
        output: Some(5),
        ..TokenCount::default()
    };
    assert_eq!(DIALECT.last_tokens(&file).expect("a file"), right);
}

#[test]
fn a_skill_is_no_prompt() {
    let skill = PROMPT.replace("fix\\n it", "<skill name=\\\"a\\\">how to</skill>");
    assert_eq!(described(&[HEADER, &skill]).title, None);
    let both = skill.replace("</skill>", "</skill>\\n\\nuse it");
    assert_eq!(described(&[HEADER, &both]).title.as_deref(), Some("use it"));
}
