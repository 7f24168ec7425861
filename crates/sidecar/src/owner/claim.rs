//! Finds a file name for a claim without ever taking another process's name.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use whosup_process::system_backend;

use super::announced::SUFFIX;
use super::disk;
use super::identity::{Identity, is_gone};
use super::lock::lock_briefly;
use super::{Place, Session};
use crate::file::{FileFacts, Links, ReadFileError, read_regular};
use crate::{SIDECAR_BYTES_MAX, SessionId, Sidecar, parse_sidecar};

/// What stands between a session's id and the digits of a sibling claim.
const SIBLING: &str = ".claim-";
/// How much of a session's id is in the name of a sibling, in bytes. With the
/// rest that makes 143, the longest name on eCryptfs (claude-code#59726).
const SIBLING_ID_BYTES_MAX: usize = 107;
/// How often a file is looked at that changes meanwhile.
const TAKES_MAX: usize = 8;
/// How often a sibling's name is made up that is taken already.
const SIBLINGS_MAX: usize = 16;
/// How many names of a directory are looked at for what others left behind.
const NAMES_MAX: usize = 10_000;
/// The age at which an unreadable temporary file is certainly left over.
const LEFT_OVER_AFTER: Duration = Duration::from_secs(3600);

/// The files that live handles of this process own, each with the process: a
/// forked child inherits the list, but nothing that is in it.
static OWNED: Mutex<Vec<(u32, PathBuf)>> = Mutex::new(Vec::new());

/// A claim's file, and what we last wrote there.
#[derive(Debug)]
pub(super) struct Written {
    pub(super) path: PathBuf,
    pub(super) bytes: Vec<u8>,
}

impl Written {
    /// The file is there as we wrote it.
    pub(super) fn is_in_place(&self) -> bool {
        matches!(read(&self.path), Ok((bytes, _)) if bytes == self.bytes)
    }

    /// Removes the file, unless it is not ours any more.
    pub(super) fn remove(&self) -> io::Result<()> {
        match read(&self.path) {
            Ok((bytes, _)) if bytes != self.bytes => {}
            Err(ReadFileError::NotFound { .. } | ReadFileError::NotRegular { .. }) => {}
            Ok(_) | Err(_) => disk::remove(&self.path)?,
        }
        self.forget();
        Ok(())
    }

    /// No handle of this process owns the file any more.
    pub(super) fn forget(&self) {
        if let Some(mut owned) = lock_briefly(&OWNED) {
            owned.retain(|(_, path)| *path != self.path);
        }
    }
}

/// What lies where a session's sidecar belongs.
enum There {
    Nothing,
    /// A claim of this very process that no handle owns: its program executed
    /// another one, or a handle was dropped.
    OwnLeftOver,
    /// A claim of a process that is provably gone, as it was read.
    Stale(Vec<u8>),
    /// Anything else: another process may own it.
    Foreign,
}

/// Writes a new claim: in the session's own file if that is free, ours, or a
/// dead process's, and otherwise in a sibling beside it.
pub(super) fn make_claim(
    (directory, name): (&Path, &str),
    session: &Session,
    identity: &Identity,
    bytes: Vec<u8>,
) -> io::Result<Written> {
    let path = directory.join(name);
    for _ in 0..TAKES_MAX {
        let made = match what_is_there(&path, session, identity) {
            There::Nothing => disk::make_new(&path, &bytes),
            There::OwnLeftOver => disk::replace(&path, &bytes),
            There::Stale(stale) => {
                take_away(&path, &stale, session)?;
                continue;
            }
            There::Foreign => break,
        };
        match made {
            Ok(()) => return Ok(own(path, bytes)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    for _ in 0..SIBLINGS_MAX {
        let path = directory.join(sibling_name(session));
        match disk::make_new(&path, &bytes) {
            Ok(()) => return Ok(own(path, bytes)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

fn own(path: PathBuf, bytes: Vec<u8>) -> Written {
    if let Some(mut owned) = lock_briefly(&OWNED) {
        owned.push((std::process::id(), path.clone()));
    }
    Written { path, bytes }
}

fn sibling_name(session: &Session) -> String {
    let digits = disk::made_up_digits();
    format!("{}{SIBLING}{digits}{SUFFIX}", sibling_stem(&session.id))
}

/// The common prefix of the names of a session's siblings. Readers take the session ID
/// from the contents of a file, so the name may contain a shortened ID.
fn sibling_stem(session: &SessionId) -> &str {
    let id = session.as_str();
    let cut = (0..=SIBLING_ID_BYTES_MAX)
        .rev()
        .find_map(|end| id.get(..end));
    if id.len() <= SIBLING_ID_BYTES_MAX {
        id
    } else {
        cut.unwrap_or(id)
    }
}

fn what_is_there(path: &Path, session: &Session, identity: &Identity) -> There {
    let (bytes, facts) = match read(path) {
        Ok(read) => read,
        Err(ReadFileError::NotFound { .. }) => return There::Nothing,
        Err(_) => return There::Foreign,
    };
    let Ok(sidecar) = parse_sidecar(&bytes) else {
        return There::Foreign;
    };
    // Where letters of both cases are one, another session may have this name.
    let is_of_session =
        sidecar.session_id == session.id || matches!(session.place, Place::SessionDirectory(_));
    if !is_of_session {
        return There::Foreign;
    }
    if identity.is_named_by(&sidecar) {
        let own = std::process::id();
        let is_owned = lock_briefly(&OWNED)
            .is_some_and(|owned| owned.iter().any(|(pid, at)| *pid == own && at == path));
        return if is_owned {
            There::Foreign
        } else {
            There::OwnLeftOver
        };
    }
    if is_stale(&sidecar, path, &facts) {
        There::Stale(bytes)
    } else {
        There::Foreign
    }
}

fn is_stale(sidecar: &Sidecar, path: &Path, facts: &FileFacts) -> bool {
    let directory = path.parent().unwrap_or(path);
    is_trusted(facts) && is_gone(sidecar, disk::is_shared_by_machines(directory))
}

/// A file that another user may have written proves nothing.
fn is_trusted(facts: &FileFacts) -> bool {
    const WRITABLE_BY_EVERYBODY: u32 = 0o002;
    let is_owner_trusted = match (facts.uid, system_backend().view().uid) {
        (Some(owner), Ok(ours)) => owner == ours || owner == 0,
        (None, _) | (_, Err(_)) => true,
    };
    is_owner_trusted
        && facts
            .mode
            .is_none_or(|mode| mode & WRITABLE_BY_EVERYBODY == 0)
}

fn read(path: &Path) -> Result<(Vec<u8>, FileFacts), ReadFileError> {
    let file = read_regular(path, SIDECAR_BYTES_MAX, Links::Refuse)?;
    Ok((file.bytes, file.facts))
}

/// Takes a stale claim out of the way.
///
/// Two processes may do so at once, and one may have put its own claim there
/// meanwhile. So nothing is removed by a name that others use: the file gets a
/// name of ours first, and goes only if it is still what was judged.
fn take_away(path: &Path, stale: &[u8], session: &Session) -> io::Result<()> {
    let directory = path.parent().unwrap_or(path);
    let _lock = disk::lock_directory(directory);
    if !matches!(read(path), Ok((bytes, _)) if bytes == stale) {
        return Ok(());
    }
    let aside = match disk::move_aside(path) {
        Ok(aside) => aside,
        Err(error) if disk::is_absent(&error) => return Ok(()),
        Err(error) => return Err(error),
    };
    if matches!(read(&aside), Ok((bytes, _)) if bytes == stale) {
        return disk::remove(&aside);
    }
    let returned = match disk::rename_new(&aside, path) {
        // A third one has the name by now.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            disk::rename_new(&aside, &directory.join(sibling_name(session)))
        }
        result => result,
    };
    // Who has just made a claim may have removed it: a temporary file of the dead.
    returned.or_else(|error| {
        if disk::is_absent(&error) {
            Ok(())
        } else {
            Err(error)
        }
    })
}

/// Removes what dead writers left behind in a directory: their temporary files,
/// and sibling claims to the same session. Nothing else, and nothing whose
/// writer may be alive. What can't be removed stays.
pub(super) fn clear_left_overs(written: &Written, session: &Session) {
    let Some(directory) = written.path.parent() else {
        return;
    };
    let Ok(entries) = std::fs::read_dir(directory) else {
        return;
    };
    for entry in entries.take(NAMES_MAX).flatten() {
        let name = entry.file_name();
        let Some(name) = name.to_str() else {
            continue;
        };
        let is_temporary = disk::is_temporary(name);
        if !is_temporary && !is_sibling_of(name, &session.id) {
            continue;
        }
        let path = directory.join(name);
        let Ok((bytes, facts)) = read(&path) else {
            continue;
        };
        let is_left_over = match parse_sidecar(&bytes) {
            Ok(sidecar) => is_stale(&sidecar, &path, &facts),
            // A writer that was killed while it wrote. No write takes an hour.
            Err(_) => is_temporary && is_older(&facts, written, LEFT_OVER_AFTER),
        };
        if is_left_over {
            disk::remove(&path).ok();
        }
    }
}

/// Returns whether a name is that of a sibling claim to the session. The name of another
/// session with the same first bytes may be equal.
fn is_sibling_of(name: &str, session: &SessionId) -> bool {
    [session.as_str(), sibling_stem(session)]
        .into_iter()
        .filter_map(|stem| name.strip_prefix(stem)?.strip_prefix(SIBLING))
        .filter_map(|rest| rest.strip_suffix(SUFFIX))
        .any(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// Returns whether a file of this name, in a directory that sessions share, may hold a
/// sidecar of the session: its own file, or a sibling claim, whose name may have a shortened
/// session ID.
#[must_use]
pub fn is_sidecar_name(name: &str, session: &SessionId) -> bool {
    name.strip_suffix(SUFFIX) == Some(session.as_str()) || is_sibling_of(name, session)
}

/// Returns whether a file is older than one that we have just written, both by
/// the clock of their file system.
fn is_older(facts: &FileFacts, written: &Written, by: Duration) -> bool {
    let Ok((_, ours)) = read(&written.path) else {
        return false;
    };
    let by = i64::try_from(by.as_millis()).unwrap_or(i64::MAX);
    match (facts.modified_ms, ours.modified_ms) {
        (Some(theirs), Some(ours)) => ours.saturating_sub(theirs) > by,
        _ => false,
    }
}
