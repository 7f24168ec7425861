//! Systems without descriptors of directories: what the standard library gives.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use super::{Absent, Access, Asked};

/// A directory by its path.
pub(super) type Handle = PathBuf;

/// There are no numbers of users here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Owners;

impl Owners {
    pub(super) fn ours() -> Self {
        Self
    }

    pub(super) fn of(_: Option<u32>) -> Self {
        Self
    }
}

pub(super) fn walk(path: &Path, _: Owners, asked: Asked) -> io::Result<Handle> {
    if asked.absent == Absent::Make {
        fs::create_dir_all(path)?;
    }
    if !fs::metadata(path)?.is_dir() {
        return Err(io::ErrorKind::NotADirectory.into());
    }
    Ok(path.to_owned())
}

pub(super) fn target_of(
    handle: &Handle,
    _: &Path,
    name: &OsStr,
    _: Owners,
) -> io::Result<Option<PathBuf>> {
    match fs::symlink_metadata(handle.join(name)) {
        Ok(facts) if facts.is_symlink() => fs::read_link(handle.join(name)).map(Some),
        Ok(_) => Ok(None),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

pub(super) fn open_file(handle: &Handle, name: &OsStr, access: Access) -> io::Result<File> {
    options(access).open(handle.join(name))
}

pub(super) fn create_file(handle: &Handle, name: &OsStr, access: Access) -> io::Result<File> {
    let mut options = options(access);
    options.write(access != Access::Append).create_new(true);
    options.open(handle.join(name))
}

fn options(access: Access) -> OpenOptions {
    let mut options = OpenOptions::new();
    match access {
        Access::Read => options.read(true),
        Access::Write => options.write(true),
        Access::Append => options.append(true),
    };
    options
}

pub(super) fn check_file(file: &File, name: &OsStr, _: Owners) -> io::Result<()> {
    if file.metadata()?.is_file() {
        return Ok(());
    }
    let why = format!("`{}` is no regular file", name.display());
    Err(io::Error::new(io::ErrorKind::InvalidInput, why))
}

/// There are no files without names here.
#[expect(
    clippy::unnecessary_wraps,
    reason = "the same signature on every system"
)]
pub(super) fn create_unnamed(_: &Handle) -> io::Result<Option<File>> {
    Ok(None)
}

/// There are no files without names here.
#[expect(
    clippy::unnecessary_wraps,
    reason = "the same signature on every system"
)]
pub(super) fn give_name(_: &File, _: &Handle, _: &OsStr) -> io::Result<bool> {
    Ok(false)
}

pub(super) fn set_owner_and_mode(file: &File, _: &Handle, like: Option<&File>) -> io::Result<()> {
    match like {
        Some(like) => file.set_permissions(like.metadata()?.permissions()),
        None => Ok(()),
    }
}

pub(super) fn rename(handle: &Handle, from: &OsStr, to: &OsStr) -> io::Result<()> {
    fs::rename(handle.join(from), handle.join(to))
}

/// There is no rename that replaces nothing: links are used.
#[expect(
    clippy::unnecessary_wraps,
    reason = "the same signature on every system"
)]
pub(super) fn rename_new(_: &Handle, _: &OsStr, _: &OsStr) -> io::Result<bool> {
    Ok(false)
}

pub(super) fn link(handle: &Handle, from: &OsStr, to: &OsStr) -> io::Result<()> {
    fs::hard_link(handle.join(from), handle.join(to))
}

pub(super) fn remove(handle: &Handle, name: &OsStr) -> io::Result<()> {
    fs::remove_file(handle.join(name))
}

pub(super) fn remove_empty_directory(handle: &Handle, name: &OsStr) -> io::Result<()> {
    fs::remove_dir(handle.join(name))
}
