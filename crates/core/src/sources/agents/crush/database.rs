//! `crush.db`: the sessions of a project, and what was said in them.
//!
//! Read in the sources of Crush, 2026-08: tables `sessions` (`id`,
//! `parent_session_id`, `title`, `created_at`, `updated_at`, …) and `messages`
//! (`session_id`, `role`, `parts`, `model`, `created_at`, `updated_at`, …), in
//! WAL mode. Dates are in seconds, whatever the comments in its schema say. A
//! row of `sessions` comes with the first prompt.

use std::path::Path;

use serde_json::Value;
use whosup_sidecar::file::ReadFileError;

use crate::sources::agents::kit::database::{SessionRows, require, session_rows};
use crate::sources::sqlite::{Database, SqliteError, integer, text};

use super::record::{MessageRow, SessionRow};
use super::tokens::ROW;

/// Dates below this are in seconds, others in milliseconds: as seconds it lies
/// beyond the year 5000, as milliseconds before the first release.
const SECONDS_MAX: i64 = 100_000_000_000;

/// The database of a project, as it was when it was read.
#[derive(Debug)]
pub(super) struct ProjectDb(Database);

impl ProjectDb {
    /// Reads the database at `path`; `Ok(None)` if there is none.
    ///
    /// # Errors
    ///
    /// Why it can't be read.
    pub(super) fn read(path: &Path) -> Result<Option<Self>, String> {
        match Database::read(path) {
            Ok(database) => Ok(Some(Self(database))),
            Err(SqliteError::File(ReadFileError::NotFound { .. })) => Ok(None),
            Err(error) => Err(error.reason()),
        }
    }

    /// The sessions, by id, and what is wrong with some of their rows.
    ///
    /// # Errors
    ///
    /// Why they can't be read.
    pub(super) fn sessions(&self) -> Result<SessionRows<SessionRow>, String> {
        let wanted = [
            "id",
            "parent_session_id",
            "title",
            "created_at",
            "updated_at",
        ];
        require(&self.0, "sessions", &wanted)?;
        require(&self.0, "messages", &["session_id", "updated_at"])?;
        let sql = "SELECT id, parent_session_id, title, created_at, updated_at,
            (SELECT max(updated_at) FROM messages WHERE session_id = sessions.id)
            FROM sessions ORDER BY id";
        session_rows(&self.0, sql, |row| {
            let row = SessionRow {
                id: text(row, 0).ok_or("`sessions.id` is not a text")?,
                parent: text(row, 1),
                title: text(row, 2),
                created_at_ms: date(integer(row, 3)),
                updated_at_ms: date(integer(row, 4)),
                last_message_at_ms: date(integer(row, 5)),
            };
            Ok((row, None))
        })
    }

    /// The row of a session that counts.
    ///
    /// # Errors
    ///
    /// Why it can't be read.
    pub(super) fn counted(&self, session: &str) -> Result<Vec<Value>, String> {
        let records = self.0.records(ROW, [session], 1);
        records.map_err(|error| error.reason())
    }

    /// The last messages of a session, the newest first.
    ///
    /// # Errors
    ///
    /// Why they can't be read.
    pub(super) fn newest_messages(
        &self,
        session: &str,
        messages_max: usize,
    ) -> Result<Vec<MessageRow>, String> {
        let wanted = [
            "session_id",
            "role",
            "parts",
            "model",
            "created_at",
            "updated_at",
        ];
        require(&self.0, "messages", &wanted)?;
        let sql = "SELECT role, parts, model, created_at, updated_at FROM messages
            WHERE session_id = ?1 ORDER BY created_at DESC, rowid DESC";
        let rows = self.0.rows(sql, [session], messages_max, |row| MessageRow {
            role: text(row, 0).unwrap_or_default(),
            parts: text(row, 1).unwrap_or_default(),
            model: text(row, 2),
            created_at_ms: date(integer(row, 3)),
            updated_at_ms: date(integer(row, 4)),
        });
        rows.map_err(|error| error.reason())
    }
}

fn date(value: Option<i64>) -> Option<i64> {
    match value? {
        ..=0 => None,
        seconds @ ..SECONDS_MAX => Some(seconds * 1000),
        milliseconds => Some(milliseconds),
    }
}
