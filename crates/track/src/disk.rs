//! Opens, replaces and removes whosup's own files.
//!
//! All writes go through [`OwnDirectory`], so that nothing that another user
//! planted is followed, waited for or overwritten.

use std::fs::{File, Metadata};
use std::io;
use std::path::Path;

use whosup_core::sidecar::own_directory::{Access, Durable, OwnDirectory, is_absent, split};

/// How many directories must be ours for a file of a session: the agent's, that of all
/// agents, `whosup`, and the state directory that it lies in.
pub(crate) const IN_AGENT: usize = 4;
/// The same for a file of one of the folders of `whosup`.
pub(crate) const IN_FOLDER: usize = 3;
/// The same for a file of `whosup` itself.
pub(crate) const IN_WHOSUP: usize = 2;

/// Opens a file of ours; it is made if it is missing, and so are its directories.
pub(crate) fn open_or_make(path: &Path, levels: usize, access: Access) -> io::Result<File> {
    let (directory, name) = split(path)?;
    directory_for(directory, levels)?.open_or_make_file(name, access)
}

/// Opens a file of ours for reading; `None` if there is none.
pub(crate) fn open_if_there(path: &Path, levels: usize) -> io::Result<Option<File>> {
    let (directory, name) = split(path)?;
    let opened = OwnDirectory::open(directory, levels)
        .and_then(|directory| directory.open_file(name, Access::Read));
    match opened {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Replaces the file at a path atomically: on failure the old file stays.
pub(crate) fn replace(
    path: &Path,
    levels: usize,
    bytes: &[u8],
    durable: Durable,
) -> io::Result<()> {
    let (directory, name) = split(path)?;
    directory_for(directory, levels)?.replace(name, bytes, durable, None)
}

/// Gives a file a second name in its directory.
pub(crate) fn link(from: &Path, to: &Path, levels: usize) -> io::Result<()> {
    let (directory, from) = split(from)?;
    let (_, to) = split(to)?;
    OwnDirectory::open(directory, levels)?.link(from, to)
}

/// Removes a file, if it is there.
pub(crate) fn remove(path: &Path, levels: usize) -> io::Result<()> {
    let (directory, name) = split(path)?;
    match OwnDirectory::open(directory, levels) {
        Err(error) if is_absent(&error) => Ok(()),
        directory => directory?.remove(name),
    }
}

/// Opens the directory of a file, and creates it if it is missing.
pub(crate) fn directory_for(path: &Path, levels: usize) -> io::Result<OwnDirectory> {
    match OwnDirectory::open(path, levels) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => OwnDirectory::make(path, levels),
        opened => opened,
    }
}

/// Returns whether `file` is the one that is at `path` now.
pub(crate) fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let open = file.metadata()?;
    match std::fs::symlink_metadata(path) {
        Ok(there) => Ok(is_same(&open, &there)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Returns whether both are one file.
pub(crate) fn is_same_file(one: &File, other: &File) -> io::Result<bool> {
    Ok(is_same(&one.metadata()?, &other.metadata()?))
}

#[cfg(unix)]
fn is_same(one: &Metadata, other: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    one.dev() == other.dev() && one.ino() == other.ino()
}

/// Here an open file can't be replaced, nor be removed.
#[cfg(not(unix))]
fn is_same(_one: &Metadata, _other: &Metadata) -> bool {
    true
}
