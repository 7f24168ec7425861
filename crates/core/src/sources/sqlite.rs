//! Reads the SQLite databases of agents without changing anything.
//!
//! SQLite itself can't do that. Opened read-only, a database in WAL mode gets a `-shm` file;
//! with the lock-free `unix-none` file layer SQLite opens the `-wal` file with `O_CREAT`, and
//! on close it deletes an empty WAL that another program is using (seen in SQLite 3.54.1);
//! `immutable=1` misses what is still in the WAL. So the database and the WAL are read like
//! any other file, the committed frames of the WAL are laid over the pages by the file format
//! (sqlite.org/fileformat2.html, section 4), and SQLite gets the result in memory. No lock is
//! taken, so neither side ever waits for the other.
//!
//! The result is one committed state: the pages are read before the WAL, so that each page
//! that a checkpoint writes meanwhile is in the WAL too. If the WAL was restarted, or the
//! database changed in another way, everything is read again, a few times at most.
//!
//! A program that has the same database open through SQLite must not use this in its own
//! process: closing a file releases every POSIX lock that the process has on it (fcntl(2)).

mod wal;

#[cfg(test)]
#[allow(
    clippy::disallowed_methods,
    reason = "tests make their own files and processes"
)]
mod tests;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use rusqlite::types::ValueRef;
use rusqlite::{Connection, MAIN_DB, OpenFlags, Params, Row};
use serde_json::Value;
use whosup_sidecar::file::{Links, OpenFile, ReadFileError, read_regular};
use whosup_sidecar::parse_json;

use wal::Overlay;

/// The maximum size of a database with its WAL, in bytes. It is held in memory, twice for a
/// moment. opencode keeps every message in one.
const DATABASE_BYTES_MAX: u64 = 512 << 20;
/// The maximum size of a WAL, in bytes. SQLite restarts it every 4 MB or so, unless a reader
/// prevents that.
const WAL_BYTES_MAX: u64 = 128 << 20;
/// How often a database that changes meanwhile is read again.
const ATTEMPTS_MAX: usize = 4;
/// SQLite calls back after so many instructions …
const INSTRUCTIONS_BETWEEN_QUESTIONS: i32 = 100_000;
/// … and stops it after so many calls, about half a second: a schema is data, and may
/// hold a view that never ends.
const QUESTIONS_MAX: u32 = 500;

/// The first bytes of a database.
const MAGIC: &[u8] = b"SQLite format 3\0";
/// The size of its header, in bytes.
const HEADER_BYTES: usize = 100;
/// The place of the file format versions in the header.
const FORMAT_VERSIONS: std::ops::Range<usize> = 18..20;
/// The first bytes of a rollback journal while a transaction is open.
const JOURNAL_MAGIC: &[u8] = &[0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7];

/// Why pages are not read while the journal is like that. Whether a writer is at work can't be
/// seen without taking its locks.
const IN_TRANSACTION: &str = "its `-journal` has an open transaction: a process is writing, or \
                              died while it wrote";

/// Why a database could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum SqliteError {
    /// One of its files could not be read.
    #[error(transparent)]
    File(#[from] ReadFileError),
    /// A transaction is open in its rollback journal.
    #[error("cannot read database `{}`: {IN_TRANSACTION}", path.display())]
    InTransaction {
        /// The database.
        path: PathBuf,
    },
    /// It changed during each read.
    #[error(
        "cannot read database `{}`: it was being changed in each of {ATTEMPTS_MAX} attempts",
        path.display()
    )]
    Busy {
        /// The database.
        path: PathBuf,
    },
    /// It is no database, or a broken database.
    #[error("cannot read database `{}`: {reason}", path.display())]
    Broken {
        /// The database.
        path: PathBuf,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// SQLite can't run the query.
    #[error("cannot query database `{}`: {source}", path.display())]
    Query {
        /// The database.
        path: PathBuf,
        /// Why.
        source: rusqlite::Error,
    },
}

impl SqliteError {
    /// The error without the path, for messages that name it already.
    pub(crate) fn reason(&self) -> String {
        match self {
            Self::File(error) => error.reason(),
            Self::InTransaction { .. } => IN_TRANSACTION.to_owned(),
            Self::Busy { .. } => {
                format!("it was being changed in each of {ATTEMPTS_MAX} attempts to read it")
            }
            Self::Broken { reason, .. } => (*reason).to_owned(),
            Self::Query { source, .. } => source.to_string(),
        }
    }
}

/// One committed state of a database, in memory.
#[derive(Debug)]
pub(crate) struct Database {
    connection: Connection,
    path: PathBuf,
}

impl Database {
    /// Reads the last committed state of the database at `path`.
    ///
    /// # Errors
    ///
    /// [`SqliteError`] if it does not exist, is broken or too large, or changes faster than it
    /// can be read.
    pub(crate) fn read(path: &Path) -> Result<Self, SqliteError> {
        let file = real_file(path);
        for _ in 0..ATTEMPTS_MAX {
            if let Some(image) = read_image(&file)? {
                return Self::of_image(path, &image);
            }
        }
        let is_in_transaction = is_in_transaction(&beside(&file, "-journal"))?;
        let path = path.to_owned();
        Err(match is_in_transaction {
            true => SqliteError::InTransaction { path },
            false => SqliteError::Busy { path },
        })
    }

    fn of_image(path: &Path, image: &[u8]) -> Result<Self, SqliteError> {
        let failed = |source| SqliteError::Query {
            path: path.to_owned(),
            source,
        };
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut connection = Connection::open_in_memory_with_flags(flags).map_err(failed)?;
        if !image.is_empty() {
            connection
                .deserialize_read_exact(MAIN_DB, image, image.len(), true)
                .map_err(failed)?;
        }
        let mut questions = 0_u32;
        let is_enough = move || {
            questions = questions.saturating_add(1);
            questions > QUESTIONS_MAX
        };
        connection
            .progress_handler(INSTRUCTIONS_BETWEEN_QUESTIONS, Some(is_enough))
            .map_err(failed)?;
        Ok(Self {
            connection,
            path: path.to_owned(),
        })
    }

    /// The names of a table's columns; none if there is no such table.
    ///
    /// # Errors
    ///
    /// [`SqliteError::Query`]
    pub(crate) fn columns(&self, table: &str) -> Result<Vec<String>, SqliteError> {
        let sql = "SELECT name FROM pragma_table_info(?1)";
        self.rows(sql, [table], COLUMNS_MAX, |row| text(row, 0))
            .map(|names| names.into_iter().flatten().collect())
    }

    /// Runs a query and reads at most `rows_max` rows.
    ///
    /// # Errors
    ///
    /// [`SqliteError::Query`]
    pub(crate) fn rows<T>(
        &self,
        sql: &str,
        parameters: impl Params,
        rows_max: usize,
        mut read: impl FnMut(&Row<'_>) -> T,
    ) -> Result<Vec<T>, SqliteError> {
        let failed = |source| SqliteError::Query {
            path: self.path.clone(),
            source,
        };
        let mut statement = self.connection.prepare(sql).map_err(failed)?;
        let mut rows = statement.query(parameters).map_err(failed)?;
        let mut answer = Vec::new();
        while answer.len() < rows_max {
            match rows.next().map_err(failed)? {
                Some(row) => answer.push(read(row)),
                None => break,
            }
        }
        Ok(answer)
    }
}

impl Database {
    /// The rows of a query as records: each column is a field of that name, and a text that is a
    /// JSON object becomes that object. NULL fields are left out.
    ///
    /// # Errors
    ///
    /// [`SqliteError::Query`]; [`SqliteError::Broken`] if there are more than `rows_max`.
    pub(crate) fn records(
        &self,
        sql: &str,
        parameters: impl Params,
        rows_max: usize,
    ) -> Result<Vec<Value>, SqliteError> {
        let records = self.rows(sql, parameters, rows_max.saturating_add(1), record)?;
        if records.len() > rows_max {
            return Err(SqliteError::Broken {
                path: self.path.clone(),
                reason: "a session has more rows than can be counted",
            });
        }
        Ok(records)
    }
}

fn record(row: &Row<'_>) -> Value {
    let mut fields = serde_json::Map::new();
    let names = row.as_ref().column_names().enumerate();
    for (at, name) in names {
        let value = match row.get_ref(at) {
            Ok(ValueRef::Integer(number)) => Value::from(number),
            Ok(ValueRef::Real(number)) => Value::from(number),
            Ok(ValueRef::Text(bytes)) => object_or_text(bytes),
            _ => continue,
        };
        fields.insert(name.to_owned(), value);
    }
    Value::Object(fields)
}

fn object_or_text(bytes: &[u8]) -> Value {
    let object = bytes.starts_with(b"{").then(|| parse_json(bytes).ok());
    let text = || Value::from(String::from_utf8_lossy(bytes));
    object.flatten().unwrap_or_else(text)
}

/// How many columns of a table are reported.
const COLUMNS_MAX: usize = 1_000;

/// The text in a column; `None` for NULL and every other type. Invalid UTF-8 is replaced.
pub(crate) fn text(row: &Row<'_>, column: usize) -> Option<String> {
    match row.get_ref(column) {
        Ok(ValueRef::Text(bytes)) => Some(String::from_utf8_lossy(bytes).into_owned()),
        _ => None,
    }
}

/// The whole number in a column; `None` for NULL and every other type.
pub(crate) fn integer(row: &Row<'_>, column: usize) -> Option<i64> {
    match row.get_ref(column) {
        Ok(ValueRef::Integer(number)) => Some(number),
        _ => None,
    }
}

/// The committed pages of a database; `None` if it changed meanwhile.
fn read_image(path: &Path) -> Result<Option<Vec<u8>>, SqliteError> {
    let wal_path = beside(path, "-wal");
    let before = Mark::of(path, &wal_path)?;
    if is_in_transaction(&beside(path, "-journal"))? {
        return Ok(None);
    }
    let mut image = read_regular(path, DATABASE_BYTES_MAX, Links::Follow)?.bytes;
    let wal = match read_regular(&wal_path, WAL_BYTES_MAX, Links::Refuse) {
        Ok(wal) => wal.bytes,
        Err(ReadFileError::NotFound { .. }) => Vec::new(),
        Err(error) => return Err(error.into()),
    };
    if Mark::of(path, &wal_path)? != before || is_in_transaction(&beside(path, "-journal"))? {
        return Ok(None);
    }
    let broken = |reason| SqliteError::Broken {
        path: path.to_owned(),
        reason,
    };
    if let Some(overlay) = Overlay::of(&wal) {
        overlay
            .lay_over(&wal, &mut image, DATABASE_BYTES_MAX)
            .map_err(broken)?;
    }
    if image.is_empty() {
        return Ok(Some(image));
    }
    if !image.starts_with(MAGIC) || image.len() < HEADER_BYTES {
        return Err(broken("it is no SQLite database"));
    }
    // 2 means that there is a WAL, which is part of the pages now.
    if let Some(versions) = image.get_mut(FORMAT_VERSIONS) {
        versions.fill(1);
    }
    Ok(Some(image))
}

/// Shows whether a database was changed in place, or its WAL restarted. A growing WAL does
/// not matter: an added frame was not read yet, or is committed and whole.
#[derive(Debug, PartialEq, Eq)]
struct Mark {
    /// Device, inode, length and modification time of the database.
    database: (u64, u64, u64, Option<i64>),
    /// Its header, with the change counter.
    header: Vec<u8>,
    /// Device and inode of the WAL, and its header, with its salts.
    wal: Option<(u64, u64, Vec<u8>)>,
}

impl Mark {
    fn of(path: &Path, wal_path: &Path) -> Result<Self, SqliteError> {
        let database = OpenFile::open(path, Links::Follow)?;
        let facts = database.facts()?;
        let wal = match OpenFile::open(wal_path, Links::Refuse) {
            Ok(wal) => {
                let facts = wal.facts()?;
                Some((
                    facts.device,
                    facts.inode,
                    start_of(&wal, wal::HEADER_BYTES)?,
                ))
            }
            Err(ReadFileError::NotFound { .. }) => None,
            Err(error) => return Err(error.into()),
        };
        // With a WAL in use the database file may lag behind: then its own time and length do not
        // count.
        let is_in_wal = wal.as_ref().is_some_and(|(.., header)| !header.is_empty());
        Ok(Self {
            database: if is_in_wal {
                (facts.device, facts.inode, 0, None)
            } else {
                (facts.device, facts.inode, facts.len, facts.modified_ms)
            },
            header: if is_in_wal {
                Vec::new()
            } else {
                start_of(&database, HEADER_BYTES)?
            },
            wal,
        })
    }
}

/// Whether a rollback journal shows an open transaction: then the pages are in the middle
/// of a change.
fn is_in_transaction(journal: &Path) -> Result<bool, SqliteError> {
    match OpenFile::open(journal, Links::Refuse) {
        Ok(journal) => Ok(start_of(&journal, JOURNAL_MAGIC.len())? == JOURNAL_MAGIC),
        Err(ReadFileError::NotFound { .. }) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// The first bytes of a file, fewer if it is shorter.
fn start_of(file: &OpenFile, bytes: usize) -> Result<Vec<u8>, ReadFileError> {
    let mut start = vec![0; bytes];
    let count = file.read_at(&mut start, 0)?;
    start.truncate(count);
    Ok(start)
}

/// The database that a link leads to: SQLite keeps its files beside that.
#[expect(clippy::disallowed_methods, reason = "the database is opened next")]
pub(crate) fn real_file(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// The path of a file that SQLite keeps beside the database.
fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    PathBuf::from(name)
}
