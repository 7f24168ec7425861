//! Sessions that may have to end.

use std::time::Duration;

use whosup_core::adapter::claim::Claim;
use whosup_core::judging::observe::Observer;
use whosup_core::judging::verdict::{Liveness, Verdict};
use whosup_core::machine::Machine;
use whosup_core::process::HostName;
use whosup_core::sources::record::{EndCause, RecordedOwner, SessionRecord, StoredRecord};

use super::conditions::positive_exit;
use super::{ENDED_MAX, SweepOptions, SweepReport, kept, problem};
use crate::append::read_record;
use crate::refresh::read_folded;
use crate::{SessionFiles, SessionLock, Store, TrackError};

/// Why a session may have to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ground {
    /// Its own process has provably exited.
    OwnerExited(EndCause),
    /// A person declared that the host is gone.
    HostForgotten,
    /// It is unknown, and it has been silent for as long as the configuration
    /// waits.
    Silent(Duration),
}

impl Ground {
    /// Returns whether both are one ground: a PID that was free may be another
    /// process's by the second look.
    pub(super) fn is_as(self, other: Self) -> bool {
        std::mem::discriminant(&self) == std::mem::discriminant(&other)
    }
}

/// A session that may have to end.
pub(super) struct Candidate {
    pub(super) stored: StoredRecord,
    pub(super) ground: Ground,
}

/// The same, under its lock.
pub(super) struct Held {
    pub(super) stored: StoredRecord,
    pub(super) ground: Ground,
    pub(super) files: SessionFiles,
    /// `None` if nothing is to be written.
    pub(super) lock: Option<SessionLock>,
}

/// Picks the sessions that there is a ground to end.
pub(super) fn candidates(
    machine: &Machine,
    open: Vec<StoredRecord>,
    options: &SweepOptions,
) -> Vec<Candidate> {
    let verdicts = verdicts_of_owners(machine, &open.iter().collect::<Vec<_>>());
    open.into_iter()
        .zip(verdicts)
        .filter_map(|(stored, owners)| {
            let ground = ground(&stored.record, &owners, machine, options)?;
            Some(Candidate { stored, ground })
        })
        .take(ENDED_MAX)
        .collect()
}

/// The owners of a record that have not let go, and what is thought of each.
type Owners = Vec<(RecordedOwner, Verdict)>;

/// What is thought of the owners of each record.
fn verdicts_of_owners(machine: &Machine, stored: &[&StoredRecord]) -> Vec<Owners> {
    let claims: Vec<Vec<_>> = stored
        .iter()
        .map(|stored| stored.claims_of_owners(machine))
        .collect();
    let made: Vec<_> = claims.iter().flatten().map(|(_, claim)| claim).collect();
    let mut observer = Observer::new(machine, made);
    let mut judge = |claims: &Vec<(&RecordedOwner, Claim)>| {
        let claims = claims.iter();
        claims
            .map(|(owner, claim)| ((*owner).clone(), observer.judge(claim).verdict))
            .collect()
    };
    claims.iter().map(&mut judge).collect()
}

/// The ground on which each held session may end, by another look.
pub(super) fn grounds_again(
    machine: &Machine,
    held: &[Held],
    options: &SweepOptions,
) -> Vec<Option<Ground>> {
    let stored: Vec<_> = held.iter().map(|held| &held.stored).collect();
    let verdicts = verdicts_of_owners(machine, &stored);
    let again = |(stored, owners): (&&StoredRecord, Owners)| {
        ground(&stored.record, &owners, machine, options)
    };
    stored.iter().zip(verdicts).map(again).collect()
}

fn ground(
    record: &SessionRecord,
    owners: &[(RecordedOwner, Verdict)],
    machine: &Machine,
    options: &SweepOptions,
) -> Option<Ground> {
    let exits = owners.iter();
    let exits: Option<Vec<EndCause>> = exits
        .map(|(owner, verdict)| positive_exit(owner, *verdict, machine))
        .collect();
    let last = exits.and_then(|exits| exits.last().copied());
    if let Some(cause) = last.filter(|_| !record.owners.may_be_another()) {
        return Some(Ground::OwnerExited(cause));
    }
    let is_live = |(_, verdict): &(_, Verdict)| verdict.liveness() == Liveness::Live;
    if owners.iter().any(is_live) {
        return None;
    }
    let is_forgotten = |forgotten: &String| {
        let forgotten = HostName(forgotten.clone());
        let is_of_it = |(owner, _): &(RecordedOwner, _)| {
            let host = owner.host.as_deref();
            host.is_some_and(|host| forgotten.is_same_host(host))
        };
        !owners.is_empty() && owners.iter().all(is_of_it)
    };
    if options.forgotten_host.as_ref().is_some_and(is_forgotten) {
        return Some(Ground::HostForgotten);
    }
    let patience = options.end_unknown_after?;
    is_silent(record.last_event_at_ms, patience, machine).then_some(Ground::Silent(patience))
}

/// Returns whether the last sign of life is longer ago than `patience`.
pub(super) fn is_silent(last_at_ms: i64, patience: Duration, machine: &Machine) -> bool {
    let patience_ms = i64::try_from(patience.as_millis()).unwrap_or(i64::MAX);
    machine.now_ms().saturating_sub(last_at_ms) > patience_ms
}

/// Takes the locks, and reads again what is in the records under them.
pub(super) fn hold(
    store: &Store,
    found: Vec<Candidate>,
    options: &SweepOptions,
    report: &mut SweepReport,
) -> Vec<Held> {
    let mut held = Vec::new();
    for Candidate { stored, ground } in found {
        let record = &stored.record;
        let files = store.files_of(&record.agent, &record.session);
        let lock = match take_lock(&files, options) {
            Ok(lock) => lock,
            Err(because) => {
                report.kept.push(kept(&stored, because));
                continue;
            }
        };
        match read_again(&files) {
            Ok(Some(again)) if is_as_before(&again, record) => held.push(Held {
                stored,
                ground,
                files,
                lock,
            }),
            Err(error) => report.problems.push(problem(&stored, &error)),
            // A hook reported an event of it meanwhile.
            _ => report
                .kept
                .push(kept(&stored, "its record has changed".to_owned())),
        }
    }
    held
}

/// No hook has reported an event of the session since.
fn is_as_before(again: &SessionRecord, before: &SessionRecord) -> bool {
    let known = |record: &SessionRecord| (record.phase, record.last_event_at_ms);
    let is_same_log = match (again.heard.log_bytes, before.heard.log_bytes) {
        (Some(again), Some(before)) => again == before,
        _ => true,
    };
    is_same_log && known(again) == known(before) && again.owners == before.owners
}

/// What is in a session's files now.
fn read_again(files: &SessionFiles) -> Result<Option<SessionRecord>, TrackError> {
    Ok(read_folded(files)?.or_else(|| read_record(files)))
}

fn take_lock(files: &SessionFiles, options: &SweepOptions) -> Result<Option<SessionLock>, String> {
    if options.is_dry_run {
        return Ok(None);
    }
    match SessionLock::take(files, Duration::ZERO) {
        Ok(Some(lock)) => Ok(Some(lock)),
        Ok(None) => Err("another process holds the lock of the record".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}
