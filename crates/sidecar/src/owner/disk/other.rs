//! Systems other than Linux: what the standard library gives.

use std::fs::File;
use std::io;
use std::path::Path;

use super::Renamed;

/// There are no files without names here.
#[expect(
    clippy::unnecessary_wraps,
    reason = "the same signature on every system"
)]
pub(super) fn write_unnamed(_: &Path, _: &[u8]) -> io::Result<Option<File>> {
    Ok(None)
}

/// There are no files without names here.
#[expect(
    clippy::unnecessary_wraps,
    reason = "the same signature on every system"
)]
pub(super) fn name(_: &File, _: &Path) -> io::Result<bool> {
    Ok(false)
}

/// There is no rename that replaces nothing: links are used.
#[expect(
    clippy::unnecessary_wraps,
    reason = "the same signature on every system"
)]
pub(super) fn rename_new(_: &Path, _: &Path) -> io::Result<Renamed> {
    Ok(Renamed::Unsupported)
}

/// Nothing is locked here.
#[derive(Debug)]
pub(in super::super) struct DirectoryLock;

/// Locks nothing: what it would guard is safe without it.
pub(in super::super) fn lock_directory(_: &Path) -> DirectoryLock {
    DirectoryLock
}

/// It can't be told, so it may be.
pub(in super::super) fn is_shared_by_machines(_: &Path) -> bool {
    true
}

/// Refusals that go away by themselves: a file that a scanner or a reader has
/// open (Windows: `ERROR_ACCESS_DENIED`, `ERROR_SHARING_VIOLATION`,
/// `ERROR_LOCK_VIOLATION`), an interrupted call.
pub(super) fn is_momentary(error: &io::Error) -> bool {
    let is_in_use = cfg!(windows) && matches!(error.raw_os_error(), Some(5 | 32 | 33));
    is_in_use || error.kind() == io::ErrorKind::Interrupted
}
