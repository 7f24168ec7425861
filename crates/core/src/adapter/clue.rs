//! Clues: what sources know of the processes that serve a session, beside claims.

use whosup_process::Pid;
use whosup_sidecar::SessionId;

/// What a source knows about one process and one session.
///
/// A clue is no verdict. The solver weighs it against everything else that is known of
/// the process and of the session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clue {
    /// The process.
    pub pid: Pid,
    /// What is known.
    pub kind: ClueKind,
    /// The same in words, for explanations.
    pub says: String,
}

/// What a clue is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClueKind {
    /// The process was started for the session: a log line, or arguments that name the
    /// session from which this one was forked.
    Names,
    /// The agent's log shows that the process worked on the session at this time, in
    /// milliseconds since 1970. The log has every such visit.
    Run {
        /// When.
        at_ms: i64,
    },
    /// The process may have used the session since it began.
    Touched,
    /// The process has not used the session since it began, as its log shows. It may have
    /// opened the session all the same.
    Untouched,
    /// The process cannot serve the session.
    Excludes,
    /// The process left the session then, in milliseconds since 1970, and cannot serve
    /// its earlier sessions either.
    Left {
        /// When.
        at_ms: i64,
    },
    /// A record that would show whether the process serves the session cannot be read, or is
    /// never made.
    Gap,
}

/// A session that a run visited.
///
/// Some agents log what happens in a process under the session that the process was
/// launched with. Once the solver knows which process that was, the log shows where the
/// process went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Visit {
    /// The session that the process was launched with.
    pub launched_with: SessionId,
    /// When it was launched with that, in milliseconds since 1970.
    pub launched_at_ms: i64,
    /// When the process was in the session last, in milliseconds since 1970.
    pub at_ms: i64,
}

/// A running process made a session and moved to it. The log does not name the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Switch {
    /// When, in milliseconds since 1970.
    pub at_ms: i64,
    /// A process that has gone may have done so instead.
    pub is_perhaps: bool,
    /// A session was taken up later, and the launch of no running process explains that:
    /// this process may have done so.
    pub may_be_left: bool,
}

/// Who may serve a session that no process claims.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unclaimed {
    /// Only a process whose arguments name it: every other server of it makes a claim.
    NoProcess,
    /// Any process of the agent may be the owner.
    Owner,
    /// The owner is a shared host that claims it. A process with a terminal may be the
    /// client.
    Client,
}

impl ClueKind {
    /// The process cannot serve the session.
    pub(crate) const fn excludes(self) -> bool {
        matches!(self, Self::Excludes | Self::Left { .. })
    }
}

impl Clue {
    pub(crate) fn new(pid: Pid, kind: ClueKind, says: impl Into<String>) -> Self {
        let says = says.into();
        Self { pid, kind, says }
    }

    /// The process left the session then.
    pub(crate) fn left(pid: Pid, at_ms: i64, says: impl Into<String>) -> Self {
        Self::new(pid, ClueKind::Left { at_ms }, says)
    }

    /// What would show whether the process serves the session cannot be read.
    pub(crate) fn gap(pid: Pid, says: impl Into<String>) -> Self {
        Self::new(pid, ClueKind::Gap, says)
    }
}
