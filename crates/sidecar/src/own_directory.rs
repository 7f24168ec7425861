//! The one way in which anything is written: in a directory that was checked, through
//! a name that no other user could know.
//!
//! A user who can write to the same place might plant something where we write: a link to a
//! file of ours, a FIFO without a reader, a directory that leads elsewhere. So
//!
//! - a directory is opened part by part; only links of the user and of root are followed
//!   on the way; it must belong to the user, and not everybody may write it;
//! - everything in it is reached by the open directory, and no link in it is followed;
//! - what is there is used only if it is a regular file of the user's, and nothing is
//!   ever waited for;
//! - what is new is made exclusively, and what replaces something has a name of random
//!   digits until it does.
//!
//! Run as root in the home of a user, root's own things are another user's too.

#[cfg(not(unix))]
#[path = "own_directory/other.rs"]
mod platform;
#[cfg(unix)]
#[path = "own_directory/unix.rs"]
mod platform;

use std::collections::hash_map::RandomState;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::hash::{BuildHasher as _, Hasher as _};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// How the names of temporary files begin and end, with 16 hexadecimal digits between.
const TEMPORARY: (&str, &str) = (".sidecar-", ".tmp");
/// How often a name is made up that is taken already, and a file made that comes and goes.
const NAMES_MAX: usize = 16;
/// How many links are followed to one place (Linux: 40, path_resolution(7)).
#[cfg_attr(
    not(unix),
    expect(dead_code, reason = "links are the system's to follow")
)]
const LINKS_MAX: usize = 40;
/// How many links are followed from settings to settings.
const SETTINGS_LINKS_MAX: usize = 8;
/// How often a refusal is waited out that goes away by itself (Windows: a file
/// that a scanner or a reader has open).
const RETRIES_MAX: u32 = 10;
/// How long the first of those waits is; each one is longer by that.
const RETRY_AFTER: Duration = Duration::from_millis(5);

/// A directory in which only the user writes.
#[derive(Debug)]
pub struct OwnDirectory {
    path: PathBuf,
    handle: platform::Handle,
    owners: platform::Owners,
}

/// What is asked of a directory.
#[derive(Debug, Clone, Copy)]
struct Asked {
    /// How many directories are checked, the last one counted.
    #[cfg_attr(not(unix), expect(dead_code, reason = "there is no owner to check"))]
    levels: usize,
    absent: Absent,
}

/// What becomes of directories that are not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Absent {
    /// They are made.
    Make,
    /// That is an error.
    Refuse,
}

/// What a file is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Its bytes are read.
    Read,
    /// It is locked, or written anew.
    Write,
    /// Bytes are added at its end.
    Append,
}

/// Where what is written stands, should the machine lose its power.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durable {
    /// On the disk: the call waits for that.
    Now,
    /// Also stored elsewhere: the call does not wait.
    Later,
}

impl OwnDirectory {
    /// Opens a directory of ours; of those above it, `levels` - 1 must be ours as well.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::NotFound`] if it is not there; an error that names it if it is
    /// another user's or world-writable.
    pub fn open(path: &Path, levels: usize) -> io::Result<Self> {
        Self::walk(path, platform::Owners::ours(), levels, Absent::Refuse)
    }

    /// The same, but creates missing directories, with access for this user alone.
    ///
    /// # Errors
    ///
    /// As in [`OwnDirectory::open`]; also if it would have to be made where another user
    /// is in control.
    pub fn make(path: &Path, levels: usize) -> io::Result<Self> {
        Self::walk(path, platform::Owners::ours(), levels, Absent::Make)
    }

    /// Opens the directory of a file that is the user's whose home is another user's,
    /// if we are root, or our own; returns also the file's name there. Links to the
    /// file are followed if they are that user's or root's.
    ///
    /// # Errors
    ///
    /// As in [`OwnDirectory::open`].
    pub fn of_linked(path: &Path, home_owner: Option<u32>) -> io::Result<(Self, OsString)> {
        let owners = platform::Owners::of(home_owner);
        let mut path = path.to_owned();
        for _ in 0..SETTINGS_LINKS_MAX {
            let (parent, name) = split(&path)?;
            let directory = Self::walk(parent, owners, 1, Absent::Refuse)?;
            let target = platform::target_of(&directory.handle, parent, name, owners)?;
            match target {
                None => {
                    let name = name.to_owned();
                    return Ok((directory, name));
                }
                // Relative to where the link lies.
                Some(target) => path = parent.join(target),
            }
        }
        Err(io::Error::other("it is a link to a link, again and again"))
    }

    fn walk(
        path: &Path,
        owners: platform::Owners,
        levels: usize,
        absent: Absent,
    ) -> io::Result<Self> {
        Ok(Self {
            handle: platform::walk(path, owners, Asked { levels, absent })?,
            path: path.to_owned(),
            owners,
        })
    }

    /// The path that it was opened by.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens a file of the directory's owner that is there.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::NotFound`] if there is none; that of the system if it is a link,
    /// no regular file or another user's.
    pub fn open_file(&self, name: &OsStr, access: Access) -> io::Result<File> {
        let file = platform::open_file(&self.handle, name, access)?;
        platform::check_file(&file, name, self.owners)?;
        Ok(file)
    }

    /// The same, and makes it if it is missing, for ourselves alone.
    ///
    /// # Errors
    ///
    /// As in [`OwnDirectory::open_file`].
    pub fn open_or_make_file(&self, name: &OsStr, access: Access) -> io::Result<File> {
        for _ in 0..NAMES_MAX {
            match self.open_file(name, access) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                opened => return opened,
            }
            match platform::create_file(&self.handle, name, access) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                made => return made,
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// Makes a new file, whole from its first moment.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::AlreadyExists`] if something has that name: it is as it was.
    pub fn make_new(&self, name: &OsStr, bytes: &[u8]) -> io::Result<()> {
        let write = |file: &mut File| self.write_whole(file, bytes, Durable::Now, None);
        if let Some(mut unnamed) = platform::create_unnamed(&self.handle)? {
            write(&mut unnamed)?;
            if platform::give_name(&unnamed, &self.handle, name)? {
                return Ok(());
            }
        }
        let temporary = Temporary::write(self, write)?;
        if platform::rename_new(&self.handle, &temporary.name, name)? {
            temporary.disarm();
            return Ok(());
        }
        self.make_new_by_link(temporary, name)
    }

    /// A link is as exclusive as a rename that replaces nothing.
    fn make_new_by_link(&self, temporary: Temporary<'_>, name: &OsStr) -> io::Result<()> {
        match platform::link(&self.handle, &temporary.name, name) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                // A file system without links: the name is taken first, and is empty
                // until the rename.
                platform::create_file(&self.handle, name, Access::Write)?;
                temporary
                    .rename(name)
                    .inspect_err(|_| drop(self.remove(name)))
            }
            linked => linked,
        }
    }

    /// Puts a file at a name: all of it, or what was there stays. With `like`, it gets
    /// owner and mode of that one.
    ///
    /// # Errors
    ///
    /// That of the system.
    pub fn replace(
        &self,
        name: &OsStr,
        bytes: &[u8],
        durable: Durable,
        like: Option<&File>,
    ) -> io::Result<()> {
        let write = |file: &mut File| self.write_whole(file, bytes, durable, like);
        if let Some(mut unnamed) = platform::create_unnamed(&self.handle)? {
            write(&mut unnamed)?;
            for _ in 0..NAMES_MAX {
                let temporary = Temporary::in_directory(self);
                match platform::give_name(&unnamed, &self.handle, &temporary.name) {
                    Ok(true) => return temporary.rename(name),
                    Ok(false) => {
                        temporary.disarm();
                        break;
                    }
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                        temporary.disarm();
                    }
                    Err(error) => return Err(error),
                }
            }
        }
        Temporary::write(self, write)?.rename(name)
    }

    fn write_whole(
        &self,
        file: &mut File,
        bytes: &[u8],
        durable: Durable,
        like: Option<&File>,
    ) -> io::Result<()> {
        file.write_all(bytes)?;
        platform::set_owner_and_mode(file, &self.handle, like)?;
        match durable {
            Durable::Now => file.sync_data(),
            Durable::Later => Ok(()),
        }
    }

    /// Removes a file; one that is not there is removed.
    ///
    /// # Errors
    ///
    /// That of the system.
    pub fn remove(&self, name: &OsStr) -> io::Result<()> {
        match patiently(|| platform::remove(&self.handle, name)) {
            Err(error) if is_absent(&error) => Ok(()),
            result => result,
        }
    }

    /// Removes a directory in which nothing is.
    ///
    /// # Errors
    ///
    /// That of the system.
    pub fn remove_empty_directory(&self, name: &OsStr) -> io::Result<()> {
        platform::remove_empty_directory(&self.handle, name)
    }

    /// Gives a file a second name.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::AlreadyExists`] if something has it; that of the system, also
    /// where there are no second names.
    pub fn link(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        platform::link(&self.handle, from, to)
    }

    /// Renames a file to a temporary name and returns that name.
    ///
    /// # Errors
    ///
    /// That of the system.
    pub fn move_aside(&self, name: &OsStr) -> io::Result<OsString> {
        let aside = temporary_name();
        patiently(|| platform::rename(&self.handle, name, &aside))?;
        Ok(aside)
    }

    /// Renames a file to a name that is free.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::AlreadyExists`] if the name is taken.
    pub fn rename_new(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        if platform::rename_new(&self.handle, from, to)? {
            return Ok(());
        }
        self.link(from, to)?;
        platform::remove(&self.handle, from)
    }

    /// Gives a file another name, in place of what has that.
    ///
    /// # Errors
    ///
    /// That of the system.
    pub fn rename(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        patiently(|| platform::rename(&self.handle, from, to))
    }
}

/// The directory and the name of a path.
///
/// # Errors
///
/// If it has none.
pub fn split(path: &Path) -> io::Result<(&Path, &OsStr)> {
    let parts = path.parent().zip(path.file_name());
    parts.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidFilename))
}

/// There is nothing at a path, nor can there be.
#[must_use]
pub fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

/// Returns whether a name is that of a temporary file of ours.
#[must_use]
pub fn is_temporary(name: &str) -> bool {
    name.strip_prefix(TEMPORARY.0)
        .and_then(|rest| rest.strip_suffix(TEMPORARY.1))
        .is_some_and(|digits| {
            digits.len() == 16 && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
        })
}

/// Sixteen hexadecimal digits that no other process can guess: the keys are random (the
/// standard library asks the system for them).
pub(crate) fn made_up_digits() -> String {
    static COUNTED: AtomicU64 = AtomicU64::new(0);
    let mut hasher = RandomState::new().build_hasher();
    // A forked child has its parent's keys and counter, and another PID.
    hasher.write_u32(std::process::id());
    hasher.write_u64(COUNTED.fetch_add(1, Ordering::Relaxed));
    format!("{:016x}", hasher.finish())
}

fn temporary_name() -> OsString {
    format!("{}{}{}", TEMPORARY.0, made_up_digits(), TEMPORARY.1).into()
}

/// A temporary file; it goes when it is dropped.
struct Temporary<'a> {
    directory: &'a OwnDirectory,
    name: OsString,
}

impl<'a> Temporary<'a> {
    fn in_directory(directory: &'a OwnDirectory) -> Self {
        Self {
            directory,
            name: temporary_name(),
        }
    }

    fn write(
        directory: &'a OwnDirectory,
        write: impl FnOnce(&mut File) -> io::Result<()>,
    ) -> io::Result<Self> {
        for _ in 0..NAMES_MAX {
            let temporary = Self::in_directory(directory);
            let made = platform::create_file(&directory.handle, &temporary.name, Access::Write);
            let mut file = match made {
                Ok(file) => file,
                Err(error) => {
                    temporary.disarm();
                    match error.kind() {
                        io::ErrorKind::AlreadyExists => continue,
                        _ => return Err(error),
                    }
                }
            };
            write(&mut file)?;
            return Ok(temporary);
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    fn rename(self, name: &OsStr) -> io::Result<()> {
        self.directory.rename(&self.name, name)?;
        self.disarm();
        Ok(())
    }

    /// It has another name now, or never had this one.
    fn disarm(self) {
        std::mem::forget(self);
    }
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        // No caller is left for an error; the next writer removes the file.
        self.directory.remove(&self.name).ok();
    }
}

/// Tries again, a bounded number of times, what is refused only for a moment.
fn patiently(step: impl FnMut() -> io::Result<()>) -> io::Result<()> {
    retry(step, is_momentary, std::thread::sleep)
}

/// Refusals that go away by themselves: a file that a scanner or a reader has open
/// (Windows: `ERROR_ACCESS_DENIED`, `ERROR_SHARING_VIOLATION`, `ERROR_LOCK_VIOLATION`),
/// an interrupted call.
fn is_momentary(error: &io::Error) -> bool {
    let is_in_use = cfg!(windows) && matches!(error.raw_os_error(), Some(5 | 32 | 33));
    is_in_use || error.kind() == io::ErrorKind::Interrupted
}

fn retry(
    mut step: impl FnMut() -> io::Result<()>,
    is_momentary: impl Fn(&io::Error) -> bool,
    mut wait: impl FnMut(Duration),
) -> io::Result<()> {
    for attempt in 1..=RETRIES_MAX {
        match step() {
            Err(error) if is_momentary(&error) => wait(RETRY_AFTER * attempt),
            result => return result,
        }
    }
    step()
}

#[cfg(test)]
mod tests;
