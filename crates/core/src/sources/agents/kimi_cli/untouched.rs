//! Which sessions of a folder no process there can be serving, by when their
//! files were written.
//!
//! This is asked of each old session beside a live one, and its files are looked at.
//! So it is asked only where there is a process that is not accounted for.

use std::collections::HashSet;
use std::io::ErrorKind;
use std::path::Path;

use whosup_sidecar::file::{Directory, Links};

use super::log::Event;
use super::session::{SIDECAR, WIRE, below};
use crate::adapter::AgentProcess;
use crate::sources::agents::kit::scan::may_have_written_since;

/// Finds sessions of a folder that have not changed since the processes of the home began,
/// so that none of these processes can serve them.
pub(super) struct Untouched<'a> {
    folder: Directory,
    /// Somewhat before the first of the processes began.
    since_ms: i64,
    /// The sessions that the log names.
    in_log: HashSet<String>,
    /// The sessions that arguments name, or beginnings of their ids.
    named: Vec<&'a str>,
}

impl<'a> Untouched<'a> {
    /// `None` if it is not known since when something may have happened, or the
    /// folder can't be opened.
    pub(super) fn new(
        folder: &Path,
        processes: &[&'a AgentProcess],
        events: &[Event],
    ) -> Option<Self> {
        let since_ms = may_have_written_since(processes.iter().copied())?;
        let named = processes.iter();
        Some(Self {
            folder: Directory::open(folder).ok()?,
            since_ms,
            in_log: events.iter().map(|event| event.session.clone()).collect(),
            named: named.filter_map(|one| one.named_session()).collect(),
        })
    }

    /// The log or arguments name it.
    pub(super) fn is_named(&self, id: &str) -> bool {
        self.in_log.contains(id) || self.named.iter().any(|named| id.starts_with(named))
    }

    /// Neither transcript nor sidecar was written since, and the log does not name the
    /// session. A session without a transcript may have been made since.
    pub(super) fn has(&self, id: &str) -> bool {
        let is_before = |at: i64| at < self.since_ms;
        self.written(id, WIRE).is_some_and(is_before)
            && self.written(id, SIDECAR).is_none_or(is_before)
    }

    fn written(&self, id: &str, name: &str) -> Option<i64> {
        match self.folder.facts(below(id, name).as_ref(), Links::Follow) {
            Ok(facts) => Some(facts.modified_ms.unwrap_or(i64::MAX)),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            // The reader of the file reports why it cannot be read.
            Err(_) => Some(i64::MAX),
        }
    }
}
