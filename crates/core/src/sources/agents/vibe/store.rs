//! A session's own directory: `unified/ID`.
//!
//! Seen in mistral-vibe 3.0.2, 2026-11. The directory is there from the first
//! prompt on.
//!
//! | File | Says |
//! |---|---|
//! | `meta.json` | directory, title, branch, model, dates; replaced by rename after each turn |
//! | `CURRENT` | which generation is the newest |
//! | `generations/N/manifest.json` | the files and chunks of a generation, and its journal |
//! | `generations/N/projection-state.json` | the conversation's state when that began |
//! | `generations/N/runtime-state.json` | whether it is a fork or a sub-agent |
//! | `chunks/SHA256.json` | entries of the conversation |
//! | `journal/N.jsonl` | what has happened since, one record a line |
//!
//! A generation that has been superseded is removed, also while it is read.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use jiff::civil::DateTime;
use jiff::tz::Offset;
use serde_json::Value;
use whosup_sidecar::file::{Links, ReadFileError, read_regular};
use whosup_sidecar::{StrictObject, parse_json};

use super::AGENT;
use crate::adapter::{Description, Sketch};
use crate::machine::problem::Problem;
use crate::sources::agents::kit::dialect::{date_of, text_at};
use crate::sources::agents::kit::reading::read_if_there;
use crate::sources::agents::kit::title::one_line;

/// How long the small files may be, in bytes. Real files have one or two thousand.
const SMALL_BYTES_MAX: u64 = 1 << 20;
/// How long the state of a session may be, in bytes.
const STATE_BYTES_MAX: u64 = 16 << 20;
/// How long a chunk may be, in bytes.
const CHUNK_BYTES_MAX: u64 = 16 << 20;
/// How often a session is read again if its generation was removed meanwhile.
const READS_MAX: usize = 3;
/// How many chunks a generation has at most.
const CHUNKS_MAX: usize = 10_000;

/// How much later than the last time in it a file was written, in milliseconds,
/// where the two are of the same moment.
const WRITING_MS_MAX: i64 = 5_000;
/// Zones differ by whole quarters of an hour, in milliseconds.
const ZONE_STEP_MS: i64 = 15 * 60_000;
/// How far local time differs from UTC at most, in milliseconds.
const ZONE_MS_MAX: i64 = 14 * 3_600_000;

/// The directory of all sessions.
pub(super) fn sessions_in(storage: &Path) -> PathBuf {
    storage.join("unified")
}

/// Facts in `meta.json`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Meta {
    pub(super) id: Option<String>,
    /// The session that it was forked from, or that it is a sub-agent of.
    pub(super) parent: Option<String>,
    pub(super) work_dir: Option<PathBuf>,
    pub(super) title: Option<String>,
    pub(super) git_branch: Option<String>,
    pub(super) model: Option<String>,
    pub(super) started_at_ms: Option<i64>,
    /// The date of its last record.
    pub(super) last_at_ms: Option<i64>,
}

/// Reads `meta.json`; `Ok(None)` if there is none.
///
/// # Errors
///
/// The file, and why it can't be read.
pub(super) fn read_meta(session: &Path, id: &str) -> Result<Option<Meta>, Problem> {
    let path = session.join("meta.json");
    let read = || {
        let file = read_if_there(&path, SMALL_BYTES_MAX, Links::Follow)?;
        file.map(|file| parse_meta(&file.bytes, id)).transpose()
    };
    read().map_err(|why| Problem::at(&AGENT, &path, why))
}

fn parse_meta(bytes: &[u8], id: &str) -> Result<Meta, String> {
    let object = StrictObject::parse(bytes).map_err(|error| error.to_string())?;
    let meta = Meta::of(&object, None)?;
    if meta.id.as_deref() != Some(id) {
        return Err("`session_id` is not that of the directory's name".to_owned());
    }
    Ok(meta)
}

impl Meta {
    /// Reads the facts that every release records about a session. Times without a zone get
    /// it from the modification date of the file, which was written at the last of these
    /// times.
    pub(super) fn of(
        object: &StrictObject<'_>,
        written_at_ms: Option<i64>,
    ) -> Result<Self, String> {
        let filled = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let text = |key: &str| -> Result<Option<String>, String> {
            let text = object.opt_string(key).map_err(|error| error.to_string())?;
            Ok(text.and_then(filled))
        };
        let nested = |key: &str, name: &str| {
            let object = object.opt_object(key).ok()??;
            object.opt_string(name).ok()?.and_then(filled)
        };
        let (start, end) = (text("start_time")?, text("end_time")?);
        let ahead_ms = || zone_ms(local_ms(end.as_deref()?)?, written_at_ms?);
        let date = |text: Option<&str>| {
            let text = text?;
            date_of(text).or_else(|| local_ms(text)?.checked_sub(ahead_ms()?))
        };
        Ok(Self {
            id: text("session_id")?,
            parent: text("parent_session_id")?,
            work_dir: nested("environment", "working_directory").map(PathBuf::from),
            title: text("title")?.as_deref().and_then(one_line),
            git_branch: text("git_branch")?,
            model: nested("config", "model_name")
                .or_else(|| nested("config", "active_model"))
                .or_else(|| nested("agent_config", "active_model")),
            started_at_ms: date(start.as_deref()),
            last_at_ms: date(end.as_deref()),
        })
    }

    /// The description that a person reads.
    pub(super) fn into_description(self) -> Description {
        Description {
            title: self.title,
            model: self.model,
            git_branch: self.git_branch,
            work_dir: self.work_dir,
            started_at_ms: self.started_at_ms,
            last_activity_at_ms: self.last_at_ms,
            ..Description::default()
        }
    }

    /// Adds what a scan needs.
    pub(super) fn add_to(self, sketch: &mut Sketch) {
        sketch.work_dir = self.work_dir;
        sketch.born_at_ms = self.started_at_ms;
        sketch.started_at_ms = self.started_at_ms;
        sketch.last_record_at_ms = self.last_at_ms;
    }
}

/// A time without a zone, as if it were in UTC.
fn local_ms(text: &str) -> Option<i64> {
    let time: DateTime = text.parse().ok()?;
    let at = Offset::UTC.to_timestamp(time).ok()?;
    Some(at.as_millisecond())
}

/// How far a local time is ahead of UTC, if a file was written at that time. `None` if it
/// was written at another time.
fn zone_ms(local_ms: i64, written_at_ms: i64) -> Option<i64> {
    let late_ms = written_at_ms
        .saturating_sub(local_ms)
        .rem_euclid(ZONE_STEP_MS);
    let zone_ms = local_ms.checked_sub(written_at_ms)?.checked_add(late_ms)?;
    (late_ms <= WRITING_MS_MAX && zone_ms.abs() <= ZONE_MS_MAX).then_some(zone_ms)
}

/// The newest generation of a session: where its parts are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Generation {
    directory: PathBuf,
    /// What has happened since it was written.
    pub(super) journal: PathBuf,
    chunks: Vec<PathBuf>,
}

/// Reads a part of the newest generation; again if that was removed meanwhile because a
/// newer generation had been written. `Ok(None)` if the session has no generation yet.
///
/// # Errors
///
/// The file, and why it can't be read.
pub(super) fn of_newest<T>(
    session: &Path,
    read: impl Fn(&Generation) -> Result<T, Failure>,
) -> Result<Option<T>, Problem> {
    let mut reads = 0;
    loop {
        reads += 1;
        let newest = Generation::newest(session);
        let result = newest.and_then(|newest| newest.as_ref().map(&read).transpose());
        match result {
            Err(failure) if failure.is_missing && reads < READS_MAX => {}
            result => return result.map_err(|failure| failure.problem),
        }
    }
}

/// Reads whether a session is of this kind: `root`, `fork` or `subagent`.
///
/// # Errors
///
/// The file, and why it can't be read.
pub(super) fn is_of_kind(session: &Path, kind: &str) -> Result<bool, Problem> {
    Ok(of_newest(session, Generation::kind)?.flatten().as_deref() == Some(kind))
}

/// What could not be read, and why.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Failure {
    problem: Problem,
    /// The file is not there.
    is_missing: bool,
}

impl Failure {
    pub(super) fn new(path: &Path, message: impl Display) -> Self {
        Self {
            problem: Problem::at(&AGENT, path, message),
            is_missing: false,
        }
    }

    pub(super) fn of_file(path: &Path, error: &ReadFileError) -> Self {
        Self {
            is_missing: matches!(error, ReadFileError::NotFound { .. }),
            ..Self::new(path, error.reason())
        }
    }
}

fn read_json(path: &Path, bytes_max: u64) -> Result<Value, Failure> {
    let file = read_regular(path, bytes_max, Links::Follow)
        .map_err(|error| Failure::of_file(path, &error))?;
    parse_json(&file.bytes).map_err(|error| Failure::new(path, error))
}

impl Generation {
    fn newest(session: &Path) -> Result<Option<Self>, Failure> {
        let path = session.join("CURRENT");
        let current = match read_json(&path, SMALL_BYTES_MAX) {
            Err(failure) if failure.is_missing => return Ok(None),
            current => current?,
        };
        let name = text_at(&current, "/generation").filter(|name| is_number(name));
        let wrong = || Failure::new(&path, "`generation` is not a number in text");
        let name = name.ok_or_else(wrong)?;
        let directory = session.join("generations").join(name);
        let path = directory.join("manifest.json");
        let manifest = read_json(&path, SMALL_BYTES_MAX)?;
        let journal = text_at(&manifest, "/recovery_journal_segment/path")
            .and_then(|path| path.strip_prefix("journal/")?.strip_suffix(".jsonl"))
            .filter(|name| is_number(name))
            .ok_or_else(|| Failure::new(&path, "it names no journal"))?;
        let chunks = manifest.pointer("/projection_state/chunks");
        let chunks = chunks.and_then(Value::as_array).into_iter().flatten();
        let chunks = chunks
            .filter_map(Value::as_str)
            .filter(|digest| digest.bytes().all(|byte| byte.is_ascii_hexdigit()))
            .take(CHUNKS_MAX)
            .map(|digest| session.join("chunks").join(format!("{digest}.json")));
        Ok(Some(Self {
            journal: session.join("journal").join(format!("{journal}.jsonl")),
            chunks: chunks.collect(),
            directory,
        }))
    }

    /// The state that the conversation was in when it was written.
    pub(super) fn state(&self) -> Result<Value, Failure> {
        let path = self.directory.join("projection-state.json");
        let mut state = read_json(&path, STATE_BYTES_MAX)?;
        let snapshot = state.get_mut("snapshot").map(Value::take);
        snapshot.ok_or_else(|| Failure::new(&path, "it has no `snapshot`"))
    }

    fn kind(&self) -> Result<Option<String>, Failure> {
        let path = self.directory.join("runtime-state.json");
        let state = read_json(&path, STATE_BYTES_MAX)?;
        Ok(text_at(&state, "/identity/kind").map(str::to_owned))
    }

    /// The entries of the conversation when it was written, newest chunk first.
    pub(super) fn chunks(&self) -> impl Iterator<Item = Result<Vec<Value>, Failure>> {
        let newest_first = self.chunks.iter().rev();
        newest_first.map(|path| match read_json(path, CHUNK_BYTES_MAX)? {
            Value::Array(entries) => Ok(entries),
            _ => Err(Failure::new(path, "it is no array")),
        })
    }
}

/// A number in text, as Vibe names generations and journals.
fn is_number(name: &str) -> bool {
    (1..=20).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_digit())
}
