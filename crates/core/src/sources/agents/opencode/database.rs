//! The database: sessions, messages and their parts.
//!
//! Seen in opencode 1.18.33, 2026-11: in WAL mode, always open, most of it in the
//! WAL. Its schema grows with releases, so columns that are not there are done
//! without.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde_json::Value;
use whosup_sidecar::SessionId;

use super::message::{Head, Part};
use super::session::{Row, Turn, given_title, model_of};
use crate::adapter::{Message, MessageRole};
use crate::sources::agents::kit::database::{SessionRows, read_sessions};
use crate::sources::agents::kit::prompt::{FirstWords, Wrapping};
use crate::sources::sqlite::{Database, SqliteError, integer, text};

/// How many sessions are asked for at once.
const ASKED_MAX: usize = 500;
/// How many parts of one message are read.
const PARTS_MAX: usize = 1_000;
/// How many messages are gone through for those that say something.
const MESSAGES_MAX: usize = 10_000;

/// How many messages of one session are counted.
const COUNTED_MAX: usize = 1_000_000;
/// How many parts are gone through for the first prompt.
const FIRST_PARTS_MAX: usize = 32;

/// What opencode itself puts where a prompt stands.
const WRAPPING: Wrapping = Wrapping {
    elements: &["file", "skill_content"],
    notices: &[
        "Called the Read tool with the following input",
        "Called the List tool with",
    ],
};

/// The columns of `session` that are read, where it has them.
const COLUMNS: &[&str] = &[
    "id",
    "parent_id",
    "directory",
    "title",
    "version",
    "model",
    "time_created",
    "time_updated",
    "time_archived",
];

/// One database, as it was when it was read.
#[derive(Debug)]
pub(super) struct SessionDb(Database);

impl SessionDb {
    /// Reads a database.
    ///
    /// # Errors
    ///
    /// Why that can't be done, without its path.
    pub(super) fn read(path: &Path) -> Result<Self, String> {
        Ok(Self(Database::read(path)?))
    }

    /// All sessions, without the dates of their messages.
    pub(super) fn sessions(&self) -> Result<SessionRows<Row>, String> {
        read_sessions(&self.0, "session", COLUMNS, row_of)
    }

    /// When the last message of each of these sessions was begun.
    pub(super) fn last_messages(&self, ids: &[&str]) -> Result<HashMap<String, i64>, String> {
        let mut found = HashMap::new();
        for asked in ids.chunks(ASKED_MAX) {
            let marks = vec!["?"; asked.len()].join(", ");
            let sql = format!(
                "SELECT session_id, MAX(time_created) FROM message
                 WHERE session_id IN ({marks}) GROUP BY session_id"
            );
            let read = |row: &rusqlite::Row<'_>| Some((text(row, 0)?, integer(row, 1)?));
            let asked = rusqlite::params_from_iter(asked);
            let rows = self.0.rows(&sql, asked, ASKED_MAX, read)?;
            found.extend(rows.into_iter().flatten());
        }
        Ok(found)
    }

    /// Where the conversation is; `None` if nothing has been said in it, or that cannot be
    /// made out.
    pub(super) fn turn(&self, id: &str) -> Result<Option<Turn>, String> {
        let sql = "SELECT id, time_created, data FROM message WHERE session_id = ?1
                   ORDER BY time_created DESC, id DESC LIMIT 1";
        let read = |row: &rusqlite::Row<'_>| {
            let head = Head::parse(&text(row, 2)?)?;
            Some((text(row, 0)?, integer(row, 1)?, head))
        };
        let last = self.0.rows(sql, [id], 1, read)?;
        let Some(Some((message, begun_at_ms, head))) = last.into_iter().next() else {
            return Ok(None);
        };
        let sql = "SELECT time_created, data FROM part WHERE message_id = ?1 ORDER BY id";
        let read = |row: &rusqlite::Row<'_>| Some((integer(row, 0)?, text(row, 1)?));
        let parts = self.0.rows(sql, [&message], PARTS_MAX, read)?;
        let parts: Vec<_> = parts.into_iter().flatten().collect();
        Ok(Some(head.turn(begun_at_ms, &parts)))
    }

    /// All messages of a session that is counted, oldest first, or the last `last` of them:
    /// each with what a person typed, if that is a text.
    pub(super) fn records(&self, id: &str, last: Option<usize>) -> Result<Vec<Value>, String> {
        let limit = last.map_or_else(String::new, |last| format!("LIMIT {last}"));
        let sql = format!(
            "SELECT data AS message, CASE WHEN data LIKE '%\"user\"%' THEN
                 (SELECT part.data FROM part WHERE part.message_id = message.id
                  AND CASE WHEN json_valid(part.data) THEN
                      json_extract(part.data, '$.type') = 'text'
                      AND json_extract(part.data, '$.synthetic') IS NOT 1 END
                  ORDER BY part.id LIMIT 1)
             END AS typed FROM message
             WHERE session_id = ?1 ORDER BY time_created DESC, id DESC {limit}"
        );
        let mut records = self.0.records(&sql, [id], last.unwrap_or(COUNTED_MAX))?;
        records.reverse();
        Ok(records)
    }

    /// The first thing that a person said, as a title.
    pub(super) fn first_prompt(&self, id: &str) -> Result<Option<String>, String> {
        let said = self.said(id, "ASC", FIRST_PARTS_MAX)?;
        let mut words = FirstWords::default();
        for prompt in said.iter().filter(|said| said.role == MessageRole::User) {
            words.add([prompt.text.as_str()], &WRAPPING);
        }
        Ok(words.title())
    }

    /// The last things that were said, oldest first.
    pub(super) fn messages(&self, id: &str, messages_max: usize) -> Result<Vec<Message>, String> {
        let mut said = self.said(id, "DESC", messages_max)?;
        said.reverse();
        Ok(said)
    }

    /// What was said, in the order of `direction`: one entry for each text and
    /// each call of a tool.
    fn said(
        &self,
        id: &str,
        direction: &str,
        messages_max: usize,
    ) -> Result<Vec<Message>, SqliteError> {
        let sql = format!(
            "SELECT message.data, part.data, part.time_created FROM part
             JOIN message ON message.id = part.message_id
             WHERE part.session_id = ?1
             ORDER BY message.time_created {direction}, message.id {direction}, part.id {direction}
             LIMIT {MESSAGES_MAX}"
        );
        let read = |row: &rusqlite::Row<'_>| {
            let head = Head::parse(&text(row, 0)?)?;
            let (role, text) = match Part::parse(&text(row, 1)?)? {
                Part::Text(text) => (head.role, text),
                Part::Tool(name) => (MessageRole::Tool, name),
            };
            let at_ms = integer(row, 2);
            Some(Message { role, at_ms, text })
        };
        let said = self.0.rows(&sql, [id], MESSAGES_MAX, read)?;
        Ok(said.into_iter().flatten().take(messages_max).collect())
    }
}

fn row_of(row: &rusqlite::Row<'_>) -> Result<(Row, Option<String>), String> {
    let filled = |at| text(row, at).filter(|text| !text.is_empty());
    let id = text(row, 0).ok_or("`session.id` is not a text")?;
    let id = SessionId::parse(&id).map_err(|error| format!("`session.id`: {error}"))?;
    // One that is no ID names no session, and a session is not its own sub-agent.
    let parent = filled(1).and_then(|parent| SessionId::parse(&parent).ok());
    let row = Row {
        parent: parent.filter(|parent| *parent != id),
        directory: filled(2).map(PathBuf::from),
        title: filled(3).as_deref().and_then(given_title),
        version: filled(4),
        model: filled(5).as_deref().and_then(model_of),
        created_at_ms: integer(row, 6),
        updated_at_ms: integer(row, 7),
        last_message_at_ms: None,
        is_archived: integer(row, 8).is_some(),
        database: 0,
        id,
    };
    Ok((row, None))
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests make their own files")]
mod tests {
    use rusqlite::Connection;

    use super::*;
    use crate::sources::agents::opencode::session::RunningTool;

    const SCHEMA: &str = "CREATE TABLE session(id TEXT PRIMARY KEY, parent_id TEXT, directory TEXT,
            title TEXT, version TEXT, model TEXT, time_created INTEGER, time_updated INTEGER);
        CREATE TABLE message(id TEXT PRIMARY KEY, session_id TEXT, time_created INTEGER, data TEXT);
        CREATE TABLE part(id TEXT PRIMARY KEY, message_id TEXT, session_id TEXT,
            time_created INTEGER, data TEXT);";

    /// A database that somebody keeps open, in WAL mode.
    fn database(sql: &str) -> (tempfile::TempDir, Connection, SessionDb) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("opencode.db");
        let connection = Connection::open(&path).unwrap();
        connection
            .pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(()))
            .unwrap();
        connection.execute_batch(sql).unwrap();
        let read = SessionDb::read(&path).unwrap();
        (directory, connection, read)
    }

    fn sound() -> (tempfile::TempDir, Connection, SessionDb) {
        database(&format!(
            "{SCHEMA}
             INSERT INTO session VALUES
               ('ses_1', NULL, '/w', 'A title', '1.18.33', '{{\"id\":\"m\"}}', 100, 900),
               ('ses_2', 'ses_1', '', 'New session - x', NULL, NULL, 200, NULL);
             INSERT INTO message VALUES
               ('msg_1', 'ses_1', 110, '{{\"role\":\"user\"}}'),
               ('msg_2', 'ses_1', 120, '{{\"role\":\"assistant\",\"time\":{{}}}}');
             INSERT INTO part VALUES
               ('prt_1', 'msg_1', 'ses_1', 111, '{{\"type\":\"text\",\"text\":\"hello\"}}'),
               ('prt_2', 'msg_2', 'ses_1', 121, '{{\"type\":\"step-start\"}}'),
               ('prt_3', 'msg_2', 'ses_1', 122, '{{\"type\":\"text\",\"text\":\"I look\"}}'),
               ('prt_4', 'msg_2', 'ses_1', 123,
                '{{\"type\":\"tool\",\"tool\":\"bash\",\"state\":{{\"status\":\"running\"}}}}');"
        ))
    }

    #[test]
    fn sessions_are_read_with_what_they_have() {
        let (_directory, _open, database) = sound();
        let found = database.sessions().unwrap();
        assert!(found.wrong.is_empty());
        let [first, second] = found.rows.as_slice() else {
            panic!("{found:?}");
        };
        assert_eq!(first.directory.as_deref(), Some(Path::new("/w")));
        assert_eq!(first.title.as_deref(), Some("A title"));
        assert_eq!(first.model.as_deref(), Some("m"));
        assert_eq!(first.created_at_ms, Some(100));
        assert_eq!(second.parent.as_ref().map(SessionId::as_str), Some("ses_1"));
        assert_eq!((&second.directory, &second.title), (&None, &None));
        let dates = database.last_messages(&["ses_1", "ses_2"]).unwrap();
        assert_eq!(dates, HashMap::from([("ses_1".to_owned(), 120)]));
    }

    #[test]
    fn what_was_said_is_read_from_either_end() {
        let (_directory, _open, database) = sound();
        let said = |max| -> Vec<(MessageRole, String)> {
            let messages = database.messages("ses_1", max).unwrap();
            messages
                .into_iter()
                .map(|said| (said.role, said.text))
                .collect()
        };
        let all = [
            (MessageRole::User, "hello".to_owned()),
            (MessageRole::Assistant, "I look".to_owned()),
            (MessageRole::Tool, "bash".to_owned()),
        ];
        assert_eq!(said(9), all);
        assert_eq!(said(2), all[1..]);
        let prompt = database.first_prompt("ses_1").unwrap();
        assert_eq!(prompt.as_deref(), Some("hello"));
        assert_eq!(database.first_prompt("ses_2").unwrap(), None);
        let tool = RunningTool {
            name: "bash".to_owned(),
            called_at_ms: 123,
            has_begun: false,
        };
        let right = Turn::GoesOn {
            since_ms: 120,
            tool: Some(tool),
        };
        assert_eq!(database.turn("ses_1").unwrap(), Some(right));
        assert_eq!(database.turn("ses_2").unwrap(), None);
    }

    #[test]
    fn columns_that_are_not_there_are_done_without_and_odd_rows_are_told() {
        let (_directory, _open, older) = database(
            "CREATE TABLE session(id TEXT, title TEXT);
             INSERT INTO session VALUES ('ses_1', 'T'), ('../x', 'T'), (x'00ff', 'T'), (NULL, NULL)",
        );
        let found = older.sessions().unwrap();
        assert_eq!(found.rows.len(), 1);
        assert_eq!(found.wrong.len(), 3, "{:?}", found.wrong);
        let (_directory, _open, other) = database("CREATE TABLE others(id TEXT)");
        let error = other.sessions().unwrap_err();
        assert_eq!(error, "it has no column `session.id`");
        assert!(other.turn("ses_1").is_err());
    }

    #[test]
    fn many_sessions_are_asked_for_in_parts() {
        let (_directory, _open, database) = sound();
        let mut ids = vec!["x"; 2 * ASKED_MAX];
        ids.push("ses_1");
        assert_eq!(database.last_messages(&ids).unwrap().len(), 1);
    }
}
