//! Judges one claim against the process table. Pure: reads no clock,
//! file, environment or process.

mod namespace;

use whosup_process::{Absent, PidScope, Platform, Process, View};

use super::{Confidence, ExitedBecause, LiveBecause, UnknownBecause, Verdict};
use crate::adapter::claim::{CLOCK_SLACK_MS, Claim, Placement, Subject, Trust};

/// What can be seen from here, and when.
#[derive(Debug, Clone)]
pub struct Context<'a> {
    /// Our own PID scope.
    pub scope: &'a PidScope,
    /// What can be seen of the process table.
    pub view: &'a View,
    /// Whose kernel gives the start stamps of the table.
    pub platform: Option<Platform>,
    /// When the look was taken, in milliseconds since 1970.
    pub now_ms: i64,
    /// When this host booted, by the wall clock of now.
    pub booted_at_ms: Option<i64>,
    /// When the first process of our PID namespace began.
    pub init_began_at_ms: Option<i64>,
}

impl Context<'_> {
    /// Whether a date lies no further ahead of now than clocks may differ.
    const fn is_no_date_of_the_future(&self, at_ms: i64) -> bool {
        at_ms <= self.now_ms.saturating_add(CLOCK_SLACK_MS)
    }
}

/// What the process table has at the PID that a claim names.
#[derive(Debug, Clone)]
pub struct Observed {
    /// The process that has this PID in our own namespace.
    pub at_pid: Result<Option<Seen>, LookFailure>,
    /// The PID is the id of a thread that leads no process.
    pub is_thread: bool,
    /// Processes of nested PID namespaces are about.
    pub has_nested_namespaces: bool,
    /// Other visible processes whose innermost PID it is, kernel threads
    /// excepted. Looked for only while nested namespaces are about.
    pub elsewhere: Vec<Seen>,
    /// What can be seen of the PID namespace that the claim names, when that is
    /// not ours.
    pub named_namespace: Elsewhere,
}

/// What can be seen of a PID namespace that is not ours.
#[derive(Debug, Clone, Default)]
pub struct Elsewhere {
    /// Some visible process lives in it.
    pub is_populated: bool,
    /// The process in it that has the claim's PID there.
    pub at_pid: Option<Seen>,
}

/// One process, as far as judging a claim needs it.
#[derive(Debug, Clone)]
pub struct Seen {
    /// The process.
    pub process: Process,
    /// Whether it is the claim's program.
    pub recognition: Recognition,
    /// It works in the directory that the claim names.
    pub is_in_claimed_directory: bool,
    /// It serves one session at a time and has a claim, dated after its own
    /// start, to another session.
    pub has_newer_claim_to_other: bool,
    /// It is another user's than the claim's file.
    pub is_of_another_user: bool,
    /// How the other claims that may be about it compare.
    pub rival: Rival,
}

/// Whether a process that a claim may be about has a claim to another session, which
/// counts for as much or for more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Rival {
    /// It has none.
    None,
    /// It has one, and nothing shows which of the two is about it.
    Equal,
    /// The other claim is about it.
    Better,
    /// This claim is about another process with that number: a claim of the same session and
    /// run has a start that the process does not have; or this claim names a directory in
    /// which the process cannot work, or does not, by a claim of its own.
    Elsewhere,
    /// The same, and that other process had the number in this PID namespace.
    Past,
}

/// Whether a process is the program that a claim is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Recognition {
    /// The agent's adapter recognizes it.
    ClaimingAgent,
    /// It executes the file that the claim names.
    NamedExecutable,
    /// A language runtime that runs an agent's script, or carries the agent's
    /// title, or works in the claim's directory.
    FittingRuntime,
    /// It is positively another program.
    AnotherProgram,
    /// It is unknown (the executable is unreadable, a runtime runs something else).
    Unrecognized,
}

impl Recognition {
    /// Every answer.
    pub const ALL: [Self; 5] = [
        Self::ClaimingAgent,
        Self::NamedExecutable,
        Self::FittingRuntime,
        Self::AnotherProgram,
        Self::Unrecognized,
    ];

    /// By its looks, or by the executable that the claim names.
    const fn is_the_program(self) -> bool {
        matches!(self, Self::ClaimingAgent | Self::NamedExecutable)
    }

    const fn may_be_the_agent(self) -> bool {
        self.is_the_program() || matches!(self, Self::FittingRuntime)
    }
}

/// Why a PID could not be looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LookFailure {
    /// The process exists and is hidden from us.
    Hidden,
    /// Permission, I/O, or an unsupported platform.
    Failed,
}

/// Judges a claim. The first rule that applies decides; the order is that of
/// what has to be known before anything else means something: may we believe
/// the table and the file, is it this host, this boot, this PID namespace, is
/// there a process, is it that process.
#[must_use]
pub fn judge(claim: &Claim, observed: &Observed, context: &Context<'_>) -> Verdict {
    let is_table_foreign = !matches!(
        context.view.is_proc_ours,
        Ok(true) | Err(Absent::Unsupported)
    );
    if is_table_foreign {
        return Verdict::Unknown(UnknownBecause::ProcNotOurs);
    }
    let judging = Judging {
        claim,
        observed,
        context,
        date_ms: claim
            .dated_at_ms
            .filter(|date| context.is_no_date_of_the_future(*date)),
    };
    match claim.subject {
        Subject::Released => Verdict::Exited(ExitedBecause::Released),
        Subject::Gone => Verdict::Exited(ExitedBecause::RecordedGone),
        _ if matches!(claim.trust, Trust::Untrusted { .. }) => {
            Verdict::Unknown(UnknownBecause::UntrustedClaim)
        }
        Subject::Unreadable => Verdict::Unknown(UnknownBecause::Unreadable),
        Subject::Holder(_) => judging.holder(),
        Subject::LockFree { is_everyone_asked } => judging.free_lock(is_everyone_asked),
        Subject::NotFound => Verdict::Unknown(UnknownBecause::OwnerNotFound),
        Subject::Process(_) => judging.named(),
        Subject::Unrecognized { is_settled, .. } => match judging.named() {
            Verdict::Live(because, confidence) => {
                Verdict::Live(because, confidence.min(Confidence::Consistent))
            }
            Verdict::Exited(_) if !is_settled => Verdict::Unknown(UnknownBecause::OwnerNotFound),
            other => other,
        },
    }
}

struct Judging<'a> {
    claim: &'a Claim,
    observed: &'a Observed,
    context: &'a Context<'a>,
    /// The claim's date, if it has one that is not of the future.
    date_ms: Option<i64>,
}

impl Judging<'_> {
    /// A file names this process.
    fn named(&self) -> Verdict {
        self.another_machine()
            .or_else(|| self.another_namespace())
            .unwrap_or_else(|| self.process_at_pid())
    }

    /// The kernel reports that this process holds the session's lock or file.
    fn holder(&self) -> Verdict {
        match &self.observed.at_pid {
            Err(failure) => could_not_look(*failure),
            // It let go between the two looks, by exiting.
            Ok(None) => Verdict::Exited(ExitedBecause::NoSuchProcess),
            Ok(Some(seen)) if seen.process.is_exited => Verdict::Exited(ExitedBecause::Zombie),
            Ok(Some(seen)) if seen.recognition == Recognition::ClaimingAgent => {
                Verdict::Live(LiveBecause::LockHeld, Confidence::Proven)
            }
            Ok(Some(_)) => Verdict::Unknown(UnknownBecause::HeldByOther),
        }
    }

    /// The lock is there and no process was found to hold it. A lock of another
    /// machine, or of a process outside this container, does not show here.
    fn free_lock(&self, is_everyone_asked: bool) -> Verdict {
        let is_ours_alone = self.claim.placement != Placement::SharedByMachines;
        if is_everyone_asked && is_ours_alone && self.is_view_complete() {
            Verdict::Exited(ExitedBecause::LockNotHeld)
        } else {
            Verdict::Unknown(UnknownBecause::IncompleteView)
        }
    }

    /// The claim is about another host, or about an earlier boot of this one.
    fn another_machine(&self) -> Option<Verdict> {
        let other_host = Some(Verdict::Unknown(UnknownBecause::OtherHost));
        let claim = self.claim;
        let is_on_shared_files = claim.placement == Placement::SharedByMachines;
        let of_stamp = claim.stamp.as_ref().map(|stamp| stamp.kind().platform());
        if let (Some(named), Some(ours)) =
            (of_stamp.or(claim.scope.platform), self.context.platform)
            && named != ours
        {
            return other_host;
        }
        if let (Some(claimed), Ok(ours)) = (&claim.scope.boot, &self.context.scope.boot)
            && claimed != ours
        {
            let may_be_of_now = match (self.date_ms, self.context.booted_at_ms) {
                (None, _) => false,
                (Some(date), Some(booted)) => date >= booted.saturating_sub(CLOCK_SLACK_MS),
                (Some(_), None) => true,
            };
            return if may_be_of_now || is_on_shared_files {
                other_host
            } else {
                Some(Verdict::Exited(ExitedBecause::Rebooted))
            };
        }
        // A container has a name of its own, and a host may have been renamed; the boot
        // is the same. Small PIDs, programs and directories of two containers that share
        // a home are the same too, and show nothing.
        if let (Some(claimed), Ok(ours)) = (&claim.scope.host, &self.context.scope.host)
            && !ours.is_same_host(claimed)
            && !self.names_our_boot()
        {
            return other_host;
        }
        let names_no_machine = claim.scope.host.is_none() && claim.scope.boot.is_none();
        if names_no_machine && is_on_shared_files && !self.has_equal_stamp_at_pid() {
            return other_host;
        }
        None
    }

    fn process_at_pid(&self) -> Verdict {
        match &self.observed.at_pid {
            Err(failure) => could_not_look(*failure),
            Ok(Some(seen)) => self.process(seen),
            Ok(None) if self.observed.is_thread => Verdict::Exited(ExitedBecause::PidIsAThread),
            Ok(None) if self.is_view_complete() => Verdict::Exited(ExitedBecause::NoSuchProcess),
            Ok(None) => Verdict::Unknown(UnknownBecause::IncompleteView),
        }
    }

    /// Whether the claim is about this process.
    fn process(&self, seen: &Seen) -> Verdict {
        if seen.process.is_exited {
            return Verdict::Exited(ExitedBecause::Zombie);
        }
        if seen.process.is_kernel_thread {
            return Verdict::Exited(ExitedBecause::PidReused);
        }
        match self.stamp_equals(&seen.process) {
            Some(true) => self.equal_stamp(seen),
            Some(false) if is_initial(&self.context.view.is_initial_time_namespace) => {
                Verdict::Exited(ExitedBecause::PidReused)
            }
            Some(false) => Verdict::Unknown(UnknownBecause::OtherTimeNamespace),
            None => self.by_date(seen),
        }
    }

    fn equal_stamp(&self, seen: &Seen) -> Verdict {
        if seen.recognition == Recognition::AnotherProgram {
            return Verdict::Unknown(UnknownBecause::ProgramChanged);
        }
        // Only here may the file's own time speak: an equal stamp of an
        // earlier boot would have to have been touched since.
        let is_of_this_boot = [self.claim.dated_at_ms, self.claim.modified_at_ms]
            .into_iter()
            .flatten()
            .filter(|at| self.context.is_no_date_of_the_future(*at))
            .any(|at| self.context.booted_at_ms.is_some_and(|booted| at >= booted));
        if self.names_our_boot() || is_of_this_boot {
            Verdict::Live(LiveBecause::StartStamp, Confidence::Proven)
        } else if seen.recognition.is_the_program() {
            Verdict::Live(LiveBecause::StartStamp, Confidence::Consistent)
        } else {
            Verdict::Unknown(UnknownBecause::BootNotKnown)
        }
    }

    /// Without a stamp: the owner began before it made the claim, a process
    /// that reuses its PID began after. That order is all there is, and it
    /// bends when the wall clock is stepped.
    fn by_date(&self, seen: &Seen) -> Verdict {
        if self.date_ms.is_none() {
            return Verdict::Unknown(UnknownBecause::BarePid);
        }
        match self.is_older_than_claim(&seen.process) {
            None => Verdict::Unknown(UnknownBecause::ProbeFailed),
            // The number is that of a process in a namespace which may be gone.
            Some(true) if seen.rival == Rival::Elsewhere => {
                Verdict::Unknown(UnknownBecause::OtherPidNamespace)
            }
            Some(true) if seen.rival == Rival::Past => Verdict::Exited(ExitedBecause::PidReused),
            Some(true) if seen.recognition.may_be_the_agent() => {
                Verdict::Live(LiveBecause::StartedBeforeClaim, self.at_best_consistent())
            }
            Some(true) => Verdict::Unknown(UnknownBecause::UnrecognizedProgram),
            Some(false)
                if seen.recognition == Recognition::AnotherProgram
                    || seen.has_newer_claim_to_other =>
            {
                Verdict::Exited(ExitedBecause::PidReused)
            }
            Some(false) => Verdict::Unknown(UnknownBecause::YoungerThanClaim),
        }
    }

    /// How sure it is that a claimed process is the right one by its dates: no
    /// surer than the claim is of the process.
    const fn at_best_consistent(&self) -> Confidence {
        if self.claim.is_inferred {
            Confidence::Inferred
        } else {
            Confidence::Consistent
        }
    }

    /// Every process that the claim could be about can be seen from here.
    fn is_view_complete(&self) -> bool {
        let view = self.context.view;
        let is_namespace_covered = match self.claim.scope.pid_namespace {
            Some(_) => self.names_our_namespace(),
            None => {
                is_initial(&view.is_initial_pid_namespace)
                    || self.claim.placement == Placement::ThisContainer
            }
        };
        matches!(view.is_everything_shown, Ok(true))
            && is_initial(&view.is_initial_time_namespace)
            && is_namespace_covered
    }

    fn names_our_boot(&self) -> bool {
        matches!(
            (&self.claim.scope.boot, &self.context.scope.boot),
            (Some(claimed), Ok(ours)) if claimed == ours
        )
    }

    fn names_our_namespace(&self) -> bool {
        matches!(
            (self.claim.scope.pid_namespace, &self.context.scope.pid_namespace),
            (Some(named), Ok(ours)) if named == *ours
        )
    }

    fn has_equal_stamp_at_pid(&self) -> bool {
        matches!(&self.observed.at_pid, Ok(Some(seen))
            if self.stamp_equals(&seen.process) == Some(true))
    }

    /// `None`: the claim has no stamp that could be compared.
    fn stamp_equals(&self, process: &Process) -> Option<bool> {
        self.claim.stamp.as_ref()?.is_same_as(&process.stamp)
    }

    /// `None`: one of the two dates is not known.
    fn is_older_than_claim(&self, process: &Process) -> Option<bool> {
        let began = process.began_ms()?;
        Some(began <= self.date_ms?.saturating_add(CLOCK_SLACK_MS))
    }
}

/// A kernel without such namespaces has only the initial one.
pub(crate) fn is_initial(field: &Result<bool, Absent>) -> bool {
    matches!(field, Ok(true) | Err(Absent::Unsupported))
}

const fn could_not_look(failure: LookFailure) -> Verdict {
    Verdict::Unknown(match failure {
        LookFailure::Hidden => UnknownBecause::Hidden,
        LookFailure::Failed => UnknownBecause::ProbeFailed,
    })
}
