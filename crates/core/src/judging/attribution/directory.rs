//! Whether the directory that a session was recorded in excludes a process.
//!
//! It does so only where nothing else can explain the difference: both directories are
//! local, exist and differ by device and inode, and the recorded directory, with every link
//! on the way to it, was born before the process began. A directory that was renamed or
//! deleted is not there any more; one that was made anew, cloned again or linked anew was
//! born since. None of them excludes a process.
//!
//! What does not exist, or can't be touched without the risk of waiting for ever, is
//! compared as text: equal text is the same directory, and a difference of text excludes
//! no process, also where neither exists. (A fixture's `/home/dev/app` exists nowhere: two
//! such directories are the same or unknown.)
//!
//! This applies only to agents that bind sessions to directories: an agent that resumes
//! any session in any directory is never excluded.

use std::path::{Path, PathBuf};

use crate::adapter::claim::CLOCK_SLACK_MS;
use crate::machine::composed::composed;
use crate::machine::mounts::Mounts;

/// The result of comparing a session's directory with a process's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Beside {
    /// They are the same directory, even if by different names.
    Same,
    /// The process can't serve the session: it works in another directory.
    Excluded,
    /// They differ, and that excludes no process.
    Unknown,
}

/// A directory, and what is known of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Directory {
    /// The path without links, as far as it could be walked, in one Unicode form.
    path: PathBuf,
    /// `None` if it is missing, not local, or can't be looked at from this machine.
    seen: Option<Seen>,
}

/// A local directory that exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Seen {
    device: u64,
    inode: u64,
    /// When the youngest of the directory and the links on the way to it was born;
    /// `None` if that is not known of one of them.
    born_ms: Option<i64>,
}

impl Directory {
    /// Looks at the directory that a record, a transcript or an argument names.
    pub(crate) fn recorded(mounts: &Mounts, path: &Path) -> Self {
        let way = mounts.way_to(path);
        Self {
            path: composed(mounts.resolved(path)),
            seen: way.and_then(|way| way.facts()).map(|facts| Seen {
                device: facts.device,
                inode: facts.inode,
                born_ms: facts.born_ms,
            }),
        }
    }

    /// A directory that was not looked at: only the text is known.
    pub(crate) fn unseen(path: &Path) -> Self {
        Self {
            path: composed(path.to_owned()),
            seen: None,
        }
    }

    /// Compares this recorded directory with the directory of a process that began at
    /// `began_ms`.
    ///
    /// Pure: touches no file.
    pub(crate) fn beside(&self, process: &Self, began_ms: Option<i64>) -> Beside {
        let (Some(recorded), Some(own)) = (self.seen, process.seen) else {
            return if self.path == process.path {
                Beside::Same
            } else {
                Beside::Unknown
            };
        };
        if (recorded.device, recorded.inode) == (own.device, own.inode) {
            return Beside::Same;
        }
        // A clock that was set in between must not make a young directory look old.
        let is_older = recorded
            .born_ms
            .zip(began_ms)
            .is_some_and(|(born, began)| born.saturating_add(CLOCK_SLACK_MS) < began);
        if is_older && self.path != process.path {
            Beside::Excluded
        } else {
            Beside::Unknown
        }
    }
}

impl Directory {
    /// It is there, and may be touched.
    pub(crate) const fn is_seen(&self) -> bool {
        self.seen.is_some()
    }

    /// What had its name then is gone, as far as is known: nothing has it, or something that was
    /// born later.
    pub(crate) fn is_made_since(&self, since_ms: Option<i64>) -> bool {
        let born_ms = self.seen.and_then(|seen| seen.born_ms);
        born_ms
            .zip(since_ms)
            .is_none_or(|(born, since)| born >= since)
    }
}

#[cfg(all(test, unix))]
#[path = "directory_tests.rs"]
mod tests;
