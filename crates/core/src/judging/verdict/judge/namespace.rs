//! Judges a claim whose PID may be a number of another PID namespace.

use super::{Judging, Recognition, Rival, Seen, could_not_look, is_initial};
use crate::adapter::claim::{CLOCK_SLACK_MS, Placement};
use crate::judging::verdict::{ExitedBecause, LiveBecause, UnknownBecause, Verdict};

impl Judging<'_> {
    /// The claim's PID may be a number of another PID namespace.
    pub(super) fn another_namespace(&self) -> Option<Verdict> {
        let ours = self.context.scope.pid_namespace.as_ref().ok();
        match (self.claim.scope.pid_namespace, ours) {
            (Some(named), Some(ours)) if named != *ours => Some(self.named_namespace()),
            (Some(_), _) => None,
            (None, _) => self.unnamed_namespace(),
        }
    }

    fn named_namespace(&self) -> Verdict {
        let sight = &self.observed.named_namespace;
        if let Some(seen) = &sight.at_pid {
            return self.process(seen);
        }
        let is_root_above_all = self.context.view.is_root
            && is_initial(&self.context.view.is_initial_pid_namespace)
            && self.context.view.is_everything_shown == Ok(true);
        let is_same_host = matches!(
            (&self.claim.scope.host, &self.context.scope.host),
            (Some(claimed), Ok(ours)) if ours.is_same_host(claimed)
        );
        let is_before_this_run = matches!(
            (self.date_ms, self.context.init_began_at_ms),
            (Some(date), Some(began)) if date < began.saturating_sub(CLOCK_SLACK_MS)
        );
        let is_earlier_run = !sight.is_populated
            && is_same_host
            && self.claim.placement == Placement::ThisContainer
            && is_before_this_run;
        match (sight.is_populated, is_root_above_all) {
            (true, true) => Verdict::Exited(ExitedBecause::NoSuchProcess),
            (false, true) => Verdict::Exited(ExitedBecause::NamespaceGone),
            _ if is_earlier_run => Verdict::Exited(ExitedBecause::NamespaceGone),
            _ => Verdict::Unknown(UnknownBecause::OtherPidNamespace),
        }
    }

    /// The claim names no PID namespace, so while there are several its PID may
    /// be a number of any of them: every process that has it somewhere counts.
    fn unnamed_namespace(&self) -> Option<Verdict> {
        let at_pid = self.observed.at_pid.as_ref().ok().and_then(Option::as_ref);
        let has_equal_stamp = |seen: &Seen| self.stamp_equals(&seen.process) == Some(true);
        // A wrapper outside and its agent inside may have one PID and one start tick.
        if let Some(seen) = at_pid
            && has_equal_stamp(seen)
            && seen.recognition == Recognition::ClaimingAgent
            && !self.observed.elsewhere.iter().any(has_equal_stamp)
        {
            return None;
        }
        let may_come_from_outside = !is_initial(&self.context.view.is_initial_pid_namespace)
            && self.claim.placement != Placement::ThisContainer;
        if !self.observed.has_nested_namespaces && !may_come_from_outside {
            return None;
        }
        let candidates = || {
            let all = at_pid.into_iter().chain(&self.observed.elsewhere);
            all.filter(|seen| !self.is_another_ones(seen))
        };
        let mut fits = candidates().filter(|seen| self.fits_unnamed(seen));
        match (fits.next(), fits.next()) {
            (Some(seen), None) if seen.rival == Rival::None => {
                let because = match self.stamp_equals(&seen.process) {
                    Some(_) => LiveBecause::StartStamp,
                    None => LiveBecause::StartedBeforeClaim,
                };
                return Some(Verdict::Live(because, self.at_best_consistent()));
            }
            (Some(_), _) => return Some(Verdict::Unknown(UnknownBecause::Ambiguous)),
            (None, _) => {}
        }
        if let Err(failure) = self.observed.at_pid {
            return Some(could_not_look(failure));
        }
        // A process that can't be ruled out is no proof of death.
        let open_question = candidates()
            .map(|seen| self.process(seen))
            .find(|verdict| !matches!(verdict, Verdict::Exited(_)));
        Some(match open_question {
            Some(Verdict::Unknown(because)) => Verdict::Unknown(because),
            Some(_) => Verdict::Unknown(UnknownBecause::UnrecognizedProgram),
            None if self.is_view_complete() => {
                let here = at_pid.filter(|seen| !seen.process.is_kernel_thread);
                match here.map(|seen| (self.process(seen), seen)) {
                    Some((exited @ Verdict::Exited(_), _)) => exited,
                    // Files can change their owner.
                    Some((_, seen)) if is_only_of_another_user(seen) => {
                        Verdict::Unknown(UnknownBecause::UnrecognizedProgram)
                    }
                    _ => Verdict::Exited(ExitedBecause::NoSuchProcess),
                }
            }
            None => Verdict::Unknown(UnknownBecause::OtherPidNamespace),
        })
    }

    /// One of the processes that have the claim's PID in some namespace is not the one
    /// that is meant: it is another user's, another program, or known to serve another
    /// session. A stamp is stronger evidence than the program.
    fn is_another_ones(&self, seen: &Seen) -> bool {
        let has_stamp = self.stamp_equals(&seen.process) == Some(true);
        let is_another_program = seen.recognition == Recognition::AnotherProgram && !has_stamp;
        seen.is_of_another_user || seen.rival >= Rival::Better || is_another_program
    }

    fn fits_unnamed(&self, seen: &Seen) -> bool {
        if seen.process.is_kernel_thread || seen.process.is_exited {
            return false;
        }
        let is_in_its_directory = self.claim.work_dir.is_none() || seen.is_in_claimed_directory;
        match self.stamp_equals(&seen.process) {
            Some(is_equal) => is_equal && seen.recognition != Recognition::AnotherProgram,
            None => {
                seen.recognition.is_the_program()
                    && is_in_its_directory
                    && self.is_older_than_claim(&seen.process) == Some(true)
            }
        }
    }
}

/// Nothing but the owner of the claim's file speaks against a process.
fn is_only_of_another_user(seen: &Seen) -> bool {
    let is_another_program = seen.recognition == Recognition::AnotherProgram;
    seen.is_of_another_user && !is_another_program && seen.rival < Rival::Better
}
