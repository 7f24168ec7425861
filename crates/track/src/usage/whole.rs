//! What is kept of sessions whose records are read as a whole, from a database or a document.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::ErrorKind;
use std::path::PathBuf;

use whosup_core::machine::now_ms;
use whosup_core::sidecar::SessionId;
use whosup_core::sidecar::file::{Links, facts_of_any};
use whosup_core::sources::usage::{KeptSession, Tally};

use super::{UsageCache, place};

/// A file that was written to so recently may be written to again without another date or
/// length: dates have steps of some milliseconds, and those of other machines are not ours.
const RECENT_MS: i64 = 2_000;

/// A session that is to be counted, and the files that it is counted from.
#[derive(Debug, Clone)]
pub struct WholeSession {
    folder: PathBuf,
    file: String,
    session: SessionId,
    /// What the files are now; `None` if they may change without showing it.
    state: Option<u64>,
}

impl WholeSession {
    /// The session, as its files are now. `born_at_ms` is counted with, too.
    #[must_use]
    pub fn new(session: &SessionId, files: &[PathBuf], born_at_ms: Option<i64>) -> Self {
        let (folder, file) = files.first().map(|file| place(file)).unwrap_or_default();
        Self {
            folder,
            file,
            session: session.clone(),
            state: state(files, born_at_ms),
        }
    }
}

impl UsageCache {
    /// What was counted of a session, if its files are as they were then.
    #[must_use]
    pub fn whole(&mut self, session: &WholeSession) -> Option<Tally> {
        let state = session.state?;
        let shelf = self.shelf(session.folder.clone());
        let kept = shelf.sessions.get(session.session.as_str())?;
        (kept.state == state && kept.file == session.file).then(|| kept.tally.clone())
    }

    /// Keeps what was counted of a session after `session` was made.
    pub fn keep_whole(&mut self, session: WholeSession, tally: &Tally) {
        let WholeSession {
            folder,
            file,
            session,
            state,
        } = session;
        let Some(state) = state else {
            return;
        };
        let kept = KeptSession {
            file,
            state,
            tally: tally.sums_alone(),
        };
        let shelf = self.shelf(folder.clone());
        shelf.sessions.insert(session.as_str().to_owned(), kept);
        self.changed.insert(folder);
    }
}

/// A hash of what files are now; one that is not there is part of it. `None` if that says
/// nothing.
fn state(files: &[PathBuf], born_at_ms: Option<i64>) -> Option<u64> {
    let now_ms = now_ms();
    let mut hash = DefaultHasher::new();
    born_at_ms.hash(&mut hash);
    files.first()?;
    for file in files {
        file.hash(&mut hash);
        match facts_of_any(file, Links::Follow) {
            Ok(facts) => {
                let modified_ms = facts.modified_ms?;
                let is_recent = modified_ms > now_ms.saturating_sub(RECENT_MS);
                if is_recent || facts.inode == 0 {
                    return None;
                }
                (facts.device, facts.inode, facts.len, modified_ms).hash(&mut hash);
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(_) => return None,
        }
    }
    Some(hash.finish())
}
