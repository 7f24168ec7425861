//! The files of an agent's SQLite database.

use std::path::{Path, PathBuf};

/// The database and its write-ahead log, of which one changes with each commit.
pub(crate) fn with_wal(database: &Path) -> [PathBuf; 2] {
    let mut wal = database.as_os_str().to_owned();
    wal.push("-wal");
    [database.to_owned(), wal.into()]
}
