//! Replaces a log, or takes it away, and loses nothing that is appended meanwhile.
//!
//! Nobody who appends waits for a lock, so a log may grow until the moment in which
//! it is no longer at its path. Who writes to it later sees that, and appends once
//! more. What was written before is taken over here; until that is done, the old log
//! stays at a second path, from which the next holder of the lock goes on if this
//! one is killed.

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

/// Replaces a log by one line that says what it comes to.
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
    // What is not written to its end yet follows with what is written later.
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

/// Takes the log of an ended session away, if it is still one when nobody can
/// append to it any more. `false` if the session goes on.
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
    // Something was heard of it in just this moment: even an end is news.
    recover(files, held)?;
    Ok(false)
}

/// Goes on where somebody was killed who replaced or removed the log.
pub(crate) fn recover(files: &SessionFiles, held: &SessionLock) -> Result<(), TrackError> {
    let at = |verb| TrackError::at(verb, &files.old_log);
    let Some(mut old) = open_if_there(&files.old_log, IN_AGENT).map_err(at("open"))? else {
        return Ok(());
    };
    if open_log(files)?.is_none() {
        // It was taken away. Somebody may begin another one now.
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

/// How many bytes of the log before it are in the line that a log begins with.
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

/// Gives the log a second path. Some file systems can't: there, what is appended
/// in the moment of the change is lost if this process is killed in it.
fn keep_old(files: &SessionFiles) -> Result<(), TrackError> {
    match link(&files.log, &files.old_log, IN_AGENT) {
        Err(error) if error.kind() == io::ErrorKind::StorageFull => {
            Err(TrackError::at("keep", &files.log)(error))
        }
        _ => Ok(()),
    }
}

/// Appends what was written to the old log behind its end; the lines in it that
/// are in the new one already count once.
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
