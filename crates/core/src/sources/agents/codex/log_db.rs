//! The log database: which terminals have opened a thread, and when.
//!
//! Seen in Codex 0.171.0, 2026-11: `logs_2.sqlite`, in WAL mode, with a table
//! `logs` (`ts`, `ts_nanos`, `target`, `feedback_log_body`, `process_uuid`, …).
//! Each time that a terminal opens a thread (at launch, by `/clear`, `/new` and
//! `/resume`), it connects to the tools of that thread, and logs that. The row
//! names the process (`pid:4711:` and a UUID), never the thread. Rows are
//! written every ten seconds.

use std::path::{Path, PathBuf};

use whosup_process::Pid;
use whosup_sidecar::file::{Links, facts};

use super::hints::Failure;
use super::state_db::newest;
use crate::adapter::Opening;
use crate::sources::agents::kit::database::with_wal;
use crate::sources::sqlite::{Database, SqliteError, integer, text};

/// How large the database may be, its WAL included, in bytes, to be worth a look:
/// all of it is read.
const LOG_BYTES_MAX: u64 = 32 << 20;
/// How many rows are read, the newest first.
const ROWS_MAX: usize = 10_000;

/// The columns that are read.
const COLUMNS: [&str; 5] = [
    "ts",
    "ts_nanos",
    "process_uuid",
    "target",
    "feedback_log_body",
];

const QUESTION: &str = "SELECT ts, ts_nanos, process_uuid FROM logs
    WHERE target = 'rmcp::transport::streamable_http_server::session::local'
    AND feedback_log_body LIKE 'create new session %' ORDER BY ts DESC, ts_nanos DESC";

/// The times when processes have opened a thread; none where the log is too
/// large, or of another kind.
pub(super) fn openings(home: &Path) -> Result<Vec<Opening>, Failure> {
    let Some(path) = newest(home, "logs_")? else {
        return Ok(Vec::new());
    };
    let len = |path: &PathBuf| facts(path, Links::Follow).map_or(0, |facts| facts.len);
    let [database, wal] = with_wal(&path);
    if len(&database).saturating_add(len(&wal)) > LOG_BYTES_MAX {
        return Ok(Vec::new());
    }
    read(&path).map_err(|error| (path, error.reason()))
}

fn read(path: &Path) -> Result<Vec<Opening>, SqliteError> {
    let database = Database::read(path)?;
    let columns = database.columns("logs")?;
    let has = |wanted: &&str| columns.iter().any(|column| column == wanted);
    if !COLUMNS.iter().all(has) {
        return Ok(Vec::new());
    }
    let rows = database.rows(QUESTION, [], ROWS_MAX, |row| {
        let (seconds, nanos) = (integer(row, 0)?, integer(row, 1)?);
        let process = text(row, 2)?;
        let pid = process.strip_prefix("pid:")?.split(':').next()?;
        Some(Opening {
            pid: Pid::new(pid.parse().ok()?).ok()?,
            at_ms: seconds
                .checked_mul(1_000)?
                .checked_add(nanos.checked_div(1_000_000)?)?,
            process,
        })
    })?;
    Ok(rows.into_iter().flatten().collect())
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests make their own files")]
mod tests {
    use rusqlite::Connection;

    use super::*;

    const TARGET: &str = "rmcp::transport::streamable_http_server::session::local";

    fn home(schema: &str, rows: &[&str]) -> (tempfile::TempDir, Connection) {
        let home = tempfile::tempdir().unwrap();
        let connection = Connection::open(home.path().join("logs_2.sqlite")).unwrap();
        connection
            .pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(()))
            .unwrap();
        connection.execute_batch(schema).unwrap();
        for row in rows {
            let sql = format!("INSERT INTO logs VALUES {row}");
            connection.execute(&sql, []).unwrap();
        }
        (home, connection)
    }

    const SCHEMA: &str = "CREATE TABLE logs(ts INTEGER, ts_nanos INTEGER, target TEXT,
        feedback_log_body TEXT, process_uuid TEXT, thread_id TEXT)";

    #[test]
    fn rows_that_open_a_thread_are_read_and_others_are_not() {
        let body = "create new session session_id=\"x\"";
        let (home, _open) = home(
            SCHEMA,
            &[
                &format!("(1795842300, 346573598, '{TARGET}', '{body}', 'pid:7900:57f6', NULL)"),
                &format!("(1795842301, 0, '{TARGET}', 'close session', 'pid:7900:57f6', NULL)"),
                &format!("(1795842302, 0, 'codex_core', '{body}', 'pid:7900:57f6', NULL)"),
                &format!("(1795842303, 0, '{TARGET}', '{body}', 'pid:0:57f6', NULL)"),
                &format!("(1795842304, 0, '{TARGET}', '{body}', NULL, NULL)"),
                &format!("(9223372036854775807, 0, '{TARGET}', '{body}', 'pid:1:a', NULL)"),
            ],
        );
        let expected = Opening {
            pid: Pid::new(7_900).unwrap(),
            process: "pid:7900:57f6".to_owned(),
            at_ms: 1_795_842_300_346,
        };
        assert_eq!(openings(home.path()).unwrap(), [expected]);
    }

    #[test]
    fn a_log_of_another_kind_and_none_at_all_tell_nothing() {
        let (other, _open) = home("CREATE TABLE logs(ts INTEGER, message TEXT)", &[]);
        assert_eq!(openings(other.path()).unwrap(), []);
        let empty = tempfile::tempdir().unwrap();
        assert_eq!(openings(empty.path()).unwrap(), []);
    }

    #[test]
    fn a_log_that_is_too_large_is_not_read() {
        let home = tempfile::tempdir().unwrap();
        let file = std::fs::File::create(home.path().join("logs_2.sqlite")).unwrap();
        file.set_len(LOG_BYTES_MAX).unwrap();
        // The file is no database. This error is never shown.
        openings(home.path()).unwrap_err();
        file.set_len(LOG_BYTES_MAX + 1).unwrap();
        assert_eq!(openings(home.path()).unwrap(), []);
    }
}
