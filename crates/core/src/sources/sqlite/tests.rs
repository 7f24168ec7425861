//! Reads databases that another process has open, and checks what is left of them.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::SystemTime;

use rusqlite::Connection;
use tempfile::TempDir;

use super::*;

/// A directory with a database in it.
struct World {
    dir: TempDir,
}

impl World {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        Self { dir }
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("state_5.sqlite")
    }

    /// A connection as a program holds it open, in WAL mode, with one table.
    fn writer(&self) -> Connection {
        let writer = Connection::open(self.path()).unwrap();
        set(&writer, "journal_mode", "wal");
        writer
            .execute_batch("CREATE TABLE t(a INTEGER, b TEXT); INSERT INTO t VALUES (1, 'one')")
            .unwrap();
        writer
    }

    /// Every file with its bytes and the time of its last change.
    fn files(&self) -> BTreeMap<PathBuf, (Vec<u8>, SystemTime)> {
        let entries = std::fs::read_dir(self.dir.path()).unwrap();
        entries
            .map(|entry| {
                let path = entry.unwrap().path();
                let changed = path.metadata().unwrap().modified().unwrap();
                (path.clone(), (std::fs::read(&path).unwrap(), changed))
            })
            .collect()
    }

    /// Reads `t`, and checks that this left every file as it was.
    #[track_caller]
    fn read(&self) -> Result<Vec<i64>, SqliteError> {
        let before = self.files();
        let answer = numbers(&self.path());
        let after = self.files();
        assert_eq!(
            before.keys().collect::<Vec<_>>(),
            after.keys().collect::<Vec<_>>()
        );
        assert!(before == after, "a file was changed");
        answer
    }
}

/// SQLite resolves the link, and keeps the WAL beside the file.
#[test]
fn the_wal_of_a_database_behind_a_link_is_beside_the_file() {
    let (world, elsewhere) = (World::new(), World::new());
    let writer = world.writer();
    writer
        .execute("INSERT INTO t VALUES (2, 'two')", [])
        .unwrap();
    std::os::unix::fs::symlink(world.path(), elsewhere.path()).unwrap();
    assert_eq!(elsewhere.read().unwrap(), [1, 2]);
}

fn set(connection: &Connection, pragma: &str, value: &str) {
    connection
        .pragma_update_and_check(None, pragma, value, |_| Ok(()))
        .unwrap();
}

fn numbers(path: &Path) -> Result<Vec<i64>, SqliteError> {
    let database = Database::read(path)?;
    database.rows("SELECT a FROM t ORDER BY a", [], 1_000_000, |row| {
        row.get(0).unwrap()
    })
}

#[test]
fn what_is_only_in_the_wal_of_a_running_program_is_read_and_nothing_is_touched() {
    let world = World::new();
    let writer = world.writer();
    assert_eq!(world.read().unwrap(), [1]);
    writer
        .execute_batch("INSERT INTO t VALUES (2, 'two')")
        .unwrap();
    assert_eq!(world.read().unwrap(), [1, 2]);
    assert!(world.files().len() == 3, "the writer has its -wal and -shm");
}

#[test]
fn an_empty_wal_in_use_stays() {
    let world = World::new();
    let writer = world.writer();
    set(&writer, "wal_checkpoint", "truncate");
    assert_eq!(world.read().unwrap(), [1]);
    writer
        .execute_batch("INSERT INTO t VALUES (2, 'two')")
        .unwrap();
    assert_eq!(world.read().unwrap(), [1, 2]);
}

#[test]
fn a_closed_database_in_wal_mode_gets_no_wal() {
    let world = World::new();
    drop(world.writer());
    assert_eq!(world.files().len(), 1);
    assert_eq!(world.read().unwrap(), [1]);
}

#[test]
fn an_open_transaction_is_not_seen() {
    let world = World::new();
    let writer = world.writer();
    writer.pragma_update(None, "cache_size", 2).unwrap();
    let rows = "WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)
        INSERT INTO t SELECT i, hex(zeroblob(200)) FROM n";
    writer.execute_batch("BEGIN").unwrap();
    writer.execute_batch(rows).unwrap();
    let wal = world.dir.path().join("state_5.sqlite-wal");
    assert!(wal.metadata().unwrap().len() > 100_000, "it has spilled");
    assert_eq!(world.read().unwrap(), [1]);
    writer.execute_batch("COMMIT").unwrap();
    assert_eq!(world.read().unwrap().len(), 2000);
}

#[test]
fn frames_of_an_earlier_use_of_the_wal_do_not_count() {
    let world = World::new();
    let writer = world.writer();
    for i in 2..50 {
        writer
            .execute("INSERT INTO t VALUES (?1, 'x')", [i])
            .unwrap();
    }
    set(&writer, "wal_checkpoint", "restart");
    writer.execute_batch("DELETE FROM t WHERE a > 1").unwrap();
    assert_eq!(world.read().unwrap(), [1]);
}

#[test]
fn a_torn_wal_is_read_up_to_its_last_whole_commit() {
    let world = World::new();
    let writer = world.writer();
    writer
        .execute_batch("INSERT INTO t VALUES (2, 'two')")
        .unwrap();
    let copy = World::new();
    for name in ["state_5.sqlite", "state_5.sqlite-wal"] {
        std::fs::copy(world.dir.path().join(name), copy.dir.path().join(name)).unwrap();
    }
    let wal = copy.dir.path().join("state_5.sqlite-wal");
    let whole = std::fs::read(&wal).unwrap();
    std::fs::write(&wal, &whole[..whole.len() - 1]).unwrap();
    assert_eq!(copy.read().unwrap(), [1]);
    let mut flipped = whole.clone();
    *flipped.last_mut().unwrap() ^= 1;
    std::fs::write(&wal, flipped).unwrap();
    assert_eq!(copy.read().unwrap(), [1]);
    std::fs::write(&wal, whole).unwrap();
    assert_eq!(copy.read().unwrap(), [1, 2]);
}

/// What SQLite itself reads and what is read here are the same, for every
/// page size and after all that changes the number of pages.
#[test]
fn every_committed_state_is_read_as_sqlite_reads_it() {
    for page_size in ["512", "4096", "65536"] {
        let world = World::new();
        let writer = Connection::open(world.path()).unwrap();
        writer.pragma_update(None, "page_size", page_size).unwrap();
        set(&writer, "journal_mode", "wal");
        writer
            .execute_batch("CREATE TABLE t(a INTEGER, b TEXT)")
            .unwrap();
        let steps = [
            "INSERT INTO t VALUES (1, hex(zeroblob(9000)))",
            "INSERT INTO t SELECT a + 1, b FROM t",
            "INSERT INTO t SELECT a + 2, b FROM t",
            "PRAGMA wal_checkpoint(passive)",
            "CREATE INDEX i ON t(b)",
            "DELETE FROM t WHERE a = 2",
            "VACUUM",
            "PRAGMA wal_checkpoint(restart)",
            "INSERT INTO t VALUES (9, 'nine')",
            "DELETE FROM t WHERE a < 4",
            "VACUUM",
        ];
        for step in steps {
            writer.execute_batch(step).unwrap();
            let mut statement = writer.prepare("SELECT a FROM t ORDER BY a").unwrap();
            let right: Vec<i64> = statement
                .query_map([], |row| row.get(0))
                .unwrap()
                .map(Result::unwrap)
                .collect();
            assert_eq!(world.read().unwrap(), right, "{step}, pages of {page_size}");
            let database = Database::read(&world.path()).unwrap();
            let check = database.rows("PRAGMA integrity_check", [], 9, |row| text(row, 0));
            assert_eq!(check.unwrap(), [Some("ok".to_owned())], "{step}");
        }
    }
}

#[test]
fn a_lock_of_another_program_causes_no_wait() {
    let world = World::new();
    let writer = world.writer();
    writer.execute_batch("BEGIN EXCLUSIVE").unwrap();
    assert_eq!(world.read().unwrap(), [1]);
    writer.execute_batch("COMMIT").unwrap();

    let world = World::new();
    let writer = Connection::open(world.path()).unwrap();
    writer
        .execute_batch("CREATE TABLE t(a); INSERT INTO t VALUES (7); BEGIN EXCLUSIVE")
        .unwrap();
    assert_eq!(world.read().unwrap(), [7]);
}

#[test]
fn a_database_in_the_middle_of_a_change_is_not_read() {
    let world = World::new();
    let writer = Connection::open(world.path()).unwrap();
    writer.pragma_update(None, "cache_size", 2).unwrap();
    writer
        .execute_batch("CREATE TABLE t(a, b); INSERT INTO t VALUES (7, hex(zeroblob(90000)))")
        .unwrap();
    writer
        .execute_batch("BEGIN; UPDATE t SET b = b || b; UPDATE t SET b = b || b")
        .unwrap();
    let error = world.read().unwrap_err();
    assert!(
        matches!(error, SqliteError::InTransaction { .. }),
        "{error}"
    );
    assert!(error.to_string().contains("state_5.sqlite"), "{error}");
    writer.execute_batch("ROLLBACK").unwrap();
    assert_eq!(world.read().unwrap(), [7]);
}

#[track_caller]
fn check_error(content: &[u8], right: &str) {
    let world = World::new();
    std::fs::write(world.path(), content).unwrap();
    let error = world.read().unwrap_err().to_string();
    assert!(error.contains(right), "{error}");
    assert!(error.contains("state_5.sqlite"), "{error}");
}

#[test]
fn what_is_no_database_is_an_error_that_names_it() {
    check_error(b"SQLite format 3", "it is no SQLite database");
    check_error(&[b'x'; 4096], "it is no SQLite database");
    check_error(b"", "no such table");
    let world = World::new();
    drop(world.writer());
    let mut bytes = std::fs::read(world.path()).unwrap();
    bytes[100..].fill(0xff);
    check_error(&bytes, "malformed");
    bytes.truncate(200);
    check_error(&bytes, "cannot query database");
}

#[test]
fn a_database_that_is_not_there_too_large_or_no_file_is_an_error_at_once() {
    let world = World::new();
    let missing = world.read().unwrap_err();
    assert!(matches!(
        missing,
        SqliteError::File(ReadFileError::NotFound { .. })
    ));
    let file = std::fs::File::create(world.path()).unwrap();
    file.set_len(DATABASE_BYTES_MAX + 1).unwrap();
    assert!(matches!(
        Database::read(&world.path()).unwrap_err(),
        SqliteError::File(ReadFileError::TooLarge { .. })
    ));
    std::fs::remove_file(world.path()).unwrap();
    std::fs::create_dir(world.path()).unwrap();
    assert!(matches!(
        Database::read(&world.path()).unwrap_err(),
        SqliteError::File(ReadFileError::NotRegular { .. })
    ));
}

#[test]
fn a_view_without_an_end_is_given_up() {
    let world = World::new();
    let writer = world.writer();
    writer
        .execute_batch(
            "DROP TABLE t; CREATE VIEW t AS
             WITH RECURSIVE n(a) AS (SELECT 1 UNION ALL SELECT a + 1 FROM n)
             SELECT max(a) AS a FROM n",
        )
        .unwrap();
    let error = world.read().unwrap_err();
    assert!(error.to_string().contains("interrupted"), "{error}");
}

#[test]
fn columns_are_listed_and_a_missing_table_has_none() {
    let world = World::new();
    let _writer = world.writer();
    let database = Database::read(&world.path()).unwrap();
    assert_eq!(database.columns("t").unwrap(), ["a", "b"]);
    assert_eq!(database.columns("u").unwrap(), Vec::<String>::new());
}

/// Two accounts whose sum never changes, moved between in transactions that
/// touch many pages, with checkpoints all the time, by another process.
const BUSY_WRITER: &str = r#"
import sqlite3, sys
c = sqlite3.connect(sys.argv[1], isolation_level=None)
c.execute("pragma journal_mode=wal")
c.execute("pragma wal_autocheckpoint=7")
c.execute("create table t(a integer, b text)")
for i in range(40):
    c.execute("insert into t values(?, ?)", (100, "x" * 3000))
print("ready", flush=True)
i = 0
while True:
    i += 1
    c.execute("begin")
    c.execute("update t set a = a + 1 where rowid = ?", (i % 40 + 1,))
    c.execute("update t set a = a - 1 where rowid = ?", ((i * 7 + 3) % 40 + 1,))
    c.execute("commit")
    if i % 50 == 0:
        c.execute("pragma wal_checkpoint(truncate)")
"#;

/// Ends the process that it was given, whatever happens.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_process_that_writes_all_the_time_never_shows_half_a_transaction() {
    let world = World::new();
    let started = Command::new("python3")
        .args(["-c", BUSY_WRITER])
        .arg(world.path())
        .stdout(Stdio::piped())
        .spawn();
    let Ok(child) = started else {
        eprintln!("skipped: there is no python3 to write with");
        return;
    };
    let mut child = Ended(child);
    let mut line = String::new();
    let output = child.0.stdout.take().unwrap();
    BufReader::new(output).read_line(&mut line).unwrap();
    if line.trim() != "ready" {
        eprintln!("skipped: this python3 has no sqlite3 to write with");
        return;
    }
    let (mut read, mut busy) = (0, 0);
    for _ in 0..300 {
        match numbers(&world.path()) {
            Ok(numbers) => {
                assert_eq!(numbers.len(), 40);
                assert_eq!(numbers.iter().sum::<i64>(), 4000);
                read += 1;
            }
            Err(SqliteError::Busy { .. }) => busy += 1,
            Err(error) => panic!("{error}"),
        }
    }
    eprintln!("{read} states read, {busy} times busy");
    assert!(read > 0, "never read");
    assert!(
        child.0.try_wait().unwrap().is_none(),
        "the writer still writes"
    );
}
