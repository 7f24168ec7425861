//! Removes the records of sessions that ended long ago.

use std::time::Duration;

use whosup_core::machine::Machine;
use whosup_core::sources::record::StoredRecord;

use super::{SweepOptions, SweepReport, problem};
use crate::shorten::{remove_if_there, take_away};
use crate::{SessionFiles, SessionLock, Store, TrackError};

/// Removes the records of the sessions that ended longer ago than they are kept.
pub(super) fn remove_old(
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

/// Removes the files of an ended session under its lock, the lock last. A process that
/// waits for the lock finds that it is no longer at its path, and nothing is touched
/// here after it is gone: so two holders never act on one session.
pub(crate) fn remove(files: &SessionFiles) -> Result<bool, TrackError> {
    let Some(lock) = SessionLock::take(files, Duration::ZERO)? else {
        return Ok(false);
    };
    if !take_away(files, &lock)? {
        return Ok(false);
    }
    for path in [&files.record, &files.ended, &files.lock] {
        remove_if_there(path)?;
    }
    Ok(true)
}
