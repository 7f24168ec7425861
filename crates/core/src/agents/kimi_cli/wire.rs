//! The transcript: `wire.jsonl`, what kimi-cli's engine told its interface,
//! one message a line after a line of metadata.

use std::collections::HashSet;

use serde_json::Value;

use crate::agents::bad_lines::BadLines;
use crate::agents::title::one_line;
use crate::agents::{Message, MessageRole};
use crate::phase::{Phase, WaitingFor};
use crate::transcript::{HeadBounds, TailBounds, TranscriptError, TranscriptFile};

/// How much of the beginning is read for when a session began.
const BIRTH_BOUNDS: HeadBounds = HeadBounds {
    bytes_max: 64 * 1024,
    lines_max: 8,
};
/// How much of the beginning is read for the first prompt.
const HEAD_BOUNDS: HeadBounds = HeadBounds {
    bytes_max: 1024 * 1024,
    lines_max: 64,
};
/// How far back from the end is read for what was last.
const LAST_BOUNDS: TailBounds = TailBounds {
    bytes_max: 1024 * 1024,
};
/// How far back messages are looked for.
const MESSAGES_BOUNDS: TailBounds = TailBounds {
    bytes_max: 16 * 1024 * 1024,
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

/// What the records say of a session as a whole.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Told {
    /// The date inside the first record.
    pub(super) first_at_ms: Option<i64>,
    /// The date inside the last record.
    pub(super) last_at_ms: Option<i64>,
    /// The first prompt, on one line.
    pub(super) prompt: Option<String>,
    pub(super) phase: Option<Phase>,
    pub(super) waiting_for: Option<WaitingFor>,
    /// Why some lines told nothing.
    pub(super) problem: Option<String>,
}

/// Reads the dates inside the first and the last record.
pub(super) fn read_dates(
    file: &TranscriptFile,
) -> Result<(Option<i64>, Option<i64>), TranscriptError> {
    let head = file.head(BIRTH_BOUNDS)?;
    let first = head
        .lines
        .iter()
        .flat_map(|line| line.json().values)
        .find_map(|record| at_ms(&record));
    for line in file.backwards(LAST_BOUNDS)? {
        let records = line?.json().values;
        let its = records
            .iter()
            .rev()
            .filter(|record| is_of_conversation(record));
        if let Some(at) = its.filter_map(at_ms).next() {
            return Ok((first, Some(at)));
        }
    }
    Ok((first, None))
}

/// Reads head and tail.
pub(super) fn read(file: &TranscriptFile) -> Result<Told, TranscriptError> {
    let mut bad_lines = BadLines::default();
    let mut told = Told::default();
    let mut fold = PhaseFold::default();
    for line in file.backwards(LAST_BOUNDS)? {
        let line = line?;
        if line.is_too_long() {
            fold.skip_one();
        }
        for record in bad_lines.values(&line).iter().rev() {
            if is_of_conversation(record) {
                told.last_at_ms = told.last_at_ms.or_else(|| at_ms(record));
            }
            fold.add_backwards(record);
        }
        if told.last_at_ms.is_some() && fold.answer.is_some() {
            break;
        }
    }
    (told.phase, told.waiting_for) = fold.finish();
    let head = file.head(HEAD_BOUNDS)?;
    for record in head.lines.iter().flat_map(|line| bad_lines.values(line)) {
        told.first_at_ms = told.first_at_ms.or_else(|| at_ms(&record));
        if told.prompt.is_none() && kind(&record) == Some("TurnBegin") {
            told.prompt = user_input(&record).and_then(|text| one_line(&text));
        }
    }
    told.problem = bad_lines.message();
    Ok(told)
}

/// Reads the last messages, oldest first.
pub(super) fn messages(
    file: &TranscriptFile,
    messages_max: usize,
) -> Result<(Vec<Message>, Option<String>), TranscriptError> {
    let mut bad_lines = BadLines::default();
    let mut newest_first = Vec::new();
    for line in file.backwards(MESSAGES_BOUNDS)? {
        if newest_first.len() >= messages_max {
            break;
        }
        let records = bad_lines.values(&line?);
        newest_first.extend(records.iter().rev().filter_map(message_of));
    }
    newest_first.truncate(messages_max);
    newest_first.reverse();
    Ok((newest_first, bad_lines.message()))
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

/// What a session is doing, from its last record backwards: it is in a turn
/// from `TurnBegin` to `TurnEnd` (which is written after an interruption too),
/// and waits while a request of that turn has no answer.
#[derive(Default)]
struct PhaseFold {
    answered: HashSet<String>,
    is_in_turn: bool,
    answer: Option<(Option<Phase>, Option<WaitingFor>)>,
}

impl PhaseFold {
    fn add_backwards(&mut self, record: &Value) {
        if self.answer.is_some() || !is_of_conversation(record) {
            return;
        }
        let text = |pointer: &str| {
            payload(record)?
                .pointer(pointer)?
                .as_str()
                .map(str::to_owned)
        };
        match kind(record) {
            Some("TurnEnd" | "StepInterrupted") if !self.is_in_turn => {
                self.answer = Some((Some(Phase::Idle), None));
            }
            Some("TurnBegin" | "TurnEnd" | "StepInterrupted") => {
                self.answer = Some((Some(Phase::Working), None));
            }
            Some("ApprovalResponse" | "QuestionResponse") => {
                self.is_in_turn = true;
                self.answered.extend(text("/request_id"));
            }
            Some("ToolResult") => {
                self.is_in_turn = true;
                self.answered.extend(text("/tool_call_id"));
            }
            Some(request @ ("ApprovalRequest" | "QuestionRequest")) => {
                self.is_in_turn = true;
                let names = [text("/id"), text("/tool_call_id")];
                let is_answered = names
                    .iter()
                    .flatten()
                    .any(|name| self.answered.contains(name));
                if !is_answered {
                    let waiting_for = match request {
                        "ApprovalRequest" => WaitingFor::Permission,
                        _ => WaitingFor::Question,
                    };
                    self.answer = Some((Some(Phase::Waiting), Some(waiting_for)));
                }
            }
            _ => self.is_in_turn = true,
        }
    }

    /// A record could not be read. If it is the last, nothing is certain.
    fn skip_one(&mut self) {
        if !self.is_in_turn && self.answer.is_none() {
            self.answer = Some((None, None));
        }
    }

    fn finish(self) -> (Option<Phase>, Option<WaitingFor>) {
        let in_turn = self.is_in_turn.then_some(Phase::Working);
        self.answer.unwrap_or((in_turn, None))
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

/// What a person typed: a text, or parts some of which are text.
fn user_input(record: &Value) -> Option<String> {
    let input = payload(record)?.get("user_input")?;
    if let Some(text) = input.as_str() {
        return Some(text.to_owned());
    }
    let texts: Vec<&str> = input.as_array()?.iter().filter_map(part_text).collect();
    (!texts.is_empty()).then(|| texts.join("\n"))
}

fn part_text(part: &Value) -> Option<&str> {
    if part.get("type")?.as_str()? != "text" {
        return None;
    }
    part.get("text")?.as_str()
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests make their own files")]
mod tests {
    use super::*;

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
        let told = read(&file).expect("a wire file");
        assert_eq!((told.phase, told.waiting_for), right);
    }

    #[test]
    fn head_and_tail_tell_prompt_and_dates() {
        let status = record("1795813999.0", "StatusUpdate", "{}");
        let end = record("1795813161.3274434", "TurnEnd", "{}");
        let (_directory, file) = file_of(&[METADATA.to_owned(), begin(), end, status]);
        let told = read(&file).expect("a wire file");
        assert_eq!(told.prompt.as_deref(), Some("hello two"));
        assert_eq!(told.first_at_ms, Some(1_795_813_161_254));
        assert_eq!(told.last_at_ms, Some(1_795_813_161_327));
        assert_eq!(told.phase, Some(Phase::Idle));
        assert_eq!(told.problem, None);
        let dates = read_dates(&file).expect("dates");
        assert_eq!(dates, (told.first_at_ms, told.last_at_ms));
    }

    #[test]
    fn a_prompt_may_be_a_plain_text() {
        let begin = record("1.5", "TurnBegin", r#"{"user_input":"plain"}"#);
        let (_directory, file) = file_of(&[begin]);
        let told = read(&file).expect("a wire file");
        assert_eq!(told.prompt.as_deref(), Some("plain"));
        assert_eq!(told.first_at_ms, Some(1500));
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
        let told = read(&file).expect("a wire file");
        assert_eq!(told.phase, Some(Phase::Idle));
        assert_eq!(told.prompt.as_deref(), Some("hello two"));
        assert!(told.problem.is_some());
    }

    #[test]
    fn the_last_messages_come_oldest_first() {
        let said = record("3", "ContentPart", r#"{"type":"text","text":"hi"}"#);
        let thought = record("3", "ContentPart", r#"{"type":"think","think":"hm"}"#);
        let call = record("2", "ToolCall", r#"{"id":"c","function":{"name":"Shell"}}"#);
        let (_directory, file) = file_of(&[begin(), call, thought, said]);
        let (messages, problem) = messages(&file, 2).expect("messages");
        let texts: Vec<&str> = messages
            .iter()
            .map(|message| message.text.as_str())
            .collect();
        assert_eq!(texts, ["Shell", "hi"]);
        assert_eq!(problem, None);
    }
}
