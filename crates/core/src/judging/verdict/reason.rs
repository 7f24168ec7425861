//! The three answers and their reasons, with the names they have in output.

use whosup_process::Pid;

use crate::adapter::names::names;

/// What became of a claim's process. About the owner only, never about the
/// conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// The process that is claimed runs.
    Live(LiveBecause, Confidence),
    /// It is gone.
    Exited(ExitedBecause),
    /// It could not be determined. Never treated as live or exited.
    Unknown(UnknownBecause),
}

/// A verdict without its reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Liveness {
    /// `live`
    Live,
    /// `unknown`
    Unknown,
    /// `exited`
    Exited,
}

names!(Liveness {
    Live => "live",
    Unknown => "unknown",
    Exited => "exited",
});

/// How a Live is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Confidence {
    /// By clues (arguments, launch, log, terminal): the likeliest reading of the facts.
    Inferred,
    /// Nothing contradicts it, and it would take a rare coincidence to be false.
    Consistent,
    /// By the process's identity or by the kernel.
    Proven,
}

names!(Confidence {
    Proven => "proven",
    Consistent => "consistent",
    Inferred => "inferred",
});

/// Why Live.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LiveBecause {
    /// The start stamp in the claim is the process's.
    StartStamp,
    /// The process began before the claim was made, and is the agent.
    StartedBeforeClaim,
    /// The agent's process holds the session's lock or open file.
    LockHeld,
    /// Its arguments name the session, and nothing newer contradicts that.
    Arguments,
    /// The process was launched with the session.
    Launch,
    /// The agent's log shows that the process went to the session.
    Run,
    /// The use or the title of the process's terminal chooses the session.
    Terminal,
    /// A sub-agent's parent session is live.
    Parent,
}

/// Why Exited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ExitedBecause {
    /// The agent recorded it: PID 0, a sealed or ended marker.
    Released,
    /// By our record the process was found gone: killed, or crashed.
    RecordedGone,
    /// This host has booted since.
    Rebooted,
    /// The PID namespace that is named has no process any more.
    NamespaceGone,
    /// The PID is free.
    NoSuchProcess,
    /// It has exited and waits to be reaped.
    Zombie,
    /// The PID is now the id of a thread of another process.
    PidIsAThread,
    /// Another process has the PID now.
    PidReused,
    /// No process holds the session's lock.
    LockNotHeld,
    /// The process moved to another session.
    Superseded,
    /// No process of the agent is left that could serve it.
    NoProcess,
    /// A sub-agent's parent session has exited.
    Parent,
}

/// Why Unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum UnknownBecause {
    /// `/proc` is not that of this process's PID namespace: there is no table.
    ProcNotOurs,
    /// Another user may have written the claim.
    UntrustedClaim,
    /// What would show who serves the session cannot be read.
    Unreadable,
    /// It is about a process of another host.
    OtherHost,
    /// It is about a process of a PID namespace that can't be seen into.
    OtherPidNamespace,
    /// Several processes fit.
    Ambiguous,
    /// We could not look.
    ProbeFailed,
    /// The process exists and is hidden from us.
    Hidden,
    /// Not every process that it could be can be seen from here.
    IncompleteView,
    /// Start stamps differ, but they may be of different time namespaces.
    OtherTimeNamespace,
    /// The same process now runs another program.
    ProgramChanged,
    /// The stamps are equal, but they may be of different boots.
    BootNotKnown,
    /// The process looks younger than the claim: a reused PID, or a stepped clock.
    YoungerThanClaim,
    /// The process is not recognized as the agent.
    UnrecognizedProgram,
    /// Neither start stamp nor date: a PID alone names nothing.
    BarePid,
    /// The claim is stale, but a process of the agent in that directory may
    /// serve the session.
    MayBeServedBy(Pid),
    /// Another program holds the session's lock.
    HeldByOther,
    /// Hooks reported the session, and the process that serves it could not be found
    /// above them.
    OwnerNotFound,
    /// A sub-agent's parent session is unknown.
    Parent,
}

impl UnknownBecause {
    /// Whether it may stay unknown for ever: no process that is seen serves the session, or
    /// may, and the look did not fail.
    #[must_use]
    pub const fn can_last(self) -> bool {
        !matches!(
            self,
            Self::MayBeServedBy(_)
                | Self::HeldByOther
                | Self::Ambiguous
                | Self::Hidden
                | Self::ProbeFailed
                | Self::ProcNotOurs
                | Self::Unreadable
                | Self::Parent
        )
    }
}

impl Verdict {
    /// The verdict on a session that is nowhere on disk any more: it has exited if the
    /// process that ran it has, and else nothing names a process for it.
    #[must_use]
    pub const fn of_vanished(has_owner_exited: bool) -> Self {
        if has_owner_exited {
            Self::Exited(ExitedBecause::NoSuchProcess)
        } else {
            Self::Unknown(UnknownBecause::OwnerNotFound)
        }
    }

    /// The verdict on a session that nothing names any more, while the process that ran it
    /// runs on.
    #[must_use]
    pub const fn of_unnamed(pid: Pid) -> Self {
        Self::Unknown(UnknownBecause::MayBeServedBy(pid))
    }

    /// The verdict on a session that was known, when a look could not read what names it.
    #[must_use]
    pub const fn of_unread() -> Self {
        Self::Unknown(UnknownBecause::Unreadable)
    }

    /// The answer without its reason.
    #[must_use]
    pub const fn liveness(self) -> Liveness {
        match self {
            Self::Live(..) => Liveness::Live,
            Self::Exited(_) => Liveness::Exited,
            Self::Unknown(_) => Liveness::Unknown,
        }
    }

    /// How a Live is known; `None` for the others.
    #[must_use]
    pub const fn confidence(self) -> Option<Confidence> {
        match self {
            Self::Live(_, confidence) => Some(confidence),
            Self::Exited(_) | Self::Unknown(_) => None,
        }
    }

    /// The reason's name in output.
    #[must_use]
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Live(because, _) => because.name(),
            Self::Exited(because) => because.name(),
            Self::Unknown(because) => because.name(),
        }
    }
}

names!(LiveBecause {
    StartStamp => "start-stamp",
    StartedBeforeClaim => "started-before-claim",
    LockHeld => "lock-held",
    Arguments => "arguments",
    Launch => "launch",
    Run => "run",
    Terminal => "terminal",
    Parent => "parent-live",
});

names!(ExitedBecause {
    Released => "released",
    RecordedGone => "process-gone",
    Rebooted => "rebooted",
    NamespaceGone => "namespace-gone",
    NoSuchProcess => "no-such-process",
    Zombie => "zombie",
    PidIsAThread => "pid-is-a-thread",
    PidReused => "pid-reused",
    LockNotHeld => "lock-not-held",
    Superseded => "superseded",
    NoProcess => "no-process",
    Parent => "parent-exited",
});

names!(UnknownBecause {
    Self::ProcNotOurs => "proc-not-ours",
    Self::UntrustedClaim => "untrusted-claim",
    Self::OtherHost => "other-host",
    Self::OtherPidNamespace => "other-pid-namespace",
    Self::Ambiguous => "ambiguous",
    Self::ProbeFailed => "probe-failed",
    Self::Hidden => "hidden",
    Self::IncompleteView => "incomplete-view",
    Self::Unreadable => "unreadable",
    Self::OtherTimeNamespace => "other-time-namespace",
    Self::ProgramChanged => "program-changed",
    Self::BootNotKnown => "boot-not-known",
    Self::YoungerThanClaim => "younger-than-claim",
    Self::UnrecognizedProgram => "unrecognized-program",
    Self::BarePid => "bare-pid",
    Self::MayBeServedBy(_) => "may-be-served-by",
    Self::HeldByOther => "held-by-other",
    Self::OwnerNotFound => "owner-not-found",
    Self::Parent => "parent-unknown",
});
