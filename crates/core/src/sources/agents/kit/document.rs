//! Reads files that are one JSON document each, and can only be read as a whole.

use std::path::Path;

use serde::de::DeserializeOwned;
use serde_json::Value;
use whosup_sidecar::file::Links;
use whosup_sidecar::{AgentId, FieldError, StrictObject, parse_json};

use crate::adapter::Sketch;
use crate::machine::problem::{Found, Problem};
use crate::sources::agents::kit::reading::{found_at, read_if_there};

/// How often a document is read that the agent may just be writing anew.
const READS_MAX: usize = 3;

/// Parses a document.
///
/// # Errors
///
/// Why it is none.
pub(crate) fn parse_document<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    parse_json(bytes).map_err(|error| format!("it is not valid JSON: {error}"))
}

/// Reads the document at `path`; `None` if there is no such file.
///
/// # Errors
///
/// Why it can't be read, without its path.
pub(crate) fn read_document(path: &Path, bytes_max: u64) -> Result<Option<Value>, String> {
    let mut reason = String::new();
    for _ in 0..READS_MAX {
        let Some(file) = read_if_there(path, bytes_max, Links::Follow)? else {
            return Ok(None);
        };
        match parse_document(&file.bytes) {
            Ok(document) => return Ok(Some(document)),
            Err(why) => reason = why,
        }
    }
    Err(reason)
}

/// Takes something from the JSON object at `path`, whose fields are read strictly; `None`
/// if there is no such file.
///
/// # Errors
///
/// Why it can't be read, without its path.
pub(crate) fn from_object<T>(
    path: &Path,
    bytes_max: u64,
    take: impl FnOnce(&StrictObject<'_>) -> Result<T, FieldError>,
) -> Result<Option<T>, String> {
    let Some(file) = read_if_there(path, bytes_max, Links::Follow)? else {
        return Ok(None);
    };
    let object = StrictObject::parse(&file.bytes).map_err(|error| error.to_string())?;
    take(&object).map(Some).map_err(|error| error.to_string())
}

/// Reads what counts in the documents of sessions, one for each; those that are not there
/// count nothing.
pub(crate) fn count_documents(
    agent: &AgentId,
    sketches: &[&Sketch],
    bytes_max: u64,
    mut count: impl FnMut(usize, &Value),
) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (at, sketch) in sketches.iter().enumerate() {
        let Some(path) = sketch.transcript.as_deref() else {
            continue;
        };
        match read_document(path, bytes_max) {
            Ok(Some(document)) => count(at, &document),
            Ok(None) => {}
            Err(why) => problems.push(Problem::at(agent, path, why)),
        }
    }
    problems
}

/// Takes something from the document at `path`, and reports one that can't be read. A
/// session without a document has nothing.
pub(crate) fn from_document<T: Default>(
    agent: &AgentId,
    path: Option<&Path>,
    bytes_max: u64,
    take: impl FnOnce(&Value) -> T,
) -> Found<T> {
    let read = path.map(|path| read_document(path, bytes_max).map_err(|why| (path, why)));
    match read.transpose() {
        Ok(document) => Found::clean(document.flatten().as_ref().map(take).unwrap_or_default()),
        Err((path, why)) => found_at(agent, path, T::default(), Some(why)),
    }
}
