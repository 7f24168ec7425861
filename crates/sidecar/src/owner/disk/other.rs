//! Systems other than Linux: what the standard library gives.

use std::path::Path;

/// Nothing is locked here.
#[derive(Debug)]
pub(in super::super) struct DirectoryLock;

/// Locks nothing: what it would guard is safe without it.
pub(in super::super) fn lock_directory(_: &Path) -> DirectoryLock {
    DirectoryLock
}

/// Unknown here, so it may be.
pub(in super::super) fn is_shared_by_machines(_: &Path) -> bool {
    true
}
