//! Matching of processes with logs that do not name them for certain.
//!
//! An adapter reads such a log and has the solver match it with processes, through the
//! [`Matcher`] of its [`Look`](super::Look). No adapter matches anything itself.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use whosup_process::Pid;
use whosup_sidecar::SessionId;

use super::AgentProcess;
use crate::machine::Machine;

/// Matches logs with processes. The solver implements it.
pub trait Matcher: std::fmt::Debug + Sync {
    /// Finds the processes that wrote the runs of a log.
    fn place_runs(
        &self,
        runs: &[LoggedRun],
        processes: &[&AgentProcess],
        machine: &Machine,
    ) -> PlacedRuns;

    /// For each session that one of `terminals` made, finds the terminals that may show it
    /// now: that one, and each that has opened another session since which it did not make.
    ///
    /// `births` are those of all sessions of a home, in milliseconds since 1970. Nothing is
    /// found while one of the terminals has logged nothing: it may have opened any session.
    fn openers(
        &self,
        births: &BTreeMap<SessionId, i64>,
        terminals: &[Terminal],
        openings: &[Opening],
        now_ms: i64,
    ) -> BTreeMap<SessionId, BTreeSet<Pid>>;
}

/// One run of a program: what one process wrote to the log of its agent, without its PID.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedRun {
    /// What the log calls it.
    pub name: String,
    /// When its first line was written, of those that were read, in milliseconds since 1970.
    pub first_at_ms: i64,
    /// What that line shows.
    pub start: RunStart,
    /// The directory that it opened first, of those that were read.
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
    /// The line is not the first one of the run. That may lie before all that was read.
    Unread,
    /// The line is not the first one of the run. That may lie in a part that is missing.
    Missing,
}

/// What is known of the processes that wrote the runs of a log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PlacedRuns {
    /// The run of each process of which it is known.
    pub run_of: BTreeMap<Pid, String>,
    /// For each other run the processes of role `Session` that may be it. It may also be
    /// that of a process which is gone.
    pub open: BTreeMap<String, BTreeSet<Pid>>,
}

/// A process has logged that it opened a session, and not which one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opening {
    /// The process, where the log was written.
    pub pid: Pid,
    /// The log's name for the process, which no other process has.
    pub process: String,
    /// When, in milliseconds since 1970.
    pub at_ms: i64,
}

/// A living terminal that may show a session which a host serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terminal {
    /// The process.
    pub pid: Pid,
    /// When that began, in milliseconds since 1970.
    pub began_at_ms: i64,
}
