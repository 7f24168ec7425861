//! The transcript: `events.jsonl`, one event a line.
//!
//! `{"type":"assistant.turn_end","data":{…},"id":"…","timestamp":"…","parentId":"…"}`;
//! those of a sub-agent have an `agentId` as well. The file comes with the
//! first prompt and is not held open. Seen in Copilot CLI 1.0.102, 2026-11.

use std::path::PathBuf;

use jiff::Timestamp;
use serde_json::Value;

use super::turn::Turn;
use crate::adapter::phase::{Phase, WaitingFor};
use crate::adapter::{Message, MessageRole};
use crate::sources::agents::kit::bad_lines::BadLines;
use crate::sources::agents::kit::prompt::{FirstWords, Wrapping};
use crate::sources::transcript::{HeadBounds, TailBounds, TranscriptError, TranscriptFile};

/// How much of the beginning is read for the first prompt.
const HEAD_BOUNDS: HeadBounds = HeadBounds {
    bytes_max: 1024 * 1024,
    lines_max: 64,
};
/// How far back from the end is read for what was last.
const LAST_BOUNDS: TailBounds = TailBounds {
    bytes_max: 1024 * 1024,
};
/// How far back a change of directory is looked for: there may be none.
const CONTEXT_BYTES: u64 = 128 * 1024;
/// How far back messages are looked for.
const MESSAGES_BOUNDS: TailBounds = TailBounds {
    bytes_max: 16 * 1024 * 1024,
};

/// What Copilot itself puts where a prompt stands.
const WRAPPING: Wrapping = Wrapping {
    elements: &["current_datetime", "reminder", "skill-context"],
    notices: &[],
};

/// What the last events say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Last {
    /// The date inside the last event.
    pub(super) at_ms: Option<i64>,
    pub(super) model: Option<String>,
    pub(super) work_dir: Option<PathBuf>,
    pub(super) branch: Option<String>,
    pub(super) version: Option<String>,
    pub(super) phase: Option<Phase>,
    pub(super) waiting_for: Option<WaitingFor>,
    /// The date of the newest event that shows this phase.
    pub(super) phase_at_ms: Option<i64>,
    /// The date of the event that began it.
    pub(super) phase_since_ms: Option<i64>,
}

impl Last {
    /// Reads back from the end until what it looks for is known.
    pub(super) fn read(
        file: &TranscriptFile,
        bad_lines: &mut BadLines,
    ) -> Result<Self, TranscriptError> {
        let mut last = Self::default();
        let mut turn = Turn::default();
        let end = file.facts().len;
        for line in file.backwards(LAST_BOUNDS)? {
            let line = line?;
            if line.is_too_long() {
                turn.skip_one();
            }
            for event in bad_lines.values(&line).iter().rev() {
                last.add(event);
                if !is_of_subagent(event) {
                    turn.add_backwards(event, at_ms(event));
                }
            }
            let is_far = end.saturating_sub(line.offset) >= CONTEXT_BYTES;
            if last.is_enough() && turn.is_decided() && (is_far || last.work_dir.is_some()) {
                break;
            }
        }
        (last.phase_at_ms, last.phase_since_ms) = turn.dates();
        (last.phase, last.waiting_for) = turn.finish();
        Ok(last)
    }

    fn add(&mut self, event: &Value) {
        self.at_ms = self.at_ms.or_else(|| at_ms(event));
        if is_of_subagent(event) {
            return;
        }
        let context = match kind(event) {
            Some("session.start" | "session.resume") => "/data/context",
            Some("session.context_changed") => "/data",
            _ => "",
        };
        if !context.is_empty() && self.work_dir.is_none() {
            let text = |key: &str| text_at(event, &format!("{context}/{key}"));
            self.work_dir = text("cwd")
                .map(PathBuf::from)
                .filter(|path| path.is_absolute());
            self.branch = text("branch");
        }
        if self.version.is_none() {
            self.version = text_at(event, "/data/copilotVersion");
        }
        if self.model.is_none() {
            self.model = model_of(event);
        }
    }

    const fn is_enough(&self) -> bool {
        self.at_ms.is_some() && self.model.is_some()
    }
}

/// What the first events say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct First {
    /// When the session began.
    pub(super) started_at_ms: Option<i64>,
    /// The first prompt, on one line.
    pub(super) prompt: Option<String>,
    /// The last model near the beginning, for an end that names none.
    pub(super) model: Option<String>,
    pub(super) version: Option<String>,
}

impl First {
    pub(super) fn read(
        file: &TranscriptFile,
        bad_lines: &mut BadLines,
    ) -> Result<Self, TranscriptError> {
        let mut first = Self::default();
        let mut words = FirstWords::default();
        let head = file.head(HEAD_BOUNDS)?;
        for event in head.lines.iter().flat_map(|line| bad_lines.values(line)) {
            first.started_at_ms = first.started_at_ms.or_else(|| {
                let began = parse_ms(event.pointer("/data/startTime")?);
                began.or_else(|| at_ms(&event))
            });
            if first.version.is_none() {
                first.version = text_at(&event, "/data/copilotVersion");
            }
            if let Some(text) = prompt_of(&event) {
                words.add([text.as_str()], &WRAPPING);
            }
            first.model = model_of(&event).or(first.model);
        }
        first.prompt = words.title();
        Ok(first)
    }
}

/// Reads the last messages, oldest first.
pub(super) fn messages(
    file: &TranscriptFile,
    messages_max: usize,
    bad_lines: &mut BadLines,
) -> Result<Vec<Message>, TranscriptError> {
    let mut newest_first = Vec::new();
    for line in file.backwards(MESSAGES_BOUNDS)? {
        if newest_first.len() >= messages_max {
            break;
        }
        let events = bad_lines.values(&line?);
        newest_first.extend(events.iter().rev().filter_map(message_of));
    }
    newest_first.truncate(messages_max);
    newest_first.reverse();
    Ok(newest_first)
}

fn message_of(event: &Value) -> Option<Message> {
    if is_of_subagent(event) {
        return None;
    }
    let (role, text) = match kind(event)? {
        "user.message" => (MessageRole::User, prompt_of(event)?),
        "assistant.message" => (MessageRole::Assistant, text_at(event, "/data/content")?),
        "tool.execution_start" => (MessageRole::Tool, text_at(event, "/data/toolName")?),
        _ => return None,
    };
    let at_ms = at_ms(event);
    (!text.trim().is_empty()).then_some(Message { role, at_ms, text })
}

fn prompt_of(event: &Value) -> Option<String> {
    if kind(event) != Some("user.message") || is_of_subagent(event) {
        return None;
    }
    WRAPPING.typed_in(event.pointer("/data/content").and_then(Value::as_str))
}

fn model_of(event: &Value) -> Option<String> {
    if is_of_subagent(event) {
        return None;
    }
    match kind(event) {
        Some("assistant.message") => text_at(event, "/data/model"),
        Some("session.model_change") => text_at(event, "/data/newModel"),
        Some("session.start" | "session.resume") => text_at(event, "/data/selectedModel"),
        _ => None,
    }
}

pub(super) fn kind(event: &Value) -> Option<&str> {
    event.get("type")?.as_str()
}

pub(super) fn text_at(event: &Value, pointer: &str) -> Option<String> {
    let text = event.pointer(pointer)?.as_str()?;
    (!text.is_empty()).then(|| text.to_owned())
}

fn at_ms(event: &Value) -> Option<i64> {
    parse_ms(event.get("timestamp")?)
}

fn parse_ms(value: &Value) -> Option<i64> {
    let at: Timestamp = value.as_str()?.parse().ok()?;
    Some(at.as_millisecond())
}

fn is_of_subagent(event: &Value) -> bool {
    event.get("agentId").is_some_and(|id| !id.is_null())
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests make their own files")]
#[path = "events_tests.rs"]
mod tests;
