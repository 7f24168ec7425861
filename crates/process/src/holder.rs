//! Who holds which files and locks.

use std::path::PathBuf;

use crate::{Absent, Pid};

/// A file by device and inode, as `stat(2)` of an open descriptor gives them.
///
/// Not as `/proc/locks` or `/proc/PID/maps` print them: on btrfs and overlayfs
/// those name another device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId {
    /// Device number (`st_dev`).
    pub device: u64,
    /// Inode number (`st_ino`).
    pub inode: u64,
}

/// A file that a process has open, and the path in the link of its descriptor.
///
/// The path is text: the file may have been renamed over or removed since
/// (` (deleted)` may be part of a name), or lie where only that process sees it.
/// A caller that uses it must check that the path still leads to `file`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenFile {
    /// Where it was, for that process.
    pub path: PathBuf,
    /// The file.
    pub file: FileId,
}

/// How a descriptor was opened (`flags:` in `/proc/PID/fdinfo/N`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// `O_RDONLY` or `O_PATH`
    Read,
    /// `O_WRONLY`
    Write,
    /// `O_RDWR`
    ReadWrite,
}

impl Access {
    /// Returns whether the descriptor may write.
    #[must_use]
    pub const fn is_writer(self) -> bool {
        matches!(self, Self::Write | Self::ReadWrite)
    }
}

/// A lock that stands in a descriptor's `fdinfo` (`lock:` lines, proc_pid_fdinfo(5)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockKind {
    /// `FLOCK`, taken by flock(2)
    Flock {
        /// Exclusive (`WRITE`).
        is_exclusive: bool,
    },
    /// `POSIX` or `OFDLCK`, taken by fcntl(2)
    Record {
        /// Exclusive (`WRITE`).
        is_exclusive: bool,
    },
    /// `LEASE` or anything else
    Other,
}

/// One process that has one of the files open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// The process.
    pub pid: Pid,
    /// The file.
    pub file: FileId,
    /// Its descriptor.
    pub descriptor: i32,
    /// How it was opened.
    pub access: Access,
    /// The locks on it. A child that inherited the descriptor of a flock holds
    /// the lock too, also when the process that took it is gone.
    pub locks: Vec<LockKind>,
}

/// Which processes to ask.
#[derive(Debug, Clone, Copy)]
pub enum Among<'a> {
    /// Every process of the table.
    All,
    /// These only.
    These(&'a [Pid]),
}

/// Who holds the files that were asked for, and whom we could not ask.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Holders {
    /// Every descriptor found, by PID and descriptor.
    pub found: Vec<Holder>,
    /// Processes whose descriptors could not be read. While this is not empty,
    /// a file without a holder may still be held. Processes that vanished or are
    /// zombies hold nothing and are not listed.
    pub unreadable: Vec<(Pid, Absent)>,
}

impl Holders {
    /// The holders of one file.
    pub fn of(&self, file: FileId) -> impl Iterator<Item = &Holder> {
        self.found.iter().filter(move |holder| holder.file == file)
    }
}
