//! The transcript: `wire.jsonl`, what kimi-cli's engine told its interface,
//! one message a line after a line of metadata.

use serde_json::Value;

use crate::adapter::phase::WaitingFor;
use crate::adapter::{Message, MessageRole};
use crate::sources::agents::kit::kimi_wire::{Dialect, Step, part_text, text_of_input};
use crate::sources::transcript::{HeadBounds, TranscriptError, TranscriptFile};

/// How much of the beginning is read for when a session began.
const BIRTH_BOUNDS: HeadBounds = HeadBounds {
    bytes_max: 64 * 1024,
    lines_max: 8,
};
/// Messages that a later start of kimi-cli may write, or that say nothing
/// about the conversation itself.
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
    "StatusUpdate",
    "SubagentEvent",
];

/// How kimi-cli names its records.
pub(super) const DIALECT: Dialect = Dialect {
    is_of_conversation,
    at_ms,
    born_at_ms: at_ms,
    prompt_of,
    model_of: |_| None,
    step_of,
    phase_without_turn: None,
};

/// When a conversation was, in milliseconds since 1970.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct WireDates {
    /// The date inside its first record.
    pub(super) first_at_ms: Option<i64>,
    /// The date inside its last one.
    pub(super) last_at_ms: Option<i64>,
    /// Until when it may have gone on, where its end is missing.
    pub(super) perhaps_until_ms: Option<i64>,
}

/// Reads the dates inside the first and the last record.
pub(super) fn read_dates(file: &TranscriptFile) -> Result<WireDates, TranscriptError> {
    let head = file.head(BIRTH_BOUNDS)?;
    let mut records = head.lines.iter().flat_map(|line| line.json().values);
    let first = records.find_map(|record| at_ms(&record));
    let last_at_ms = DIALECT.last_at_ms(file)?;
    let missing = file.missing_end(last_at_ms.or(first), at_ms)?;
    Ok(WireDates {
        first_at_ms: first,
        last_at_ms,
        perhaps_until_ms: missing.map(|end| end.until_ms),
    })
}

/// The message that a record is, if it is one.
pub(super) fn messages_of(record: &Value) -> Vec<Message> {
    message_of(record).into_iter().collect()
}

fn message_of(record: &Value) -> Option<Message> {
    let (role, text) = match kind(record)? {
        "TurnBegin" | "SteerInput" => (MessageRole::User, user_input(record)?),
        "ContentPart" => (
            MessageRole::Assistant,
            part_text(payload(record)?)?.to_owned(),
        ),
        "ToolCall" => {
            let name = payload(record)?.pointer("/function/name")?.as_str()?;
            (MessageRole::Tool, name.to_owned())
        }
        _ => return None,
    };
    let at_ms = at_ms(record);
    (!text.trim().is_empty()).then_some(Message { role, at_ms, text })
}

/// What a record does to the turn.
fn step_of(record: &Value) -> Step {
    if !is_of_conversation(record) {
        return Step::Aside;
    }
    let text = |pointer: &str| {
        let found = payload(record)?.pointer(pointer)?;
        found.as_str().map(str::to_owned)
    };
    let asked = |waiting_for: WaitingFor| Step::Asked {
        names: [text("/id"), text("/tool_call_id")]
            .into_iter()
            .flatten()
            .collect(),
        waiting_for: Some(waiting_for),
    };
    match kind(record) {
        Some("TurnBegin") => Step::Begun,
        Some("TurnEnd" | "StepInterrupted") => Step::Ended,
        Some("ApprovalRequest") => asked(WaitingFor::Permission),
        Some("QuestionRequest") => asked(WaitingFor::Question),
        Some("ApprovalResponse" | "QuestionResponse") => Step::Answered(text("/request_id")),
        Some("ToolResult") => Step::Answered(text("/tool_call_id")),
        _ => Step::Within,
    }
}

fn kind(record: &Value) -> Option<&str> {
    record.pointer("/message/type")?.as_str()
}

fn payload(record: &Value) -> Option<&Value> {
    record.pointer("/message/payload")
}

fn is_of_conversation(record: &Value) -> bool {
    kind(record).is_some_and(|kind| !ASIDES.contains(&kind))
}

/// The date of a record: Unix seconds with a fraction.
fn at_ms(record: &Value) -> Option<i64> {
    let seconds = record.get("timestamp")?.as_f64()?;
    let is_date = seconds.is_finite() && seconds > 0.0 && seconds < 253_402_300_800.0;
    #[expect(clippy::cast_possible_truncation, reason = "checked just above")]
    let ms = (seconds * 1000.0).round() as i64;
    is_date.then_some(ms)
}

fn prompt_of(record: &Value) -> Option<String> {
    if kind(record)? != "TurnBegin" {
        return None;
    }
    user_input(record)
}

fn user_input(record: &Value) -> Option<String> {
    text_of_input(payload(record)?.get("user_input")?)
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests make their own files")]
mod tests {
    use super::*;
    use crate::adapter::phase::Phase;
    use crate::sources::agents::kit::last_messages::last_messages;

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

    fn file_of(lines: &[String]) -> (tempfile::TempDir, TranscriptFile) {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("wire.jsonl");
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        std::fs::write(&path, text).expect("a file");
        let file = TranscriptFile::open(&path).expect("a transcript");
        (directory, file)
    }

    #[track_caller]
    fn check_phase(lines: &[String], right: (Option<Phase>, Option<WaitingFor>)) {
        let (_directory, file) = file_of(lines);
        let told = DIALECT.read(&file).expect("a wire file");
        assert_eq!((told.phase, told.waiting_for), right);
    }

    #[test]
    fn head_and_tail_tell_prompt_and_dates() {
        let status = record("1795813999.0", "StatusUpdate", "{}");
        let end = record("1795813161.3274434", "TurnEnd", "{}");
        let (_directory, file) = file_of(&[METADATA.to_owned(), begin(), end, status]);
        let told = DIALECT.read(&file).expect("a wire file");
        assert_eq!(told.prompt.as_deref(), Some("hello two"));
        assert_eq!(told.born_at_ms, Some(1_795_813_161_254));
        assert_eq!(told.last_at_ms, Some(1_795_813_161_327));
        assert_eq!(told.phase, Some(Phase::Idle));
        assert_eq!(told.problem, None);
        let dates = read_dates(&file).expect("dates");
        assert_eq!(dates.first_at_ms, told.born_at_ms);
        assert_eq!(dates.last_at_ms, told.last_at_ms);
    }

    #[test]
    fn a_prompt_may_be_a_plain_text() {
        let begin = record("1.5", "TurnBegin", r#"{"user_input":"plain"}"#);
        let (_directory, file) = file_of(&[begin]);
        let told = DIALECT.read(&file).expect("a wire file");
        assert_eq!(told.prompt.as_deref(), Some("plain"));
        assert_eq!(told.born_at_ms, Some(1500));
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
    fn bad_lines_are_counted_and_the_rest_is_told() {
        let fused = format!("{}{}", begin(), record("3", "TurnEnd", "{}"));
        let (_directory, file) = file_of(&[fused, "{\"c\":".to_owned()]);
        let told = DIALECT.read(&file).expect("a wire file");
        assert_eq!(told.phase, Some(Phase::Idle));
        assert_eq!(told.prompt.as_deref(), Some("hello two"));
        assert!(told.problem.is_some());
    }

    #[test]
    fn the_last_messages_come_oldest_first() {
        let said = record("3", "ContentPart", r#"{"type":"text","text":"hi"}"#);
        let thought = record("3", "ContentPart", r#"{"type":"think","think":"hm"}"#);
        let call = record("2", "ToolCall", r#"{"id":"c","function":{"name":"Shell"}}"#);
        let (directory, _file) = file_of(&[begin(), call, thought, said]);
        let path = directory.path().join("wire.jsonl");
        let found = last_messages(
            &crate::sources::agents::kimi_cli::AGENT,
            Some(&path),
            2,
            messages_of,
        );
        let (messages, problems) = (found.found, found.problems);
        let texts: Vec<&str> = messages
            .iter()
            .map(|message| message.text.as_str())
            .collect();
        assert_eq!(texts, ["Shell", "hi"]);
        assert_eq!(problems, []);
    }
}
