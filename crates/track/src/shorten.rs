//! Replaces or removes a log without losing events that are appended meanwhile.
//!
//! Appending does not wait for the lock, so a log may grow until the moment in which
//! it is no longer at its path. A later writer sees that, and appends again. What was
//! written before is taken over here. Until that is done, the old log stays at a second
//! path, from which the next holder of the lock continues if this process is killed.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use whosup_core::adapter::phase::Phase;
use whosup_core::sidecar::own_directory::{Access, Durable};
use whosup_core::sources::record::{
    Folded, LINE_BYTES_MAX, LogLine, fold, parse_line, record_line,
};

use crate::append::write_once;
use crate::disk::{IN_AGENT, is_same_file, link, open_if_there, open_or_make, remove, replace};
use crate::refresh::{open_log, read};
use crate::{SessionFiles, SessionLock, TrackError};

/// Replaces a log by one line with its result.
pub(crate) fn shorten(
    files: &SessionFiles,
    log: &mut File,
    bytes: &[u8],
    folded: Folded,
    held: &SessionLock,
) -> Result<Folded, TrackError> {
    let Some(mut record) = folded.record else {
        return Ok(folded);
    };
    // An incomplete last line is read again with the later lines.
    let whole = bytes
        .iter()
        .rposition(|byte| *byte == b'\n')
        .map_or(0, |at| at + 1) as u64;
    record.heard.log_bytes = Some(whole);
    let mut kept = record_line(&record, &folded.last_ids).into_bytes();
    keep_old(files)?;
    replace(&files.log, IN_AGENT, &kept, Durable::Now)
        .map_err(TrackError::at("write", &files.log))?;
    let late = read_from(log, whole).map_err(TrackError::at("read", &files.log))?;
    put_back(files, &late, held)?;
    remove_if_there(&files.old_log)?;
    kept.extend(late);
    Ok(fold(&files.agent, &files.session, &kept))
}

/// Removes the log of an ended session, if the session is still ended once no process
/// can append to the log any more. `false` if the session continues.
pub(crate) fn take_away(files: &SessionFiles, held: &SessionLock) -> Result<bool, TrackError> {
    recover(files, held)?;
    let Some(mut log) = open_log(files)? else {
        return Ok(true);
    };
    let has_ended = |bytes: &[u8]| {
        let record = fold(&files.agent, &files.session, bytes).record;
        record.is_none_or(|record| record.phase == Phase::Ended)
    };
    let before = read(&mut log).map_err(TrackError::at("read", &files.log))?;
    if !has_ended(&before) {
        return Ok(false);
    }
    keep_old(files)?;
    remove_if_there(&files.log)?;
    let late = read_from(&mut log, before.len() as u64);
    let late = late.map_err(TrackError::at("read", &files.log))?;
    if late.is_empty() {
        remove_if_there(&files.old_log)?;
        return Ok(true);
    }
    // A hook reported an event of it at this very moment: even an end counts.
    recover(files, held)?;
    Ok(false)
}

/// Completes the replacement or removal of a log by a process that was killed.
pub(crate) fn recover(files: &SessionFiles, held: &SessionLock) -> Result<(), TrackError> {
    let at = |verb| TrackError::at(verb, &files.old_log);
    let Some(mut old) = open_if_there(&files.old_log, IN_AGENT).map_err(at("open"))? else {
        return Ok(());
    };
    if open_log(files)?.is_none() {
        // It was removed. Another process may begin a new log now.
        match link(&files.old_log, &files.log, IN_AGENT) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(at("put back")(error)),
            Ok(()) => {}
        }
    }
    let Some(log) = open_log(files)? else {
        return Err(at("put back")(io::Error::from(io::ErrorKind::NotFound)));
    };
    if !is_same_file(&old, &log).map_err(at("look at"))? {
        let taken_over = bytes_in_record(log).map_err(TrackError::at("read", &files.log))?;
        let rest = read_from(&mut old, taken_over).map_err(at("read"))?;
        put_back(files, &rest, held)?;
    }
    remove_if_there(&files.old_log)
}

/// How many bytes of the earlier log are folded in the first line of a log.
fn bytes_in_record(mut log: File) -> io::Result<u64> {
    let mut beginning = Vec::new();
    log.by_ref()
        .take(LINE_BYTES_MAX as u64)
        .read_to_end(&mut beginning)?;
    let mut lines = beginning.split(|byte| *byte == b'\n');
    let first = lines.find(|line| !line.is_empty()).unwrap_or_default();
    Ok(match parse_line(first) {
        Ok(LogLine::Record(record, _)) => record.heard.log_bytes.unwrap_or(0),
        _ => 0,
    })
}

/// Gives the log a second path. On file systems without hard links, an event that is
/// appended during the replacement is lost if this process is killed then.
fn keep_old(files: &SessionFiles) -> Result<(), TrackError> {
    match link(&files.log, &files.old_log, IN_AGENT) {
        Err(error) if error.kind() == io::ErrorKind::StorageFull => {
            Err(TrackError::at("keep", &files.log)(error))
        }
        _ => Ok(()),
    }
}

/// Appends what was written to the old log since; lines that are already in the new
/// log count once.
fn put_back(files: &SessionFiles, late: &[u8], _held: &SessionLock) -> Result<(), TrackError> {
    if late.is_empty() {
        return Ok(());
    }
    let mut log = open_or_make(&files.log, IN_AGENT, Access::Append)
        .map_err(TrackError::at("open", &files.log))?;
    write_once(&mut log, late).map_err(TrackError::at("append to", &files.log))
}

fn read_from(file: &mut File, start: u64) -> io::Result<Vec<u8>> {
    file.seek(SeekFrom::Start(start))?;
    read(file)
}

/// Removes a file of a session, if it is there.
pub(crate) fn remove_if_there(path: &Path) -> Result<(), TrackError> {
    remove(path, IN_AGENT).map_err(TrackError::at("remove", path))
}

#[cfg(test)]
mod tests;
