//! Files that nobody else may read, and which file is at a path.

use std::fs::{DirBuilder, File, Metadata, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;

/// Makes a directory and those above it that are missing, for ourselves alone.
pub(crate) fn make_directory(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt as _;
        builder.mode(0o700);
    }
    builder.create(path)
}

/// Opens a file for ourselves alone, and makes it if it is missing.
pub(crate) fn open_own(path: &Path, how: &mut OpenOptions) -> io::Result<File> {
    how.create(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        how.mode(0o600);
    }
    how.open(path)
}

/// Tells whether `file` is the one that is at `path` now.
pub(crate) fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let open = file.metadata()?;
    match std::fs::symlink_metadata(path) {
        Ok(there) => Ok(is_same(&open, &there)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Tells whether both are one file.
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

/// What the name of a file that is about to replace another one ends with.
const TEMPORARY_SUFFIX: &str = ".whosup~";

// The longest name on eCryptfs has 143 bytes (claude-code#59726).
const _: () = assert!(
    whosup_core::sidecar::SESSION_ID_BYTES_MAX + ".json".len() + TEMPORARY_SUFFIX.len() <= 143
);

/// Puts bytes at a path: all of them, or what was there stays. Owner and mode stay.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(TEMPORARY_SUFFIX);
    let temporary = path.with_file_name(name);
    let write = || {
        let mut file = open_own(&temporary, OpenOptions::new().write(true).truncate(true))?;
        file.write_all(bytes)?;
        if let Ok(old) = File::open(path) {
            let old = old.metadata()?;
            keep_owner(&file, &old)?;
            file.set_permissions(old.permissions())?;
        }
        file.sync_all()?;
        std::fs::rename(&temporary, path)
    };
    let result = write();
    if result.is_err() {
        // It may not have come to be.
        std::fs::remove_file(&temporary).ok();
    }
    result
}

/// Whoever changes settings of somebody else's leaves them to them.
#[cfg(unix)]
fn keep_owner(file: &File, old: &Metadata) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt as _, fchown};
    let new = file.metadata()?;
    if (new.uid(), new.gid()) == (old.uid(), old.gid()) {
        return Ok(());
    }
    fchown(file, Some(old.uid()), Some(old.gid()))
}

/// There is no owner to keep.
#[cfg(not(unix))]
fn keep_owner(_: &File, _: &Metadata) -> io::Result<()> {
    Ok(())
}
