//! Thread locks: who writes to which thread.
//!
//! Seen in Codex 0.171.0, 2026-11: `thread-writer-locks/ID.lock`, empty, held
//! with flock(2) by the process that runs the thread from its launch on, before
//! any prompt; by the daemon while there is one, for 60 s after its last
//! client left. Removed on a clean end; left behind, not held, when its process
//! was killed, until the next start of Codex. `.coordination.lock` beside them
//! is of no thread.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use whosup_process::FileId;
use whosup_sidecar::SessionId;
use whosup_sidecar::file::{FileFacts, Links, ReadFileError, facts};

use super::{AGENT, Codex};
use crate::machine::problem::Problem;
use crate::sources::agents::kit::held::{Held, file_id, find_holders, note_replaced};
use crate::sources::agents::kit::scan::Scan;
use crate::sources::agents::kit::uuid::is_uuid;

/// How many locks of one home are read.
const LOCKS_MAX: usize = 20_000;

/// The lock of one thread.
#[derive(Debug)]
pub(super) struct ThreadLock {
    /// The thread.
    pub(super) id: SessionId,
    /// The file.
    pub(super) path: PathBuf,
    /// Size, dates and owner of the lock file.
    pub(super) facts: FileFacts,
    /// Who holds the lock.
    pub(super) held: Held,
}

/// Reads the locks of a home and finds who holds them.
pub(super) fn read_locks(scan: &mut Scan<'_>) -> BTreeMap<SessionId, ThreadLock> {
    let mut locks = list(scan);
    let files: Vec<FileId> = locks.values().map(|lock| file_id(&lock.facts)).collect();
    let mut held = BTreeMap::new();
    if let Err(error) = find_holders(scan.look, &Codex, &files, &mut held) {
        scan.problems.push(Problem::of(&AGENT, error));
    }
    for lock in locks.values_mut() {
        let held = held.get(&file_id(&lock.facts));
        lock.held = held.cloned().unwrap_or_default();
    }
    let all = locks.values_mut();
    let all = all.map(|lock| (&*lock.path, file_id(&lock.facts), &mut lock.held));
    note_replaced(scan.look, scan.home, all);
    locks
}

/// The directory of a home's locks.
pub(super) fn locks_in(home: &Path) -> PathBuf {
    home.join("thread-writer-locks")
}

fn list(scan: &mut Scan<'_>) -> BTreeMap<SessionId, ThreadLock> {
    let directory = locks_in(&scan.home.root);
    let names = scan.names(&directory, LOCKS_MAX);
    let mut locks = BTreeMap::new();
    for name in names.texts() {
        let Some(id) = thread_in(name) else {
            continue;
        };
        let path = directory.join(name);
        match facts(&path, Links::Refuse) {
            Ok(facts) => {
                let lock = ThreadLock {
                    id: id.clone(),
                    path,
                    facts,
                    held: Held::default(),
                };
                locks.insert(id, lock);
            }
            // Let go and removed since it was listed.
            Err(ReadFileError::NotFound { .. }) => {}
            Err(error) => scan.problem(&path, error.reason()),
        }
    }
    locks
}

/// The thread in the name of a lock file: `ID.lock`.
fn thread_in(name: &str) -> Option<SessionId> {
    let id = name.strip_suffix(".lock").filter(|id| is_uuid(id))?;
    SessionId::parse(&id.to_ascii_lowercase()).ok()
}
