//! Ends the sessions whose process is gone.

mod candidate;
mod conditions;
mod exit_status;
mod finish;
mod histories;
mod lone_locks;
mod put_away;
mod retention;

use std::time::Duration;

use whosup_core::adapter::phase::Phase;
use whosup_core::machine::Machine;
use whosup_core::machine::problem::Problem;
use whosup_core::process::Pid;
use whosup_core::sidecar::{AgentId, SessionId};
use whosup_core::sources::record::{EndCause, SessionRecord, StoredRecord, read_records};

use self::candidate::{candidates, hold};
use self::finish::end_all;
#[cfg(test)]
pub(crate) use self::retention::remove;
use crate::end::{Pass, end_to_pass_on, pass_on};
use crate::{SessionLock, Store, TrackError, refresh};

/// How many sessions one sweep ends: as many locks are held at once.
const ENDED_MAX: usize = 200;
/// How long records of ended sessions are kept by default.
pub const KEEP_ENDED: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// What a sweep may end and remove.
#[derive(Debug, Clone)]
pub struct SweepOptions {
    /// Only reports what it would do.
    pub is_dry_run: bool,
    /// How long the records of ended sessions are kept.
    pub keep_ended: Duration,
    /// Also ends unknown sessions that have been silent for longer. `None`: unknown
    /// sessions stay.
    pub end_unknown_after: Option<Duration>,
    /// Also ends what ran on this host, which is gone.
    pub forgotten_host: Option<String>,
    /// Homes beyond those that environments lead to.
    pub extra_homes: Vec<(AgentId, std::path::PathBuf)>,
}

impl Default for SweepOptions {
    fn default() -> Self {
        Self {
            is_dry_run: false,
            keep_ended: KEEP_ENDED,
            end_unknown_after: None,
            forgotten_host: None,
            extra_homes: Vec::new(),
        }
    }
}

/// What a sweep did, or would do.
#[derive(Debug, Clone, Default)]
pub struct SweepReport {
    /// The sessions that it ended.
    pub ended: Vec<Swept>,
    /// Sessions whose recorded process is gone and that are, or may be, live nevertheless.
    pub kept: Vec<Kept>,
    /// The sessions whose end the caller must now pass on: those that the sweep ended,
    /// and those whose agent reported an end that no process could pass on.
    pub to_pass_on: Vec<SessionRecord>,
    /// How many records of sessions that ended long ago it removed.
    pub removed: usize,
    /// What could not be read or written.
    pub problems: Vec<Problem>,
}

/// A session that a sweep ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Swept {
    /// The agent.
    pub agent: AgentId,
    /// The session.
    pub session: SessionId,
    /// The process that was gone; `None` if no process was known.
    pub pid: Option<Pid>,
    /// How it was known.
    pub cause: EndCause,
    /// The last evidence of life, in milliseconds since 1970.
    pub ended_at_ms: i64,
}

/// A session whose recorded process is gone and that was not ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// The agent.
    pub agent: AgentId,
    /// The session.
    pub session: SessionId,
    /// Why not.
    pub because: String,
}

/// Ends every session whose own process has provably exited and that no other process
/// serves, or may serve. Removes the records of those that ended long ago.
///
/// `look` takes a new look at the machine. It is called once, and a second time
/// under the locks if there is something to end.
///
/// # Errors
///
/// [`TrackError::NoPlace`] if the environment names no place for records;
/// [`TrackError::OwnHost`] if this host is the one to be forgotten.
pub fn sweep(
    look: impl Fn() -> Machine,
    options: &SweepOptions,
) -> Result<SweepReport, TrackError> {
    let mut report = SweepReport::default();
    let machine = look();
    if let Some(host) = &options.forgotten_host {
        refuse_own(host, &machine)?;
    }
    let store = Store::of(machine.environment())?;
    let stored = read_records(store.root(), |_| true).take(&mut report.problems);
    let (ended, open): (Vec<_>, Vec<_>) = stored
        .into_iter()
        .partition(|stored| stored.record.phase == Phase::Ended);
    if !options.is_dry_run {
        take_on_noted_ends(&store, &ended, &mut report);
        histories::remove_old(&machine, &open, &mut report);
    }
    if !options.is_dry_run {
        put_away::put_away(&store, &ended, &machine, &mut report);
    }
    retention::remove_old(&store, ended, &machine, options, &mut report);
    lone_locks::remove_old(&store, &machine, options, &mut report);
    let found = candidates(&machine, open, options);
    if found.is_empty() {
        return Ok(report);
    }
    let held = hold(&store, found, options, &mut report);
    if !held.is_empty() {
        end_all(&look(), held, options, &mut report);
    }
    Ok(report)
}

/// Refuses to forget this host: its processes can be seen. A host whose own name is
/// unknown could be any host.
fn refuse_own(host: &str, machine: &Machine) -> Result<(), TrackError> {
    match &machine.table().scope().host {
        Ok(own) if !own.is_same_host(host) => Ok(()),
        _ => Err(TrackError::OwnHost {
            host: host.to_owned(),
        }),
    }
}

/// Takes on the ends that agents reported while another process held the lock, or was
/// killed while it passed them on.
fn take_on_noted_ends(store: &Store, ended: &[StoredRecord], report: &mut SweepReport) {
    let noted = ended
        .iter()
        .filter(|stored| end_to_pass_on(&stored.record).is_some());
    for stored in noted.take(ENDED_MAX) {
        match take_on(store, stored) {
            Ok(record) => report.to_pass_on.extend(record),
            Err(error) => report.problems.push(problem(stored, &error)),
        }
    }
}

fn take_on(store: &Store, stored: &StoredRecord) -> Result<Option<SessionRecord>, TrackError> {
    let files = store.files_of(&stored.record.agent, &stored.record.session);
    let Some(lock) = SessionLock::take(&files, Duration::ZERO)? else {
        return Ok(None);
    };
    let record = refresh(&files, &lock)?;
    let (record, pass) = pass_on(&files, record, &lock)?;
    Ok(record.filter(|_| pass == Pass::On))
}

fn kept(stored: &StoredRecord, because: String) -> Kept {
    Kept {
        agent: stored.record.agent.clone(),
        session: stored.record.session.clone(),
        because,
    }
}

fn problem(stored: &StoredRecord, error: &TrackError) -> Problem {
    Problem::at(&stored.record.agent, &stored.path, error)
}
