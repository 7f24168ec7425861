//! The transcript: `agents/main/wire.jsonl`, one record a line after a line of
//! metadata.

use serde_json::Value;

use crate::adapter::phase::{Phase, WaitingFor};
use crate::sources::agents::kit::dialect::{
    Dialect, HEAD_BOUNDS, Record, Step, TokenCount, count_at, find_first, text_at, texts_in,
    value_at,
};
use crate::sources::agents::kit::kimi_wire::{WRAPPING, tokens_in};
use crate::sources::transcript::{TranscriptError, TranscriptFile};
use crate::sources::usage::Counting;

/// Prefixes of records that belong to the conversation. Other records set up the session or
/// count tokens.
const CONVERSATION: &[&str] = &[
    "agent.message.",
    "agent.turn.",
    "context.append_",
    "interaction.",
    "prompt.",
    "turn.",
];
/// The `event` of records within a turn.
const LOOP: &str = "context.append_loop_event";

/// A fork begins with the whole wire file of the other session and this record (seen in Kimi
/// Code 2.1.0, 2026-11).
const FORKED: &str = "forked";

/// When things happened in a session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Dates {
    /// By the line of metadata.
    pub(super) created_at_ms: Option<i64>,
    /// Its first prompt.
    pub(super) prompted_at_ms: Option<i64>,
    /// Its last record of the conversation.
    pub(super) last_at_ms: Option<i64>,
    /// The latest possible date of a record, if the end of the file is missing.
    pub(super) perhaps_until_ms: Option<i64>,
}

/// How the counts of a request are called.
const COUNTS: [&str; 4] = [
    "/inputOther",
    "/inputCacheRead",
    "/inputCacheCreation",
    "/output",
];

/// How Kimi Code names its records.
pub(super) const DIALECT: Dialect = Dialect {
    wrapping: WRAPPING,
    phase_without_turn: Some(Phase::Idle),
    ..Dialect::of(record_of)
};

pub(super) const COUNTING: Counting = Counting::of(
    &DIALECT,
    &[
        "\"step.end\"",
        "\"llm.request\"",
        "\"metadata\"",
        "\"forked\"",
    ],
);

fn record_of(record: &Value) -> Record<'_> {
    let kind = text_at(record, "/type").unwrap_or_default();
    let text = |pointer: &str| text_at(record, pointer);
    let born_at_ms = created_at_ms(record);
    let mut found = Record {
        at_ms: at_ms(record).or(born_at_ms),
        is_aside: !CONVERSATION.iter().any(|prefix| kind.starts_with(prefix)),
        born_at_ms,
        ends_copy: kind == FORKED,
        step: step_of(record),
        ..Record::default()
    };
    match (kind, text("/event/type").unwrap_or_default()) {
        ("turn.prompt", _) if is_of_a_person(record) => {
            found.typed = texts_in(record.get("input")).collect();
        }
        ("llm.request", _) => found.model = text("/model"),
        (LOOP, "content.part") => found.reply = texts_in(value_at(record, "/event/part")).collect(),
        (LOOP, "tool.call") => found.calls.extend(text("/event/name")),
        (LOOP, "step.end") => {
            let usage = value_at(record, "/event/usage");
            found.tokens = usage.map(|usage| tokens_in(usage, COUNTS));
        }
        (_, _) if kind.starts_with("token_counting.") => {
            found.tokens = Some(TokenCount {
                context: count_at(record, "/tokens"),
                ..TokenCount::default()
            });
        }
        _ => {}
    }
    found
}

/// Reads the dates of the start, the first prompt and the last record.
pub(super) fn read_dates(file: &TranscriptFile) -> Result<Dates, TranscriptError> {
    let created_at_ms = find_first(file, HEAD_BOUNDS, created_at_ms)?;
    let prompted = find_first(file, HEAD_BOUNDS, |record| {
        let is_prompt = text_at(record, "/type")? == "turn.prompt" && is_of_a_person(record);
        is_prompt.then(|| at_ms(record))
    })?;
    let last_at_ms = DIALECT.last_at_ms(file)?;
    let missing = DIALECT.missing_end(file, last_at_ms.or(created_at_ms))?;
    Ok(Dates {
        created_at_ms,
        prompted_at_ms: prompted.flatten(),
        last_at_ms,
        perhaps_until_ms: missing.map(|end| end.until_ms),
    })
}

fn step_of(record: &Value) -> Step<'_> {
    let text = |pointer: &str| text_at(record, pointer);
    match text("/type").unwrap_or_default() {
        "turn.prompt" => Step::Begun,
        "turn.ended" | "agent.turn.ended" | "prompt.completed" | "prompt.aborted" => Step::Ended,
        "interaction.request" => Step::Asked {
            names: [text("/id"), text("/toolCallId")],
            waiting_for: match text("/kind") {
                Some("approval") => Some(WaitingFor::Permission),
                Some("question") => Some(WaitingFor::Question),
                _ => None,
            },
        },
        "interaction.resolved" => Step::Answered([text("/id"), None]),
        LOOP if text("/event/type") == Some("tool.result") => {
            Step::Answered([text("/event/toolCallId"), None])
        }
        LOOP | "llm.request" | "agent.turn.started" => Step::Within,
        kind if kind.starts_with("turn.") => Step::Within,
        // Also records that are added to the context between two turns.
        _ => Step::Aside,
    }
}

/// A person sent the prompt. Others come from timers, background tasks, skills or Kimi Code
/// itself; earlier releases do not record from where.
fn is_of_a_person(prompt: &Value) -> bool {
    text_at(prompt, "/origin/kind").is_none_or(|kind| kind == "user")
}

/// The date of a record, in milliseconds since 1970.
fn at_ms(record: &Value) -> Option<i64> {
    record.get("time")?.as_i64().filter(|at| *at > 0)
}

fn created_at_ms(record: &Value) -> Option<i64> {
    if text_at(record, "/type")? != "metadata" {
        return None;
    }
    record.get("created_at")?.as_i64().filter(|at| *at > 0)
}

#[cfg(test)]
#[path = "wire_tests.rs"]
mod tests;
