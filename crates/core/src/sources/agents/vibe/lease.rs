//! Leases: which sessions are open, and in which process.
//!
//! Seen in mistral-vibe 3.0.2, 2026-11: `active/ID.lock`, empty, held with
//! flock(2) by the server from the moment that it opens the session, before any
//! prompt; and beside it, for people, `ID.lock.json` with the PID and the date.
//! Both are removed when the session is left, and stay, not held, when the
//! server was killed. On `/clear` and when a session is resumed the new lease
//! is taken before the old one is given up, within a tenth of a second.
//!
//! Two kinds of held locks are not sessions. A server that watches the leases of others
//! tries each lock for a moment; the file beside it still names the other server then. And
//! while a server holds `process-output-cleanup.lock`, it may take leases of closed sessions
//! for cleanup.

use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use whosup_process::{FileId, Pid};
use whosup_sidecar::file::{FileFacts, Links, ReadFileError, facts};
use whosup_sidecar::{SessionId, StrictObject};

use super::{AGENT, Vibe};
use crate::adapter::Look;
use crate::machine::problem::Problem;
use crate::sources::agents::kit::held::{Held, file_id, note_replaced, which_lock, who_holds};
use crate::sources::agents::kit::reading::read_if_there;
use crate::sources::agents::kit::scan::Scan;
use crate::sources::agents::kit::uuid::is_uuid;

/// How many entries of the directory are looked at.
const ENTRIES_MAX: usize = 20_000;
/// How long a file beside a lock may be, in bytes. They have some 140.
const FILE_BYTES_MAX: u64 = 64 * 1024;
/// The version of these files that can be read.
const FILE_VERSION: i64 = 1;
/// How often is looked again at what may be in the middle of a change.
const LOOKS_MAX: usize = 3;
/// How long to wait before that.
const LOOK_PAUSE: Duration = Duration::from_millis(2);
/// The lease of the server that cleans up.
const CLEANUP: &str = "process-output-cleanup";

/// The lease of one session.
#[derive(Debug)]
pub(super) struct Lease {
    /// The session.
    pub(super) id: SessionId,
    /// The lock.
    pub(super) path: PathBuf,
    /// Size, dates and owner of the lock file.
    pub(super) facts: FileFacts,
    /// What is written beside it.
    pub(super) file: Option<LeaseFile>,
    /// The file exists and cannot be read: the process and the date are unknown.
    pub(super) is_file_unread: bool,
    /// Who holds the lock.
    pub(super) held: Held,
}

/// What is written beside a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LeaseFile {
    /// Who took it.
    pub(super) pid: Pid,
    /// When.
    pub(super) acquired_at_ms: i64,
}

/// The leases of one storage root.
#[derive(Debug, Default)]
pub(super) struct Leases {
    /// One for each session.
    pub(super) leases: Vec<Lease>,
    /// What could not be looked at: the lease of one session, or all of them.
    pub(super) unreadable: Vec<(Option<SessionId>, PathBuf)>,
    /// Who tidies up.
    pub(super) cleanup: Option<Cleanup>,
}

/// A server that tidies up.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cleanup {
    /// The server.
    pub(super) pid: Pid,
    /// Since when, if that can be read.
    pub(super) since_ms: Option<i64>,
}

/// The directory of the leases.
pub(super) fn directory(storage: &Path) -> PathBuf {
    storage.join("active")
}

/// Reads the leases of a storage root and finds who holds them.
pub(super) fn read(scan: &mut Scan<'_>, storage: &Path) -> Leases {
    let directory = directory(storage);
    let mut found = Leases::default();
    let names = scan.names(&directory, ENTRIES_MAX);
    if names.is_cut {
        // Any session without a known lease may have a lease here.
        found.unreadable.push((None, directory.clone()));
    }
    for name in &names.names {
        let path = directory.join(name);
        // A file with another name is no lease, whatever later releases add here.
        let Some(id) = name.to_str().and_then(session_in) else {
            continue;
        };
        match lease(scan, &id, &path) {
            Ok(lease) => found.leases.push(lease),
            // Given up since it was listed.
            Err(ReadFileError::NotFound { .. }) => {}
            Err(error) => {
                scan.problem(&path, error.reason());
                found.unreadable.push((Some(id), path));
            }
        }
    }
    find_holders(scan, &mut found.leases);
    let all = found.leases.iter_mut();
    let all = all.map(|lease| (&*lease.path, file_id(&lease.facts), &mut lease.held));
    note_replaced(scan.look, scan.home, all);
    found.cleanup = cleanup(scan.look, &directory);
    found
}

/// The lock of a session's lease.
pub(super) fn lock_of(storage: &Path, id: &SessionId) -> PathBuf {
    directory(storage).join(format!("{id}.lock"))
}

/// The session in the name of its lock, `ID.lock`.
fn session_in(name: &str) -> Option<SessionId> {
    let id = name.strip_suffix(".lock")?;
    SessionId::parse(id).ok().filter(|_| is_uuid(id))
}

fn lease(scan: &mut Scan<'_>, id: &SessionId, path: &Path) -> Result<Lease, ReadFileError> {
    let facts = facts(path, Links::Refuse)?;
    let beside = path.with_extension("lock.json");
    let file = read_lease_file(&beside, id.as_str());
    Ok(Lease {
        id: id.clone(),
        path: path.to_owned(),
        facts,
        is_file_unread: file.is_err(),
        file: file.unwrap_or_else(|message| {
            scan.problem(&beside, message);
            None
        }),
        held: Held::default(),
    })
}

/// Reads what is written beside a lock; again if it seems to be in the middle
/// of being written, which happens after the lock was taken.
fn read_lease_file(path: &Path, id: &str) -> Result<Option<LeaseFile>, String> {
    for look in 1.. {
        let Some(file) = read_if_there(path, FILE_BYTES_MAX, Links::Refuse)? else {
            break;
        };
        match parse_lease_file(&file.bytes, id) {
            Err(_) if look < LOOKS_MAX => std::thread::sleep(LOOK_PAUSE),
            parsed => return parsed.map(Some),
        }
    }
    Ok(None)
}

fn parse_lease_file(bytes: &[u8], id: &str) -> Result<LeaseFile, String> {
    let object = StrictObject::parse(bytes).map_err(|error| error.to_string())?;
    let field = |error: whosup_sidecar::FieldError| error.to_string();
    let version = object.integer("lease_version").map_err(field)?;
    if version != FILE_VERSION {
        return Err(format!(
            "`lease_version` is `{version}`, and only `{FILE_VERSION}` can be read"
        ));
    }
    let session = object.string("session_id").map_err(field)?;
    if session != id {
        return Err("`session_id` is not that of the file's name".to_owned());
    }
    let acquired = object.string("acquired_at").map_err(field)?;
    let wrong = |_| field(object.out_of_range("acquired_at", "a date and time", acquired));
    let at: Timestamp = acquired.parse().map_err(wrong)?;
    Ok(LeaseFile {
        pid: object.pid("process_id").map_err(field)?,
        acquired_at_ms: at.as_millisecond(),
    })
}

/// Finds the holders of the leases. If the lease does not name the holder, the search is
/// repeated, since that process may only have tried the lock for a moment.
fn find_holders(scan: &mut Scan<'_>, leases: &mut [Lease]) {
    let mut asked: Vec<&mut Lease> = leases.iter_mut().collect();
    for attempt in 0..LOOKS_MAX {
        if attempt > 0 {
            std::thread::sleep(LOOK_PAUSE);
        }
        let files: Vec<FileId> = asked.iter().map(|lease| file_id(&lease.facts)).collect();
        let held = match who_holds(scan.look, &Vibe, &files) {
            Ok(held) => held,
            Err(error) => {
                scan.problems.push(Problem::of(&AGENT, error));
                return;
            }
        };
        for lease in &mut asked {
            let found = held.get(&file_id(&lease.facts));
            lease.held = found.cloned().unwrap_or_default();
        }
        asked.retain(|lease| lease.is_only_looked_at(scan.look));
        if asked.is_empty() {
            return;
        }
    }
}

/// Which of Vibe's own processes tidies up now.
fn cleanup(look: &Look<'_>, directory: &Path) -> Option<Cleanup> {
    let path = directory.join(format!("{CLEANUP}.lock"));
    let file = file_id(&facts(&path, Links::Refuse).ok()?);
    let held = which_lock(look, &[file]).ok()?;
    let pid = *held.get(&file)?.by.first()?;
    let beside = path.with_extension("lock.json");
    let file = read_lease_file(&beside, CLEANUP).ok().flatten();
    Some(Cleanup {
        pid,
        since_ms: file.map(|file| file.acquired_at_ms),
    })
}

impl Lease {
    /// When it was taken.
    pub(super) fn acquired_at_ms(&self) -> Option<i64> {
        let in_file = self.file.map(|file| file.acquired_at_ms);
        in_file.or(self.facts.born_ms)
    }

    /// Returns whether the lease names this process, by its PID here or by its PID in its
    /// own PID namespace.
    fn names(&self, look: &Look<'_>, pid: Pid) -> bool {
        let table = look.machine.table();
        let inner = || table.details(table.seen(pid)?).innermost_pid();
        self.file
            .is_none_or(|file| file.pid == pid || inner() == Some(file.pid))
    }

    /// Returns whether Vibe processes hold it while the lease names another process.
    pub(super) fn is_only_looked_at(&self, look: &Look<'_>) -> bool {
        let is_own = |pid: Pid| {
            let mut processes = look.processes.iter();
            processes.any(|process| process.process.pid == pid)
        };
        let mut by = self.held.by.iter();
        !self.held.by.is_empty() && by.all(|pid| is_own(*pid) && !self.names(look, *pid))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "3f9ec43d-9381-cd61-ec0d-176b7c0df906";

    #[test]
    fn only_names_of_the_shape_of_a_uuid_are_sessions() {
        let id = session_in(&format!("{ID}.lock")).unwrap();
        assert_eq!(id.as_str(), ID);
        for other in [
            "process-output-cleanup.lock",
            "process-output-cleanup.lock.json",
            ".registry",
            ".watch-e1ae8b1dce9844a580fafa34fe3af655",
            &format!("{ID}.lock.json"),
            "notes.txt",
            "x.lock",
            "..lock",
            ".lock",
            &format!("{ID}x.lock"),
            ID,
        ] {
            assert_eq!(session_in(other), None, "{other}");
        }
    }

    #[test]
    fn what_is_written_beside_a_lock_is_read_strictly() {
        let text = |version: &str, pid: &str, session: &str, at: &str| {
            format!(
                r#"{{"acquired_at":{at},"lease_version":{version},"process_id":{pid},"session_id":"{session}"}}"#
            )
        };
        let at = r#""2026-11-27T21:12:37.301Z""#;
        let file = parse_lease_file(text("1", "28154", ID, at).as_bytes(), ID);
        assert_eq!(
            file,
            Ok(LeaseFile {
                pid: Pid::new(28_154).unwrap(),
                acquired_at_ms: 1_795_813_957_301,
            })
        );
        for (bad, word) in [
            (text("2", "28154", ID, at), "lease_version"),
            (text("1", "0", ID, at), "process_id"),
            (text("1", "true", ID, at), "process_id"),
            (text("1", "\"28154\"", ID, at), "process_id"),
            (text("1", "28154", "other", at), "session_id"),
            (text("1", "28154", ID, "\"yesterday\""), "acquired_at"),
            ("{".to_owned(), ""),
        ] {
            let error = parse_lease_file(bad.as_bytes(), ID).unwrap_err();
            assert!(error.contains(word), "{error}");
        }
    }
}
