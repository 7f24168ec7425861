//! Files that appear whole or not at all, in one directory.
//!
//! What is new is made under a name that nobody has, exclusively; what is ours is
//! replaced by a rename. A temporary file lies in the same directory, and goes
//! when anything fails. Where the file system has files without names
//! (`O_TMPFILE`), a new file has no temporary name at all, and one that replaces
//! another has it between two calls only.

#[cfg(not(target_os = "linux"))]
#[path = "disk/other.rs"]
mod platform;
#[cfg(target_os = "linux")]
#[path = "disk/linux.rs"]
mod platform;

use std::collections::hash_map::RandomState;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::hash::{BuildHasher as _, Hasher as _};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

pub(super) use platform::{is_shared_by_machines, lock_directory};

/// How the names of temporary files begin and end, with 16 hexadecimal digits between.
const TEMPORARY: (&str, &str) = (".sidecar-", ".tmp");
/// How often a name is made up that is taken already.
const NAMES_MAX: usize = 16;
/// How often a refusal is waited out that goes away by itself (Windows: a file
/// that a scanner or a reader has open).
const RETRIES_MAX: u32 = 10;
/// How long the first of those waits is; each one is longer by that.
const RETRY_AFTER: Duration = Duration::from_millis(5);

/// Makes a directory and those above it that are missing, for ourselves alone.
pub(super) fn make_directory(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt as _;
        builder.mode(0o700);
    }
    builder.create(path)
}

/// Makes a new file, whole from its first moment.
///
/// # Errors
///
/// [`io::ErrorKind::AlreadyExists`] if something has that name: it is as it was.
pub(super) fn make_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if let Some(unnamed) = platform::write_unnamed(directory_of(path), bytes)?
        && platform::name(&unnamed, path)?
    {
        return Ok(());
    }
    let temporary = Temporary::write(directory_of(path), bytes)?;
    match platform::rename_new(&temporary.path, path)? {
        Renamed::Done => {
            temporary.disarm();
            Ok(())
        }
        Renamed::Unsupported => make_new_by_link(temporary, path),
    }
}

/// A link is as exclusive as a rename that replaces nothing.
fn make_new_by_link(temporary: Temporary, path: &Path) -> io::Result<()> {
    match fs::hard_link(&temporary.path, path) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(error),
        // A file system without links: the name is taken first, and is empty
        // until the rename.
        Err(_) => {
            private().create_new(true).open(path)?;
            temporary
                .rename(path)
                .inspect_err(|_| drop(fs::remove_file(path)))
        }
    }
}

/// Replaces a file, which is ours.
pub(super) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let directory = directory_of(path);
    if let Some(unnamed) = platform::write_unnamed(directory, bytes)? {
        for _ in 0..NAMES_MAX {
            let temporary = Temporary::at(directory.join(temporary_name()));
            match platform::name(&unnamed, &temporary.path) {
                Ok(true) => return temporary.rename(path),
                Ok(false) => break,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => temporary.disarm(),
                Err(error) => return Err(error),
            }
        }
    }
    Temporary::write(directory, bytes)?.rename(path)
}

/// Removes a file; one that is not there is removed.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    match patiently(|| fs::remove_file(path)) {
        Err(error) if is_absent(&error) => Ok(()),
        result => result,
    }
}

/// Gives a file a temporary name, and tells which.
pub(super) fn move_aside(path: &Path) -> io::Result<PathBuf> {
    let aside = directory_of(path).join(temporary_name());
    patiently(|| fs::rename(path, &aside))?;
    Ok(aside)
}

/// Gives a file a name that nobody has.
///
/// # Errors
///
/// [`io::ErrorKind::AlreadyExists`] if somebody has it.
pub(super) fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    match platform::rename_new(from, to)? {
        Renamed::Done => Ok(()),
        Renamed::Unsupported => {
            fs::hard_link(from, to)?;
            fs::remove_file(from)
        }
    }
}

/// There is nothing at a path, nor can there be.
pub(super) fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

/// Tells whether a name is that of a temporary file of a sidecar's writer.
pub(super) fn is_temporary(name: &str) -> bool {
    name.strip_prefix(TEMPORARY.0)
        .and_then(|rest| rest.strip_suffix(TEMPORARY.1))
        .is_some_and(|digits| {
            digits.len() == 16 && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
        })
}

/// Sixteen hexadecimal digits that nobody else comes upon. Exclusive creation
/// decides; this only makes it rare that it has to.
pub(super) fn made_up_digits() -> String {
    static COUNTED: AtomicU64 = AtomicU64::new(0);
    let mut hasher = RandomState::new().build_hasher();
    // A forked child has its parent's keys and counter, and another PID.
    hasher.write_u32(std::process::id());
    hasher.write_u64(COUNTED.fetch_add(1, Ordering::Relaxed));
    format!("{:016x}", hasher.finish())
}

fn temporary_name() -> String {
    format!("{}{}{}", TEMPORARY.0, made_up_digits(), TEMPORARY.1)
}

fn directory_of(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new("."))
}

/// What became of a rename that must not replace anything.
pub(super) enum Renamed {
    /// It is done.
    #[cfg_attr(
        not(target_os = "linux"),
        expect(dead_code, reason = "only Linux has such a rename")
    )]
    Done,
    /// This system or file system has no such rename.
    Unsupported,
}

/// A temporary file; it goes when it is dropped.
struct Temporary {
    path: PathBuf,
}

impl Temporary {
    const fn at(path: PathBuf) -> Self {
        Self { path }
    }

    fn write(directory: &Path, bytes: &[u8]) -> io::Result<Self> {
        for _ in 0..NAMES_MAX {
            let path = directory.join(temporary_name());
            let mut file = match private().create_new(true).open(&path) {
                Ok(file) => file,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                Err(error) => return Err(error),
            };
            let temporary = Self::at(path);
            write_whole(&mut file, bytes)?;
            return Ok(temporary);
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    fn rename(self, path: &Path) -> io::Result<()> {
        patiently(|| fs::rename(&self.path, path))?;
        self.disarm();
        Ok(())
    }

    /// It has another name now, or never had this one.
    fn disarm(self) {
        std::mem::forget(self);
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // Nobody is left to tell; whoever comes next removes it.
        remove(&self.path).ok();
    }
}

fn private() -> OpenOptions {
    let mut how = OpenOptions::new();
    how.write(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        how.mode(0o600);
    }
    how
}

/// Writes a file and waits until the disk has it: after a crash of the machine
/// it is whole or not there.
fn write_whole(file: &mut File, bytes: &[u8]) -> io::Result<()> {
    file.write_all(bytes)?;
    // The mode that it was made with is less what the umask takes away.
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        file.set_permissions(fs::Permissions::from_mode(0o600))?;
    }
    file.sync_data()
}

/// Tries again, a bounded number of times, what is refused only for a moment.
fn patiently(step: impl FnMut() -> io::Result<()>) -> io::Result<()> {
    retry(step, platform::is_momentary, std::thread::sleep)
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
mod tests {
    use std::io;

    use super::{RETRIES_MAX, is_temporary, made_up_digits, retry, temporary_name};

    fn momentary(error: &io::Error) -> bool {
        error.kind() == io::ErrorKind::PermissionDenied
    }

    #[test]
    fn a_refusal_that_goes_away_is_waited_out() {
        let mut refusals = 3;
        let mut waits = Vec::new();
        let step = || match refusals {
            0 => Ok(()),
            _ => {
                refusals -= 1;
                Err(io::ErrorKind::PermissionDenied.into())
            }
        };
        retry(step, momentary, |wait| waits.push(wait.as_millis())).unwrap();
        assert_eq!(waits, [5, 10, 15]);
    }

    #[test]
    fn a_refusal_that_stays_is_returned_after_a_bounded_wait() {
        let mut waits = 0;
        let refused = || Err(io::ErrorKind::PermissionDenied.into());
        let error = retry(refused, momentary, |_| waits += 1).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
        assert_eq!(waits, RETRIES_MAX);
    }

    #[test]
    fn any_other_error_is_returned_at_once() {
        let mut tries = 0;
        let full = || {
            tries += 1;
            Err(io::ErrorKind::StorageFull.into())
        };
        let error = retry(full, momentary, |_| panic!("it waits")).unwrap_err();
        assert_eq!((error.kind(), tries), (io::ErrorKind::StorageFull, 1));
    }

    #[test]
    fn names_of_temporary_files_are_told_from_all_others() {
        assert!(is_temporary(&temporary_name()));
        assert_ne!(made_up_digits(), made_up_digits());
        for other in [
            ".sidecar-.tmp",
            ".sidecar-0123456789abcdeg.tmp",
            ".sidecar-0123456789abcdef",
            "sidecar-0123456789abcdef.tmp",
            "s1.runtime.json",
        ] {
            assert!(!is_temporary(other), "{other}");
        }
    }
}
