//! What a chat tells of its session when somebody wants to see it.

use std::collections::HashSet;
use std::path::Path;

use serde_json::Value;

use super::chat::read_object;
use super::message::{self, Kind, Record};
use crate::adapter::phase::Phase;
use crate::adapter::{Description, Message, MessageRole};
use crate::sources::agents::kit::bad_lines::BadLines;
use crate::sources::agents::kit::prompt::{FirstWords, Wrapping};
use crate::sources::agents::kit::title::one_line;
use crate::sources::transcript::{HeadBounds, Stopped, TailBounds, TranscriptFile};

/// How much of the beginning is read for the first prompt.
const HEAD_BOUNDS: HeadBounds = HeadBounds {
    bytes_max: 1024 * 1024,
    lines_max: 64,
};
/// How far back from the end is read for what was last.
const LAST_BOUNDS: TailBounds = TailBounds {
    bytes_max: 1024 * 1024,
};
/// How far back a summary is looked for: there may be none.
const SUMMARY_BYTES: u64 = 64 * 1024;
/// How far back messages are looked for.
const MESSAGES_BOUNDS: TailBounds = TailBounds {
    bytes_max: 16 * 1024 * 1024,
};

/// What the last records say.
#[derive(Debug, Default)]
struct Last {
    at_ms: Option<i64>,
    summary: Option<String>,
    model: Option<String>,
    /// Decided, and perhaps to be nothing certain.
    phase: Option<Option<Phase>>,
    /// The date of the record that decided.
    phase_at_ms: Option<i64>,
}

impl Last {
    fn add_backwards(&mut self, value: &Value) {
        self.at_ms = self.at_ms.or_else(|| message::last_date(value));
        if self.summary.is_none() {
            self.summary = message::summary_in(value).and_then(one_line);
        }
        let is_rewound = value.get("$rewindTo").is_some();
        if is_rewound && self.phase.is_none() {
            self.phase = Some(Some(Phase::Idle));
        }
        let Some(record) = Record::of(value) else {
            return;
        };
        if let Kind::Reply { model, .. } = &record.kind {
            self.model = self.model.take().or_else(|| model.clone());
        }
        if self.phase.is_none() {
            self.phase = phase_after(&record.kind);
            self.phase_at_ms = self.phase.and(record.at_ms);
        }
    }

    /// A record could not be read. If it is the last, nothing is certain.
    fn skip_one(&mut self) {
        self.phase = self.phase.or(Some(None));
    }

    const fn is_enough(&self) -> bool {
        self.at_ms.is_some() && self.model.is_some() && self.phase.is_some()
    }
}

/// What is certain after a message, the last one: `None` if it says nothing,
/// `Some(None)` if it may be two things.
///
/// A prompt and the answers of tools are on their way to the model. A reply is
/// recorded before the tools that it calls, and these only once they are done:
/// so after a reply the turn has ended, or a tool runs, or a person is asked.
/// (What the terminal's title says is not in doubt.)
fn phase_after(kind: &Kind) -> Option<Option<Phase>> {
    match kind {
        Kind::Prompt { .. } | Kind::ToolResults => Some(Some(Phase::Working)),
        Kind::Cancelled | Kind::Error => Some(Some(Phase::Idle)),
        Kind::Reply { .. } => Some(None),
        Kind::Context | Kind::Notice => None,
    }
}

/// Reads head and tail of the chat at `path`. The text is a problem with it.
pub(super) fn describe(path: &Path) -> Result<(Description, Option<String>), String> {
    let (mut of_tail, mut of_head) = (BadLines::default(), BadLines::default());
    let (last, first_records) = if is_object(path) {
        let object = read_object(path)?;
        let records = message::messages_in(&object).to_vec();
        let mut last = Last::default();
        last.add_backwards(&object);
        records
            .iter()
            .rev()
            .for_each(|record| last.add_backwards(record));
        (last, [vec![object], records].concat())
    } else {
        let file = TranscriptFile::open(path).map_err(|error| error.reason())?;
        let last = read_last(&file, &mut of_tail)?;
        let head = file.head(HEAD_BOUNDS).map_err(|error| error.reason())?;
        let records = head
            .lines
            .iter()
            .flat_map(|line| of_head.values(line))
            .collect();
        (last, records)
    };
    let mut found = Description {
        transcript: Some(path.to_owned()),
        started_at_ms: first_records
            .iter()
            .find_map(|record| message::date_at(record, "startTime")),
        last_activity_at_ms: last.at_ms,
        model: last.model,
        // Nothing was said yet: it waits for that.
        phase: last.phase.unwrap_or(Some(Phase::Idle)),
        phase_at_ms: last.phase_at_ms,
        ..Description::default()
    };
    let mut words = FirstWords::default();
    for record in &first_records {
        add_words(record, &mut words);
    }
    let prompt = words.title();
    found.model = found.model.or_else(|| last_model_in(&first_records));
    found.is_title_a_prompt = last.summary.is_none() && prompt.is_some();
    found.title = last.summary.or(prompt);
    Ok((found, of_tail.message().or_else(|| of_head.message())))
}

fn read_last(file: &TranscriptFile, bad_lines: &mut BadLines) -> Result<Last, String> {
    let mut last = Last::default();
    let end = file.facts().len;
    let mut lines = file
        .backwards(LAST_BOUNDS)
        .map_err(|error| error.reason())?;
    for line in lines.by_ref() {
        let line = line.map_err(|error| error.reason())?;
        if line.is_too_long() {
            last.skip_one();
        }
        for record in bad_lines.values(&line).iter().rev() {
            last.add_backwards(record);
        }
        if last.is_enough() && end.saturating_sub(line.offset) >= SUMMARY_BYTES {
            break;
        }
    }
    if lines.stopped() == Some(Stopped::BytesMax) {
        last.skip_one();
    }
    Ok(last)
}

/// A file of an earlier version, which is one JSON object.
fn is_object(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| extension == "json")
}

/// Adds the prompts in a record: it may be one, or have the whole conversation.
fn add_words(value: &Value, words: &mut FirstWords) {
    let records = std::iter::once(value).chain(message::messages_in(value));
    for record in records.filter_map(Record::of) {
        if let Kind::Prompt { text } = record.kind
            && !text.starts_with('?')
        {
            words.add([text.as_str()], &Wrapping::NONE);
        }
    }
}

fn last_model_in(records: &[Value]) -> Option<String> {
    let mut newest_first = records.iter().rev();
    newest_first.find_map(|value| match Record::of(value)?.kind {
        Kind::Reply { model, .. } => model,
        _ => None,
    })
}

/// Reads the last messages, oldest first. The text is a problem with them.
pub(super) fn messages(
    path: &Path,
    messages_max: usize,
) -> Result<(Vec<Message>, Option<String>), String> {
    let mut bad_lines = BadLines::default();
    let mut newest_first = Vec::new();
    // A message that is written again has more in it.
    let mut seen = HashSet::new();
    if is_object(path) {
        let object = read_object(path)?;
        for record in message::messages_in(&object).iter().rev() {
            newest_first.extend(messages_of(record, &mut seen));
        }
    } else {
        let file = TranscriptFile::open(path).map_err(|error| error.reason())?;
        for line in file
            .backwards(MESSAGES_BOUNDS)
            .map_err(|error| error.reason())?
        {
            if newest_first.len() >= messages_max {
                break;
            }
            let line = line.map_err(|error| error.reason())?;
            for record in bad_lines.values(&line).iter().rev() {
                newest_first.extend(messages_of(record, &mut seen));
            }
        }
    }
    newest_first.truncate(messages_max);
    newest_first.reverse();
    Ok((newest_first, bad_lines.message()))
}

/// The messages of a record, newest first.
fn messages_of(value: &Value, seen: &mut HashSet<String>) -> Vec<Message> {
    let Some(record) = Record::of(value).filter(|record| seen.insert(record.id.clone())) else {
        return Vec::new();
    };
    let at_ms = record.at_ms;
    let message = |role, text: String| {
        let is_said = !text.trim().is_empty();
        is_said.then_some(Message { role, at_ms, text })
    };
    match record.kind {
        Kind::Prompt { text } => message(MessageRole::User, text).into_iter().collect(),
        Kind::Reply { text, tools, .. } => {
            let called = tools
                .into_iter()
                .rev()
                .filter_map(|tool| message(MessageRole::Tool, tool));
            called
                .chain(message(MessageRole::Assistant, text))
                .collect()
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests make their own files")]
#[path = "transcript_tests.rs"]
mod tests;
