//! Describes a session from its transcript.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use serde_json::Value;
use whosup_sidecar::SessionId;

use super::line::{DIALECT, OPENING_LINES_MAX, WRAPPING, dialect_of, is_sidechain};
use super::projects::is_folder_of;
use super::{AGENT, subagents};
use crate::adapter::phase::Phase;
use crate::adapter::{Description, Sketch};
use crate::machine::problem::Found;
use crate::sources::agents::kit::bad_lines::LineReader;
use crate::sources::agents::kit::dialect::{Record, Step, is_missing, joined, text_at};
use crate::sources::agents::kit::prompt::{command_in, is_command};
use crate::sources::agents::kit::reading::found_at;
use crate::sources::agents::kit::title::one_line;
use crate::sources::transcript::{
    HeadBounds, Line, LineJson, LineProblem, Lines, Stopped, TailBounds, TranscriptError,
    TranscriptFile,
};

/// How much of a transcript is read first to classify it, in bytes: enough for a usual first
/// prompt.
const OPENING_BYTES: u64 = 8 * 1024;
/// How much is read when that was not enough.
const OPENING_BYTES_MAX: u64 = 256 * 1024;

/// Facts from the first lines of a transcript.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Opening {
    /// The first directory in it that its folder is named after: there the session can be
    /// resumed. Else the first directory in it.
    pub(super) work_dir: Option<PathBuf>,
    /// The date of its first record.
    pub(super) born_at_ms: Option<i64>,
    /// It is the conversation of a sub-agent alone.
    pub(super) is_sidechain: bool,
    /// The session that its records name.
    pub(super) session: Option<SessionId>,
    /// Whether it has messages.
    pub(super) words: Words,
}

/// Whether a transcript has messages. If several transcripts have one id, the session's is
/// the one with messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) enum Words {
    /// It is whole, and nothing was: a stub, as is left in another folder by
    /// going there.
    None,
    /// It is empty or broken, or its first lines do not show it.
    #[default]
    Unknown,
    /// Something was.
    Some,
}

impl Opening {
    /// It is intact and has no messages.
    pub(super) fn is_without_words(&self) -> bool {
        self.words == Words::None
    }
}

/// Reads the beginning of a transcript.
///
/// # Errors
///
/// [`TranscriptError`] if it can't be read.
pub(super) fn read_opening(path: &Path) -> Result<Opening, TranscriptError> {
    let file = TranscriptFile::open(path)?;
    let folder = path.parent().unwrap_or(path);
    let mut opening = Opening::default();
    for bytes_max in [OPENING_BYTES, OPENING_BYTES_MAX] {
        let bounds = HeadBounds {
            bytes_max,
            lines_max: OPENING_LINES_MAX,
        };
        let head = file.head(bounds)?;
        opening = opening_of(&head, folder);
        if opening.work_dir.is_some() || head.stopped == Stopped::NothingLeft {
            break;
        }
    }
    Ok(opening)
}

fn opening_of(head: &Lines, folder: &Path) -> Opening {
    let lines: Vec<LineJson> = head.lines.iter().map(Line::json).collect();
    let values: Vec<&Value> = lines.iter().flat_map(|line| &line.values).collect();
    let has_words = |value: &&Value| matches!(text_at(value, "/type"), Some("user" | "assistant"));
    let has_bad_lines = lines.iter().any(|line| line.bad_count > 0);
    let is_whole = head.stopped == Stopped::NothingLeft && !has_bad_lines;
    let session_of = |value: &&Value| SessionId::parse(text_at(value, "/sessionId")?).ok();
    let records: Vec<Record<'_>> = values.iter().map(|value| (DIALECT.record)(value)).collect();
    let work_dir_of = |record: &Record<'_>| record.work_dir.map(PathBuf::from);
    let directories = || records.iter().filter_map(work_dir_of);
    // A shell's `cd` shows in the records too.
    let of_folder = directories().find(|directory| is_folder_of(folder, directory));
    let work_dir = of_folder.or_else(|| directories().next());
    // Releases 1.x wrote the records of sub-agents into the session's own transcript.
    let sides: Vec<bool> = values
        .iter()
        .filter_map(|value| is_sidechain(value))
        .collect();
    Opening {
        work_dir,
        born_at_ms: records.iter().filter_map(|record| record.at_ms).min(),
        is_sidechain: !sides.is_empty() && !sides.contains(&false),
        session: values.iter().find_map(session_of),
        words: match values.iter().any(has_words) {
            true => Words::Some,
            false if is_whole && !values.is_empty() => Words::None,
            false => Words::Unknown,
        },
    }
}

/// The last date of a session, by its transcript.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Last {
    /// The date inside its last record.
    pub(super) record_at_ms: Option<i64>,
    /// The latest possible date of a record, if the end of the file is missing.
    pub(super) perhaps_until_ms: Option<i64>,
}

/// Reads when a session was last.
///
/// # Errors
///
/// [`TranscriptError`] if its transcript can't be read.
pub(super) fn read_last(path: &Path) -> Result<Last, TranscriptError> {
    let file = TranscriptFile::open(path)?;
    let record_at_ms = DIALECT.last_at_ms(&file)?;
    let missing = DIALECT.missing_end(&file, record_at_ms)?;
    Ok(Last {
        record_at_ms,
        perhaps_until_ms: missing.map(|end| end.until_ms),
    })
}

/// When the turn of a sub-agent ended; `None` if the last record does not end it.
///
/// # Errors
///
/// [`TranscriptError`] if its transcript can't be read.
pub(super) fn read_end(path: &Path) -> Result<Option<i64>, TranscriptError> {
    let file = TranscriptFile::open(path)?;
    for line in file.backwards(TailBounds::default())? {
        let line = line?;
        let json = line.json();
        if line.is_torn || line.is_too_long() || json.bad_count > 0 {
            return Ok(None);
        }
        let mut newest_first = json.values.iter().rev().map(DIALECT.record);
        if let Some(last) = newest_first.find(|record| record.step != Step::Aside) {
            let has_ended = last.step == Step::Shows(Some(Phase::Idle));
            return Ok(last.at_ms.filter(|_| has_ended));
        }
    }
    Ok(None)
}

/// Reads the description of a session from its transcript.
pub(super) fn describe(sketch: &Sketch, path: &Path) -> Found<Description> {
    match read_description(sketch, path) {
        Ok(described) => described,
        Err(error) if is_missing(&error) => Found::default(),
        Err(error) => found_at(&AGENT, path, Description::default(), Some(error.reason())),
    }
}

fn read_description(sketch: &Sketch, path: &Path) -> Result<Found<Description>, TranscriptError> {
    let file = TranscriptFile::open(path)?;
    let mut reader = Conversation {
        is_sub_agent: sketch.parent.is_some(),
        ..Conversation::default()
    };
    let dialect = dialect_of(sketch.is_headless);
    let tail = dialect.tail(&file, &mut reader)?;
    let head = dialect.head(&file, &mut reader)?;
    // A `cd` in its shell, which its record in the registry does not follow (seen in
    // Claude Code 2.1.197, 2026-11), by what a process has written that began then.
    let began_at_ms = sketch.started_at_ms;
    let has_moved = began_at_ms.is_none_or(|began| tail.last_activity_at_ms >= Some(began))
        && tail.work_dir.is_some()
        && tail.work_dir != head.work_dir;
    let problem = reader.problem();
    let mut found = joined(tail, head);
    found.is_headless = sketch.is_headless.or(found.is_headless);
    if reader.titles.custom.is_none() && sketch.parent.is_none() {
        reader.titles.custom = custom_title(path);
    }
    reader.titles.add_to(&mut found);
    if !has_moved {
        found.work_dir = sketch.work_dir.clone().or(found.work_dir);
    }
    if sketch.parent.is_some() {
        // Its only turn is its whole task.
        if found.phase == Some(Phase::Idle) {
            found.phase = Some(Phase::Ended);
        }
        found.title = subagents::title(path).or(found.title);
        found.is_title_a_prompt = false;
    }
    Ok(found_at(&AGENT, path, found, problem))
}

/// The title that a person gave the session of a transcript, which stands in the session's
/// folder too (seen in Claude Code 2.1.332, 2026-11).
fn custom_title(transcript: &Path) -> Option<String> {
    let path = transcript.with_extension("").join("custom-title.json");
    subagents::text_in(&path, &["customTitle"])
}

/// The records of one conversation: of a sub-agent, or of a person.
#[derive(Debug, Default)]
struct Conversation {
    is_sub_agent: bool,
    titles: Titles,
    /// Lines that can't be read, by where they begin: both ends of a short file are the
    /// same lines.
    bad_lines: BTreeMap<u64, LineProblem>,
}

impl Conversation {
    fn problem(&self) -> Option<String> {
        let (offset, first) = self.bad_lines.first_key_value()?;
        Some(match self.bad_lines.len() {
            1 => format!("the line at offset {offset} can't be read: {first}"),
            count => {
                format!("{count} lines can't be read, the first one at offset {offset}: {first}")
            }
        })
    }
}

impl LineReader for Conversation {
    fn values(&mut self, line: &Line) -> Vec<Value> {
        let json = line.json();
        match json.problem {
            // Being written, or too long to be held: both are usual.
            None | Some(LineProblem::Torn | LineProblem::TooLong { .. }) => {}
            Some(problem) => {
                self.bad_lines.entry(line.offset).or_insert(problem);
            }
        }
        let is_of_it =
            |record: &Value| is_sidechain(record).unwrap_or(self.is_sub_agent) == self.is_sub_agent;
        let mut records = json.values;
        records.retain(is_of_it);
        records.iter().for_each(|record| self.titles.add(record));
        records
    }

    fn wants_more(&self) -> bool {
        self.titles.is_summary_open()
    }
}

/// Titles, the best first.
#[derive(Debug, Default)]
struct Titles {
    /// Given by a person.
    custom: Option<String>,
    agent_name: Option<String>,
    /// Made by a model.
    made: Option<String>,
    /// Summaries, with the record that each ends with.
    summaries: Vec<(String, Option<String>)>,
    last_prompt: Option<String>,
    /// The last command with arguments.
    last_command: Option<String>,
    /// The records that were read.
    records: HashSet<String>,
}

impl Titles {
    /// The summary of this conversation. Older releases store summaries of other sessions
    /// here too; each summary names the last record that it covers.
    fn summary(&self) -> Option<&String> {
        let is_here = |leaf: &String| self.records.contains(leaf);
        let mut summaries = self.summaries.iter();
        let own = summaries.find(|(_, leaf)| leaf.as_ref().is_some_and(is_here));
        own.map(|(summary, _)| summary)
    }

    /// It has a summary that may be of this conversation, as far as was read.
    fn is_summary_open(&self) -> bool {
        !self.summaries.is_empty() && self.summary().is_none()
    }

    /// Adds a record: first the records of the end, newest first.
    fn add(&mut self, record: &Value) {
        let text = |pointer: &str| text_at(record, pointer);
        self.records.extend(text("/uuid").map(str::to_owned));
        let line = |pointer: &str| text(pointer).and_then(one_line);
        match text("/type") {
            Some("custom-title") => keep(&mut self.custom, line("/customTitle")),
            Some("agent-name") => keep(&mut self.agent_name, line("/agentName")),
            Some("ai-title") => keep(&mut self.made, line("/aiTitle")),
            Some("summary") => {
                let leaf = text("/leafUuid").map(str::to_owned);
                let summary = line("/summary");
                self.summaries.extend(summary.map(|text| (text, leaf)));
            }
            Some("last-prompt") => {
                let text = text("/lastPrompt").unwrap_or_default();
                keep(&mut self.last_command, command_in(text));
                let typed = WRAPPING.typed(text).filter(|text| !is_command(text));
                keep(&mut self.last_prompt, typed.and_then(one_line));
            }
            _ => {}
        }
    }

    /// Chooses the title among these and the first prompt or command, which is known.
    fn add_to(self, found: &mut Description) {
        let summary = self.summary().cloned();
        let given = self.custom.or(self.agent_name).or(self.made).or(summary);
        found.is_title_a_prompt = given.is_none();
        let (prompt, command) = match found.title.take() {
            Some(title) if is_command(&title) => (None, Some(title)),
            prompt => (prompt, None),
        };
        let words = prompt.or(self.last_prompt).or(command);
        found.title = given.or(words).or(self.last_command);
    }
}

fn keep(kept: &mut Option<String>, found: Option<String>) {
    if kept.is_none() {
        *kept = found;
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests make their own files")]
#[path = "transcript_tests.rs"]
mod tests;
