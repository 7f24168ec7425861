//! Reads files that may be missing, and reports those that can't be read.

use std::fmt::Display;
use std::path::Path;

use serde_json::Value;
use whosup_sidecar::AgentId;
use whosup_sidecar::file::{Links, ReadFileError, RegularFile, read_regular};

use crate::adapter::Sketch;
use crate::machine::problem::{Found, Problem};
use crate::sources::transcript::{TranscriptError, TranscriptFile};

/// Reads the file at `path`; `None` if there is no such file.
///
/// # Errors
///
/// Why it can't be read, without its path.
pub(crate) fn read_if_there(
    path: &Path,
    bytes_max: u64,
    links: Links,
) -> Result<Option<RegularFile>, String> {
    match read_regular(path, bytes_max, links) {
        Ok(file) => Ok(Some(file)),
        Err(ReadFileError::NotFound { .. }) => Ok(None),
        Err(error) => Err(error.reason()),
    }
}

/// Opens the transcript or log at `path`; `None` if there is no such file.
///
/// # Errors
///
/// Why it can't be opened.
pub(crate) fn open_if_there(path: &Path) -> Result<Option<TranscriptFile>, TranscriptError> {
    match TranscriptFile::open(path) {
        Ok(file) => Ok(Some(file)),
        Err(TranscriptError::File(ReadFileError::NotFound { .. })) => Ok(None),
        Err(error) => Err(error),
    }
}

/// What was found at `path`, with what is wrong there, if anything is.
pub(crate) fn found_at<T>(
    agent: &AgentId,
    path: &Path,
    found: T,
    message: Option<impl Display>,
) -> Found<T> {
    let problem = message.map(|message| Problem::at(agent, path, message));
    Found {
        found,
        problems: problem.into_iter().collect(),
    }
}

/// What was read, or the default and the problem.
pub(crate) fn found_or_problem<T: Default>(read: Result<T, Problem>) -> Found<T> {
    match read {
        Ok(found) => Found::clean(found),
        Err(problem) => Found {
            found: T::default(),
            problems: vec![problem],
        },
    }
}

/// Reads the records that count, session by session: calls `each` with those of a session
/// that has some.
pub(crate) fn count_each(
    sketches: &[&Sketch],
    read: impl Fn(&Sketch) -> Result<Vec<Value>, Problem>,
    each: &mut dyn FnMut(usize, &[Value]),
) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (at, sketch) in sketches.iter().enumerate() {
        match read(sketch) {
            Ok(records) if records.is_empty() => {}
            Ok(records) => each(at, &records),
            Err(problem) => problems.push(problem),
        }
    }
    problems
}
