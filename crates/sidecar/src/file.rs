//! Reads small files without ever waiting for them, whatever lies at the path.
//!
//! Where an agent's file should be there may be a FIFO without a writer,
//! a device, a directory, or a file of gigabytes. [`read_regular`] opens none
//! of the first kinds and reads no more of the last than the caller's limit.
//!
//! ```
//! use whosup_sidecar::file::{Links, ReadFileError, read_regular};
//!
//! let directory = std::env::temp_dir();
//! let error = read_regular(&directory, 1024, Links::Follow).unwrap_err();
//! assert!(matches!(error, ReadFileError::NotRegular { .. }));
//! assert_eq!(error.reason(), "it is a directory");
//! ```

mod directory;
mod error;
#[cfg(not(unix))]
#[path = "file/other.rs"]
mod platform;
#[cfg(unix)]
#[path = "file/unix.rs"]
mod platform;

use std::fs::{File, FileType, Metadata};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use directory::Place;
pub use directory::{Directory, EntryFacts};
pub use error::{FileKind, ReadFileError};

/// What to do when the last part of a path is a symbolic link. Links in the
/// directories above it are always followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Links {
    /// Do not read through it: it is no regular file.
    Refuse,
    /// Read what it points to.
    Follow,
}

/// What the file system reports about a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileFacts {
    /// The user who owns it; absent where files have no such number.
    pub uid: Option<u32>,
    /// Its type and permission bits (`st_mode`); absent where files have none.
    pub mode: Option<u32>,
    /// The device that it lies on (`st_dev`). 0 on a platform without inodes.
    pub device: u64,
    /// Its inode (`st_ino`). 0 on a platform without inodes.
    pub inode: u64,
    /// How long it is, in bytes.
    pub len: u64,
    /// When its content last changed, in milliseconds since 1970.
    pub modified_ms: Option<i64>,
    /// When it was created, in milliseconds since 1970; absent where the file
    /// system does not remember that.
    pub born_ms: Option<i64>,
    /// The mount that it lies on, as `/proc/self/mountinfo` numbers them; absent where
    /// the kernel does not report it (statx(2), Linux 5.8).
    pub mount: Option<u64>,
}

/// A regular file that was read as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegularFile {
    /// All its bytes.
    pub bytes: Vec<u8>,
    /// What the file system reported when it was opened.
    pub facts: FileFacts,
}

/// A regular file that is open for reading, at any offset.
#[derive(Debug)]
pub struct OpenFile {
    file: File,
    path: PathBuf,
}

/// Reads a whole regular file of at most `bytes_max` bytes.
///
/// Never waits for anybody: a FIFO, a device or a socket is not even opened.
/// A file that grows while it is read is too large as soon as it has grown
/// beyond the bound.
///
/// # Errors
///
/// [`ReadFileError`] if it is not there, is no regular file, is larger than
/// `bytes_max` or can't be read.
pub fn read_regular(
    path: &Path,
    bytes_max: u64,
    links: Links,
) -> Result<RegularFile, ReadFileError> {
    let place = Place::of(path);
    read_whole(&place, open_and_look(&place, links)?, bytes_max)
}

fn read_whole(
    place: &Place<'_>,
    (file, facts): (File, FileFacts),
    bytes_max: u64,
) -> Result<RegularFile, ReadFileError> {
    let failed = |error| ReadFileError::from_io(&place.path(), error);
    let too_large = |len| ReadFileError::TooLarge {
        path: place.path(),
        len,
        bytes_max,
    };
    if facts.len > bytes_max {
        return Err(too_large(facts.len));
    }
    let mut bytes = vec![0; usize::try_from(facts.len).unwrap_or(0).saturating_add(1)];
    let filled = fill(&file, &mut bytes, facts.len).map_err(failed)?;
    bytes.truncate(filled);
    if filled as u64 > facts.len {
        // It has grown since.
        let rest = bytes_max.saturating_add(1).saturating_sub(filled as u64);
        let grown = (&file).take(rest).read_to_end(&mut bytes);
        grown.map_err(failed)?;
    }
    if bytes.len() as u64 > bytes_max {
        return Err(too_large(bytes.len() as u64));
    }
    Ok(RegularFile { bytes, facts })
}

/// Reads until a buffer is full or the file ends. A regular file that has
/// given `len` bytes, as long as it is, and no more that were asked for, has
/// ended: it need not be asked once more.
fn fill(mut file: &File, buffer: &mut [u8], len: u64) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        }
        if filled as u64 >= len {
            break;
        }
    }
    Ok(filled)
}

/// Asks the file system for the facts of a regular file, without opening it.
///
/// # Errors
///
/// [`ReadFileError`] if it is not there, is no regular file or can't be looked at.
pub fn facts(path: &Path, links: Links) -> Result<FileFacts, ReadFileError> {
    let place = Place::of(path);
    let looked = platform::look_at(&place, links);
    let (kind, facts) = looked.map_err(|error| ReadFileError::from_io(path, error))?;
    kind.refuse_others(&place)?;
    Ok(facts)
}

/// Asks the file system for the facts of whatever lies at `path`, also a directory or,
/// where links are refused, a link itself. Opens nothing.
///
/// # Errors
///
/// The system's error if there is nothing, or it can't be looked at.
pub fn facts_of_any(path: &Path, links: Links) -> io::Result<FileFacts> {
    platform::look_at(&Place::of(path), links).map(|(_, facts)| facts)
}

/// The user who owns whatever lies at `path`, also a directory; links are
/// followed. `None` where that is unknown.
#[must_use]
pub fn owner_of(path: &Path) -> Option<u32> {
    let metadata = std::fs::metadata(path).ok()?;
    FileFacts::of(&metadata).uid
}

/// The mode of whatever lies at `path`, also a directory; links are followed. `None`
/// where that is unknown, and where there are no modes.
#[must_use]
pub fn mode_of(path: &Path) -> Option<u32> {
    let metadata = std::fs::metadata(path).ok()?;
    FileFacts::of(&metadata).mode
}

impl OpenFile {
    /// Opens a regular file for reading.
    ///
    /// # Errors
    ///
    /// [`ReadFileError`] if it is not there, is no regular file or can't be opened.
    pub fn open(path: &Path, links: Links) -> Result<Self, ReadFileError> {
        let (file, _) = Self::open_and_look(path, links)?;
        Ok(file)
    }

    /// The same, with the facts of the file once it was open.
    ///
    /// # Errors
    ///
    /// [`ReadFileError`] if it is not there, is no regular file or can't be opened.
    pub fn open_and_look(path: &Path, links: Links) -> Result<(Self, FileFacts), ReadFileError> {
        let (file, facts) = open_and_look(&Place::of(path), links)?;
        let path = path.to_owned();
        Ok((Self { file, path }, facts))
    }

    /// The path that it was opened by.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Asks the file system for the file's facts, as they are now.
    ///
    /// # Errors
    ///
    /// [`ReadFileError::Io`] if the file system does not report them.
    pub fn facts(&self) -> Result<FileFacts, ReadFileError> {
        let looked = platform::look_at_open(&self.file);
        let (_, facts) = looked.map_err(|error| ReadFileError::from_io(&self.path, error))?;
        Ok(facts)
    }

    /// Reads at most `buffer.len()` bytes from `offset` on and returns how
    /// many; fewer than asked for only at the end of the file.
    ///
    /// Several readers of one open file do not disturb each other.
    ///
    /// # Errors
    ///
    /// [`ReadFileError::Io`] if they can't be read.
    pub fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize, ReadFileError> {
        let mut filled = 0;
        while filled < buffer.len() {
            let at = offset.saturating_add(filled as u64);
            match platform::read_at(&self.file, &mut buffer[filled..], at) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(ReadFileError::from_io(&self.path, error)),
            }
        }
        Ok(filled)
    }
}

/// Opens a regular file, and returns its facts at that moment.
fn open_and_look(place: &Place<'_>, links: Links) -> Result<(File, FileFacts), ReadFileError> {
    // Looked at before it is opened: opening alone wakes a FIFO's writer,
    // and does things to some devices.
    let failed = |error| ReadFileError::from_io(&place.path(), error);
    let (kind, _) = platform::look_at(place, links).map_err(failed)?;
    kind.refuse_others(place)?;
    let refused = |error| platform::refused(&place.path(), error);
    let file = platform::open(place, links).map_err(refused)?;
    // Looked at once more: the path may lead to something else by now.
    let (kind, facts) = platform::look_at_open(&file).map_err(failed)?;
    kind.refuse_others(place)?;
    Ok((file, facts))
}

impl FileFacts {
    fn of(metadata: &Metadata) -> Self {
        let numbers = platform::numbers(metadata);
        Self {
            uid: numbers.uid,
            mode: numbers.mode,
            device: numbers.device,
            inode: numbers.inode,
            len: metadata.len(),
            modified_ms: metadata.modified().ok().and_then(milliseconds),
            born_ms: metadata.created().ok().and_then(milliseconds),
            mount: None,
        }
    }
}

/// What only some platforms report about a file.
struct Numbers {
    uid: Option<u32>,
    mode: Option<u32>,
    device: u64,
    inode: u64,
}

/// What lies at a place: a regular file, or what else.
#[derive(Debug, Clone, Copy)]
struct Kind(Result<(), FileKind>);

impl Kind {
    fn of(file_type: FileType) -> Self {
        Self(FileKind::unless_regular(file_type))
    }

    /// Refuses whatever is no regular file.
    fn refuse_others(self, place: &Place<'_>) -> Result<(), ReadFileError> {
        self.0.map_err(|kind| ReadFileError::NotRegular {
            path: place.path(),
            kind,
        })
    }
}

/// Milliseconds since 1970, rounded towards the past.
fn milliseconds(time: SystemTime) -> Option<i64> {
    match time.duration_since(UNIX_EPOCH) {
        Ok(since) => i64::try_from(since.as_millis()).ok(),
        Err(before) => {
            let micros = i64::try_from(before.duration().as_micros()).ok()?;
            Some(micros.checked_neg()?.div_euclid(1000))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::milliseconds;

    #[test]
    fn times_before_1970_are_negative_and_rounded_towards_the_past() {
        let epoch = UNIX_EPOCH;
        assert_eq!(milliseconds(epoch), Some(0));
        assert_eq!(milliseconds(epoch + Duration::from_micros(1999)), Some(1));
        assert_eq!(milliseconds(epoch - Duration::from_micros(1)), Some(-1));
        assert_eq!(milliseconds(epoch - Duration::from_millis(2)), Some(-2));
    }
}
