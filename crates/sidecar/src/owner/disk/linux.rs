//! Linux: locked directories, and file systems that machines share.

use std::fs::File;
use std::path::Path;
use std::time::Duration;

use rustix::fs::{FlockOperation, Mode, OFlags, flock, open, statfs};
use rustix::io::Errno;

/// How often to try for a lock that another process holds.
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

/// Returns whether machines may share the file system that a directory lies on.
pub(in super::super) fn is_shared_by_machines(directory: &Path) -> bool {
    match statfs(directory) {
        // The type of the field differs per architecture, its sign too.
        Ok(found) => SHARED.contains(&(i128::from(found.f_type) & 0xFFFF_FFFF)),
        Err(_) => true,
    }
}
