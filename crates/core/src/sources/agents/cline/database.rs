//! `db/sessions.db`: a row for each session.
//!
//! Seen in Cline CLI 3.0.65, 2026-11: in WAL mode, kept open by every terminal
//! and by the hub.

use std::path::{Path, PathBuf};

use serde_json::Value;
use whosup_process::Pid;
use whosup_sidecar::file::{FileFacts, Links, ReadFileError, facts};
use whosup_sidecar::{SessionId, parse_json};

use super::row::Row;
use crate::sources::agents::kit::database::{SessionRows, read_sessions};
use crate::sources::agents::kit::dialect::date_of;
use crate::sources::sqlite::{Database, integer, text};

/// The columns that are read, where the table has them.
const COLUMNS: &[&str] = &[
    "session_id",
    "pid",
    "started_at",
    "ended_at",
    "status",
    "interactive",
    "model",
    "cwd",
    "parent_session_id",
    "prompt",
    "metadata_json",
    "messages_path",
    "updated_at",
];

/// Reads all sessions of a database; `None` if it is not there. With size, dates and owner of
/// its file.
///
/// # Errors
///
/// Why it can't be read, without its path.
pub(super) fn read(path: &Path) -> Result<Option<(SessionRows<Row>, FileFacts)>, String> {
    let facts = match facts(path, Links::Follow) {
        Ok(facts) => facts,
        Err(ReadFileError::NotFound { .. }) => return Ok(None),
        Err(error) => return Err(error.reason()),
    };
    let rows = read_sessions(&Database::read(path)?, "sessions", COLUMNS, row_of)?;
    Ok(Some((rows, facts)))
}

/// The row, and the error in its PID.
fn row_of(row: &rusqlite::Row<'_>) -> Result<(Row, Option<String>), String> {
    let filled = |at| text(row, at).filter(|text| !text.is_empty());
    let date = |at| filled(at).as_deref().and_then(date_of);
    let id = text(row, 0).ok_or("`session_id` is not a text")?;
    let id = SessionId::parse(&id).map_err(|error| format!("`session_id`: {error}"))?;
    let number = integer(row, 1);
    let pid = number.and_then(|number| Pid::new(number).ok());
    let no_pid = number.filter(|_| pid.is_none());
    let wrong = no_pid.map(|number| format!("`pid` of session `{id}` is none: {number}"));
    let parent = filled(8).and_then(|parent| SessionId::parse(&parent).ok());
    let metadata = filled(10).and_then(|json| parse_json(json.as_bytes()).ok());
    let row = Row {
        pid,
        started_at_ms: date(2),
        ended_at_ms: date(3),
        status: text(row, 4).unwrap_or_default(),
        is_interactive: integer(row, 5).map(|flag| flag != 0),
        model: filled(6),
        work_dir: filled(7).map(PathBuf::from),
        parent: parent.filter(|parent| *parent != id),
        prompt: filled(9),
        metadata: metadata.unwrap_or(Value::Null),
        messages: filled(11).map(PathBuf::from),
        updated_at_ms: date(12),
        id,
    };
    Ok((row, wrong))
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests make their own files")]
mod tests {
    use rusqlite::Connection;

    use super::*;

    fn read_of(
        sql: &str,
    ) -> (
        tempfile::TempDir,
        Connection,
        Result<SessionRows<Row>, String>,
    ) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("sessions.db");
        let connection = Connection::open(&path).unwrap();
        connection
            .pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(()))
            .unwrap();
        connection.execute_batch(sql).unwrap();
        let found = read(&path).map(|found| found.unwrap().0);
        (directory, connection, found)
    }

    #[test]
    fn rows_are_read_from_the_wal_and_malformed_rows_are_reported() {
        let (_directory, _open, found) = read_of(
            "CREATE TABLE sessions(session_id TEXT, pid INTEGER, status TEXT, started_at TEXT,
                interactive INTEGER, cwd TEXT, metadata_json TEXT, parent_session_id TEXT);
             INSERT INTO sessions VALUES
               ('17_a', 4711, 'idle', '2026-11-27T21:07:32.967Z', 1, '/w', '{\"title\":\"t\"}', ''),
               ('17_b', -1, 'idle', 'yesterday', 0, NULL, '{', '17_a'),
               ('17_c', 0, 'idle', NULL, NULL, NULL, NULL, '17_c'),
               ('../x', 7, 'idle', NULL, NULL, NULL, NULL, NULL)",
        );
        let found = found.unwrap();
        let [a, b, c] = found.rows.as_slice() else {
            panic!("{found:?}");
        };
        assert_eq!(a.pid.map(Pid::get), Some(4711));
        assert_eq!(a.started_at_ms, Some(1_795_813_652_967));
        assert_eq!(a.is_interactive, Some(true));
        assert_eq!(a.description().title.as_deref(), Some("t"));
        assert_eq!((b.pid, b.started_at_ms), (None, None));
        assert_eq!(b.parent.as_ref(), Some(&a.id));
        assert_eq!((&c.pid, &c.parent, c.is_interactive), (&None, &None, None));
        assert_eq!(found.wrong.len(), 3, "{:?}", found.wrong);
    }

    #[test]
    fn another_schema_is_an_error_and_no_database_is_none() {
        let (_directory, _open, found) = read_of("CREATE TABLE others(session_id TEXT)");
        let expected = "it has no column `sessions.session_id`";
        assert_eq!(found.unwrap_err(), expected);
        assert!(
            read(Path::new("/nonexistent/sessions.db"))
                .unwrap()
                .is_none()
        );
    }
}
