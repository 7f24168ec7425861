//! One chat file: `chats/session-MINUTE-ID8.jsonl`.
//!
//! The first line is a header (`sessionId`, `startTime`, `kind`), then come messages and
//! changes of the whole (`$set`). When a session is resumed, its id is set once more, and a
//! second, empty file by the new minute appears; in the same minute that is the same file,
//! which then has a second header. A later start of Gemini CLI may add a summary, which has
//! no date; every other record has a date. It also removes the files of sessions without
//! messages, even of running ones: the next message then makes the file anew, without a
//! header. Seen in Gemini CLI 0.61.0, 2026-11.

use std::cmp::Reverse;
use std::path::{Path, PathBuf};

use serde_json::Value;
use whosup_sidecar::SessionId;
use whosup_sidecar::file::{Links, read_regular};

use super::message::{self, DIALECT};
use crate::sources::agents::kit::dialect::{self, Step, date_at};
use crate::sources::agents::kit::document::parse_document;
use crate::sources::agents::kit::one_per_session::Said;
use crate::sources::transcript::{
    HeadBounds, LONG_LINES_BYTES_MAX, MissingEnd, Stopped, TailBounds, TranscriptError,
    TranscriptFile,
};

/// How much of the beginning is read for the header. There may be blank lines before it, or
/// NUL bytes that a crash has left.
const HEADER_BOUNDS: HeadBounds = HeadBounds {
    bytes_max: 64 * 1024,
    lines_max: 64,
};
/// How far back from the end prompts are looked for.
const PROMPTS_BOUNDS: TailBounds = TailBounds {
    bytes_max: 256 * 1024,
};
/// How many prompts of a file are remembered.
const PROMPTS_MAX: usize = 200;
/// How long a file of an earlier version may be, which is one JSON object.
pub(super) const OBJECT_BYTES_MAX: u64 = 16 << 20;
/// How long the minute in a file's name is: `2026-11-27T20-53`.
const MINUTE_CHARS: usize = 16;
/// How much of an id stands in a file's name.
pub(super) const ID_CHARS_IN_NAME: usize = 8;
/// The last date that a name may have: the end of the year 9999.
const DATE_MS_MAX: i64 = 253_402_300_799_999;

/// A chat file's name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ChatName {
    pub(super) file: String,
    /// When the minute in it began; of an imported session the very moment.
    pub(super) minute_ms: Option<i64>,
    /// The beginning of the session's id.
    pub(super) id_begins: String,
}

impl ChatName {
    /// `None` for names that are no chats of sessions.
    pub(super) fn parse(file: &str) -> Option<Self> {
        let stem = file.strip_prefix("session-")?;
        let stem = stem
            .strip_suffix(".jsonl")
            .or_else(|| stem.strip_suffix(".json"))?;
        let (at_ms, id_begins) = match stem.get(..MINUTE_CHARS).and_then(minute_ms) {
            Some(at_ms) => (at_ms, stem.get(MINUTE_CHARS..)?.strip_prefix('-')?),
            None => {
                let (millis, rest) = stem.split_once('-')?;
                let at_ms = millis.parse().ok()?;
                let is_date = (0..=DATE_MS_MAX).contains(&at_ms);
                is_date.then_some((at_ms, rest))?
            }
        };
        (!id_begins.is_empty()).then(|| Self {
            file: file.to_owned(),
            minute_ms: Some(at_ms),
            id_begins: id_begins.to_owned(),
        })
    }
}

/// It is of a version that kept one JSON object.
pub(super) fn is_object(path: &Path) -> bool {
    path.extension() == Some("json".as_ref())
}

/// `2026-11-27T20-53`, by UTC.
fn minute_ms(text: &str) -> Option<i64> {
    let (date, time) = text.split_once('T')?;
    let (hour, minute) = time.split_once('-')?;
    dialect::date_of(&format!("{date}T{hour}:{minute}:00Z"))
}

/// The first line of a chat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) id: SessionId,
    pub(super) started_at_ms: Option<i64>,
    pub(super) is_subagent: bool,
}

/// Facts of a chat file that help to find the owner process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ChatFacts {
    pub(super) header: Option<Header>,
    /// When processes began the session or took it up, by headers in this file.
    pub(super) starts_ms: Vec<i64>,
    /// The date inside the last record that has one.
    pub(super) last_at_ms: Option<i64>,
    /// What is missing at its end.
    pub(super) missing_end: Option<MissingEnd>,
    /// The last prompts, newest first, and when they were sent.
    pub(super) prompts: Vec<(String, i64)>,
    /// The chat has a prompt or a reply.
    pub(super) has_conversation: bool,
}

/// Reads the header alone.
pub(super) fn read_header(path: &Path) -> Result<Option<Header>, String> {
    if is_object(path) {
        return Ok(header_in(&read_object(path)?));
    }
    let file = TranscriptFile::open(path).map_err(|error| error.reason())?;
    header_of(&file).map_err(|error| error.reason())
}

/// Reads the facts of a chat file that help to find the owner process.
pub(super) fn read_facts(path: &Path) -> Result<ChatFacts, String> {
    if !is_object(path) {
        return read_lines(path).map_err(|error| error.reason());
    }
    let object = read_object(path)?;
    let mut facts = ChatFacts::begun(header_in(&object));
    facts.last_at_ms = date_at(&object, "/lastUpdated");
    for record in message::messages_in(&object).iter().rev() {
        facts.add(record);
    }
    Ok(facts)
}

fn read_lines(path: &Path) -> Result<ChatFacts, TranscriptError> {
    let file = TranscriptFile::open(path)?;
    let mut facts = ChatFacts::begun(header_of(&file)?);
    let lines = file.backwards(PROMPTS_BOUNDS)?;
    let mut lines = lines.through_long_lines(LONG_LINES_BYTES_MAX);
    for line in lines.by_ref() {
        for record in file.shortened(line?)?.json().values.iter().rev() {
            facts.last_at_ms = facts.last_at_ms.or_else(|| message::last_date(record));
            if let Some(header) = header_in(record) {
                facts.starts_ms.extend(header.started_at_ms);
                facts.header.get_or_insert(header);
            }
            facts.add(record);
        }
        if facts.prompts.len() >= PROMPTS_MAX {
            break;
        }
    }
    facts.missing_end = file.missing_end(facts.last_at_ms, date_of)?;
    // So much was not written about nothing.
    facts.has_conversation |= lines.stopped() == Some(Stopped::BytesMax);
    Ok(facts)
}

/// Returns whether a chat file of any kind has messages, and the date of the last message.
pub(super) fn said(path: &Path) -> Said {
    read_facts(path).map_or(Said::UNREADABLE, |facts| Said {
        has_words: facts.has_conversation,
        last_at_ms: facts.last_at_ms,
    })
}

/// The date of any record, the header included.
fn date_of(record: &Value) -> Option<i64> {
    message::last_date(record).or_else(|| header_in(record)?.started_at_ms)
}

impl ChatFacts {
    /// The facts in the first header.
    pub(super) fn begun(header: Option<Header>) -> Self {
        let started_at_ms = header.as_ref().and_then(|header| header.started_at_ms);
        Self {
            header,
            starts_ms: started_at_ms.into_iter().collect(),
            ..Self::default()
        }
    }

    fn add(&mut self, value: &Value) {
        let record = (DIALECT.record)(value);
        self.has_conversation |= record.step != Step::Aside;
        if let (Some(text), Some(at_ms)) = (DIALECT.prompt_of(value), record.at_ms) {
            self.prompts.push((text, at_ms));
        }
    }
}

fn header_of(file: &TranscriptFile) -> Result<Option<Header>, TranscriptError> {
    let first = dialect::find_first(file, HEADER_BOUNDS, |record| Some(header_in(record)))?;
    Ok(first.flatten())
}

fn header_in(record: &Value) -> Option<Header> {
    let text = |key: &str| record.get(key).and_then(Value::as_str);
    // Messages do not have this id. Some releases leave the hash of the project out.
    text("projectHash").or_else(|| text("startTime"))?;
    Some(Header {
        id: SessionId::parse(text("sessionId")?).ok()?,
        started_at_ms: date_at(record, "/startTime"),
        is_subagent: text("kind") == Some("subagent"),
    })
}

/// Reads a file of an earlier version.
pub(super) fn read_object(path: &Path) -> Result<Value, String> {
    let file =
        read_regular(path, OBJECT_BYTES_MAX, Links::Follow).map_err(|error| error.reason())?;
    parse_document(&file.bytes)
}

/// One session by its files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Chat {
    pub(super) id: SessionId,
    /// The file that has the messages; `None` if another start has removed it and no prompt
    /// came since.
    pub(super) path: Option<PathBuf>,
    /// When processes began or resumed it, by the headers of its files.
    pub(super) starts_ms: Vec<i64>,
    /// The minute in which a process began it, where its file has lost the header.
    pub(super) minute_ms: Option<i64>,
    pub(super) last_at_ms: Option<i64>,
    /// The latest possible date of a record, if the end of the file is missing.
    pub(super) perhaps_until_ms: Option<i64>,
    /// The same if a torn record shows it. (A later start adds a summary, without a date, to
    /// intact files.)
    pub(super) torn_until_ms: Option<i64>,
    pub(super) prompts: Vec<(String, i64)>,
    pub(super) has_conversation: bool,
}

impl Chat {
    /// A session with nothing known but its name.
    pub(super) const fn new(id: SessionId) -> Self {
        Self {
            id,
            path: None,
            starts_ms: Vec::new(),
            minute_ms: None,
            last_at_ms: None,
            perhaps_until_ms: None,
            torn_until_ms: None,
            prompts: Vec::new(),
            has_conversation: false,
        }
    }

    /// When it was born: by a header, else the minute in its file's name.
    pub(super) fn born_at_ms(&self) -> Option<i64> {
        let starts_ms = self.starts_ms.iter().copied();
        starts_ms.chain(self.minute_ms).min()
    }

    /// Adds the facts of one of its files.
    pub(super) fn add(&mut self, facts: ChatFacts) {
        self.last_at_ms = self.last_at_ms.max(facts.last_at_ms);
        let end = facts.missing_end;
        self.perhaps_until_ms = self.perhaps_until_ms.max(end.map(|end| end.until_ms));
        let torn = end.filter(|end| end.is_torn);
        self.torn_until_ms = self.torn_until_ms.max(torn.map(|end| end.until_ms));
        self.has_conversation |= facts.has_conversation;
        self.starts_ms.extend(facts.starts_ms);
        self.starts_ms.sort_unstable();
        self.starts_ms.dedup();
        self.prompts.extend(facts.prompts);
        self.prompts.sort_by_key(|(_, at_ms)| Reverse(*at_ms));
    }

    /// Its file is gone, or was made anew without a header: Gemini CLI itself
    /// does not find it.
    pub(super) const fn was_removed(&self) -> bool {
        self.minute_ms.is_some() || self.path.is_none()
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests make their own files")]
#[path = "chat_tests.rs"]
mod tests;
