//! Files that ask the system to keep whosup running. A person may have files of their own
//! there, so only a file with our mark is replaced or removed.

use std::io;
use std::path::Path;

use whosup_core::sidecar::file::{Links, ReadFileError, read_regular};
use whosup_core::sidecar::own_directory::{Durable, OwnDirectory, split};

use crate::TrackError;

/// How long such a file may be, in bytes.
const BYTES_MAX: u64 = 64 << 10;
/// In which of its lines the mark may be.
const MARKED_LINES: usize = 3;

/// What is at the path of a service file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServiceFile {
    /// Nothing.
    Absent,
    /// A file that we wrote.
    Ours(Vec<u8>),
    /// Something else: a file without our mark, a link, a directory.
    Foreign,
}

impl ServiceFile {
    /// Looks at a path.
    ///
    /// # Errors
    ///
    /// If it can't be looked at.
    pub fn at(path: &Path, mark: &str) -> Result<Self, TrackError> {
        if path.is_symlink() {
            return Ok(Self::Foreign);
        }
        match read_regular(path, BYTES_MAX, Links::Refuse) {
            Ok(file) => Ok(if is_marked(&file.bytes, mark) {
                Self::Ours(file.bytes)
            } else {
                Self::Foreign
            }),
            Err(ReadFileError::NotFound { .. }) => Ok(Self::Absent),
            Err(error) => Err(TrackError::at("read", path)(io::Error::other(
                error.reason(),
            ))),
        }
    }

    /// Writes one, in place of one that is ours.
    ///
    /// # Errors
    ///
    /// If something else is there, or it can't be written.
    pub fn write(path: &Path, mark: &str, bytes: &[u8]) -> Result<(), TrackError> {
        let found = Self::at(path, mark)?;
        let write = || {
            let (directory, name) = split(path)?;
            let directory = OwnDirectory::make(directory, 1)?;
            match found {
                // Nothing is replaced that came meanwhile.
                Self::Absent => directory.make_new(name, bytes),
                Self::Ours(_) => directory.replace(name, bytes, Durable::Now, None),
                Self::Foreign => Err(io::Error::other("whosup did not write what is there")),
            }
        };
        write().map_err(TrackError::at("write", path))
    }

    /// Removes one that is ours; returns whether there was one.
    ///
    /// # Errors
    ///
    /// If something else is there, or it can't be removed.
    pub fn remove(path: &Path, mark: &str) -> Result<bool, TrackError> {
        let found = Self::at(path, mark)?;
        let remove = || {
            let (directory, name) = split(path)?;
            match found {
                Self::Absent => Ok(false),
                Self::Ours(_) => {
                    OwnDirectory::open(directory, 1)?.remove(name)?;
                    Ok(true)
                }
                Self::Foreign => Err(io::Error::other("whosup did not write what is there")),
            }
        };
        remove().map_err(TrackError::at("remove", path))
    }
}

fn is_marked(bytes: &[u8], mark: &str) -> bool {
    let mut lines = bytes.split(|byte| *byte == b'\n').take(MARKED_LINES);
    lines.any(|line| line == mark.as_bytes())
}
