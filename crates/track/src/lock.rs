//! The lock of a session.

use std::fs::{File, TryLockError};
use std::io;
use std::time::{Duration, Instant};

use whosup_core::sidecar::own_directory::Access;

use crate::disk::{IN_AGENT, is_at, open_or_make};
use crate::{SessionFiles, TrackError};

/// How long to sleep between two tries.
const STEP: Duration = Duration::from_millis(2);

/// Held while a record is written, a log shortened or a session ended. The
/// kernel releases it when the holder exits in any way.
#[derive(Debug)]
pub struct SessionLock {
    _file: File,
}

impl SessionLock {
    /// Takes the lock of a session; `None` if another process held it all the time.
    /// The session need not have a file yet.
    ///
    /// # Errors
    ///
    /// [`TrackError`] if it can't be opened or locked.
    pub fn take(files: &SessionFiles, patience: Duration) -> Result<Option<Self>, TrackError> {
        let until = Instant::now() + patience;
        loop {
            let file = open(files)?;
            match file.try_lock() {
                // A lock that was removed with the session while this process
                // waited protects nothing.
                Ok(()) => {
                    let is_there = is_at(&file, &files.lock);
                    if is_there.map_err(TrackError::at("look at", &files.lock))? {
                        return Ok(Some(Self { _file: file }));
                    }
                }
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(TryLockError::Error(source)) => {
                    return Err(TrackError::at("lock", &files.lock)(source));
                }
            }
            if Instant::now() >= until {
                return Ok(None);
            }
            std::thread::sleep(STEP);
        }
    }
}

fn open(files: &SessionFiles) -> Result<File, TrackError> {
    open_or_make(&files.lock, IN_AGENT, Access::Write).map_err(TrackError::at("open", &files.lock))
}
