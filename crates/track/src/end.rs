//! The one way into the end of a session.

use std::time::Duration;

use whosup_core::hook_event::EventKind;
use whosup_core::phase::Phase;
use whosup_core::process::Pid;
use whosup_core::record::{EndCause, LoggedEnd, LoggedEvent, SessionRecord};

use crate::append::{append, read_record};
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

/// Ends a session because a person says so; `None` if there is no record of it.
/// Whether it may live is for the caller to ask.
///
/// # Errors
///
/// [`TrackError`] if the end could not be written down.
pub fn end_by_hand(files: &SessionFiles, now_ms: i64) -> Result<Option<Ended>, TrackError> {
    if !files.record.exists() && !files.log.exists() {
        return Ok(None);
    }
    let Some(lock) = SessionLock::take(files, LOCK_PATIENCE)? else {
        // Whoever has it is hearing of the session now.
        return Ok(Some(Ended::GoesOn));
    };
    let record = match read_folded(files)? {
        Some(record) => Some(record),
        None => read_record(files),
    };
    let Some(record) = record else {
        return Ok(None);
    };
    let ended_at_ms = record.last_event_at_ms;
    let event = LoggedEvent {
        id: format!("hand-{}-{now_ms}", Pid::own()),
        at_ms: ended_at_ms,
        kind: EventKind::SessionEnded,
        home: record.home.clone(),
        owner: record.owner.clone(),
        work_dir: None,
        git_branch: None,
        transcript: None,
        prompt: None,
        reason: None,
        pane: None,
        end: Some(LoggedEnd {
            cause: EndCause::ByHand,
            ended_at_ms,
        }),
    };
    end_session(files, &event, Some(&lock)).map(Some)
}
