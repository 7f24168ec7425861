//! The transcript: `agents/main/wire.jsonl`, one record a line after a line of
//! metadata.

use serde_json::Value;

use crate::adapter::phase::{Phase, WaitingFor};
use crate::adapter::{Message, MessageRole};
use crate::sources::agents::kit::kimi_wire::{
    Dialect, HEAD_BOUNDS, Step, part_text, text_of_input,
};
use crate::sources::transcript::{MissingEnd, TranscriptError, TranscriptFile};

/// How records of the conversation itself begin. The others say how the
/// session is set up, or count.
const CONVERSATION: &[&str] = &[
    "agent.message.",
    "agent.turn.",
    "context.append_",
    "interaction.",
    "prompt.",
    "turn.",
];

/// When things happened in a session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Dates {
    /// By the line of metadata.
    pub(super) created_at_ms: Option<i64>,
    /// Its first prompt.
    pub(super) prompted_at_ms: Option<i64>,
    /// Its last record of the conversation.
    pub(super) last_at_ms: Option<i64>,
    /// What is missing at its end.
    pub(super) missing_end: Option<MissingEnd>,
}

impl Dates {
    /// Until when it may have gone on, where its end is missing.
    pub(super) fn perhaps_until_ms(self) -> Option<i64> {
        self.missing_end.map(|end| end.until_ms)
    }
}

/// How Kimi Code names its records.
pub(super) const DIALECT: Dialect = Dialect {
    is_of_conversation,
    at_ms,
    born_at_ms: created_at_ms,
    prompt_of,
    model_of,
    step_of,
    phase_without_turn: Some(Phase::Idle),
};

/// Reads when it began, was prompted first, and had its last record.
pub(super) fn read_dates(file: &TranscriptFile) -> Result<Dates, TranscriptError> {
    let mut dates = Dates::default();
    let head = file.head(HEAD_BOUNDS)?;
    for record in head.lines.iter().flat_map(|line| line.json().values) {
        dates.created_at_ms = dates.created_at_ms.or_else(|| created_at_ms(&record));
        if kind(&record) == Some("turn.prompt") {
            dates.prompted_at_ms = at_ms(&record);
            break;
        }
    }
    dates.last_at_ms = DIALECT.last_at_ms(file)?;
    let last_at_ms = dates.last_at_ms.or(dates.created_at_ms);
    dates.missing_end = file.missing_end(last_at_ms, |record| {
        at_ms(record).or_else(|| created_at_ms(record))
    })?;
    Ok(dates)
}

/// The message that a record is, if it is one.
pub(super) fn messages_of(record: &Value) -> Vec<Message> {
    message_of(record).into_iter().collect()
}

fn message_of(record: &Value) -> Option<Message> {
    let (role, text) = match kind(record)? {
        "turn.prompt" => (MessageRole::User, prompt_of(record)?),
        "context.append_loop_event" => match text(record, "/event/type")? {
            "content.part" => {
                let part = part_text(record.pointer("/event/part")?)?;
                (MessageRole::Assistant, part.to_owned())
            }
            "tool.call" => (MessageRole::Tool, text(record, "/event/name")?.to_owned()),
            _ => return None,
        },
        _ => return None,
    };
    let at_ms = at_ms(record);
    (!text.trim().is_empty()).then_some(Message { role, at_ms, text })
}

/// What a record does to the turn.
fn step_of(record: &Value) -> Step {
    let own = |pointer: &str| text(record, pointer).map(str::to_owned);
    match kind(record) {
        Some("turn.prompt") => Step::Begun,
        Some("turn.ended" | "agent.turn.ended" | "prompt.completed" | "prompt.aborted") => {
            Step::Ended
        }
        Some("interaction.request") => Step::Asked {
            names: [own("/id"), own("/toolCallId")]
                .into_iter()
                .flatten()
                .collect(),
            waiting_for: match text(record, "/kind") {
                Some("approval") => Some(WaitingFor::Permission),
                Some("question") => Some(WaitingFor::Question),
                _ => None,
            },
        },
        Some("interaction.resolved") => Step::Answered(own("/id")),
        Some("context.append_loop_event") => match text(record, "/event/type") {
            Some("tool.result") => Step::Answered(own("/event/toolCallId")),
            _ => Step::Within,
        },
        Some("llm.request" | "agent.turn.started") => Step::Within,
        Some(kind) if kind.starts_with("turn.") => Step::Within,
        // Also what is put into the context between two turns.
        _ => Step::Aside,
    }
}

fn model_of(record: &Value) -> Option<String> {
    if kind(record)? != "llm.request" {
        return None;
    }
    text(record, "/model").map(str::to_owned)
}

fn kind(record: &Value) -> Option<&str> {
    record.get("type")?.as_str()
}

fn text<'a>(record: &'a Value, pointer: &str) -> Option<&'a str> {
    record.pointer(pointer)?.as_str()
}

fn is_of_conversation(record: &Value) -> bool {
    kind(record).is_some_and(|kind| CONVERSATION.iter().any(|its| kind.starts_with(its)))
}

/// The date of a record, in milliseconds since 1970.
fn at_ms(record: &Value) -> Option<i64> {
    record.get("time")?.as_i64().filter(|at| *at > 0)
}

fn created_at_ms(record: &Value) -> Option<i64> {
    if kind(record)? != "metadata" {
        return None;
    }
    record.get("created_at")?.as_i64().filter(|at| *at > 0)
}

fn prompt_of(record: &Value) -> Option<String> {
    if kind(record)? != "turn.prompt" {
        return None;
    }
    text_of_input(record.get("input")?)
}

#[cfg(test)]
#[path = "wire_tests.rs"]
mod tests;
