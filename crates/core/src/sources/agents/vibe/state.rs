//! What a conversation is doing, and what was said in it.
//!
//! The state is that of the newest generation, and in the journal behind it
//! the last one that was written (`projection_delta` with `set_envelope`). A
//! question to the person is a record of its own there (`callback_registered`)
//! until its answer (`callback_resolved`). Seen in mistral-vibe 3.0.2, 2026-11.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;

use super::AGENT;
use super::store::{Failure, Generation, is_of_kind, of_newest, read_meta};
use super::tokens::Counts;
use crate::adapter::phase::{Phase, WaitingFor};
use crate::adapter::{Message, MessageRole};
use crate::machine::problem::Problem;
use crate::sources::agents::kit::bad_lines::BadLines;
use crate::sources::agents::kit::dialect::{message, text_at, value_at, values_at};
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
    /// Why some lines of the journal had no use.
    pub(super) problem: Option<Problem>,
}

/// Reads the last state of a session; `Ok(None)` if it has none yet.
///
/// # Errors
///
/// The file, and why it can't be read.
pub(super) fn read(session: &Path) -> Result<Option<State>, Problem> {
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
        let message = bad_lines.message();
        Ok(State {
            problem: message.map(|message| Problem::at(&AGENT, &generation.journal, message)),
            ..fold.finish(&envelope)
        })
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
        let id = value_at(record, "/payload/callback_id").and_then(Value::as_str);
        match text_at(record, "/type") {
            Some("callback_resolved") => self.resolved.extend(id.map(str::to_owned)),
            Some("callback_registered") => {
                self.ask(id, text_at(record, "/payload/kind"));
                let at = value_at(record, "/payload/routing/updatedAt");
                self.last_at_ms = self.last_at_ms.max(at.and_then(Value::as_i64));
            }
            Some("projection_delta") => {
                let is_envelope = |step: &&Value| text_at(step, "/op") == Some("set_envelope");
                let envelope = values_at(record, "/payload/delta").rev().find(is_envelope);
                self.envelope = envelope.and_then(|step| step.get("state")).cloned();
            }
            _ => {}
        }
    }

    /// A question without an answer.
    fn ask(&mut self, id: Option<&str>, kind: Option<&str>) {
        if self.asked.is_none() && !id.is_some_and(|id| self.resolved.contains(id)) {
            self.asked = asked_for(kind);
        }
    }

    fn finish(mut self, envelope: &Value) -> State {
        for callback in values_at(envelope, "/activeCallbacks") {
            let text = |place: &str| value_at(callback, place).and_then(Value::as_str);
            let kind = text("/kind").or(text("/detail/kind"));
            self.ask(text("/callbackId").or(text("/id")), kind);
        }
        let text = |place: &str| text_at(envelope, place);
        let date = |place: &str| value_at(envelope, place).and_then(Value::as_i64);
        let mut phase = match text("/session/status/type") {
            Some("idle" | "failed") => Some(Phase::Idle),
            Some("running") => Some(Phase::Working),
            Some("blocked") => {
                let kind = text("/session/status/callbackKind");
                self.asked = self.asked.or(asked_for(kind));
                Some(Phase::Waiting)
            }
            _ => None,
        };
        if self.asked.is_some() {
            phase = Some(Phase::Waiting);
        }
        let mut words = FirstWords::default();
        words.add(text("/session/preview"), &Wrapping::NONE);
        let updated_at_ms = date("/session/updatedAt").max(self.last_at_ms);
        State {
            title: text("/session/title").and_then(one_line),
            preview: words.title(),
            phase,
            waiting_for: self.asked,
            phase_at_ms: updated_at_ms,
            created_at_ms: date("/session/createdAt"),
            updated_at_ms,
            counts: Counts::of(envelope),
            problem: None,
        }
    }
}

/// Reads the record that counts for a session; there is none if it is a fork.
///
/// # Errors
///
/// The file, and why it can't be read.
pub(super) fn counted(session: &Path, id: &str) -> Result<Vec<Value>, Problem> {
    if is_of_kind(session, "fork")? {
        return Ok(Vec::new());
    }
    let model = read_meta(session, id)?.and_then(|meta| meta.model);
    let record = read(session)?.and_then(|state| state.counts.record(model));
    Ok(record.into_iter().collect())
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
    let read = || -> Result<Said, Problem> {
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
pub(super) fn messages(session: &Path, messages_max: usize) -> Result<Vec<Message>, Problem> {
    let read = |generation: &Generation| newest_messages(generation, messages_max);
    let mut messages = of_newest(session, read)?.unwrap_or_default();
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
            for step in values_at(record, "/payload/delta").rev() {
                history.undo(step);
            }
        }
        if history.is_enough(messages_max) {
            break;
        }
    }
    for chunk in generation.chunks() {
        if history.is_enough(messages_max) {
            break;
        }
        for entry in chunk?.iter().rev() {
            history.add(entry);
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
    fn is_enough(&self, messages_max: usize) -> bool {
        self.is_complete || self.newest_first.len() >= messages_max
    }

    fn undo(&mut self, step: &Value) {
        if self.is_complete {
            return;
        }
        let id = || step.get("id").and_then(Value::as_str).map(str::to_owned);
        let entry = step.get("entry");
        match (text_at(step, "/op"), entry, id()) {
            (Some("append_entry"), Some(entry), _) => self.add(entry),
            (Some("replace_entry"), Some(entry), id) => {
                let id = id.unwrap_or_else(|| id_of(entry).to_owned());
                let newer = self.replaced.entry(id);
                newer.or_insert_with(|| Some(entry.clone()));
            }
            (Some("remove_entry"), _, Some(id)) => {
                self.replaced.entry(id).or_insert(None);
            }
            (Some("set_history_entries"), ..) => {
                for entry in values_at(step, "/entries").rev() {
                    self.add(entry);
                }
                self.is_complete = true;
            }
            _ => {}
        }
    }

    fn add(&mut self, entry: &Value) {
        let message = match self.replaced.remove(id_of(entry)) {
            Some(newer) => newer.as_ref().and_then(message_of),
            None => message_of(entry),
        };
        self.newest_first.extend(message);
    }
}

fn id_of(entry: &Value) -> &str {
    text_at(entry, "/id").unwrap_or_default()
}

fn message_of(entry: &Value) -> Option<Message> {
    let (role, text) = match text_at(entry, "/type")? {
        "message" => {
            let role = match text_at(entry, "/role")? {
                "user" => MessageRole::User,
                "assistant" => MessageRole::Assistant,
                _ => return None,
            };
            let parts = entry.get("content")?.as_array()?.iter();
            let parts = parts.filter(|part| text_at(part, "/type") == Some("text"));
            let texts = parts.filter_map(|part| part.get("text")?.as_str());
            (role, texts.collect::<Vec<_>>().join("\n"))
        }
        "effect" => {
            let name = text_at(entry, "/detail/toolName")?;
            (MessageRole::Tool, name.to_owned())
        }
        _ => return None,
    };
    let at_ms = entry.get("createdAt").and_then(Value::as_i64);
    (!text.trim().is_empty()).then(|| message(role, at_ms, &text))
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests make their own files")]
#[path = "state_tests.rs"]
mod tests;
