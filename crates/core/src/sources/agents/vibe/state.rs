//! What a conversation is doing, and what was said in it.
//!
//! The state is that of the newest generation, and in the journal behind it
//! the last one that was written (`projection_delta` with `set_envelope`). A
//! question to the person is a record of its own there (`callback_registered`)
//! until its answer (`callback_resolved`). Seen in mistral-vibe 3.0.2, 2026-11.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::store::{Failure, Generation, of_newest, read_meta};
use super::tokens::Counts;
use crate::adapter::phase::{Phase, WaitingFor};
use crate::adapter::{Message, MessageRole};
use crate::sources::agents::kit::bad_lines::BadLines;
use crate::sources::agents::kit::one_per_session::Said;
use crate::sources::agents::kit::prompt::{FirstWords, Wrapping};
use crate::sources::agents::kit::title::one_line;
use crate::sources::transcript::{TailBounds, TranscriptError, TranscriptFile};

/// How far back a journal is read for the last state.
const STATE_BOUNDS: TailBounds = TailBounds {
    bytes_max: 4 * 1024 * 1024,
};
/// How far back it is read for messages.
const MESSAGES_BOUNDS: TailBounds = TailBounds {
    bytes_max: 16 * 1024 * 1024,
};
/// How long the text of a message is at most, in characters.
const TEXT_CHARS_MAX: usize = 20_000;

/// What a conversation is doing, and is called.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct State {
    pub(super) title: Option<String>,
    /// The first prompt.
    pub(super) preview: Option<String>,
    pub(super) phase: Option<Phase>,
    pub(super) waiting_for: Option<WaitingFor>,
    /// The date of the last record, which is as of this phase.
    pub(super) phase_at_ms: Option<i64>,
    pub(super) created_at_ms: Option<i64>,
    pub(super) updated_at_ms: Option<i64>,
    /// What it counts.
    pub(super) counts: Counts,
    /// Why some lines of the journal told nothing.
    pub(super) problem: Option<(PathBuf, String)>,
}

/// Reads the last state of a session; `Ok(None)` if it has none yet.
///
/// # Errors
///
/// The file, and why it can't be read.
pub(super) fn read(session: &Path) -> Result<Option<State>, (PathBuf, String)> {
    of_newest(session, |generation| {
        let mut fold = Fold::default();
        let mut bad_lines = BadLines::default();
        let journal = open(&generation.journal)?;
        let failed = |error| failure(&generation.journal, &error);
        for line in journal.backwards(STATE_BOUNDS).map_err(failed)? {
            for record in bad_lines.values(&line.map_err(failed)?).iter().rev() {
                fold.add_backwards(record);
            }
            if fold.envelope.is_some() {
                break;
            }
        }
        let envelope = match fold.envelope.take() {
            Some(envelope) => envelope,
            None => generation.state()?,
        };
        let mut state = fold.finish(&envelope);
        let problem = bad_lines.message();
        state.problem = problem.map(|message| (generation.journal.clone(), message));
        Ok(state)
    })
}

fn open(path: &Path) -> Result<TranscriptFile, Failure> {
    TranscriptFile::open(path).map_err(|error| failure(path, &error))
}

fn failure(path: &Path, error: &TranscriptError) -> Failure {
    match error {
        TranscriptError::File(error) => Failure::of_file(path, error),
        other => Failure::new(path, other.reason()),
    }
}

/// The records of a journal, from the last one backwards.
#[derive(Debug, Default)]
struct Fold {
    resolved: BTreeSet<String>,
    /// What is still asked.
    asked: Option<WaitingFor>,
    last_at_ms: Option<i64>,
    envelope: Option<Value>,
}

impl Fold {
    fn add_backwards(&mut self, record: &Value) {
        if self.envelope.is_some() {
            return;
        }
        let payload = record.get("payload").unwrap_or(&Value::Null);
        let text = |key: &str| payload.get(key).and_then(Value::as_str);
        match record.get("type").and_then(Value::as_str) {
            Some("callback_resolved") => {
                self.resolved.extend(text("callback_id").map(str::to_owned));
            }
            Some("callback_registered") => {
                self.ask(text("callback_id"), text("kind"));
                let at = payload
                    .pointer("/routing/updatedAt")
                    .and_then(Value::as_i64);
                self.last_at_ms = self.last_at_ms.max(at);
            }
            Some("projection_delta") => {
                let steps = payload.get("delta").and_then(Value::as_array);
                let envelope =
                    steps.into_iter().flatten().rev().find(|step| {
                        step.get("op").and_then(Value::as_str) == Some("set_envelope")
                    });
                self.envelope = envelope.and_then(|step| step.get("state")).cloned();
            }
            _ => {}
        }
    }

    /// A question that nobody has answered since.
    fn ask(&mut self, id: Option<&str>, kind: Option<&str>) {
        if self.asked.is_none() && !id.is_some_and(|id| self.resolved.contains(id)) {
            self.asked = asked_for(kind);
        }
    }

    fn finish(mut self, envelope: &Value) -> State {
        let callbacks = envelope.get("activeCallbacks").and_then(Value::as_array);
        for callback in callbacks.into_iter().flatten() {
            let text = |key: &str| callback.get(key).and_then(Value::as_str);
            let kind = callback.pointer("/detail/kind").and_then(Value::as_str);
            self.ask(text("callbackId").or(text("id")), text("kind").or(kind));
        }
        let session = envelope.get("session").unwrap_or(&Value::Null);
        let line = |key: &str| session.get(key).and_then(Value::as_str).and_then(one_line);
        let date = |key: &str| session.get(key).and_then(Value::as_i64);
        let status = session.get("status").unwrap_or(&Value::Null);
        let mut phase = match status.get("type").and_then(Value::as_str) {
            Some("idle" | "failed") => Some(Phase::Idle),
            Some("running") => Some(Phase::Working),
            Some("blocked") => {
                let kind = status.get("callbackKind").and_then(Value::as_str);
                self.asked = self.asked.or(asked_for(kind));
                Some(Phase::Waiting)
            }
            _ => None,
        };
        if self.asked.is_some() {
            phase = Some(Phase::Waiting);
        }
        State {
            title: line("title"),
            preview: {
                let mut words = FirstWords::default();
                words.add(
                    session.get("preview").and_then(Value::as_str),
                    &Wrapping::NONE,
                );
                words.title()
            },
            phase,
            waiting_for: self.asked,
            phase_at_ms: date("updatedAt").max(self.last_at_ms),
            created_at_ms: date("createdAt"),
            updated_at_ms: date("updatedAt").max(self.last_at_ms),
            counts: Counts::of(envelope),
            problem: None,
        }
    }
}

/// Reads what a session counts; `Ok(None)` if it counts nothing, or if it is a fork.
///
/// # Errors
///
/// The file, and why it can't be read.
pub(super) fn counted(session: &Path, id: &str) -> Result<Option<Value>, (PathBuf, String)> {
    let kind = of_newest(session, Generation::kind)?.flatten();
    if kind.as_deref() == Some("fork") {
        return Ok(None);
    }
    let model = read_meta(session, id)?.and_then(|meta| meta.model);
    Ok(read(session)?.and_then(|state| state.counts.record(model)))
}

/// Only these two are put to a person; hooks and tools have callbacks as well.
fn asked_for(kind: Option<&str>) -> Option<WaitingFor> {
    match kind {
        Some("approval") => Some(WaitingFor::Permission),
        Some("user_input") => Some(WaitingFor::Question),
        _ => None,
    }
}

/// Reads what was said in a session. Nothing has a title before its first prompt.
pub(super) fn said(session: &Path) -> Said {
    let id = session.file_name().and_then(|name| name.to_str());
    let read = || -> Result<Said, (PathBuf, String)> {
        let meta = read_meta(session, id.unwrap_or_default())?.unwrap_or_default();
        Ok(Said {
            has_words: meta.title.is_some() || !messages(session, 1)?.is_empty(),
            last_at_ms: meta.last_at_ms,
        })
    };
    read().unwrap_or(Said::UNREADABLE)
}

/// Reads the last messages of a session, oldest first.
///
/// # Errors
///
/// The file, and why it can't be read.
pub(super) fn messages(
    session: &Path,
    messages_max: usize,
) -> Result<Vec<Message>, (PathBuf, String)> {
    let newest_first = of_newest(session, |generation| {
        newest_messages(generation, messages_max)
    })?;
    let mut messages = newest_first.unwrap_or_default();
    messages.reverse();
    Ok(messages)
}

fn newest_messages(generation: &Generation, messages_max: usize) -> Result<Vec<Message>, Failure> {
    let mut history = History::default();
    let journal = open(&generation.journal)?;
    let failed = |error| failure(&generation.journal, &error);
    for line in journal.backwards(MESSAGES_BOUNDS).map_err(failed)? {
        let records = line.map_err(failed)?.json().values;
        for record in records.iter().rev() {
            let steps = record.pointer("/payload/delta").and_then(Value::as_array);
            for step in steps.into_iter().flatten().rev() {
                history.undo(step);
            }
        }
        if history.is_complete || history.newest_first.len() >= messages_max {
            break;
        }
    }
    for chunk in generation.chunks() {
        if history.is_complete || history.newest_first.len() >= messages_max {
            break;
        }
        for entry in chunk?.into_iter().rev() {
            history.add(&id_of(&entry), &entry);
        }
    }
    history.newest_first.truncate(messages_max);
    Ok(history.newest_first)
}

/// The entries of a conversation, from the last one backwards.
#[derive(Debug, Default)]
struct History {
    newest_first: Vec<Message>,
    /// What stands in an entry's place by now; nothing, if it was removed.
    replaced: BTreeMap<String, Option<Value>>,
    /// Nothing that is older counts any more.
    is_complete: bool,
}

impl History {
    fn undo(&mut self, step: &Value) {
        if self.is_complete {
            return;
        }
        let id = || step.get("id").and_then(Value::as_str).map(str::to_owned);
        let entry = step.get("entry");
        match (step.get("op").and_then(Value::as_str), entry, id()) {
            (Some("append_entry"), Some(entry), _) => self.add(&id_of(entry), entry),
            (Some("replace_entry"), Some(entry), id) => {
                let id = id.unwrap_or_else(|| id_of(entry));
                self.replaced
                    .entry(id)
                    .or_insert_with(|| Some(entry.clone()));
            }
            (Some("remove_entry"), _, Some(id)) => {
                self.replaced.entry(id).or_insert(None);
            }
            (Some("set_history_entries"), ..) => {
                let entries = step.get("entries").and_then(Value::as_array);
                for entry in entries.into_iter().flatten().rev() {
                    self.add(&id_of(entry), entry);
                }
                self.is_complete = true;
            }
            _ => {}
        }
    }

    fn add(&mut self, id: &str, entry: &Value) {
        let message = match self.replaced.remove(id) {
            Some(newer) => newer.as_ref().and_then(message_of),
            None => message_of(entry),
        };
        self.newest_first.extend(message);
    }
}

fn id_of(entry: &Value) -> String {
    let id = entry.get("id").and_then(Value::as_str);
    id.unwrap_or_default().to_owned()
}

fn message_of(entry: &Value) -> Option<Message> {
    let text = |key: &str| entry.get(key).and_then(Value::as_str);
    let (role, text) = match text("type")? {
        "message" => {
            let role = match text("role")? {
                "user" => MessageRole::User,
                "assistant" => MessageRole::Assistant,
                _ => return None,
            };
            let parts = entry.get("content")?.as_array()?.iter();
            let parts: Vec<&str> = parts
                .filter(|part| part.get("type").and_then(Value::as_str) == Some("text"))
                .filter_map(|part| part.get("text").and_then(Value::as_str))
                .collect();
            (role, parts.join("\n"))
        }
        "effect" => {
            let name = entry.pointer("/detail/toolName")?.as_str()?;
            (MessageRole::Tool, name.to_owned())
        }
        _ => return None,
    };
    (!text.trim().is_empty()).then(|| Message {
        role,
        at_ms: entry.get("createdAt").and_then(Value::as_i64),
        text: text.chars().take(TEXT_CHARS_MAX).collect(),
    })
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests make their own files")]
#[path = "state_tests.rs"]
mod tests;
