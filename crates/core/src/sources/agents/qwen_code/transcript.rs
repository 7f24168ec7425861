//! The transcript: `chats/SESSION.jsonl`, one record a line.
//!
//! Records of a conversation are `user`, `assistant` and `tool_result`; the
//! `system` ones beside them are bookkeeping. Some of these (`custom_title`,
//! `session_source`) are written again and again, also when a session is left,
//! and carry no useful date.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::adapter::phase::Phase;
use crate::sources::agents::kit::dialect::{
    Dialect, HEAD_BOUNDS, LAST_BOUNDS, Record, Step, TokenCount, count_at, date_at, find_first,
    find_last, text_at, texts_in, value_at,
};
use crate::sources::agents::kit::prompt::Wrapping;
use crate::sources::transcript::{HeadBounds, Stopped, TranscriptError, TranscriptFile};
use crate::sources::usage::Counting;

/// How much of the beginning is read for where and when a session began.
const BIRTH_BOUNDS: HeadBounds = HeadBounds {
    bytes_max: 64 * 1024,
    lines_max: 8,
};

/// The dialect of qwen-code's records. qwen-code repeats the title every 32 KiB, so that it
/// is within 64.
pub(super) const DIALECT: Dialect = Dialect {
    wrapping: Wrapping {
        elements: &["session_context"],
        notices: &[],
    },
    rare_bytes: 64 * 1024,
    ..Dialect::of(record_of)
};

/// Each count has a copy in a `ui_telemetry` record, which is no reply.
pub(super) const COUNTING: Counting = Counting {
    keys: &[
        "cachedContentTokenCount",
        "cwd",
        "forkedFrom",
        "gitBranch",
        "model",
        "promptTokenCount",
        "thoughtsTokenCount",
        "timestamp",
        "totalTokenCount",
        "type",
        "usageMetadata",
        "uuid",
    ],
    ..Counting::of(&DIALECT, &["\"usageMetadata\""])
};

fn record_of(record: &Value) -> Record<'_> {
    let text = |pointer: &str| text_at(record, pointer);
    let subtype = text("/subtype");
    let at_ms = date_at(record, "/timestamp");
    let title = text("/systemPayload/customTitle").filter(|_| subtype == Some("custom_title"));
    let mut found = Record {
        at_ms,
        is_aside: matches!(subtype, Some("custom_title" | "session_source")),
        born_at_ms: at_ms,
        repeated: text("/systemPayload/rawCommand").into_iter().collect(),
        version: text("/version"),
        work_dir: work_dir(record),
        git_branch: text("/gitBranch"),
        title: title.filter(|title| !title.trim().is_empty()),
        ..Record::default()
    };
    let parts = value_at(record, "/message/parts");
    if is_prompt(record) {
        // The prompt as it was shown, if that differs from the text that was sent.
        found.typed = match text("/systemPayload/displayText") {
            Some(shown) => vec![shown],
            None => texts_in(parts).collect(),
        };
    }
    if text("/type") == Some("assistant") {
        let parts = parts.and_then(Value::as_array).into_iter().flatten();
        let calls = parts.filter_map(|part| text_at(part, "/functionCall/name"));
        found.calls = calls.collect();
        found.reply = texts_in(value_at(record, "/message/parts")).collect();
        found.model = text("/model");
        found.tokens = record.get("usageMetadata").map(tokens_in);
        found.request = text("/uuid");
        found.is_copied = record.get("forkedFrom").is_some_and(|from| !from.is_null());
    }
    if subtype == Some("chat_compression") {
        found.is_compaction = true;
        let context = count_at(record, "/systemPayload/info/newTokenCount");
        found.tokens = Some(TokenCount {
            context: context.filter(|tokens| *tokens > 0),
            ..TokenCount::default()
        });
    }
    if let Some(tokens) = &mut found.tokens {
        tokens.window = count_at(record, "/contextWindowSize");
    }
    if is_conversation(record) {
        found.step = step_of(record);
    }
    found
}

/// What is certain after a record of the conversation.
///
/// A reply without a call ends the turn. A call without its result is running or waits for
/// permission. A prompt or a result without a reply is being answered, or was interrupted by
/// Escape, which is not recorded. Seen in qwen-code 0.24.4, 2026-11.
fn step_of(record: &Value) -> Step<'_> {
    let status = text_at(record, "/toolCallResult/status");
    let parts = value_at(record, "/message/parts").and_then(Value::as_array);
    let mut parts = parts.into_iter().flatten();
    match text_at(record, "/type") {
        Some("assistant") if parts.any(|part| part.get("functionCall").is_some()) => Step::Called,
        Some("assistant") => Step::Shows(Some(Phase::Idle)),
        Some("tool_result") if status == Some("cancelled") => Step::Refused,
        _ => Step::Shows(None),
    }
}

fn tokens_in(usage: &Value) -> TokenCount {
    let count = |name: &str| count_at(usage, name);
    let prompt = count("/promptTokenCount");
    let cached_input = count("/cachedContentTokenCount");
    let less = |all: Option<u64>, part: Option<u64>| all?.checked_sub(part.unwrap_or(0));
    TokenCount {
        context: prompt,
        input: less(prompt, cached_input),
        cached_input,
        output: less(count("/totalTokenCount"), prompt),
        reasoning: count("/thoughtsTokenCount"),
        ..TokenCount::default()
    }
}

/// The dates and directory of a session, by its records.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Birth {
    pub(super) born_at_ms: Option<i64>,
    pub(super) work_dir: Option<PathBuf>,
}

/// Reads where and when a session began.
pub(super) fn read_birth(file: &TranscriptFile) -> Result<Birth, TranscriptError> {
    let born_at = |record: &Value| date_at(record, "/timestamp");
    Ok(Birth {
        born_at_ms: find_first(file, BIRTH_BOUNDS, born_at)?,
        work_dir: find_first(file, BIRTH_BOUNDS, |record| {
            work_dir(record).map(PathBuf::from)
        })?,
    })
}

/// Returns whether a transcript may have messages: a stub, as is left in another folder, is
/// whole and has none.
pub(super) fn may_have_words(path: &Path) -> bool {
    let read = TranscriptFile::open(path).and_then(|file| file.head(HEAD_BOUNDS));
    read.is_ok_and(|head| {
        let mut records = head.lines.iter().flat_map(|line| line.json().values);
        head.stopped != Stopped::NothingLeft || records.any(|record| is_conversation(&record))
    })
}

/// Reads the date inside the last record of the conversation.
pub(super) fn read_last_record_at(file: &TranscriptFile) -> Result<Option<i64>, TranscriptError> {
    find_last(file, LAST_BOUNDS, |record| {
        date_at(record, "/timestamp").filter(|_| is_conversation(record))
    })
}

/// Reads the first and the last prompt, as far as they are near the ends.
pub(super) fn read_prompts(file: &TranscriptFile) -> Result<Vec<String>, TranscriptError> {
    let first = find_first(file, BIRTH_BOUNDS, |record| DIALECT.prompt_of(record))?;
    let last = find_last(file, LAST_BOUNDS, |record| {
        is_prompt(record).then(|| DIALECT.prompt_of(record))
    })?;
    Ok(first.into_iter().chain(last.flatten()).collect())
}

fn work_dir(record: &Value) -> Option<&str> {
    text_at(record, "/cwd").filter(|path| Path::new(path).is_absolute())
}

/// Part of the session's own conversation, not of a sub-agent's.
fn is_conversation(record: &Value) -> bool {
    let is_aside = record.get("isSidechain").and_then(Value::as_bool) == Some(true);
    let kind = text_at(record, "/type");
    !is_aside && matches!(kind, Some("user" | "assistant" | "tool_result"))
}

/// Typed by a person, not put in by a timer or by the agent itself.
fn is_prompt(record: &Value) -> bool {
    let text = |pointer: &str| text_at(record, pointer);
    is_conversation(record)
        && text("/type") == Some("user")
        && matches!(text("/subtype"), None | Some("mid_turn_user_message"))
        && matches!(text("/provenance"), None | Some("real_user"))
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests make their own files")]
mod tests {
    use super::*;
    use crate::adapter::Description;
    use crate::sources::agents::kit::bad_lines::BadLines;
    use crate::sources::agents::kit::dialect::testing::{file_of, messages_in};

    const USER: &str = r#"{"sessionId":"s","timestamp":"2026-11-27T20:53:04.482Z","type":"user","provenance":"real_user","cwd":"/w/app","version":"0.24.4","message":{"role":"user","parts":[{"text":"hello\n  one"}]}}"#;
    const REPLY: &str = r#"{"sessionId":"s","timestamp":"2026-11-27T20:53:06.000Z","type":"assistant","cwd":"/w/app","version":"0.24.4","gitBranch":"main","model":"mock-model","message":{"role":"model","parts":[{"text":"hi"}]}}"#;
    const CALL: &str = r#"{"sessionId":"s","timestamp":"2026-11-27T20:53:07.000Z","type":"assistant","cwd":"/w/app","version":"0.24.4","model":"mock-model","message":{"role":"model","parts":[{"functionCall":{"id":"c","name":"run_shell_command","args":{}}}]}}"#;
    const RESULT: &str = r#"{"sessionId":"s","timestamp":"2026-11-27T20:53:08.000Z","type":"tool_result","cwd":"/w/app","version":"0.24.4","message":{"role":"user","parts":[{"functionResponse":{"id":"c","name":"run_shell_command"}}]}}"#;
    const MOVED: &str = r#"{"sessionId":"s","timestamp":"2026-11-27T20:54:00.000Z","type":"system","subtype":"slash_command","cwd":"/w/other","version":"0.24.5"}"#;
    const TITLE: &str = r#"{"sessionId":"s","timestamp":"2026-11-27T23:00:00.000Z","type":"system","subtype":"custom_title","cwd":"/w/app","version":"0.24.4","systemPayload":{"customTitle":"my title","titleSource":"manual"}}"#;

    fn description(lines: &[&str]) -> Description {
        let (_directory, file) = file_of(lines);
        let read = DIALECT.read(&file, &mut BadLines::default());
        read.expect("a description")
    }

    #[test]
    fn head_and_tail_describe_a_session() {
        let described = description(&[USER, REPLY]);
        assert_eq!(described.title.as_deref(), Some("hello one"));
        assert!(described.is_title_a_prompt);
        assert_eq!(described.model.as_deref(), Some("mock-model"));
        assert_eq!(described.git_branch.as_deref(), Some("main"));
        assert_eq!(described.agent_version.as_deref(), Some("0.24.4"));
        assert_eq!(described.started_at_ms, Some(1_795_812_784_482));
        assert_eq!(described.last_activity_at_ms, Some(1_795_812_786_000));
        assert_eq!(described.phase, Some(Phase::Idle));
    }

    #[test]
    fn the_first_prompt_is_what_a_person_typed() {
        let context = USER.replace("hello\\n  one", "<ide_opened_file>a.rs</ide_opened_file>");
        let stopped = USER.replace("hello\\n  one", "Operation stopped by hook");
        let title = |lines: &[&str]| description(lines).title;
        assert_eq!(title(&[&context, &stopped]), None);
        assert_eq!(title(&[&context, USER]).as_deref(), Some("hello one"));
        let command = MOVED.replace(
            r#""version""#,
            r#""systemPayload":{"rawCommand":"/review it"},"version""#,
        );
        assert_eq!(title(&[&command, &context]).as_deref(), Some("/review it"));
        assert_eq!(title(&[&command, USER]).as_deref(), Some("hello one"));
    }

    #[test]
    fn a_given_title_wins_and_its_repetition_is_no_activity() {
        let described = description(&[USER, REPLY, TITLE]);
        assert_eq!(described.title.as_deref(), Some("my title"));
        assert!(!described.is_title_a_prompt);
        assert_eq!(described.last_activity_at_ms, Some(1_795_812_786_000));
    }

    #[test]
    fn the_last_record_says_where_the_session_is_now() {
        let described = description(&[USER, REPLY, MOVED]);
        assert_eq!(described.work_dir.as_deref(), Some(Path::new("/w/other")));
        assert_eq!(described.agent_version.as_deref(), Some("0.24.5"));
        assert_eq!(described.phase, Some(Phase::Idle));
    }

    #[test]
    fn what_may_be_two_things_is_no_phase() {
        assert_eq!(description(&[USER]).phase, None);
        assert_eq!(description(&[USER, CALL]).phase, None);
        assert_eq!(description(&[USER, CALL, RESULT]).phase, None);
        assert_eq!(
            description(&[USER, CALL, RESULT, REPLY]).phase,
            Some(Phase::Idle)
        );
    }

    #[test]
    fn a_turn_ends_with_the_refusal_of_all_its_calls() {
        let refused = RESULT.replace(
            r#""message""#,
            r#""toolCallResult":{"callId":"c","status":"cancelled"},"message""#,
        );
        let phase = |lines: &[&str]| description(lines).phase;
        assert_eq!(phase(&[USER, CALL, &refused]), Some(Phase::Idle));
        assert_eq!(phase(&[USER, CALL, RESULT, &refused]), None);
        assert_eq!(phase(&[USER, CALL, &refused, RESULT]), None);
        assert_eq!(phase(&[USER, CALL, &refused, USER]), None);
    }

    #[test]
    fn dates_are_those_of_the_conversation() {
        let (_directory, file) = file_of(&[USER, REPLY, TITLE]);
        let birth = read_birth(&file).expect("a birth");
        assert_eq!(birth.born_at_ms, Some(1_795_812_784_482));
        assert_eq!(birth.work_dir.as_deref(), Some(Path::new("/w/app")));
        assert_eq!(
            read_prompts(&file).expect("prompts"),
            ["hello\n  one", "hello\n  one"]
        );
        assert_eq!(
            read_last_record_at(&file).expect("a date"),
            Some(1_795_812_786_000)
        );
    }

    #[test]
    fn prompts_replies_and_calls_are_messages() {
        let said = messages_in(&DIALECT, &[USER, CALL, RESULT, REPLY]);
        assert_eq!(said, ["hello\n  one", "run_shell_command", "hi"]);
        let shown = USER.replace(
            r#""version""#,
            r#""systemPayload":{"displayText":"hello"},"version""#,
        );
        assert_eq!(messages_in(&DIALECT, &[shown]), ["hello"]);
    }

    #[test]
    fn a_reply_counts_its_tokens() {
        let usage = r#""usageMetadata":{"promptTokenCount":1234,"candidatesTokenCount":56,"cachedContentTokenCount":1000,"thoughtsTokenCount":8,"totalTokenCount":1290},"model""#;
        let reply = REPLY.replacen(r#""model""#, usage, 1);
        let (_directory, file) = file_of(&[USER, &reply, TITLE]);
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
}
