//! Linux: files without names, renames that replace nothing, locked directories.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::path::Path;
use std::time::Duration;

use rustix::fs::{
    AtFlags, CWD, FlockOperation, Mode, OFlags, RenameFlags, flock, linkat, open, renameat_with,
    statfs,
};
use rustix::io::Errno;

use super::{Renamed, write_whole};

/// How often a lock is asked for that somebody else has.
const LOCK_TRIES_MAX: u32 = 50;
/// How long to wait between two of those.
const LOCK_RETRY_AFTER: Duration = Duration::from_millis(4);

/// File systems that machines share, by the magic number of statfs(2): NFS,
/// SMB (three), 9p, FUSE (virtiofs and sshfs among them), Ceph, Lustre, GPFS,
/// AFS (two), Coda.
const SHARED: [i128; 12] = [
    0x6969,
    0x517B,
    0xFF53_4D42,
    0xFE53_4D42,
    0x0102_1997,
    0x6573_5546,
    0x00C3_6400,
    0x0BD0_0BD0,
    0x4750_4653,
    0x5346_414F,
    0x6B41_4653,
    0x7375_7245,
];

/// Writes a file that has no name; `None` where there is no such thing.
pub(super) fn write_unnamed(directory: &Path, bytes: &[u8]) -> io::Result<Option<File>> {
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    let mut file = match open(directory, flags, Mode::RUSR | Mode::WUSR) {
        Ok(descriptor) => File::from(descriptor),
        // open(2), O_TMPFILE: a file system or a kernel without it.
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL) => return Ok(None),
        Err(errno) => return Err(errno.into()),
    };
    write_whole(&mut file, bytes)?;
    Ok(Some(file))
}

/// Gives a file its name, exclusively; `false` where that can't be done.
pub(super) fn name(file: &File, path: &Path) -> io::Result<bool> {
    // open(2), O_TMPFILE: the way that needs no capability.
    let unnamed = format!("/proc/self/fd/{}", file.as_raw_fd());
    match linkat(CWD, unnamed, CWD, path, AtFlags::SYMLINK_FOLLOW) {
        Ok(()) => Ok(true),
        Err(Errno::EXIST) => Err(Errno::EXIST.into()),
        // No `/proc`, or no links.
        Err(_) => Ok(false),
    }
}

/// Renames a file unless something has the new name.
pub(super) fn rename_new(from: &Path, to: &Path) -> io::Result<Renamed> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        Ok(()) => Ok(Renamed::Done),
        // rename(2), renameat2: a file system or a kernel without it.
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => Ok(Renamed::Unsupported),
        Err(errno) => Err(errno.into()),
    }
}

/// A directory that other writers wait for; unlocked when it is dropped, and by
/// the kernel when this process ends in any way.
#[derive(Debug)]
pub(in super::super) struct DirectoryLock {
    _directory: Option<File>,
}

/// Locks a directory among those who take something over in it (flock(2) on the
/// directory itself: there is no lock file that could stay behind).
///
/// Never waits long: what it guards is safe without it, and only keeps one
/// live claim from being moved for a moment.
pub(in super::super) fn lock_directory(path: &Path) -> DirectoryLock {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(directory) = open(path, flags, Mode::empty()) else {
        return DirectoryLock { _directory: None };
    };
    for _ in 0..LOCK_TRIES_MAX {
        match flock(&directory, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK | Errno::INTR) => std::thread::sleep(LOCK_RETRY_AFTER),
            Ok(()) | Err(_) => break,
        }
    }
    DirectoryLock {
        _directory: Some(File::from(directory)),
    }
}

/// Tells whether machines may share the file system that a directory lies on.
pub(in super::super) fn is_shared_by_machines(directory: &Path) -> bool {
    match statfs(directory) {
        // The type of the field differs per architecture, its sign too.
        Ok(found) => SHARED.contains(&(i128::from(found.f_type) & 0xFFFF_FFFF)),
        Err(_) => true,
    }
}

/// Refusals that go away by themselves: an interrupted call.
pub(super) fn is_momentary(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::Interrupted
}
