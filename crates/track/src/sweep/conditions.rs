//! What must hold before a session is ended by others than its agent.

use whosup_core::judging::verdict::{ExitedBecause, UnknownBecause, Verdict};
use whosup_core::machine::Machine;
use whosup_core::sessions::scan::Scanned;
use whosup_core::sessions::session::Session;
use whosup_core::sources::record::{EndCause, RecordedOwner, SessionRecord};

use super::candidate::Ground;

/// How an owner in a record is known to have exited; `None` if that is not proven.
///
/// A record without host, boot, PID namespace and stamp proves nothing, nor does a
/// reader that does not know its own. Another boot proves an exit only on this host.
pub(super) fn positive_exit(
    owner: &RecordedOwner,
    verdict: Verdict,
    machine: &Machine,
) -> Option<EndCause> {
    let scope = machine.table().scope();
    let host = owner.host.as_ref()?;
    let is_complete =
        owner.boot.is_some() && owner.pid_namespace.is_some() && owner.stamp.is_some();
    let is_known_here = scope.boot.is_ok() && scope.pid_namespace.is_ok();
    if !is_complete || !is_known_here {
        return None;
    }
    let is_this_host = scope
        .host
        .as_ref()
        .is_ok_and(|ours| ours.is_same_host(host));
    let Verdict::Exited(because) = verdict else {
        return None;
    };
    match because {
        ExitedBecause::NoSuchProcess | ExitedBecause::Zombie => Some(EndCause::ProcessGone),
        ExitedBecause::PidReused | ExitedBecause::PidIsAThread => Some(EndCause::PidReused),
        ExitedBecause::Rebooted => is_this_host.then_some(EndCause::Rebooted),
        ExitedBecause::Released
        | ExitedBecause::RecordedGone
        | ExitedBecause::NamespaceGone
        | ExitedBecause::LockNotHeld
        | ExitedBecause::Superseded
        | ExitedBecause::NoProcess
        | ExitedBecause::Parent => None,
        // A reason that is not known here proves nothing here.
        _ => None,
    }
}

/// Why a session is not ended although there is a ground to: another process serves it,
/// may serve it, or could not be looked at. Where a person declared the host gone, or the
/// configuration ends silent sessions, an unknown state does not keep the session, but a
/// process that is seen to serve it does.
pub(super) fn why_not(
    record: &SessionRecord,
    ground: Ground,
    scanned: &Scanned<'_>,
) -> Option<String> {
    let snapshot = &scanned.snapshot;
    let is_it = |session: &&Session| {
        session.key.agent == record.agent && session.key.session == record.session
    };
    let about: Vec<&Session> = snapshot.sessions.iter().filter(is_it).collect();
    if about.is_empty() {
        return Some("it was not found by a new look".to_owned());
    }
    let is_unknown_enough = match ground {
        Ground::OwnerExited(_) => false,
        Ground::HostForgotten | Ground::Silent(_) => true,
    };
    let keeps = |verdict: Verdict| match verdict {
        Verdict::Live(..) => true,
        // That process is there to be seen.
        Verdict::Unknown(UnknownBecause::MayBeServedBy(_)) => true,
        Verdict::Unknown(_) => !is_unknown_enough,
        Verdict::Exited(_) => false,
    };
    let server = about.iter().find_map(|session| served(session, keeps));
    let id = record.session.as_str();
    let candidate = || {
        let is_its = |pid: &&whosup_core::sessions::session::Unattributed| {
            pid.process.agent == record.agent && pid.candidates.contains(&record.session)
        };
        let process = snapshot.unattributed.iter().find(is_its)?;
        Some(format!(
            "process {} may serve it",
            process.process.process.pid
        ))
    };
    let unreadable = || {
        let is_about = |problem: &&whosup_core::machine::problem::Problem| {
            problem
                .agent
                .as_ref()
                .is_none_or(|agent| *agent == record.agent)
                && problem
                    .path
                    .as_ref()
                    .is_some_and(|path| path.to_string_lossy().contains(id))
        };
        let problem = snapshot.problems.iter().find(is_about)?;
        Some(format!("not everything could be read: {problem}"))
    };
    match ground {
        Ground::OwnerExited(_) => server.or_else(candidate).or_else(unreadable),
        Ground::Silent(_) => server.or_else(candidate),
        Ground::HostForgotten => server,
    }
}

/// What shows that a session is served, or may be.
fn served(session: &Session, keeps: impl Fn(Verdict) -> bool) -> Option<String> {
    if keeps(session.verdict) {
        let liveness = session.liveness().name();
        return Some(format!("it is {liveness} ({})", session.verdict.reason()));
    }
    let evidence = session
        .evidence
        .iter()
        .find(|judged| keeps(judged.verdict))?;
    let verdict = evidence.verdict;
    Some(format!(
        "{} says {}, which is {} ({})",
        evidence.evidence.kind.name(),
        evidence.evidence.says,
        verdict.liveness().name(),
        verdict.reason()
    ))
}
