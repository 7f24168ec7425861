//! Ends the sessions whose process is gone.

mod conditions;

use std::collections::BTreeSet;
use std::time::Duration;

use whosup_core::agents::Depth;
use whosup_core::hook_event::EventKind;
use whosup_core::machine::Machine;
use whosup_core::observe::Observer;
use whosup_core::phase::Phase;
use whosup_core::problem::Problem;
use whosup_core::process::Pid;
use whosup_core::recognize::Users;
use whosup_core::record::{
    EndCause, LoggedEnd, LoggedEvent, SessionRecord, StoredRecord, read_records,
};
use whosup_core::scan::{Scanned, Scope, scan};
use whosup_core::sidecar::{AgentId, SessionId};
use whosup_core::verdict::Verdict;

use self::conditions::{positive_exit, why_not};
use crate::append::read_record;
use crate::end::{Ended, end_session};
use crate::refresh::read_folded;
use crate::{SessionFiles, SessionLock, Store, TrackError};

/// How many sessions one sweep ends: as many locks are held at once.
const ENDED_MAX: usize = 200;
/// How long records of ended sessions are kept unless somebody says otherwise.
const KEEP_ENDED: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// How a sweep goes about it.
#[derive(Debug, Clone)]
pub struct SweepOptions {
    /// Only tells what it would do.
    pub is_dry_run: bool,
    /// How long the records of ended sessions are kept.
    pub keep_ended: Duration,
    /// Homes beyond those that environments lead to.
    pub extra_homes: Vec<(AgentId, std::path::PathBuf)>,
}

impl Default for SweepOptions {
    fn default() -> Self {
        Self {
            is_dry_run: false,
            keep_ended: KEEP_ENDED,
            extra_homes: Vec::new(),
        }
    }
}

/// What a sweep did, or would do.
#[derive(Debug, Clone, Default)]
pub struct SweepReport {
    /// The sessions that it ended.
    pub ended: Vec<Swept>,
    /// Sessions whose recorded process is gone and that go on all the same, or may.
    pub kept: Vec<Kept>,
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
    /// The process that was gone.
    pub pid: Pid,
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

/// A session that may have to end, under its lock.
struct Held {
    stored: StoredRecord,
    files: SessionFiles,
    lock: Option<SessionLock>,
}

/// Ends every session whose own process has provably exited and that nobody else
/// serves, or may serve. Removes the records of those that ended long ago.
///
/// `look` takes a new look at the machine. It is called once, and a second time
/// under the locks if there is something to end.
///
/// # Errors
///
/// [`TrackError::NoPlace`] if the environment names no place for records.
pub fn sweep(
    look: impl Fn() -> Machine,
    options: &SweepOptions,
) -> Result<SweepReport, TrackError> {
    let mut report = SweepReport::default();
    let machine = look();
    let store = Store::of(machine.environment())?;
    let stored = read_records(store.root(), |_| true).take(&mut report.problems);
    let (ended, open): (Vec<_>, Vec<_>) = stored
        .into_iter()
        .partition(|stored| stored.record.phase == Phase::Ended);
    remove_old(&store, ended, &machine, options, &mut report);
    let gone = with_exited_owner(&machine, open);
    if gone.is_empty() {
        return Ok(report);
    }
    let held = hold(&store, gone, options, &mut report);
    if !held.is_empty() {
        end_all(&look(), held, options, &mut report);
    }
    Ok(report)
}

/// The records whose own owner has exited, by its identity.
fn with_exited_owner(machine: &Machine, open: Vec<StoredRecord>) -> Vec<StoredRecord> {
    let claims: Vec<_> = open
        .iter()
        .filter_map(|stored| stored.claim_of_owner(machine))
        .collect();
    let mut observer = Observer::new(machine, &claims);
    let mut is_gone = |stored: &StoredRecord| {
        let claim = stored.claim_of_owner(machine)?;
        positive_exit(&stored.record, observer.judge(&claim).verdict, machine)
    };
    open.into_iter()
        .filter(|stored| is_gone(stored).is_some())
        .take(ENDED_MAX)
        .collect()
}

/// Takes the locks, and reads again what is in the records under them.
fn hold(
    store: &Store,
    gone: Vec<StoredRecord>,
    options: &SweepOptions,
    report: &mut SweepReport,
) -> Vec<Held> {
    let mut held = Vec::new();
    for stored in gone {
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
            Ok(Some(again)) if again == *record => held.push(Held {
                stored,
                files,
                lock,
            }),
            Err(error) => report.problems.push(problem(&stored, &error)),
            // Something was heard of it meanwhile.
            _ => report
                .kept
                .push(kept(&stored, "its record has changed".to_owned())),
        }
    }
    held
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
        Ok(None) => Err("somebody else is at its record".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// Judges everything that is said of the held sessions, by a new look, and ends
/// those of which nothing is left.
fn end_all(machine: &Machine, held: Vec<Held>, options: &SweepOptions, report: &mut SweepReport) {
    let agents: BTreeSet<AgentId> = held
        .iter()
        .map(|held| held.stored.record.agent.clone())
        .collect();
    let scope = Scope {
        depth: Depth::All,
        agents: Some(agents),
        users: Users::All,
        extra_homes: options.extra_homes.clone(),
    };
    let mut scanned = scan(machine, &scope);
    let stored: Vec<_> = held.iter().map(|held| &held.stored).collect();
    let verdicts = verdicts_of_owners(machine, &stored);
    let may_end: Vec<Result<EndCause, String>> = stored
        .iter()
        .zip(verdicts)
        .map(|(stored, verdict)| {
            verdict
                .and_then(|verdict| positive_exit(&stored.record, verdict, machine))
                .ok_or_else(|| "its process may live after all".to_owned())
                .and_then(|cause| why_not(&stored.record, &scanned).map_or(Ok(cause), Err))
        })
        .collect();
    // Reads the dates in their files; what can't be read there claims nothing.
    let ids: BTreeSet<&SessionId> = stored.iter().map(|one| &one.record.session).collect();
    scanned.describe(|session| ids.contains(&session.key.session));
    for (held, may_end) in held.iter().zip(may_end) {
        match may_end {
            Ok(cause) => end_one(held, cause, &scanned, machine, report),
            Err(because) => report.kept.push(kept(&held.stored, because)),
        }
    }
}

fn verdicts_of_owners(machine: &Machine, stored: &[&StoredRecord]) -> Vec<Option<Verdict>> {
    let claims: Vec<_> = stored
        .iter()
        .map(|stored| stored.claim_of_owner(machine))
        .collect();
    let made: Vec<_> = claims.iter().flatten().cloned().collect();
    let mut observer = Observer::new(machine, &made);
    let judge = |claim: &Option<_>| claim.as_ref().map(|claim| observer.judge(claim).verdict);
    claims.iter().map(judge).collect()
}

fn end_one(
    held: &Held,
    cause: EndCause,
    scanned: &Scanned<'_>,
    machine: &Machine,
    report: &mut SweepReport,
) {
    let record = &held.stored.record;
    let Some(owner) = &record.owner else {
        return;
    };
    let ended_at_ms = last_sign_of_life(&held.stored, scanned, machine);
    let swept = Swept {
        agent: record.agent.clone(),
        session: record.session.clone(),
        pid: owner.pid,
        cause,
        ended_at_ms,
    };
    if let Some(lock) = &held.lock {
        let event = LoggedEvent {
            id: format!("sweep-{}-{}", Pid::own(), machine.now_ms()),
            at_ms: ended_at_ms,
            kind: EventKind::SessionEnded,
            home: record.home.clone(),
            owner: Some(owner.clone()),
            work_dir: None,
            git_branch: None,
            transcript: None,
            prompt: None,
            reason: None,
            pane: None,
            end: Some(LoggedEnd { cause, ended_at_ms }),
        };
        match end_session(&held.files, &event, Some(lock)) {
            Ok(Ended::Now(_)) => {}
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

/// When something last showed that the session lived: an event, or a date inside
/// its agent's own files. Never the time of the sweep.
fn last_sign_of_life(stored: &StoredRecord, scanned: &Scanned<'_>, machine: &Machine) -> i64 {
    let record = &stored.record;
    let told = scanned
        .snapshot
        .sessions
        .iter()
        .filter(|session| {
            session.key.agent == record.agent && session.key.session == record.session
        })
        .filter_map(|session| session.last_activity_at_ms());
    told.filter(|at_ms| *at_ms <= machine.now_ms())
        .chain([record.last_event_at_ms])
        .max()
        .unwrap_or(record.last_event_at_ms)
}

fn remove_old(
    store: &Store,
    ended: Vec<StoredRecord>,
    machine: &Machine,
    options: &SweepOptions,
    report: &mut SweepReport,
) {
    let keep_ms = i64::try_from(options.keep_ended.as_millis()).unwrap_or(i64::MAX);
    for stored in ended {
        let last_ms = stored.record.ended_at_ms.unwrap_or(i64::MAX);
        let last_ms = last_ms.max(stored.record.last_event_at_ms);
        if machine.now_ms().saturating_sub(last_ms) <= keep_ms {
            continue;
        }
        let files = store.files_of(&stored.record.agent, &stored.record.session);
        let removed = if options.is_dry_run {
            Ok(true)
        } else {
            remove(&files)
        };
        match removed {
            Ok(is_removed) => report.removed += usize::from(is_removed),
            Err(error) => report.problems.push(problem(&stored, &error)),
        }
    }
}

/// Removes the files of an ended session under its lock, the lock last. Whoever
/// waits for that lock finds that it is no longer at its path.
fn remove(files: &SessionFiles) -> Result<bool, TrackError> {
    let Some(_lock) = SessionLock::take(files, Duration::ZERO)? else {
        return Ok(false);
    };
    let is_ended = read_folded(files)?.is_none_or(|record| record.phase == Phase::Ended);
    if !is_ended {
        return Ok(false);
    }
    for path in [&files.record, &files.log, &files.lock] {
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(TrackError::at("remove", path)(error));
            }
            _ => {}
        }
    }
    Ok(true)
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
