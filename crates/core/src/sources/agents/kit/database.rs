//! The files of an agent's SQLite database, and the sessions in it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::adapter::Sketch;
use crate::sources::sqlite::{Database, SqliteError, real_file};

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
    let file = real_file(database);
    let mut wal = file.as_os_str().to_owned();
    wal.push("-wal");
    [file, wal.into()]
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

/// Reads the sessions in `table`. Columns that it lacks are NULL, but for the first of
/// `columns`. `read` makes a session of a row and reports what is wrong with a part of it, or
/// else why there is none.
///
/// # Errors
///
/// The table can't be read, or lacks the first column: that is also said of a database that
/// its agent has just created, for a moment, since one that was emptied looks the same.
pub(crate) fn read_sessions<R>(
    database: &Database,
    table: &str,
    columns: &[&str],
    read: impl Fn(&rusqlite::Row<'_>) -> Result<(R, Option<String>), String>,
) -> Result<SessionRows<R>, String> {
    let there = require(database, table, columns.get(..1).unwrap_or_default())?;
    let selected = columns.iter().map(|wanted| {
        let is_there = there.iter().any(|column| column == wanted);
        if is_there { *wanted } else { "NULL" }
    });
    let selected: Vec<&str> = selected.collect();
    let sql = format!("SELECT {} FROM {table}", selected.join(", "));
    session_rows(database, &sql, read)
}

/// Reads the sessions that a query finds.
///
/// # Errors
///
/// Why they can't be read.
pub(crate) fn session_rows<R>(
    database: &Database,
    sql: &str,
    read: impl Fn(&rusqlite::Row<'_>) -> Result<(R, Option<String>), String>,
) -> Result<SessionRows<R>, String> {
    let mut found = SessionRows {
        rows: Vec::new(),
        wrong: Vec::new(),
    };
    let rows = database.rows(sql, [], SESSIONS_MAX + 1, read)?;
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

/// The columns of a table, which must have `wanted`.
///
/// # Errors
///
/// The first column that it lacks.
pub(crate) fn require(
    database: &Database,
    table: &str,
    wanted: &[&str],
) -> Result<Vec<String>, String> {
    let there = database.columns(table)?;
    let is_missing = |wanted: &&&str| !there.iter().any(|column| column == **wanted);
    match wanted.iter().find(is_missing) {
        Some(column) => Err(format!("it has no column `{table}.{column}`")),
        None => Ok(there),
    }
}

/// For functions whose errors are texts that don't name the database.
impl From<SqliteError> for String {
    fn from(error: SqliteError) -> Self {
        error.reason()
    }
}
