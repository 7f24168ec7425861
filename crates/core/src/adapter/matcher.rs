//! What an adapter reads from logs that don't identify processes.
//!
//! The solver matches it with processes: [`place_runs`] and [`openers`]. No adapter matches
//! anything itself.
//!
//! [`place_runs`]: crate::judging::attribution::place_runs
//! [`openers`]: crate::judging::attribution::openers

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use whosup_process::Pid;

/// One run of a program: the log lines of one process, without its PID.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedRun {
    /// Its name in the log.
    pub name: String,
    /// The date of the first line that was read, in milliseconds since 1970.
    pub first_at_ms: i64,
    /// What that line shows.
    pub start: RunStart,
    /// The first directory that it opened, as far as the log was read.
    pub directory: Option<PathBuf>,
}

/// What the first line of a run shows, of those that were read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunStart {
    /// The run works in one directory.
    Directory,
    /// The run is a host's.
    Host,
    /// The run is a host's, or works in one directory.
    Either,
    /// The line is not the first of the run: that may lie before all that was read.
    Unread,
    /// The line is not the first of the run: that may lie in a missing part.
    Missing,
}

/// The processes that wrote the runs of a log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PlacedRuns {
    /// The run of each process whose run is known.
    pub run_of: BTreeMap<Pid, String>,
    /// For each other run, the processes of role `Session` that may have written it. A process
    /// that is gone may have written it, too.
    pub open: BTreeMap<String, BTreeSet<Pid>>,
}

/// A process has logged that it opened a session, but not which.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opening {
    /// The process, where the log was written.
    pub pid: Pid,
    /// The log's name for the process, which no other process has.
    pub process: String,
    /// When, in milliseconds since 1970.
    pub at_ms: i64,
}

/// A living terminal that may show a session of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terminal {
    /// The process.
    pub pid: Pid,
    /// When the process began, in milliseconds since 1970.
    pub began_at_ms: i64,
}
