//! Which facts chat files give about the owner process.

use super::*;

const ID: &str = "5db42c53-9d0b-4b4b-9da6-852ee5727e85";

fn header() -> String {
    format!(
        r#"{{"sessionId":"{ID}","projectHash":"af63","startTime":"2026-11-27T20:53:03.261Z","lastUpdated":"2026-11-27T20:53:03.261Z","kind":"main"}}"#
    )
}

const CONTEXT: &str = r#"{"$set":{"messages":[{"id":"c","timestamp":"2026-11-27T20:53:03.269Z","type":"user","content":[{"text":"<session_context>\nx"}]}],"lastUpdated":"2026-11-27T20:53:03.269Z"}}"#;
const PROMPT: &str = r#"{"id":"p","timestamp":"2026-11-27T20:53:27.405Z","type":"user","content":[{"text":"hello one"}]}"#;
const UPDATED: &str = r#"{"$set":{"lastUpdated":"2026-11-27T20:53:32.023Z"}}"#;
const SUMMARY: &str = r#"{"$set":{"summary":"About nothing","memoryScratchpad":{"version":1}}}"#;

fn facts(lines: &[&str]) -> ChatFacts {
    let directory = tempfile::tempdir().expect("a directory");
    let file = "session-2026-11-27T20-53-5db42c53.jsonl";
    let path = directory.path().join(file);
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    std::fs::write(&path, text).expect("a file");
    read_facts(&path).expect("facts")
}

#[test]
fn a_name_tells_a_minute_and_the_beginning_of_an_id() {
    let parse = |file: &str| {
        let name = ChatName::parse(file)?;
        Some((name.minute_ms?, name.id_begins))
    };
    let right = Some((1_795_812_780_000, "5db42c53".to_owned()));
    assert_eq!(parse("session-2026-11-27T20-53-5db42c53.jsonl"), right);
    assert_eq!(parse("session-2026-11-27T20-53-5db42c53.json"), right);
    let own = Some((1_795_812_780_000, "my-sess-".to_owned()));
    assert_eq!(parse("session-2026-11-27T20-53-my-sess-.jsonl"), own);
    let imported = Some((1_795_812_783_261, "5db42c53".to_owned()));
    assert_eq!(parse("session-1795812783261-5db42c53.jsonl"), imported);
    for other in [
        "session-2026-11-27T20-53-5db42c53.jsonl.unreadable-1",
        "session-2026-11-27T20-53-5db42c53.jsonl.tmp-7",
        "session-2026-11-27T20-53.jsonl",
        "session-.jsonl",
        "session-9223372036854775807-5db42c53.jsonl",
        "session--5-5db42c53.jsonl",
        "checkpoint-x.json",
        "5db42c53.jsonl",
    ] {
        assert_eq!(parse(other), None, "{other}");
    }
}

#[test]
fn a_header_may_follow_a_line_that_a_crash_has_left() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory
        .path()
        .join("session-2026-11-27T20-53-5db42c53.jsonl");
    for first in ["", "\n", "\n\r\n\n", "\0\0\0\n"] {
        std::fs::write(&path, format!("{first}{}\n{PROMPT}\n", header())).expect("a file");
        let found = read_header(&path).expect("a chat").expect("a header");
        assert_eq!(found.id.as_str(), ID, "{first:?}");
    }
}

#[test]
fn header_last_date_and_prompts_are_read() {
    let facts = facts(&[&header(), CONTEXT, PROMPT, UPDATED]);
    let header = facts.header.unwrap();
    assert_eq!(header.id.as_str(), ID);
    assert_eq!(header.started_at_ms, Some(1_795_812_783_261));
    assert!(!header.is_subagent);
    assert_eq!(facts.last_at_ms, Some(1_795_812_812_023));
    assert_eq!(facts.prompts, [("hello one".to_owned(), 1_795_812_807_405)]);
    assert!(facts.has_conversation);
}

#[test]
fn a_session_that_is_taken_up_in_the_same_minute_has_a_second_header() {
    let again = header().replace("20:53:03.261Z\",\"last", "20:53:50.000Z\",\"last");
    let facts = facts(&[&header(), CONTEXT, PROMPT, &again, CONTEXT]);
    let starts: std::collections::BTreeSet<i64> = facts.starts_ms.into_iter().collect();
    assert_eq!(
        Vec::from_iter(starts),
        [1_795_812_783_261, 1_795_812_830_000]
    );
}

#[test]
fn a_summary_that_a_later_start_adds_is_no_record() {
    let with = facts(&[&header(), CONTEXT, PROMPT, UPDATED, SUMMARY]);
    assert_eq!(with, facts(&[&header(), CONTEXT, PROMPT, UPDATED]));
}

#[test]
fn before_the_first_prompt_nothing_was_said() {
    let facts = facts(&[&header(), CONTEXT]);
    assert!(!facts.has_conversation && facts.prompts.is_empty());
    assert_eq!(facts.last_at_ms, Some(1_795_812_783_269));
}

#[test]
fn a_chat_that_was_made_anew_has_no_header() {
    let facts = facts(&[PROMPT, UPDATED]);
    assert_eq!(facts.header, None);
    assert_eq!(facts.prompts.len(), 1);
    assert_eq!(facts.last_at_ms, Some(1_795_812_812_023));
}

#[test]
fn a_chat_of_an_earlier_version_is_one_object() -> std::io::Result<()> {
    let directory = tempfile::tempdir()?;
    let file = "session-2026-11-27T20-53-5db42c53.json";
    let path = directory.path().join(file);
    let object = format!(
        r#"{{"sessionId":"{ID}","projectHash":"a","startTime":"2026-11-27T20:53:03.261Z","lastUpdated":"2026-11-27T20:53:32.023Z","messages":[{PROMPT}]}}"#
    );
    std::fs::write(&path, object)?;
    let facts = read_facts(&path).unwrap();
    assert_eq!(facts.header, read_header(&path).unwrap());
    assert_eq!(facts.last_at_ms, Some(1_795_812_812_023));
    assert_eq!(facts.prompts.len(), 1);
    std::fs::write(&path, "{")?;
    assert!(read_facts(&path).is_err());
    Ok(())
}
