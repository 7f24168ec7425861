//! Claims: "process P serves session S, because E".

use std::path::{Path, PathBuf};
use std::sync::Arc;

use whosup_process::{BootId, Pid, PidNamespace, PidScope, Platform, Process, StartStamp};
use whosup_sidecar::{AgentId, SessionId};

/// How far in the future a date in a claim may lie before it is ignored, and how much
/// younger than its claim a process may look, in milliseconds.
pub const CLOCK_SLACK_MS: i64 = 2_000;

/// Names a session: the agent, the agent's own id, and the agent's home on disk.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionKey {
    /// The agent.
    pub agent: AgentId,
    /// The agent's own id of the session.
    pub session: SessionId,
    /// The agent's home that the session was found in.
    pub home: Arc<Path>,
}

/// "Process P serves session S", made by a source; may be false or stale.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// The session.
    pub key: SessionKey,
    /// Which process is claimed to serve it.
    pub subject: Subject,
    /// Where the PID means something, if the claim names it.
    pub scope: ClaimedScope,
    /// When the process began, raw, if the claim contains it.
    pub stamp: Option<StartStamp>,
    /// When the claim was made, by its payload, in milliseconds since 1970.
    pub dated_at_ms: Option<i64>,
    /// When its file was last modified. Never a date of the claim; it may only
    /// help to show that an equal stamp is of this boot.
    pub modified_at_ms: Option<i64>,
    /// When the process took up the session.
    pub taken_up: TakenUp,
    /// The process that ended the session, of a claim that it is released. The process has
    /// no known session since, until it takes one up.
    pub ended_by: Option<Pid>,
    /// No file records it: the source infers it.
    pub is_inferred: bool,
    /// The program that the claim names.
    pub executable: Option<PathBuf>,
    /// The directory that the claim names.
    pub work_dir: Option<PathBuf>,
    /// Whether the session can be live elsewhere when this claim is stale.
    pub exclusivity: Exclusivity,
    /// Whether the process serves this session alone.
    pub serving: Serving,
    /// Who may have written it.
    pub trust: Trust,
    /// What kind of file system it lies on.
    pub placement: Placement,
    /// What it rests on.
    pub evidence: Evidence,
}

impl Claim {
    /// A claim without scope, stamp or date, of a process that serves one session, which may be
    /// live elsewhere.
    #[must_use]
    pub fn new(key: SessionKey, subject: Subject, evidence: Evidence) -> Self {
        Self {
            key,
            subject,
            scope: ClaimedScope::default(),
            stamp: None,
            dated_at_ms: None,
            modified_at_ms: None,
            taken_up: TakenUp::AsDated,
            ended_by: None,
            is_inferred: false,
            executable: None,
            work_dir: None,
            exclusivity: Exclusivity::Shared,
            serving: Serving::One,
            trust: Trust::Trusted,
            placement: Placement::Local,
            evidence,
        }
    }

    /// Returns whether it may be about this process: it names its PID, and neither
    /// another scope than `ours`, nor another start, nor, where it has no start,
    /// a date from before the process began.
    #[must_use]
    pub fn may_be_about(&self, process: &Process, ours: &PidScope) -> bool {
        if self.subject.pid() != Some(process.pid) {
            return false;
        }
        let is_older = match (&self.stamp, self.dated_at_ms, &process.began_at_ms) {
            (Some(stamp), ..) => stamp.is_same_as(&process.stamp) == Some(false),
            (None, Some(dated), Ok(began)) => dated.saturating_add(CLOCK_SLACK_MS) < *began,
            _ => false,
        };
        let is_other = |claimed: Option<bool>| claimed == Some(true);
        let scope = &self.scope;
        let host = scope.host.as_deref().zip(ours.host.as_ref().ok());
        let boot = scope.boot.as_ref().zip(ours.boot.as_ref().ok());
        let namespace = scope
            .pid_namespace
            .zip(ours.pid_namespace.as_ref().ok().copied());
        !is_older
            && !is_other(host.map(|(claimed, ours)| !ours.is_same_host(claimed)))
            && !is_other(boot.map(|(claimed, ours)| claimed != ours))
            && !is_other(namespace.map(|(claimed, ours)| claimed != ours))
    }
}

/// Which process is claimed to serve a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// A file names the process with this PID.
    Process(Pid),
    /// A record of our hooks names this process. No adapter recognizes it as the agent; it is
    /// the nearest process above a hook that is neither shell nor launcher.
    Unrecognized {
        /// The process.
        pid: Pid,
        /// It was found for more than one hook. A process that runs a single hook exits at
        /// once, which proves nothing about the session.
        is_settled: bool,
    },
    /// A record of our hooks names no process: the hooks could not find the owner.
    NotFound,
    /// A file records that no process serves it any more (PID 0, a sealed or ended marker).
    Released,
    /// Our record: the process was found gone, and had not announced an end.
    Gone,
    /// The kernel reports that this process holds the session's lock, or has the
    /// session's file open for writing.
    Holder(Pid),
    /// What would show who serves the session cannot be read.
    Unreadable,
    /// The session's lock file is there and no process was found to hold it.
    LockFree {
        /// Every process that could hold it was asked. (Whether the file
        /// system is local is in [`Claim::placement`].)
        is_everyone_asked: bool,
    },
}

impl Subject {
    /// The claimed PID, if there is one.
    #[must_use]
    pub const fn pid(&self) -> Option<Pid> {
        match self {
            Self::Process(pid) | Self::Unrecognized { pid, .. } | Self::Holder(pid) => Some(*pid),
            Self::NotFound
            | Self::Released
            | Self::Gone
            | Self::Unreadable
            | Self::LockFree { .. } => None,
        }
    }
}

/// When the claimed process took up the session: its claim event.
///
/// The last claim event of a process that serves one session at a time decides which
/// session is current. A heartbeat, the time of a file, or the last event heard is no
/// claim event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TakenUp {
    /// When the claim was made: [`Claim::dated_at_ms`], or if that is not known, when the
    /// session was born.
    #[default]
    AsDated,
    /// At this time, in milliseconds since 1970.
    At(i64),
    /// The source names the session that the process serves now, and does not record
    /// since when (a registry that is rewritten in place).
    Current,
    /// The process has served the session and left it for another one. A later claim event
    /// brings it back.
    Left(Leaving),
}

/// That a process has left a session for another one. Times are in milliseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Leaving {
    /// When it took up the other one.
    pub at_ms: i64,
    /// When the other one ended, if it has.
    pub ended_at_ms: Option<i64>,
}

/// Where the PID of a claim means something, with the parts that the claim names.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ClaimedScope {
    /// Host name.
    pub host: Option<String>,
    /// Boot id.
    pub boot: Option<BootId>,
    /// PID namespace.
    pub pid_namespace: Option<PidNamespace>,
    /// The platform of the kind of stamp that it names, also without a stamp.
    pub platform: Option<Platform>,
}

/// Whether a session can be live elsewhere when a claim to it is stale.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exclusivity {
    /// It can't: every process that serves the session makes this claim.
    Exclusive,
    /// It can: some processes serve the session without such a claim.
    Shared,
}

/// How many sessions the claimed process serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Serving {
    /// One at a time; the newest claim is the current one.
    One,
    /// A sidecar in the common place that does not record it. Another sidecar there
    /// supersedes it as little as it supersedes that one: nothing shows that the process left
    /// one of the sessions. What else is known of the process, by the agent's own files or by
    /// hooks, may show that.
    NotRecorded,
    /// Many at once: a daemon, an app server.
    Many,
}

/// Whether only trusted users can have written a claim's file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trust {
    /// By the owner of the agent's home, by root or by ourselves.
    Trusted,
    /// Another user may have written it.
    Untrusted {
        /// What is wrong with the file.
        because: String,
    },
}

/// What kind of file system a claim's file lies on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// A file system of this machine. In a container it may still be a
    /// directory of the machine outside.
    Local,
    /// A file system of this container alone.
    ThisContainer,
    /// A file system that machines share (NFS, SMB, 9p, virtiofs, …).
    SharedByMachines,
}

/// What a claim rests on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evidence {
    /// What kind of thing it is.
    pub kind: EvidenceKind,
    /// The file, if the evidence is a file.
    pub path: Option<PathBuf>,
    /// The claim in a few words: `pid 4711, start 8123`.
    pub says: String,
}

impl Evidence {
    /// The claim that `path` makes, or that is known without a file.
    pub(crate) fn new(
        kind: EvidenceKind,
        path: impl Into<Option<PathBuf>>,
        says: impl Into<String>,
    ) -> Self {
        Self {
            kind,
            path: path.into(),
            says: says.into(),
        }
    }
}

/// The kinds of things that claims rest on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum EvidenceKind {
    /// A file per process that the agent keeps (`sessions/PID.json`).
    Registry,
    /// A `runtime.json` beside the session.
    Sidecar,
    /// A lock that a process holds, or does not hold.
    Lock,
    /// A session file that a process has open for writing.
    OpenFile,
    /// A lock file that names its owner.
    LockFile,
    /// A process's arguments.
    Arguments,
    /// A process's title, or its terminal's.
    Title,
    /// A session record of our own hooks.
    Record,
    /// What happened when a process was launched.
    Launch,
    /// The use or the title of a terminal.
    Terminal,
    /// That it was used since a process began, which decides nothing.
    Touched,
    /// A line of the agent's log that names the process.
    Log,
    /// A row of the agent's database that names the process.
    Database,
    /// The transcript on disk, which names no process.
    Transcript,
    /// The parent session of a sub-agent.
    Parent,
}

impl EvidenceKind {
    /// The name used in output.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Registry => "registry",
            Self::Sidecar => "sidecar",
            Self::Lock => "lock",
            Self::OpenFile => "open-file",
            Self::LockFile => "lock-file",
            Self::Arguments => "arguments",
            Self::Title => "title",
            Self::Record => "record",
            Self::Launch => "launch",
            Self::Terminal => "terminal",
            Self::Touched => "touched",
            Self::Log => "log",
            Self::Database => "database",
            Self::Transcript => "transcript",
            Self::Parent => "parent",
        }
    }
}
