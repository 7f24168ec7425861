//! Puts the records of ended sessions away, so that a look at what lives lists only what
//! may.

use std::time::Duration;

use whosup_core::adapter::phase::Phase;
use whosup_core::machine::Machine;
use whosup_core::sidecar::own_directory::Durable;
use whosup_core::sources::record::StoredRecord;

use super::candidate::is_silent;
use super::{SweepReport, problem};
use crate::disk::{IN_AGENT, replace};
use crate::end::end_to_pass_on;
use crate::refresh::read_folded;
use crate::shorten::{remove_if_there, take_away};
use crate::{SessionFiles, SessionLock, Store, TrackError};

/// How long an ended session stays where its hooks write. Trailing hooks come soon, but
/// what died is shown for a day, in a look that does not read what was put away.
const AFTER: Duration = Duration::from_secs(25 * 60 * 60);
/// How many one sweep puts away; the next sweep continues.
const PUT_AWAY_MAX: usize = 1_000;

/// Puts away what ended a while ago and was passed on.
pub(super) fn put_away(
    store: &Store,
    ended: &[StoredRecord],
    machine: &Machine,
    report: &mut SweepReport,
) {
    let is_due = |stored: &&StoredRecord| {
        let record = &stored.record;
        let files = store.files_of(&record.agent, &record.session);
        end_to_pass_on(record).is_none()
            && stored.path != files.ended
            && is_silent(record.last_event_at_ms, AFTER, machine)
    };
    for stored in ended.iter().filter(is_due).take(PUT_AWAY_MAX) {
        let files = store.files_of(&stored.record.agent, &stored.record.session);
        if let Err(error) = put_one_away(&files) {
            report.problems.push(problem(stored, &error));
        }
    }
}

/// A hook that reports on the session meanwhile finds one of the two records, and begins
/// a log with it. The lock is removed last: a process that waits for it sees that it is
/// gone.
fn put_one_away(files: &SessionFiles) -> Result<(), TrackError> {
    let Some(lock) = SessionLock::take(files, Duration::ZERO)? else {
        return Ok(());
    };
    let Some(record) = read_folded(files)?.or_else(|| crate::append::read_record(files)) else {
        return Ok(());
    };
    if record.phase != Phase::Ended {
        return Ok(());
    }
    let text = record.to_json().to_string();
    replace(&files.ended, IN_AGENT, text.as_bytes(), Durable::Now)
        .map_err(TrackError::at("write", &files.ended))?;
    if !take_away(files, &lock)? {
        // A hook reported an event of it.
        return remove_if_there(&files.ended);
    }
    for path in [&files.record, &files.lock] {
        remove_if_there(path)?;
    }
    Ok(())
}
