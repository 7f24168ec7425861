//! Records which sessions a process has served: one line for each claim event that it
//! reported, and for each end.

use std::path::{Path, PathBuf};

use whosup_core::machine::Environment;
use whosup_core::sidecar::file::{Links, read_regular};
use whosup_core::sidecar::own_directory::{Access, Durable};
use whosup_core::sources::record::{
    HISTORY_BYTES_MAX, History, HistoryEvent, HistoryLine, RecordedOwner, histories_root_of,
    history_name, parse_history,
};

use crate::TrackError;
use crate::append::write_once;
use crate::disk::{IN_FOLDER, open_or_make, replace};

/// A history that is longer than this, in bytes, is shortened.
const SHORTEN_BEYOND_BYTES: usize = 32 * 1024;
/// How many sessions a shortened history keeps.
const KEPT_MAX: usize = 32;

// What is kept must be readable: a line has two paths and two ids.
const _: () = assert!(SHORTEN_BEYOND_BYTES < HISTORY_BYTES_MAX as usize);

/// The history of one process.
#[derive(Debug)]
pub(crate) struct HistoryFile {
    path: PathBuf,
    history: History,
    bytes: usize,
}

impl HistoryFile {
    /// The history of a process. The file need not exist. `None` if the process or the
    /// place is not known.
    pub(crate) fn of(environment: &Environment, owner: &RecordedOwner) -> Option<Self> {
        let path = histories_root_of(environment)?.join(history_name(owner)?);
        let read = read_regular(&path, HISTORY_BYTES_MAX, Links::Refuse);
        let bytes = read.map(|file| file.bytes).unwrap_or_default();
        Some(Self {
            history: parse_history(&bytes),
            bytes: bytes.len(),
            path,
        })
    }

    /// The process has reported nothing yet.
    pub(crate) const fn is_empty(&self) -> bool {
        self.history.lines.is_empty()
    }

    /// The contents when it was read.
    pub(crate) const fn history(&self) -> &History {
        &self.history
    }

    /// Records what happened, unless the history has it already.
    pub(crate) fn note(&self, line: &HistoryLine) -> Result<(), TrackError> {
        let is_said = |last: &HistoryLine| {
            let name = |line: &HistoryLine| (line.what, line.agent.clone(), line.session.clone());
            // Whoever takes it up again may have worked in another session meanwhile.
            let is_again = line.what == HistoryEvent::TakenUp && line.at_ms > last.at_ms;
            name(last) == name(line) && !is_again
        };
        if self.history.lines.last().is_some_and(is_said) {
            return Ok(());
        }
        append(&self.path, &line.to_line())?;
        if self.bytes > SHORTEN_BEYOND_BYTES {
            self.shorten()?;
        }
        Ok(())
    }

    /// Keeps the last claim event of each of the last sessions. Another hook of the same
    /// process that reports at this very moment may be lost: the session's own record
    /// still has it.
    fn shorten(&self) -> Result<(), TrackError> {
        let read = read_regular(&self.path, HISTORY_BYTES_MAX, Links::Refuse);
        let Ok(file) = read else { return Ok(()) };
        let kept: String = last_of_each(&parse_history(&file.bytes))
            .iter()
            .map(|line| line.to_line())
            .collect();
        replace(&self.path, IN_FOLDER, kept.as_bytes(), Durable::Later)
            .map_err(TrackError::at("shorten", &self.path))
    }
}

/// The last claim event of each session, and an end behind it, oldest first.
fn last_of_each(history: &History) -> Vec<&HistoryLine> {
    let mut kept: Vec<&HistoryLine> = Vec::new();
    for line in &history.lines {
        kept.retain(|earlier| {
            let is_other = earlier.session != line.session || earlier.agent != line.agent;
            is_other || (line.what == HistoryEvent::Ended && earlier.what != line.what)
        });
        kept.push(line);
    }
    kept.split_off(kept.len().saturating_sub(2 * KEPT_MAX))
}

fn append(path: &Path, line: &str) -> Result<(), TrackError> {
    let file = open_or_make(path, IN_FOLDER, Access::Append);
    let mut file = file.map_err(TrackError::at("open", path))?;
    write_once(&mut file, line.as_bytes()).map_err(TrackError::at("append to", path))
}
