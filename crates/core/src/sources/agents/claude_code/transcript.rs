//! What a transcript tells of its session.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use serde_json::Value;
use whosup_sidecar::SessionId;

use super::line::{Record, WRAPPING, title_of};
use super::projects::is_folder_of;
use super::record::is_headless_entrypoint;
use super::{AGENT, subagents};
use crate::adapter::phase::{Phase, WaitingFor};
use crate::adapter::{Description, Sketch};
use crate::machine::problem::{Found, Problem};
use crate::sources::agents::kit::prompt::{FirstWords, command_in, is_command};
use crate::sources::transcript::{
    HeadBounds, Line, LineProblem, Lines, STEP_BYTES, Stopped, TailBounds, TranscriptError,
    TranscriptFile,
};

/// How much of a transcript is read first to see what it is, in bytes: enough
/// for a usual first prompt.
const OPENING_BYTES: u64 = 8 * 1024;
/// How much is read when that was not enough.
const OPENING_BYTES_MAX: u64 = 256 * 1024;
/// How many lines are read to see what a transcript is. A fork begins with one
/// line for each of its parent's snapshots.
const OPENING_LINES_MAX: usize = 256;

/// How much of the beginning is read for the first prompt.
const HEAD: HeadBounds = HeadBounds {
    bytes_max: 1024 * 1024,
    lines_max: OPENING_LINES_MAX,
};

/// What the beginning of a transcript tells.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Opening {
    /// The directory that its first record names and that its folder is
    /// called after; else the first one.
    pub(super) work_dir: Option<PathBuf>,
    /// The date of its first record.
    pub(super) born_at_ms: Option<i64>,
    /// It is the conversation of a sub-agent.
    pub(super) is_sidechain: bool,
    /// The session that its records name.
    pub(super) session: Option<SessionId>,
    /// Whether anything was said in it.
    pub(super) words: Words,
}

/// Whether anything was said in a transcript; of several with one id the one
/// with words is the session's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) enum Words {
    /// It is whole, and nothing was: a stub, as is left in another folder by
    /// going there.
    None,
    /// It is empty or broken, or its beginning does not say.
    #[default]
    Unknown,
    /// Something was.
    Some,
}

impl Opening {
    /// It is whole, and nothing was ever said in it.
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
    let bounds = |bytes_max| HeadBounds {
        bytes_max,
        lines_max: OPENING_LINES_MAX,
    };
    let head = file.head(bounds(OPENING_BYTES))?;
    let opening = opening_of(&head, folder);
    if opening.work_dir.is_some() || head.stopped == Stopped::NothingLeft {
        return Ok(opening);
    }
    Ok(opening_of(&file.head(bounds(OPENING_BYTES_MAX))?, folder))
}

fn opening_of(head: &Lines, folder: &Path) -> Opening {
    let mut opening = Opening::default();
    let mut has_words = false;
    let mut has_bad_lines = false;
    let mut has_lines = false;
    for line in &head.lines {
        let json = line.json();
        has_bad_lines |= json.bad_count > 0;
        for value in &json.values {
            let record = Record(value);
            has_lines = true;
            has_words |= matches!(record.kind(), "user" | "assistant");
            opening.is_sidechain |= record.is_sidechain() == Some(true);
            let at = record.at_ms();
            opening.born_at_ms = opening.born_at_ms.into_iter().chain(at).min();
            if opening.session.is_none() {
                let named = record
                    .text("sessionId")
                    .and_then(|id| SessionId::parse(id).ok());
                opening.session = named;
            }
            if let Some(cwd) = record.text("cwd").map(Path::new) {
                choose_directory(&mut opening.work_dir, cwd, folder);
            }
        }
    }
    let is_whole = head.stopped == Stopped::NothingLeft && !has_bad_lines;
    opening.words = match has_words {
        true => Words::Some,
        false if is_whole && has_lines => Words::None,
        false => Words::Unknown,
    };
    opening
}

/// Keeps the directory that the folder is called after: the one that the
/// session can be resumed in. A shell's `cd` shows in the records too.
fn choose_directory(chosen: &mut Option<PathBuf>, told: &Path, folder: &Path) {
    let is_better = match chosen {
        None => true,
        Some(chosen) => !is_folder_of(folder, chosen) && is_folder_of(folder, told),
    };
    if is_better {
        *chosen = Some(told.to_owned());
    }
}

/// When a session was last, by its transcript.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Last {
    /// The date inside its last record.
    pub(super) record_at_ms: Option<i64>,
    /// Until when it may have gone on, where its end is missing.
    pub(super) perhaps_until_ms: Option<i64>,
}

/// Reads when a session was last.
///
/// # Errors
///
/// [`TranscriptError`] if its transcript can't be read.
pub(super) fn read_last(path: &Path) -> Result<Last, TranscriptError> {
    let file = TranscriptFile::open(path)?;
    let record_at_ms = last_record_at_ms(&file)?;
    let missing = file.missing_end(record_at_ms, |record| Record(record).at_ms())?;
    Ok(Last {
        record_at_ms,
        perhaps_until_ms: missing.map(|end| end.until_ms),
    })
}

/// When the turn of a sub-agent ended; `None` if its last record does not say
/// that it has.
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
        let mut newest_first = json.values.iter().rev().map(Record);
        let last = newest_first.find_map(|record| Some((record, record.phase(false)?)));
        if let Some((record, phase)) = last {
            return Ok(record.at_ms().filter(|_| phase == Some(Phase::Idle)));
        }
    }
    Ok(None)
}

fn last_record_at_ms(file: &TranscriptFile) -> Result<Option<i64>, TranscriptError> {
    for line in file.backwards(TailBounds::default())? {
        let json = line?.json();
        let newest = json
            .values
            .iter()
            .filter_map(|value| Record(value).at_ms())
            .max();
        if newest.is_some() {
            return Ok(newest);
        }
    }
    Ok(None)
}

/// Reads what a transcript tells of its session.
pub(super) fn describe(sketch: &Sketch, path: PathBuf) -> Found<Description> {
    match read_description(sketch, &path) {
        Ok(mut described) => {
            described.found.transcript = Some(path);
            described
        }
        Err(TranscriptError::File(error)) if is_gone(&error) => Found::default(),
        Err(error) => Found {
            found: Description::default(),
            problems: vec![Problem::at(&AGENT, &path, error.reason())],
        },
    }
}

fn is_gone(error: &whosup_sidecar::file::ReadFileError) -> bool {
    matches!(error, whosup_sidecar::file::ReadFileError::NotFound { .. })
}

fn read_description(sketch: &Sketch, path: &Path) -> Result<Found<Description>, TranscriptError> {
    let file = TranscriptFile::open(path)?;
    let mut telling = Telling {
        is_sub_agent: sketch.parent.is_some(),
        is_headless: sketch.is_headless,
        ..Telling::default()
    };
    telling.read_tail(&file)?;
    telling.read_head(&file)?;
    let problems = telling.bad_lines.problem(path).into_iter().collect();
    let has_moved = telling.has_moved_since(sketch.started_at_ms);
    let mut found = telling.into_description();
    if !has_moved {
        found.work_dir = sketch.work_dir.clone().or(found.work_dir);
    }
    if sketch.parent.is_some() {
        // Its one turn is its whole task.
        found.phase = found.phase.map(|phase| match phase {
            Phase::Idle => Phase::Ended,
            other => other,
        });
        found.title = subagents::title(path).or(found.title);
        found.is_title_a_prompt = false;
    }
    Ok(Found { found, problems })
}

/// What has been told so far: by the end of the file first, so that what is
/// known already is newer.
#[derive(Debug, Default)]
struct Telling {
    is_sub_agent: bool,
    is_headless: Option<bool>,
    titles: Titles,
    model: Option<String>,
    /// The last model in the beginning of the file, for an end that is all progress.
    first_model: Option<String>,
    version: Option<String>,
    branch: Option<String>,
    /// The directory of its first record that has one.
    first_dir: Option<PathBuf>,
    /// The directory of its last record that has one.
    work_dir: Option<PathBuf>,
    first_at_ms: Option<i64>,
    last_at_ms: Option<i64>,
    phase: Option<Option<Phase>>,
    phase_at_ms: Option<i64>,
    bad_lines: BadLines,
}

/// Lines that can't be read, by where they begin: both ends of a short file
/// are the same lines.
#[derive(Debug, Default)]
struct BadLines(BTreeMap<u64, LineProblem>);

impl BadLines {
    fn problem(&self, path: &Path) -> Option<Problem> {
        let (offset, first) = self.0.first_key_value()?;
        let count = self.0.len();
        let message = match count {
            1 => format!("the line at offset {offset} can't be read: {first}"),
            _ => format!("{count} lines can't be read, the first one at offset {offset}: {first}"),
        };
        Some(Problem::at(&AGENT, path, message))
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
    first_words: FirstWords,
    last_prompt: Option<String>,
    /// The last command with arguments.
    last_command: Option<String>,
    /// The records that were read.
    records: HashSet<String>,
}

impl Titles {
    /// The summary of this conversation. Older releases keep those of other
    /// sessions here too; each names the last record that it is about.
    fn summary(&self) -> Option<&String> {
        let is_own = |leaf: &Option<String>| {
            leaf.as_ref()
                .is_some_and(|leaf| self.records.contains(leaf))
        };
        let mut own = self.summaries.iter().filter(|(_, leaf)| is_own(leaf));
        own.next().map(|(summary, _)| summary)
    }

    /// It has a summary that may be of this conversation, as far as was read.
    fn is_summary_open(&self) -> bool {
        !self.summaries.is_empty() && self.summary().is_none()
    }
}

impl Telling {
    /// Reads back from the end until nothing more is to be learned there. Titles
    /// are written again at the end now and then, so one step tells them.
    fn read_tail(&mut self, file: &TranscriptFile) -> Result<(), TranscriptError> {
        let len = file.facts().len;
        for line in file.backwards(TailBounds::default())? {
            let line = line?;
            let read_bytes = len.saturating_sub(line.offset);
            let values = self.values_of(&line);
            for record in values.iter().rev().map(Record) {
                if record.is_of(self.is_sub_agent) {
                    record.add_to_tail(self);
                }
            }
            let is_enough = self.model.is_some()
                && self.work_dir.is_some()
                && self.phase.is_some()
                && !self.titles.is_summary_open();
            if is_enough && read_bytes >= STEP_BYTES as u64 {
                break;
            }
        }
        Ok(())
    }

    fn read_head(&mut self, file: &TranscriptFile) -> Result<(), TranscriptError> {
        for line in &file.head(HEAD)?.lines {
            let values = self.values_of(line);
            for record in values.iter().map(Record) {
                if record.is_of(self.is_sub_agent) {
                    record.add_to_head(self);
                }
            }
        }
        Ok(())
    }

    fn values_of(&mut self, line: &Line) -> Vec<Value> {
        let json = line.json();
        match json.problem {
            // Being written, or too long to be held: both are usual.
            None | Some(LineProblem::Torn | LineProblem::TooLong { .. }) => {}
            Some(problem) => {
                self.bad_lines.0.entry(line.offset).or_insert(problem);
            }
        }
        json.values
    }

    /// Tells whether the session has gone to another directory than the one that
    /// it began in, by what a process has written that began then: a `cd` in its
    /// shell, which its record in the registry does not follow (seen in Claude
    /// Code 2.1.197, 2026-11).
    fn has_moved_since(&self, began_at_ms: Option<i64>) -> bool {
        let is_written_since = began_at_ms.is_none_or(|began| self.last_at_ms >= Some(began));
        is_written_since && self.work_dir.is_some() && self.work_dir != self.first_dir
    }

    fn into_description(self) -> Description {
        let titles = self.titles;
        let summary = titles.summary().cloned();
        let given = titles
            .custom
            .or(titles.agent_name)
            .or(titles.made)
            .or(summary);
        let is_title_a_prompt = given.is_none();
        let phase = self.phase.flatten();
        let has_prompt = titles.first_words.has_prompt();
        let last_prompt = titles.last_prompt.filter(|_| !has_prompt);
        Description {
            title: given
                .or(last_prompt)
                .or(titles.first_words.title())
                .or(titles.last_command),
            is_title_a_prompt,
            model: self.model.or(self.first_model),
            agent_version: self.version,
            git_branch: self.branch,
            work_dir: self.work_dir.or(self.first_dir),
            started_at_ms: self.first_at_ms,
            last_activity_at_ms: self.last_at_ms,
            phase,
            // Only a question is recorded as such.
            waiting_for: (phase == Some(Phase::Waiting)).then_some(WaitingFor::Question),
            phase_at_ms: self.phase_at_ms,
            phase_since_ms: None,
            is_headless: self.is_headless,
            transcript: None,
        }
    }
}

impl Record<'_> {
    /// It belongs to the conversation of a sub-agent, or to one of a person, as asked.
    fn is_of(self, sub_agent: bool) -> bool {
        self.is_sidechain().unwrap_or(sub_agent) == sub_agent
    }

    fn directory(self) -> Option<PathBuf> {
        let told = self.text("cwd").filter(|told| !told.is_empty());
        told.map(PathBuf::from)
    }

    /// Adds what a record at the end tells; later ones have been added before.
    fn add_to_tail(self, telling: &mut Telling) {
        self.add_titles(&mut telling.titles);
        self.note_record(&mut telling.titles);
        telling.last_at_ms = telling.last_at_ms.max(self.at_ms());
        keep(&mut telling.model, self.model());
        keep(&mut telling.version, self.text("version"));
        keep(&mut telling.branch, self.text("gitBranch"));
        if telling.work_dir.is_none() {
            telling.work_dir = self.directory();
        }
        if telling.is_headless.is_none() {
            let entrypoint = self.text("entrypoint");
            telling.is_headless = entrypoint.and_then(is_headless_entrypoint);
        }
        if telling.phase.is_none() {
            let is_headless = telling.is_headless == Some(true);
            telling.phase = self.phase(is_headless);
            telling.phase_at_ms = telling.phase.and_then(|_| self.at_ms());
        }
    }

    fn add_titles(self, titles: &mut Titles) {
        let (title, key) = match self.kind() {
            "custom-title" => (&mut titles.custom, "customTitle"),
            "agent-name" => (&mut titles.agent_name, "agentName"),
            "ai-title" => (&mut titles.made, "aiTitle"),
            "summary" => {
                let leaf = self.text("leafUuid").map(str::to_owned);
                let summary = self.text("summary").and_then(title_of);
                titles.summaries.extend(summary.map(|text| (text, leaf)));
                return;
            }
            "last-prompt" => {
                let text = self.text("lastPrompt").unwrap_or_default();
                keep(&mut titles.last_command, command_in(text).as_deref());
                let typed = WRAPPING.typed(text).filter(|text| !is_command(text));
                keep(&mut titles.last_prompt, typed.and_then(title_of).as_deref());
                return;
            }
            _ => return,
        };
        if title.is_none() {
            *title = self.text(key).and_then(title_of);
        }
    }

    fn note_record(self, titles: &mut Titles) {
        titles.records.extend(self.text("uuid").map(str::to_owned));
    }

    /// Adds what a record at the beginning tells; earlier ones have been added before.
    fn add_to_head(self, telling: &mut Telling) {
        self.add_titles(&mut telling.titles);
        self.note_record(&mut telling.titles);
        telling.first_at_ms = telling.first_at_ms.into_iter().chain(self.at_ms()).min();
        if let Some(model) = self.model() {
            telling.first_model = Some(model.to_owned());
        }
        let words = &mut telling.titles.first_words;
        words.add(self.texts_of_person(), &WRAPPING);
        if telling.first_dir.is_none() {
            telling.first_dir = self.directory();
        }
    }
}

fn keep(kept: &mut Option<String>, told: Option<&str>) {
    if kept.is_none() {
        *kept = told.map(str::to_owned);
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests make their own files")]
#[path = "transcript_tests.rs"]
mod tests;
