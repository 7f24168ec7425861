//! Writes records, and shortens logs.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::Path;

use whosup_core::record::{LOG_BYTES_MAX, SessionRecord, fold};

use crate::disk::open_own;
use crate::shorten::{recover, shorten};
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
    held: &SessionLock,
) -> Result<Option<SessionRecord>, TrackError> {
    recover(files, held)?;
    let mut written = None;
    for _ in 0..ROUNDS_MAX {
        let Some(mut log) = open_log(files)? else {
            return Ok(None);
        };
        let bytes = read(&mut log).map_err(TrackError::at("read", &files.log))?;
        let mut folded = fold(&files.agent, &files.session, &bytes);
        if bytes.len() as u64 > SHORTEN_BEYOND_BYTES && folded.record.is_some() {
            folded = shorten(files, &mut log, &bytes, folded, held)?;
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

pub(crate) fn open_log(files: &SessionFiles) -> Result<Option<File>, TrackError> {
    match File::open(&files.log) {
        Ok(log) => Ok(Some(log)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(TrackError::at("open", &files.log)(error)),
    }
}

pub(crate) fn read(log: &mut File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    log.take(LOG_BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Puts `bytes` at `path`: all of them, or what was there stays. Only the holder
/// of the session's lock does this, so one name beside it is enough; what a killed
/// one left there is written over.
pub(crate) fn replace(files: &SessionFiles, path: &Path, bytes: &[u8]) -> Result<(), TrackError> {
    let result = write_all(&files.new, bytes)
        .and_then(|()| std::fs::rename(&files.new, path))
        .map_err(TrackError::at("write", path));
    if result.is_err() {
        // It may not have come to be.
        std::fs::remove_file(&files.new).ok();
    }
    result
}

fn write_all(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = open_own(path, OpenOptions::new().write(true).truncate(true))?;
    file.write_all(bytes)?;
    file.sync_all()
}
