//! The directory that sidecars are written to, by the paths of the files in it.

#[cfg(not(target_os = "linux"))]
#[path = "disk/other.rs"]
mod platform;
#[cfg(target_os = "linux")]
#[path = "disk/linux.rs"]
mod platform;

use std::io;
use std::path::{Path, PathBuf};

use crate::own_directory::{Durable, OwnDirectory, split};

pub(super) use crate::own_directory::{is_absent, is_temporary, made_up_digits};
pub(super) use platform::{is_shared_by_machines, lock_directory};

/// Makes a directory and those above it that are missing, for ourselves alone.
pub(super) fn make_directory(path: &Path, levels: usize) -> io::Result<()> {
    OwnDirectory::make(path, levels).map(drop)
}

/// Makes a new file, whole from its first moment.
///
/// # Errors
///
/// [`io::ErrorKind::AlreadyExists`] if something has that name: it is as it was.
pub(super) fn make_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let (directory, name) = split(path)?;
    OwnDirectory::open(directory, 1)?.make_new(name, bytes)
}

/// Replaces a file, which is ours.
pub(super) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let (directory, name) = split(path)?;
    OwnDirectory::open(directory, 1)?.replace(name, bytes, Durable::Now, None)
}

/// Removes a file; one that is not there is removed.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    let (directory, name) = split(path)?;
    match OwnDirectory::open(directory, 1) {
        Err(error) if is_absent(&error) => Ok(()),
        directory => directory?.remove(name),
    }
}

/// Renames a file to a temporary name and returns that name.
pub(super) fn move_aside(path: &Path) -> io::Result<PathBuf> {
    let (directory, name) = split(path)?;
    let aside = OwnDirectory::open(directory, 1)?.move_aside(name)?;
    Ok(directory.join(aside))
}

/// Renames a file to a name that is free in its directory.
///
/// # Errors
///
/// [`io::ErrorKind::AlreadyExists`] if the name is taken.
pub(super) fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    let (directory, from) = split(from)?;
    let (_, to) = split(to)?;
    OwnDirectory::open(directory, 1)?.rename_new(from, to)
}
