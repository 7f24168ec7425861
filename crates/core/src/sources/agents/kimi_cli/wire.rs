//! The transcript: `wire.jsonl`, the messages of kimi-cli's engine to its interface, one per
//! line after a line of metadata.

use serde_json::Value;

use crate::adapter::phase::WaitingFor;
use crate::sources::agents::kit::dialect::{
    Dialect, Record, Step, TokenCount, count_at, find_first, text_at, texts_in, value_at,
};
use crate::sources::agents::kit::kimi_wire::{WRAPPING, tokens_in};
use crate::sources::transcript::{HeadBounds, TranscriptError, TranscriptFile};
use crate::sources::usage::Counting;

/// How much of the beginning is read for when a session began.
const BIRTH_BOUNDS: HeadBounds = HeadBounds {
    bytes_max: 64 * 1024,
    lines_max: 8,
};
/// The kind of message that counts tokens.
const STATUS: &str = "StatusUpdate";
/// Messages that a later start of kimi-cli may write, or that do not belong to the
/// conversation itself.
const ASIDES: &[&str] = &[
    "BtwBegin",
    "BtwEnd",
    "HookRequest",
    "HookResolved",
    "HookTriggered",
    "MCPLoadingBegin",
    "MCPLoadingEnd",
    "Notification",
    "PlanDisplay",
    STATUS,
    "SubagentEvent",
];
/// How the counts of a request are called.
const COUNTS: [&str; 4] = [
    "/input_other",
    "/input_cache_read",
    "/input_cache_creation",
    "/output",
];

/// How kimi-cli names its records.
pub(super) const DIALECT: Dialect = Dialect {
    wrapping: WRAPPING,
    has_models: false,
    ..Dialect::of(record_of)
};

pub(super) const COUNTING: Counting = Counting::of(&DIALECT, &["\"token_usage\""]);

fn record_of(record: &Value) -> Record<'_> {
    let at_ms = at_ms(record);
    let kind = text_at(record, "/message/type").unwrap_or_default();
    let payload = value_at(record, "/message/payload").unwrap_or(&Value::Null);
    let mut record = Record {
        at_ms,
        is_aside: kind.is_empty() || ASIDES.contains(&kind),
        born_at_ms: at_ms,
        is_compaction: kind == "CompactionEnd",
        ..Record::default()
    };
    if !record.is_aside {
        record.step = step_of(kind, payload);
    }
    match kind {
        STATUS => record.tokens = Some(tokens_of(payload)),
        "TurnBegin" | "SteerInput" => record.typed = texts_in(payload.get("user_input")).collect(),
        "ContentPart" => record.reply = texts_in(Some(payload)).collect(),
        "ToolCall" => record.calls.extend(text_at(payload, "/function/name")),
        _ => {}
    }
    record
}

fn step_of<'a>(kind: &str, payload: &'a Value) -> Step<'a> {
    let text = |pointer: &str| text_at(payload, pointer);
    let asked = |waiting_for: WaitingFor| Step::Asked {
        names: [text("/id"), text("/tool_call_id")],
        waiting_for: Some(waiting_for),
    };
    match kind {
        "TurnBegin" => Step::Begun,
        "TurnEnd" | "StepInterrupted" => Step::Ended,
        "ApprovalRequest" => asked(WaitingFor::Permission),
        "QuestionRequest" => asked(WaitingFor::Question),
        "ApprovalResponse" | "QuestionResponse" => Step::Answered([text("/request_id"), None]),
        "ToolResult" => Step::Answered([text("/tool_call_id"), None]),
        _ => Step::Within,
    }
}

fn tokens_of(status: &Value) -> TokenCount {
    let usage = status.get("token_usage").unwrap_or(&Value::Null);
    TokenCount {
        context: count_at(status, "/context_tokens"),
        window: count_at(status, "/max_context_tokens"),
        ..tokens_in(usage, COUNTS)
    }
}

/// When a session was, in milliseconds since 1970.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Dates {
    /// The birth; in the transcript that is the date of the first record.
    pub(super) born_at_ms: Option<i64>,
    pub(super) last_record_at_ms: Option<i64>,
    /// The latest possible date of a record, if the end of the transcript is missing.
    pub(super) perhaps_until_ms: Option<i64>,
}

/// Reads the dates inside the first and the last record.
pub(super) fn read_dates(file: &TranscriptFile) -> Result<Dates, TranscriptError> {
    let born_at_ms = find_first(file, BIRTH_BOUNDS, at_ms)?;
    let last_record_at_ms = DIALECT.last_at_ms(file)?;
    let missing = DIALECT.missing_end(file, last_record_at_ms.or(born_at_ms))?;
    Ok(Dates {
        born_at_ms,
        last_record_at_ms,
        perhaps_until_ms: missing.map(|end| end.until_ms),
    })
}

/// The date of a record: Unix seconds with a fraction.
fn at_ms(record: &Value) -> Option<i64> {
    let seconds = record.get("timestamp")?.as_f64()?;
    let is_date = seconds.is_finite() && seconds > 0.0 && seconds < 253_402_300_800.0;
    #[expect(clippy::cast_possible_truncation, reason = "checked just above")]
    let ms = (seconds * 1000.0).round() as i64;
    is_date.then_some(ms)
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests make their own files")]
mod tests {
    use super::*;
    use crate::adapter::Description;
    use crate::adapter::phase::Phase;
    use crate::sources::agents::kit::bad_lines::BadLines;
    use crate::sources::agents::kit::dialect::testing::{file_of, messages_in};

    const METADATA: &str = r#"{"type":"metadata","protocol_version":"1.10"}"#;

    fn record(at: &str, kind: &str, payload: &str) -> String {
        format!(r#"{{"timestamp":{at},"message":{{"type":"{kind}","payload":{payload}}}}}"#)
    }

    fn begin() -> String {
        record(
            "1795813161.254315",
            "TurnBegin",
            r#"{"user_input":[{"type":"text","text":"hello\n two"}]}"#,
        )
    }

    fn described(lines: &[String]) -> Description {
        let (_directory, file) = file_of(lines);
        let read = DIALECT.read(&file, &mut BadLines::default());
        read.expect("a wire file")
    }

    #[track_caller]
    fn check_phase(lines: &[String], right: (Option<Phase>, Option<WaitingFor>)) {
        let found = described(lines);
        assert_eq!((found.phase, found.waiting_for), right);
    }

    #[test]
    fn head_and_tail_tell_prompt_and_dates() {
        let status = record("1795813999.0", "StatusUpdate", "{}");
        let end = record("1795813161.3274434", "TurnEnd", "{}");
        let lines = [METADATA.to_owned(), begin(), end, status];
        let found = described(&lines);
        assert_eq!(found.title.as_deref(), Some("hello two"));
        assert_eq!(found.started_at_ms, Some(1_795_813_161_254));
        assert_eq!(found.last_activity_at_ms, Some(1_795_813_161_327));
        assert_eq!(found.phase, Some(Phase::Idle));
        let (_directory, file) = file_of(&lines);
        let dates = read_dates(&file).expect("dates");
        assert_eq!(dates.born_at_ms, found.started_at_ms);
        assert_eq!(dates.last_record_at_ms, found.last_activity_at_ms);
    }

    #[test]
    fn a_status_counts_tokens() {
        let status = record(
            "2",
            "StatusUpdate",
            r#"{"context_tokens":1290,"max_context_tokens":128000,"token_usage":{"input_other":234,"output":56,"input_cache_read":1000,"input_cache_creation":0}}"#,
        );
        let (_directory, file) = file_of(&[begin(), status, record("3", "TurnEnd", "{}")]);
        let right = TokenCount {
            context: Some(1290),
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

    #[test]
    fn a_turn_lasts_from_its_beginning_to_its_end() {
        let idle = (Some(Phase::Idle), None);
        let working = (Some(Phase::Working), None);
        let step = || record("2", "StepBegin", r#"{"n":1}"#);
        let end = || record("3", "TurnEnd", "{}");
        let call = || record("2", "ToolCall", r#"{"id":"c","function":{"name":"Shell"}}"#);
        check_phase(&[METADATA.to_owned()], (None, None));
        check_phase(&[begin()], working);
        check_phase(&[begin(), step(), call()], working);
        check_phase(&[begin(), step(), end()], idle);
        check_phase(
            &[begin(), step(), record("3", "StepInterrupted", "{}")],
            idle,
        );
        check_phase(&[begin(), end(), begin(), step()], working);
    }

    #[test]
    fn an_unanswered_request_is_waited_for() {
        let ask = || record("2", "ApprovalRequest", r#"{"id":"r","tool_call_id":"c"}"#);
        let answer = || {
            record(
                "3",
                "ApprovalResponse",
                r#"{"request_id":"r","response":"approve"}"#,
            )
        };
        let other = || record("3", "ToolResult", r#"{"tool_call_id":"d"}"#);
        let status = || record("4", "StatusUpdate", "{}");
        let permission = (Some(Phase::Waiting), Some(WaitingFor::Permission));
        check_phase(&[begin(), ask()], permission);
        check_phase(&[begin(), ask(), other(), status()], permission);
        check_phase(&[begin(), ask(), answer()], (Some(Phase::Working), None));
        check_phase(
            &[begin(), ask(), answer(), record("5", "TurnEnd", "{}")],
            (Some(Phase::Idle), None),
        );
        let question = record("2", "QuestionRequest", r#"{"id":"q","tool_call_id":"c"}"#);
        check_phase(
            &[begin(), question],
            (Some(Phase::Waiting), Some(WaitingFor::Question)),
        );
    }

    #[test]
    fn what_is_said_and_called_is_a_message() {
        let said = record("3", "ContentPart", r#"{"type":"text","text":"hi"}"#);
        let thought = record("3", "ContentPart", r#"{"type":"think","think":"hm"}"#);
        let call = record("2", "ToolCall", r#"{"id":"c","function":{"name":"Shell"}}"#);
        let plain = record("4", "SteerInput", r#"{"user_input":"plain"}"#);
        let messages = messages_in(&DIALECT, &[begin(), call, thought, said, plain]);
        assert_eq!(messages, ["hello\n two", "Shell", "hi", "plain"]);
    }
}
