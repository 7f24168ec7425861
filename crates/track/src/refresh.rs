//! Writes records, and shortens logs.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use whosup_core::record::{Folded, LOG_BYTES_MAX, SessionRecord, fold, record_line};

use crate::append::write_once;
use crate::disk::open_own;
use crate::{SessionFiles, SessionLock, TrackError};

/// A log that is longer than this, in bytes, is shortened.
pub(crate) const SHORTEN_BEYOND_BYTES: u64 = 1 << 20;
/// How often a record is written anew because its log has grown meanwhile.
const ROUNDS_MAX: usize = 8;

/// Writes a session's record as its log has it, and shortens a log that has
/// grown long. `None` if there is no log or nothing in it.
///
/// # Errors
///
/// [`TrackError`] if the log can't be read or the record not be written. What was
/// there before is still there.
pub fn refresh(
    files: &SessionFiles,
    _held: &SessionLock,
) -> Result<Option<SessionRecord>, TrackError> {
    let mut written = None;
    for _ in 0..ROUNDS_MAX {
        let Some(mut log) = open_log(files)? else {
            return Ok(None);
        };
        let bytes = read(&mut log).map_err(TrackError::at("read", &files.log))?;
        let mut folded = fold(&files.agent, &files.session, &bytes);
        if bytes.len() as u64 > SHORTEN_BEYOND_BYTES && folded.record.is_some() {
            folded = shorten(files, &mut log, &bytes, folded)?;
        }
        let Some(record) = folded.record else {
            return Ok(None);
        };
        replace(
            files,
            &files.record,
            record.to_json().to_string().as_bytes(),
        )?;
        let folded_bytes = record.heard.log_bytes;
        written = Some(record);
        let now = std::fs::metadata(&files.log).map(|log| log.len()).ok();
        if now == folded_bytes {
            break;
        }
    }
    Ok(written)
}

/// Reads what a session's log comes to, and writes nothing.
pub(crate) fn read_folded(files: &SessionFiles) -> Result<Option<SessionRecord>, TrackError> {
    let Some(mut log) = open_log(files)? else {
        return Ok(None);
    };
    let bytes = read(&mut log).map_err(TrackError::at("read", &files.log))?;
    Ok(fold(&files.agent, &files.session, &bytes).record)
}

fn open_log(files: &SessionFiles) -> Result<Option<File>, TrackError> {
    match File::open(&files.log) {
        Ok(log) => Ok(Some(log)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(TrackError::at("open", &files.log)(error)),
    }
}

fn read(log: &mut File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    log.take(LOG_BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Replaces a log by one line that says what it comes to. What is appended to
/// the old one meanwhile is taken over; the rest its writers append again.
fn shorten(
    files: &SessionFiles,
    log: &mut File,
    bytes: &[u8],
    folded: Folded,
) -> Result<Folded, TrackError> {
    let Some(record) = &folded.record else {
        return Ok(folded);
    };
    // What is not written to its end stays as it is.
    let whole = bytes
        .iter()
        .rposition(|byte| *byte == b'\n')
        .map_or(0, |at| at + 1);
    let mut kept = record_line(record, &folded.last_ids).into_bytes();
    kept.extend(&bytes[whole..]);
    replace(files, &files.log, &kept)?;
    let at = |verb| TrackError::at(verb, &files.log);
    log.seek(SeekFrom::Start(bytes.len() as u64))
        .map_err(at("read"))?;
    let late = read(log).map_err(at("read"))?;
    if !late.is_empty() {
        let mut new = open_own(&files.log, OpenOptions::new().append(true)).map_err(at("open"))?;
        write_once(&mut new, &late).map_err(at("append to"))?;
        kept.extend(late);
    }
    Ok(fold(&files.agent, &files.session, &kept))
}

/// Puts `bytes` at `path`: all of them, or what was there stays.
fn replace(files: &SessionFiles, path: &Path, bytes: &[u8]) -> Result<(), TrackError> {
    let temporary = temporary_beside(files);
    let result = write_all(&temporary, bytes)
        .and_then(|()| std::fs::rename(&temporary, path))
        .map_err(TrackError::at("write", path));
    if result.is_err() {
        // It may not have come to be.
        std::fs::remove_file(&temporary).ok();
    }
    result
}

/// One name for each session: only the holder of its lock writes there, and what
/// a killed one left is written over.
fn temporary_beside(files: &SessionFiles) -> PathBuf {
    files.directory.join(format!("{}.new", files.session))
}

fn write_all(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = open_own(path, OpenOptions::new().write(true).truncate(true))?;
    file.write_all(bytes)?;
    file.sync_all()
}
