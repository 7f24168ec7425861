//! Judges the sessions that may have to end by a new look, under their locks, and
//! ends those of which nothing is left.

use std::collections::BTreeSet;

use whosup_core::adapter::Depth;
use whosup_core::adapter::phase::Phase;
use whosup_core::judging::verdict::{ExitedBecause, Verdict};
use whosup_core::machine::Machine;
use whosup_core::process::Pid;
use whosup_core::sessions::scan::{Scanned, Scope, scan};
use whosup_core::sessions::session::Session;
use whosup_core::sidecar::SessionId;
use whosup_core::sources::recognize::Users;
use whosup_core::sources::record::{EndCause, LoggedEnd, StoredRecord};

use super::candidate::{Ground, Held, grounds_again, is_silent};
use super::conditions::why_not;
use super::exit_status::ExitStatuses;
use super::{SweepOptions, SweepReport, Swept, kept, problem};
use crate::end::{Ended, end_event, end_session};

/// Judges all claims on the held sessions, by a new look, and ends
/// those of which nothing is left.
pub(super) fn end_all(
    machine: &Machine,
    held: Vec<Held>,
    options: &SweepOptions,
    report: &mut SweepReport,
) {
    let mut scanned = look_at(machine, &held, options);
    let grounds: Vec<Result<Ground, String>> = held
        .iter()
        .zip(grounds_again(machine, &held, options))
        .map(|(held, again)| {
            again
                .filter(|again| again.is_as(held.ground))
                .ok_or_else(|| "its process may live after all".to_owned())
                .and_then(|ground| {
                    why_not(&held.stored.record, ground, &scanned).map_or(Ok(ground), Err)
                })
        })
        .collect();
    // Reads the dates in their files; what can't be read there claims nothing.
    let ids: BTreeSet<&SessionId> = held
        .iter()
        .map(|held| &held.stored.record.session)
        .collect();
    scanned.describe(|session| ids.contains(&session.key.session));
    let statuses = ExitStatuses::new(machine);
    for (held, ground) in held.iter().zip(grounds) {
        let last_at_ms = last_sign_of_life(&held.stored, &scanned, machine);
        let has_exit_record = || was_shut_down(&held.stored, &scanned);
        let cause_of = |cause| {
            if was_left(&held.stored, &scanned) {
                return EndCause::Superseded;
            }
            let status = statuses.of(&held.stored.record);
            status.unwrap_or_else(|| {
                if has_exit_record() {
                    EndCause::ExitRecord
                } else if is_orphan(&held.stored, &scanned) {
                    cause
                } else {
                    EndCause::Left
                }
            })
        };
        let end = ground.and_then(|ground| end_of(ground, last_at_ms, cause_of, machine));
        match end {
            Ok(end) => end_one(held, end, machine, report),
            Err(because) => report.kept.push(kept(&held.stored, because)),
        }
    }
}

/// Looks for all claims on the held sessions.
///
/// Not at every other session on disk: what processes lead to is found in any case,
/// and of these sessions all that lies anywhere. A sub-agent is judged by its
/// parent, so then everything is walked.
fn look_at<'a>(machine: &'a Machine, held: &[Held], options: &SweepOptions) -> Scanned<'a> {
    let records = || held.iter().map(|held| &held.stored.record);
    let ids: BTreeSet<SessionId> = records().map(|record| record.session.clone()).collect();
    let mut scope = Scope {
        depth: Depth::Sessions(ids.clone()),
        agents: Some(records().map(|record| record.agent.clone()).collect()),
        users: Users::All,
        extra_homes: options.extra_homes.clone(),
        is_judged_again: false,
    };
    let scanned = scan(machine, &scope);
    let is_childs =
        |session: &Session| session.sketch.parent.is_some() && ids.contains(&session.key.session);
    if scanned.snapshot.sessions.iter().any(is_childs) {
        scope.depth = Depth::All;
        return scan(machine, &scope);
    }
    scanned
}

fn end_of(
    ground: Ground,
    last_at_ms: i64,
    cause_of: impl FnOnce(EndCause) -> EndCause,
    machine: &Machine,
) -> Result<LoggedEnd, String> {
    let cause = match ground {
        Ground::OwnerExited(cause) => cause_of(cause),
        Ground::HostForgotten => EndCause::ByHand,
        Ground::Silent(patience) if is_silent(last_at_ms, patience, machine) => EndCause::Unknown,
        Ground::Silent(_) => {
            return Err("it is not silent: the agent's files show activity".to_owned());
        }
    };
    Ok(LoggedEnd {
        cause,
        ended_at_ms: last_at_ms,
    })
}

fn end_one(held: &Held, end: LoggedEnd, machine: &Machine, report: &mut SweepReport) {
    let record = &held.stored.record;
    let swept = Swept {
        agent: record.agent.clone(),
        session: record.session.clone(),
        pid: record.owner.as_ref().map(|owner| owner.pid),
        cause: end.cause,
        ended_at_ms: end.ended_at_ms,
    };
    if let Some(lock) = &held.lock {
        let id = format!("sweep-{}-{}", Pid::own(), machine.now_ms());
        match end_session(&held.files, &end_event(record, end, id), Some(lock)) {
            Ok(Ended::Now(record)) => report.to_pass_on.push(*record),
            Ok(_) => {
                let because = "something was heard of it meanwhile".to_owned();
                report.kept.push(kept(&held.stored, because));
                return;
            }
            Err(error) => {
                report.problems.push(problem(&held.stored, &error));
                return;
            }
        }
    }
    report.ended.push(swept);
}

/// The session of a record, as it was found by the look.
fn found<'s>(
    stored: &'s StoredRecord,
    scanned: &'s Scanned<'_>,
) -> impl Iterator<Item = &'s Session> {
    let record = &stored.record;
    let sessions = scanned.snapshot.sessions.iter();
    sessions.filter(|session| {
        session.key.agent == record.agent && session.key.session == record.session
    })
}

/// Returns whether its process had left a session for another one.
fn was_left(stored: &StoredRecord, scanned: &Scanned<'_>) -> bool {
    let is_left = |session: &Session| session.verdict == Verdict::Exited(ExitedBecause::Superseded);
    found(stored, scanned).any(is_left)
}

/// Returns whether the look shows that its process went without an end.
fn is_orphan(stored: &StoredRecord, scanned: &Scanned<'_>) -> bool {
    found(stored, scanned).any(Session::is_orphan)
}

/// Returns whether the agent's own files end with the session's shutdown, and no hook
/// has reported an event since.
fn was_shut_down(stored: &StoredRecord, scanned: &Scanned<'_>) -> bool {
    let record = &stored.record;
    let is_shut_down = |session: &Session| {
        let last_at_ms = session.description.last_activity_at_ms;
        session.sketch.parent.is_none()
            && session.description.phase == Some(Phase::Ended)
            && last_at_ms.is_some_and(|at_ms| at_ms >= record.last_event_at_ms)
    };
    found(stored, scanned).any(is_shut_down)
}

/// When something last showed that the session lived: an event, or a date inside
/// its agent's own files. Never the time of the sweep.
fn last_sign_of_life(stored: &StoredRecord, scanned: &Scanned<'_>, machine: &Machine) -> i64 {
    let record = &stored.record;
    let dates = found(stored, scanned).filter_map(Session::last_activity_at_ms);
    dates
        .filter(|at_ms| *at_ms <= machine.now_ms())
        .chain([record.last_event_at_ms])
        .max()
        .unwrap_or(record.last_event_at_ms)
}
