//! The state database: facts about threads that their own files lack.
//!
//! Seen in Codex 0.171.0, 2026-11: `state_5.sqlite`, in WAL mode and always
//! open, with a table `threads` (`id`, `rollout_path`, `cwd`, `title`, `name`,
//! `first_user_message`, `source`, …), whose rows come with the first prompt,
//! and `thread_spawn_edges` (`parent_thread_id`, `child_thread_id`). The number
//! in its name rises with its schema.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use whosup_sidecar::parse_json;

use crate::sources::agents::kit::folder::names_in;
use crate::sources::sqlite::{Database, SqliteError, text};

use super::header::Origin;
use super::hints::{Failure, Hint};

/// How many entries of a home are read.
const HOME_ENTRIES_MAX: usize = 100_000;
/// How many rows of a table are read.
const ROWS_MAX: usize = 1_000_000;
/// How many threads are asked for by name; beyond that all are read.
const ASKED_MAX: usize = 500;

/// The columns that are read, where the table has them.
const COLUMNS: [&str; 7] = [
    "id",
    "rollout_path",
    "cwd",
    "name",
    "title",
    "first_user_message",
    "source",
];

/// The database of a home whose name begins with `kind` and has the highest number.
pub(super) fn newest(home: &Path, kind: &str) -> Result<Option<PathBuf>, Failure> {
    let names =
        names_in(home, HOME_ENTRIES_MAX).map_err(|error| (home.to_owned(), error.to_string()))?;
    let number = |name: &str| -> Option<u32> {
        let digits = name.strip_prefix(kind)?.strip_suffix(".sqlite")?;
        digits.parse().ok()
    };
    let numbered = names.texts().filter_map(|name| Some((number(name)?, name)));
    Ok(numbered.max().map(|(_, newest)| home.join(newest)))
}

/// The state database of a home, as it was when it was read.
#[derive(Debug)]
pub(super) struct StateDb {
    path: PathBuf,
    database: Database,
}

impl StateDb {
    /// Reads the newest state database of a home, if it has one.
    pub(super) fn newest(home: &Path) -> Result<Option<Self>, Failure> {
        let Some(path) = newest(home, "state_")? else {
            return Ok(None);
        };
        match Database::read(&path) {
            Ok(database) => Ok(Some(Self { path, database })),
            Err(error) => Err((path, error.reason())),
        }
    }

    /// Returns the hints for `threads`. If there are many, hints for other threads are
    /// included.
    pub(super) fn hints(&self, threads: &[&str]) -> Result<HashMap<String, Hint>, Failure> {
        let asked = (threads.len() <= ASKED_MAX).then_some(threads);
        self.query(asked)
            .map_err(|error| (self.path.clone(), error.reason()))
    }

    fn query(&self, asked: Option<&[&str]>) -> Result<HashMap<String, Hint>, SqliteError> {
        let database = &self.database;
        let mut hints = HashMap::new();
        let columns = database.columns("threads")?;
        let is_there = |wanted: &str| columns.iter().any(|column| column == wanted);
        if is_there("id") {
            let selected = COLUMNS.map(|wanted| if is_there(wanted) { wanted } else { "NULL" });
            let sql = format!("SELECT {} FROM threads", selected.join(", "));
            hints.extend(self.select(&sql, "id", asked, hint_of)?);
        }
        let columns = database.columns("thread_spawn_edges")?;
        let is_there = |wanted: &&str| columns.iter().any(|column| column == wanted);
        if ["child_thread_id", "parent_thread_id"].iter().all(is_there) {
            let sql = "SELECT child_thread_id, parent_thread_id FROM thread_spawn_edges";
            let edges = self.select(sql, "child_thread_id", asked, |row| text(row, 1))?;
            for (child, parent) in edges {
                let hint: &mut Hint = hints.entry(child).or_default();
                hint.parent = parent.map(|parent| parent.to_ascii_lowercase());
            }
        }
        Ok(hints)
    }

    /// The rows of `sql`, by their first column; only those of `asked`, if given.
    fn select<T>(
        &self,
        sql: &str,
        id_column: &str,
        asked: Option<&[&str]>,
        read: impl Fn(&rusqlite::Row<'_>) -> T,
    ) -> Result<Vec<(String, T)>, SqliteError> {
        let read = |row: &rusqlite::Row<'_>| Some((text(row, 0)?.to_ascii_lowercase(), read(row)));
        let mut sql = sql.to_owned();
        if let Some(asked) = asked {
            let marks = vec!["?"; asked.len()].join(", ");
            sql += &format!(" WHERE {id_column} IN ({marks})");
        }
        let parameters = rusqlite::params_from_iter(asked.unwrap_or_default());
        let rows = self.database.rows(&sql, parameters, ROWS_MAX, read)?;
        Ok(rows.into_iter().flatten().collect())
    }
}

fn hint_of(row: &rusqlite::Row<'_>) -> Hint {
    let column = |at| text(row, at).filter(|text| !text.trim().is_empty());
    let first_prompt = column(5);
    let is_given = |title: &String| Some(title.trim()) != first_prompt.as_deref().map(str::trim);
    Hint {
        rollout: column(1).map(PathBuf::from),
        work_dir: column(2).map(PathBuf::from),
        title: column(3).or_else(|| column(4)).filter(is_given),
        // A plain word, or the JSON of the header's field.
        origin: column(6).map(|source| {
            let value = parse_json(source.as_bytes());
            Origin::of(&value.unwrap_or_else(|_| serde_json::Value::String(source.clone())))
        }),
        parent: None,
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests make their own files")]
mod tests {
    use rusqlite::Connection;

    use super::*;

    const SCHEMA: &str = "CREATE TABLE threads(id TEXT PRIMARY KEY, rollout_path TEXT, cwd TEXT,
        title TEXT, name TEXT, first_user_message TEXT, source TEXT);
        CREATE TABLE thread_spawn_edges(parent_thread_id TEXT, child_thread_id TEXT, status TEXT)";

    /// A home whose database is kept open.
    fn home(sql: &str) -> (tempfile::TempDir, Connection) {
        let home = tempfile::tempdir().unwrap();
        let connection = Connection::open(home.path().join("state_5.sqlite")).unwrap();
        connection
            .pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(()))
            .unwrap();
        connection.execute_batch(sql).unwrap();
        (home, connection)
    }

    fn hints(home: &tempfile::TempDir, threads: &[&str]) -> HashMap<String, Hint> {
        let database = StateDb::newest(home.path()).unwrap().unwrap();
        database.hints(threads).unwrap()
    }

    #[test]
    fn a_thread_is_found_and_a_prompt_is_no_title() {
        let rows = "INSERT INTO threads VALUES
            ('a', '/r/a.jsonl', '/w', 'hello', 'A name', 'hello', 'vscode'),
            ('b', NULL, '', 'hello', NULL, 'hello', '{\"subagent\":\"review\"}'),
            ('c', NULL, x'00ff', 7, NULL, NULL, 'exec');
            INSERT INTO thread_spawn_edges VALUES ('a', 'b', 'open')";
        let (home, _open) = home(&format!("{SCHEMA}; {rows}"));
        let all = hints(&home, &["a", "b", "c", "d"]);
        assert_eq!(all["a"].title.as_deref(), Some("A name"));
        assert_eq!(all["a"].rollout.as_deref(), Some(Path::new("/r/a.jsonl")));
        assert_eq!(all["a"].work_dir.as_deref(), Some(Path::new("/w")));
        assert_eq!(all["b"].title, None);
        assert_eq!(all["b"].work_dir, None);
        assert_eq!(all["b"].origin, Some(Origin::SubAgent { parent: None }));
        assert_eq!(all["b"].parent.as_deref(), Some("a"));
        assert_eq!(all["c"].origin, Some(Origin::Headless));
        assert_eq!(all["c"].work_dir, None);
        assert_eq!(all.len(), 3);
        let asked = hints(&home, &["a"]);
        assert_eq!(asked.keys().collect::<Vec<_>>(), ["a"]);
        assert_eq!(hints(&home, &["x"; ASKED_MAX + 1]).len(), 3);
    }

    #[test]
    fn columns_and_tables_that_are_not_there_are_done_without() {
        let rows = "INSERT INTO threads VALUES ('A', 'T')";
        let (few, _open) = home(&format!(
            "CREATE TABLE threads(id TEXT, title TEXT); {rows}"
        ));
        assert_eq!(hints(&few, &["A"])["a"].title.as_deref(), Some("T"));
        let (none, _open) = home("CREATE TABLE others(id TEXT)");
        assert!(hints(&none, &["a"]).is_empty());
    }

    #[test]
    fn the_highest_number_is_the_newest_and_a_broken_one_is_an_error_that_names_it() {
        let home = tempfile::tempdir().unwrap();
        assert!(StateDb::newest(home.path()).unwrap().is_none());
        for name in [
            "state_9.sqlite",
            "state_10.sqlite",
            "state_x.sqlite",
            "state_11.sqlite-wal",
        ] {
            std::fs::write(home.path().join(name), "x").unwrap();
        }
        let (path, reason) = StateDb::newest(home.path()).unwrap_err();
        assert_eq!(path, home.path().join("state_10.sqlite"));
        assert_eq!(reason, "it is no SQLite database");
    }
}
