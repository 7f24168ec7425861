//! The one way into the end of a session.

use std::time::Duration;

use whosup_core::phase::Phase;
use whosup_core::record::{LoggedEvent, SessionRecord};

use crate::append::append;
use crate::refresh::read_folded;
use crate::{SessionFiles, SessionLock, TrackError, refresh};

/// How long somebody who ends a session waits for its lock.
const LOCK_PATIENCE: Duration = Duration::from_millis(40);

/// What came of ending a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// It has ended now, and had not before.
    Now(Box<SessionRecord>),
    /// It had ended before.
    Already,
    /// It goes on: another process serves it than the one whose end was told.
    GoesOn,
    /// The end is written down; whether it was the first one is not known, for
    /// somebody else held the lock.
    Noted,
}

/// Ends a session. `event` tells how, and of which process; an end of a process
/// that no longer serves the session is passed over by every reader of the log.
///
/// With `held`, the session's lock is held already and all claims were judged
/// under it. Without, the agent itself told of the end: the lock is waited for a
/// moment, and the end is written down in any case.
///
/// # Errors
///
/// [`TrackError`] if the end could not be written down.
pub fn end_session(
    files: &SessionFiles,
    event: &LoggedEvent,
    held: Option<&SessionLock>,
) -> Result<Ended, TrackError> {
    let Some(held) = held else {
        // The directory may not be there yet: then nobody holds anything.
        let lock = SessionLock::take(files, LOCK_PATIENCE).unwrap_or_default();
        return match &lock {
            Some(lock) => end_session(files, event, Some(lock)),
            None => append(files, event).map(|()| Ended::Noted),
        };
    };
    if read_folded(files)?.is_some_and(|record| record.phase == Phase::Ended) {
        return Ok(Ended::Already);
    }
    append(files, event)?;
    Ok(match refresh(files, held)? {
        Some(record) if record.phase == Phase::Ended => Ended::Now(Box::new(record)),
        _ => Ended::GoesOn,
    })
}
