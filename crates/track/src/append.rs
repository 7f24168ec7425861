//! Appends events to logs.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;

use whosup_core::sidecar::file::{Links, read_regular};
use whosup_core::sidecar::own_directory::Access;
use whosup_core::sources::record::{
    LoggedEvent, RECORD_BYTES_MAX, SessionRecord, parse_record, record_line,
};

use crate::disk::{IN_AGENT, is_at, open_or_make};
use crate::{SessionFiles, TrackError};

/// How often to append an event again because the log was replaced meanwhile.
const TRIES_MAX: usize = 16;

/// Appends an event to its session's log, in one write.
///
/// Shortening replaces a log. It takes over what was appended to the old log before
/// a last look at it; what came later is appended again here. An event that is in a
/// log twice counts once, by its ID.
pub(crate) fn append(files: &SessionFiles, event: &LoggedEvent) -> Result<(), TrackError> {
    append_line(files, &event.to_line())
}

/// Appends a line that may be in a log twice.
pub(crate) fn append_line(files: &SessionFiles, line: &str) -> Result<(), TrackError> {
    for _ in 0..TRIES_MAX {
        let mut log = open(files)?;
        let beginning = beginning(&log, files)?;
        let line = format!("{beginning}{line}");
        write_once(&mut log, line.as_bytes()).map_err(TrackError::at("append to", &files.log))?;
        let is_there = is_at(&log, &files.log).map_err(TrackError::at("look at", &files.log))?;
        if is_there {
            return Ok(());
        }
    }
    Err(TrackError::Restless {
        path: files.log.clone(),
    })
}

/// The first line of a new log: the existing record, if there is a record whose log is
/// gone. Two processes may write this line; the first counts.
fn beginning(log: &File, files: &SessionFiles) -> Result<String, TrackError> {
    let is_empty = || {
        let log = log.metadata();
        log.map(|log| log.len() == 0)
            .map_err(TrackError::at("look at", &files.log))
    };
    if !is_empty()? {
        return Ok(String::new());
    }
    let record = read_record(files);
    // A record that was written meanwhile is what another process has begun the log with.
    let record = record.filter(|_| matches!(is_empty(), Ok(true)));
    Ok(record.map_or_else(String::new, |record| record_line(&record, &[])))
}

/// The record as it was written last, or put away; `None` if it can't be read.
pub(crate) fn read_record(files: &SessionFiles) -> Option<SessionRecord> {
    let read = |path: &Path| {
        let file = read_regular(path, RECORD_BYTES_MAX, Links::Refuse).ok()?;
        parse_record(&file.bytes).ok()
    };
    read(&files.record).or_else(|| read(&files.ended))
}

fn open(files: &SessionFiles) -> Result<File, TrackError> {
    open_or_make(&files.log, IN_AGENT, Access::Append).map_err(TrackError::at("open", &files.log))
}

/// Writes everything at once or fails. A line that a full disk cuts off stays a separate
/// line, which readers ignore.
pub(crate) fn write_once(file: &mut File, bytes: &[u8]) -> io::Result<()> {
    let written = loop {
        match file.write(bytes) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => break result?,
        }
    };
    if written == bytes.len() {
        Ok(())
    } else {
        Err(io::Error::from(io::ErrorKind::StorageFull))
    }
}
