//! Ends sessions. All ends go through [`end_session`].

use std::time::Duration;

use whosup_core::adapter::hook_event::EventKind;
use whosup_core::adapter::phase::Phase;
use whosup_core::process::Pid;
use whosup_core::sources::record::{
    EndCause, LoggedEnd, LoggedEvent, SessionRecord, passed_on_line,
};

use crate::append::{append, append_line, read_record};
use crate::refresh::read_folded;
use crate::{SessionFiles, SessionLock, TrackError, refresh};

/// How long to wait for the lock of a session that is to end.
const LOCK_PATIENCE: Duration = Duration::from_millis(40);

/// The result of ending a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// It has ended, and the caller must pass the end on: no other process did or will.
    Now(Box<SessionRecord>),
    /// It had ended before.
    Already,
    /// It continues: it is served by another process than the process whose end was reported.
    GoesOn,
    /// The end is recorded. Whether it was the first end is unknown, because another
    /// process held the lock.
    Noted,
}

/// Ends a session. `event` records the cause and the process. Readers of the log
/// ignore the end of a process that no longer serves the session.
///
/// With `held`, the session's lock is held already and all claims were judged
/// under it. Without, the agent itself reported the end: this waits a moment for the
/// lock, and records the end in any case.
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
        // Where there can be no lock, there may still be a log.
        let lock = SessionLock::take(files, LOCK_PATIENCE).unwrap_or_default();
        return match &lock {
            Some(lock) => end_session(files, event, Some(lock)),
            None => append(files, event).map(|()| Ended::Noted),
        };
    };
    let has_ended = |record: &SessionRecord| record.phase == Phase::Ended;
    let had_ended = read_folded(files)?.as_ref().is_some_and(has_ended);
    if !had_ended {
        append(files, event)?;
    }
    let record = refresh(files, held)?;
    Ok(match pass_on(files, record, held)? {
        (Some(record), Pass::On) => Ended::Now(Box::new(record)),
        _ if had_ended => Ended::Already,
        (Some(record), Pass::Nothing) if has_ended(&record) => Ended::Already,
        _ => Ended::GoesOn,
    })
}

/// Whether there is an end to pass on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pass {
    /// The caller passes it on.
    On,
    /// There is no end, or another process has passed it on.
    Nothing,
}

/// Claims the duty to pass on the end of a session, if no process has claimed it. The
/// end of a process that is killed after this is lost: an end is never passed on twice.
pub(crate) fn pass_on(
    files: &SessionFiles,
    record: Option<SessionRecord>,
    held: &SessionLock,
) -> Result<(Option<SessionRecord>, Pass), TrackError> {
    let end = record.as_ref().and_then(end_to_pass_on);
    let Some(line) = end.map(passed_on_line) else {
        return Ok((record, Pass::Nothing));
    };
    append_line(files, &line)?;
    Ok((refresh(files, held)?, Pass::On))
}

/// The event that ended a session, unless that end was passed on.
pub(crate) fn end_to_pass_on(record: &SessionRecord) -> Option<&str> {
    let is_new = record.phase == Phase::Ended && !record.heard.is_end_passed_on;
    record.heard.end_event.as_deref().filter(|_| is_new)
}

/// Ends a session on a person's request; `None` without a record of it.
/// The caller checks whether it may be live.
///
/// # Errors
///
/// [`TrackError`] if the end could not be written down.
pub fn end_by_hand(files: &SessionFiles, now_ms: i64) -> Result<Option<Ended>, TrackError> {
    let places = [&files.record, &files.log, &files.ended];
    if places.into_iter().all(|path| !path.exists()) {
        return Ok(None);
    }
    let Some(lock) = SessionLock::take(files, LOCK_PATIENCE)? else {
        // The lock's holder is recording an event of the session now.
        return Ok(Some(Ended::GoesOn));
    };
    let record = match read_folded(files)? {
        Some(record) => Some(record),
        None => read_record(files),
    };
    let Some(record) = record else {
        return Ok(None);
    };
    let end = LoggedEnd {
        cause: EndCause::ByHand,
        ended_at_ms: record.last_event_at_ms,
    };
    let event = end_event(&record, end, format!("hand-{}-{now_ms}", Pid::own()));
    end_session(files, &event, Some(&lock)).map(Some)
}

/// The end of a session that its agent did not report. The caller has looked at all
/// owners of the session.
pub(crate) fn end_event(record: &SessionRecord, end: LoggedEnd, id: String) -> LoggedEvent {
    LoggedEvent {
        id,
        at_ms: end.ended_at_ms,
        kind: EventKind::SessionEnded,
        home: record.home.clone(),
        owner: None,
        chain: Vec::new(),
        has_left: false,
        work_dir: None,
        git_branch: None,
        transcript: None,
        prompt: None,
        reason: None,
        pane: None,
        cpu_ms: None,
        is_aftermath: false,
        end: Some(end),
    }
}
