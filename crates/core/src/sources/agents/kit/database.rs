//! The files of an agent's SQLite database, and the sessions in it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::adapter::Sketch;

/// The database and its write-ahead log, of which one changes with each commit.
pub(crate) fn with_wal(database: &Path) -> [PathBuf; 2] {
    let mut wal = database.as_os_str().to_owned();
    wal.push("-wal");
    [database.to_owned(), wal.into()]
}

/// The sessions of each database or home: their places in `sketches`, and their ids.
pub(crate) fn sessions_by<'s>(
    sketches: &[&'s Sketch],
    path: impl Fn(&'s Sketch) -> Option<&'s Path>,
) -> BTreeMap<&'s Path, Vec<(usize, &'s str)>> {
    let mut sessions: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for (at, sketch) in sketches.iter().enumerate() {
        if let Some(path) = path(sketch) {
            let session = (at, sketch.key.session.as_str());
            sessions.entry(path).or_default().push(session);
        }
    }
    sessions
}
