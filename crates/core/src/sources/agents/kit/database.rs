//! The files of an agent's SQLite database, and the sessions in it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::adapter::Sketch;
use crate::sources::sqlite::{Database, SqliteError};

/// How many sessions of a database are read.
const SESSIONS_MAX: usize = 200_000;

/// The sessions of a database, and what is wrong with some of its rows.
#[derive(Debug)]
pub(crate) struct SessionRows<R> {
    pub(crate) rows: Vec<R>,
    pub(crate) wrong: Vec<String>,
}

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

/// Reads the sessions in `table`; none if it lacks the first of `columns`. Other columns that
/// it lacks are NULL. `read` makes a session of a row and reports what is wrong with a part of
/// it, or else why there is none.
///
/// # Errors
///
/// The table can't be read.
pub(crate) fn read_sessions<R>(
    database: &Database,
    table: &str,
    columns: &[&str],
    read: impl Fn(&rusqlite::Row<'_>) -> Result<(R, Option<String>), String>,
) -> Result<SessionRows<R>, SqliteError> {
    let mut found = SessionRows {
        rows: Vec::new(),
        wrong: Vec::new(),
    };
    let there = database.columns(table)?;
    let selected = columns.iter().map(|wanted| {
        let is_there = there.iter().any(|column| column == wanted);
        if is_there { *wanted } else { "NULL" }
    });
    let selected: Vec<&str> = selected.collect();
    if selected.first() == Some(&"NULL") {
        return Ok(found);
    }
    let sql = format!("SELECT {} FROM {table}", selected.join(", "));
    let rows = database.rows(&sql, [], SESSIONS_MAX + 1, read)?;
    if rows.len() > SESSIONS_MAX {
        let message = format!("it has more than {SESSIONS_MAX} sessions");
        found.wrong.push(message);
    }
    for row in rows.into_iter().take(SESSIONS_MAX) {
        match row {
            Ok((row, wrong)) => {
                found.rows.push(row);
                found.wrong.extend(wrong);
            }
            Err(wrong) => found.wrong.push(wrong),
        }
    }
    Ok(found)
}

/// For functions whose errors are texts that don't name the database.
impl From<SqliteError> for String {
    fn from(error: SqliteError) -> Self {
        error.reason()
    }
}
