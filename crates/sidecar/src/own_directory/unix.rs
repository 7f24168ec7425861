//! Directories by descriptor: each part of a path is opened below the one before.

use std::ffi::{OsStr, OsString};
use std::fs::{File, Permissions};
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, FileType, Gid, Mode, OFlags, Stat, Uid, chmodat, fchown, fstat, linkat, mkdirat,
    open, openat, readlinkat, renameat, statat, unlinkat,
};
use rustix::io::Errno;

use super::{Absent, Access, Asked, LINKS_MAX};

/// How a directory is opened that is only gone through. (Not all systems can open one
/// that may be entered and not be listed.)
#[cfg(target_os = "linux")]
const DIRECTORY: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
#[cfg(not(target_os = "linux"))]
const DIRECTORY: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::CLOEXEC);

/// For ourselves alone.
const PRIVATE: Mode = Mode::RUSR.union(Mode::WUSR);

/// An open directory.
pub(super) type Handle = OwnedFd;

/// Users whose things are trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Owners([u32; 2]);

impl Owners {
    /// We, and root.
    pub(super) fn ours() -> Self {
        Self([rustix::process::geteuid().as_raw(), 0])
    }

    /// The owner of a home that we change files in. Only root does so for other users;
    /// for any other user this is [`Owners::ours`].
    pub(super) fn of(uid: Option<u32>) -> Self {
        match uid {
            Some(uid) if rustix::process::geteuid().is_root() => Self([uid, uid]),
            _ => Self::ours(),
        }
    }

    fn has(self, uid: u32) -> bool {
        self.0.contains(&uid)
    }
}

/// One part of a path. Its level is how far it is from the last one; parts of a link
/// that leads to such a part have none.
struct Part {
    name: OsString,
    level: Option<usize>,
}

/// Opens a directory part by part, follows only links of `owners`, and checks the last
/// ones.
pub(super) fn walk(path: &Path, owners: Owners, asked: Asked) -> io::Result<Handle> {
    let absolute = std::path::absolute(path)?;
    let mut left = parts_of(&absolute, Some(0));
    let mut here = (open("/", DIRECTORY, Mode::empty())?, PathBuf::from("/"));
    let mut links = 0;
    while let Some(part) = left.pop() {
        let name = part.name.as_os_str();
        match openat(&here.0, name, DIRECTORY | OFlags::NOFOLLOW, Mode::empty()) {
            Ok(next) => {
                here = (next, here.1.join(name));
                if let Some(level) = part.level.filter(|level| *level < asked.levels) {
                    check_directory(&here.0, &here.1, owners, level)?;
                }
            }
            Err(Errno::NOENT) if asked.absent == Absent::Make => {
                make_below(&here.0, &here.1, name, owners)?;
                left.push(part);
            }
            // What is a link is no directory, or is one link too many.
            Err(errno @ (Errno::NOTDIR | Errno::LOOP | Errno::MLINK)) => {
                let target = target_of(&here.0, &here.1, name, owners)?.ok_or(errno)?;
                links += 1;
                if links > LINKS_MAX {
                    return Err(Errno::LOOP.into());
                }
                if target.is_absolute() {
                    here = (open("/", DIRECTORY, Mode::empty())?, PathBuf::from("/"));
                }
                left.extend(parts_of(&target, part.level));
            }
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(here.0)
}

/// The parts of a path, the last one first. `last` is the level of that one, and in a
/// path of which each part has one, of those before it.
fn parts_of(path: &Path, last: Option<usize>) -> Vec<Part> {
    let is_whole = last == Some(0) && path.is_absolute();
    let names = path.components().rev().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    });
    let parts = names.enumerate().map(|(at, name)| Part {
        name,
        level: if is_whole {
            Some(at)
        } else {
            last.filter(|_| at == 0)
        },
    });
    parts.collect()
}

/// Refuses a directory that another user may write to.
fn check_directory(handle: &Handle, path: &Path, owners: Owners, level: usize) -> io::Result<()> {
    let facts = fstat(handle)?;
    if !owners.has(facts.st_uid) {
        return Err(of_another(path, facts.st_uid));
    }
    let mode = Mode::from_raw_mode(facts.st_mode);
    // With the sticky bit no user moves another user's file: that will do above our own.
    let is_kept = level > 0 && mode.contains(Mode::SVTX);
    if mode.contains(Mode::WOTH) && !is_kept && has_modes(handle) {
        let path = path.display();
        let remedy = if mode.contains(Mode::SVTX) {
            // Such a directory, like `/tmp`, is for everybody on purpose.
            "use a directory of your own".to_owned()
        } else {
            format!("`chmod o-w {path}` mends that")
        };
        let why = format!("everybody may write `{path}`; {remedy}");
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    }
    Ok(())
}

/// The error for a place that another user controls.
fn of_another(path: &Path, uid: u32) -> io::Error {
    let own = rustix::process::geteuid().as_raw();
    let why = format!(
        "`{}` belongs to user {uid}, and this process is user {own}'s",
        path.display()
    );
    io::Error::new(io::ErrorKind::PermissionDenied, why)
}

/// File systems without modes, where everybody may write everything, by the magic
/// number of statfs(2): FAT, exFAT, NTFS (two), SMB (three), 9p.
#[cfg(target_os = "linux")]
const WITHOUT_MODES: [i128; 8] = [
    0x4D44,
    0x2011_BAB0,
    0x5346_544E,
    0x7366_746E,
    0x517B,
    0xFF53_4D42,
    0xFE53_4D42,
    0x0102_1997,
];

#[cfg(target_os = "linux")]
fn has_modes(handle: &Handle) -> bool {
    rustix::fs::fstatfs(handle)
        // The type of the field differs per architecture, its sign too.
        .map_or(true, |stat| {
            !WITHOUT_MODES.contains(&(i128::from(stat.f_type) & 0xFFFF_FFFF))
        })
}

#[cfg(not(target_os = "linux"))]
fn has_modes(_: &Handle) -> bool {
    true
}

/// Makes a directory for ourselves alone, in one where that is for us to do.
fn make_below(handle: &Handle, path: &Path, name: &OsStr, owners: Owners) -> io::Result<()> {
    let facts = fstat(handle)?;
    let is_ours = Owners::ours().has(facts.st_uid) && owners == Owners::ours();
    if !is_ours {
        return Err(of_another(path, facts.st_uid));
    }
    match mkdirat(handle, name, Mode::RWXU) {
        // The mode that it was made with is less what the umask takes away.
        Ok(()) => Ok(chmodat(handle, name, Mode::RWXU, AtFlags::empty())?),
        Err(Errno::EXIST) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

/// What a link leads to; `None` if it is none.
pub(super) fn target_of(
    handle: &Handle,
    path: &Path,
    name: &OsStr,
    owners: Owners,
) -> io::Result<Option<PathBuf>> {
    let facts = match statat(handle, name, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => return Ok(None),
        facts => facts?,
    };
    if FileType::from_raw_mode(facts.st_mode) != FileType::Symlink {
        return Ok(None);
    }
    // Links of root are trusted: some system directories are such links.
    if !owners.has(facts.st_uid) && facts.st_uid != 0 {
        return Err(of_another(&path.join(name), facts.st_uid));
    }
    let target = readlinkat(handle, name, Vec::new())?;
    Ok(Some(OsString::from_vec(target.into_bytes()).into()))
}

/// Opens what is there: no link, nothing that is waited for, no terminal of ours.
pub(super) fn open_file(handle: &Handle, name: &OsStr, access: Access) -> io::Result<File> {
    let how = match access {
        Access::Read => OFlags::RDONLY,
        Access::Write => OFlags::WRONLY,
        Access::Append => OFlags::WRONLY | OFlags::APPEND,
    };
    let safe = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    opened(handle, name, how | safe)
}

/// Makes a file that was not there.
pub(super) fn create_file(handle: &Handle, name: &OsStr, access: Access) -> io::Result<File> {
    let append = match access {
        Access::Append => OFlags::APPEND,
        Access::Read | Access::Write => OFlags::empty(),
    };
    let exclusive = OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
    opened(
        handle,
        name,
        OFlags::WRONLY | append | exclusive | OFlags::CLOEXEC,
    )
}

fn opened(handle: &Handle, name: &OsStr, flags: OFlags) -> io::Result<File> {
    loop {
        match openat(handle, name, flags, PRIVATE) {
            // open(2): a signal may interrupt it on a slow file system.
            Err(Errno::INTR) => {}
            // open(2): a link under O_NOFOLLOW; a FIFO without a reader, or a socket.
            Err(Errno::LOOP | Errno::MLINK) => return Err(not_regular(name, "a link")),
            Err(Errno::NXIO) => return Err(not_regular(name, "a FIFO or a socket")),
            opened => return Ok(File::from(opened?)),
        }
    }
}

fn not_regular(name: &OsStr, kind: &str) -> io::Error {
    let why = format!("`{}` is {kind}, and no regular file", name.display());
    io::Error::new(io::ErrorKind::InvalidInput, why)
}

/// Refuses what is no regular file, and what is another user's.
pub(super) fn check_file(file: &File, name: &OsStr, owners: Owners) -> io::Result<()> {
    let facts = fstat(file)?;
    if FileType::from_raw_mode(facts.st_mode) != FileType::RegularFile {
        return Err(not_regular(name, "something else"));
    }
    if !owners.has(facts.st_uid) {
        return Err(of_another(Path::new(name), facts.st_uid));
    }
    Ok(())
}

/// Opens a file that has no name; `None` where there is no such thing.
#[cfg(target_os = "linux")]
pub(super) fn create_unnamed(handle: &Handle) -> io::Result<Option<File>> {
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    match openat(handle, ".", flags, PRIVATE) {
        Ok(file) => Ok(Some(File::from(file))),
        // open(2), O_TMPFILE: a file system or a kernel without it.
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}

/// There are no files without names here.
#[cfg(not(target_os = "linux"))]
#[expect(
    clippy::unnecessary_wraps,
    reason = "the same signature on every system"
)]
pub(super) fn create_unnamed(_: &Handle) -> io::Result<Option<File>> {
    Ok(None)
}

/// Gives a file its name, exclusively; `false` where that can't be done.
pub(super) fn give_name(file: &File, handle: &Handle, name: &OsStr) -> io::Result<bool> {
    use std::os::fd::AsRawFd as _;
    // open(2), O_TMPFILE: the way that needs no capability.
    let unnamed = format!("/proc/self/fd/{}", file.as_raw_fd());
    match linkat(CWD, unnamed, handle, name, AtFlags::SYMLINK_FOLLOW) {
        Ok(()) => Ok(true),
        Err(Errno::EXIST) => Err(Errno::EXIST.into()),
        // No `/proc`, or no links.
        Err(_) => Ok(false),
    }
}

/// The file is its owner's alone, or has owner and mode of another one, or belongs to
/// the owner of its directory.
pub(super) fn set_owner_and_mode(
    file: &File,
    handle: &Handle,
    like: Option<&File>,
) -> io::Result<()> {
    let ours = fstat(file)?;
    let model: Stat = match like {
        Some(like) => fstat(like)?,
        None => fstat(handle)?,
    };
    if (ours.st_uid, ours.st_gid) != (model.st_uid, model.st_gid) && has_to_give(like, &model) {
        let (uid, gid) = (Uid::from_raw(model.st_uid), Gid::from_raw(model.st_gid));
        fchown(file.as_fd(), Some(uid), Some(gid))?;
    }
    match like {
        Some(like) => file.set_permissions(like.metadata()?.permissions()),
        // The mode that it was made with is less what the umask takes away.
        None => file.set_permissions(Permissions::from_mode(0o600)),
    }
}

/// What is new and ours stays ours, also where the directory's group is another one.
fn has_to_give(like: Option<&File>, model: &Stat) -> bool {
    let own = rustix::process::geteuid();
    like.is_some() || (own.is_root() && model.st_uid != 0)
}

pub(super) fn rename(handle: &Handle, from: &OsStr, to: &OsStr) -> io::Result<()> {
    Ok(renameat(handle, from, handle, to)?)
}

/// Renames a file unless something has the new name; `false` where there is no such
/// rename.
#[cfg(target_os = "linux")]
pub(super) fn rename_new(handle: &Handle, from: &OsStr, to: &OsStr) -> io::Result<bool> {
    use rustix::fs::{RenameFlags, renameat_with};
    match renameat_with(handle, from, handle, to, RenameFlags::NOREPLACE) {
        Ok(()) => Ok(true),
        // rename(2), renameat2: a file system or a kernel without it.
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => Ok(false),
        Err(errno) => Err(errno.into()),
    }
}

/// There is no rename that replaces nothing: links are used.
#[cfg(not(target_os = "linux"))]
#[expect(
    clippy::unnecessary_wraps,
    reason = "the same signature on every system"
)]
pub(super) fn rename_new(_: &Handle, _: &OsStr, _: &OsStr) -> io::Result<bool> {
    Ok(false)
}

/// Gives a file a second name, unless something has that.
pub(super) fn link(handle: &Handle, from: &OsStr, to: &OsStr) -> io::Result<()> {
    Ok(linkat(handle, from, handle, to, AtFlags::empty())?)
}

pub(super) fn remove(handle: &Handle, name: &OsStr) -> io::Result<()> {
    Ok(unlinkat(handle, name, AtFlags::empty())?)
}

pub(super) fn remove_empty_directory(handle: &Handle, name: &OsStr) -> io::Result<()> {
    Ok(unlinkat(handle, name, AtFlags::REMOVEDIR)?)
}
