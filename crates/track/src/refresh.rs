//! Writes records, and shortens logs.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};

use whosup_core::sidecar::own_directory::Durable;
use whosup_core::sources::record::{
    LOG_BYTES_MAX, LogLine, SessionRecord, fold, fold_on, parse_line,
};

use crate::append::read_record;
use crate::disk::{IN_AGENT, open_if_there, replace};
use crate::shorten::{recover, remove_if_there, shorten};
use crate::{SessionFiles, SessionLock, TrackError};

/// A log that is longer than this, in bytes, is shortened.
pub(crate) const SHORTEN_BEYOND_BYTES: u64 = 1 << 20;
/// A log that is longer than this, in bytes, is not folded from its beginning for
/// each event.
const FOLD_ON_BEYOND_BYTES: u64 = 128 * 1024;
/// How much is read to find the last event that a record folds, in bytes.
const LINE_LOOKED_FOR_BYTES: u64 = 16 * 1024;
/// How often to write a record again because the log has grown meanwhile.
const ROUNDS_MAX: usize = 8;

/// Writes a session's record from the log, and shortens a log that has grown long.
/// `None` if there is no log or the log is empty.
///
/// # Errors
///
/// [`TrackError`] if the log can't be read or the record not be written. What was
/// there before is still there.
pub fn refresh(
    files: &SessionFiles,
    held: &SessionLock,
) -> Result<Option<SessionRecord>, TrackError> {
    recover(files, held)?;
    let mut written = None;
    for _ in 0..ROUNDS_MAX {
        let Some(mut log) = open_log(files)? else {
            return Ok(None);
        };
        let on = fold_on_from_record(files, &mut log);
        let on = on.map_err(TrackError::at("read", &files.log))?;
        let record = match on {
            Some(record) => record,
            None => match fold_all(files, &mut log, held)? {
                Some(record) => record,
                None => return Ok(None),
            },
        };
        let text = record.to_json().to_string();
        // A record that a power failure breaks is rebuilt from the log, so no hook
        // waits for the disk.
        replace(&files.record, IN_AGENT, text.as_bytes(), Durable::Later)
            .map_err(TrackError::at("write", &files.record))?;
        let folded_bytes = record.heard.log_bytes;
        written = Some(record);
        let now = std::fs::metadata(&files.log).map(|log| log.len()).ok();
        if now == folded_bytes {
            break;
        }
    }
    // The new log already contains the record that was put away.
    remove_if_there(&files.ended)?;
    Ok(written)
}

/// Folds a log from its beginning, and shortens it if it has grown long.
fn fold_all(
    files: &SessionFiles,
    log: &mut File,
    held: &SessionLock,
) -> Result<Option<SessionRecord>, TrackError> {
    let bytes = log.rewind().and_then(|()| read(log));
    let bytes = bytes.map_err(TrackError::at("read", &files.log))?;
    let folded = fold(&files.agent, &files.session, &bytes);
    let is_long = bytes.len() as u64 > SHORTEN_BEYOND_BYTES;
    if is_long && folded.record.is_some() {
        return Ok(shorten(files, log, &bytes, folded, held)?.record);
    }
    Ok(folded.record)
}

/// Folds a long log from the record of an earlier prefix and the events that were
/// appended since; `None` if it must be folded from the start.
///
/// The record is of this very log if the last event ends at the recorded length. Events
/// are appended twice only soon after the log was replaced, and then it is short.
fn fold_on_from_record(files: &SessionFiles, log: &mut File) -> io::Result<Option<SessionRecord>> {
    let log_bytes = log.metadata()?.len();
    if log_bytes <= FOLD_ON_BEYOND_BYTES || log_bytes > SHORTEN_BEYOND_BYTES {
        return Ok(None);
    }
    let Some(record) = read_record(files) else {
        return Ok(None);
    };
    let is_its = record.agent == files.agent && record.session == files.session;
    let folded = record.heard.log_bytes.zip(record.heard.last_event.as_ref());
    let Some((folded_bytes, last)) = folded.filter(|_| is_its) else {
        return Ok(None);
    };
    if folded_bytes <= FOLD_ON_BEYOND_BYTES || folded_bytes > log_bytes {
        return Ok(None);
    }
    let looked_from = folded_bytes.saturating_sub(LINE_LOOKED_FOR_BYTES);
    log.seek(SeekFrom::Start(looked_from))?;
    let bytes = read(log)?;
    let len = usize::try_from(folded_bytes - looked_from).unwrap_or(usize::MAX);
    let Some((before, more)) = bytes.split_at_checked(len) else {
        return Ok(None);
    };
    Ok(ends_with_event(before, last).then(|| fold_on(record, more)))
}

/// Returns whether the last line is that of this event, and is whole.
fn ends_with_event(bytes: &[u8], id: &str) -> bool {
    let Some(lines) = bytes.strip_suffix(b"\n") else {
        return false;
    };
    let line = lines.rsplit(|byte| *byte == b'\n').next();
    matches!(line.map(parse_line), Some(Ok(LogLine::Event(event))) if event.id == id)
}

/// Folds a session's log without writing.
pub(crate) fn read_folded(files: &SessionFiles) -> Result<Option<SessionRecord>, TrackError> {
    let Some(mut log) = open_log(files)? else {
        return Ok(None);
    };
    let bytes = read(&mut log).map_err(TrackError::at("read", &files.log))?;
    Ok(fold(&files.agent, &files.session, &bytes).record)
}

pub(crate) fn open_log(files: &SessionFiles) -> Result<Option<File>, TrackError> {
    open_if_there(&files.log, IN_AGENT).map_err(TrackError::at("open", &files.log))
}

pub(crate) fn read(log: &mut File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    log.take(LOG_BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(bytes)
}
