//! The files of a fixture's home, and proof that a look left them alone.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::Deserialize;
use serde_json::Value;

use super::{HOME_MARK, expand, time_ms};

/// Something that git can't keep.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Make {
    path: String,
    kind: Kind,
    /// Octal, as text: `"0666"`.
    mode: Option<String>,
}

/// What to make.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    /// A directory, empty unless the home has files for it.
    Directory,
    /// A FIFO.
    Fifo,
    /// A symbolic link.
    Symlink(String),
    /// A hard link to another file.
    HardLink(String),
    /// A file of this many bytes, all of them a hole.
    Sparse(u64),
    /// A file of these bytes.
    Bytes(Vec<u8>),
    /// A file of this text.
    Text(String),
    /// A file of this text, many times.
    Repeated { text: String, times: usize },
    /// Something that is there already: only its mode is set.
    Existing,
}

impl Make {
    /// Makes it.
    pub fn make(&self, home: &Path) {
        let path = PathBuf::from(expand(&self.path, home));
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).unwrap();
        }
        match &self.kind {
            Kind::Directory => fs::create_dir_all(&path).unwrap(),
            Kind::Fifo => make_fifo(&path),
            Kind::Symlink(target) => symlink(expand(target, home), &path).unwrap(),
            Kind::HardLink(target) => fs::hard_link(expand(target, home), &path).unwrap(),
            Kind::Sparse(len) => File::create(&path).unwrap().set_len(*len).unwrap(),
            Kind::Bytes(bytes) => fs::write(&path, bytes).unwrap(),
            Kind::Text(text) => fs::write(&path, expand(text, home)).unwrap(),
            Kind::Repeated { text, times } => {
                fs::write(&path, expand(text, home).repeat(*times)).unwrap();
            }
            Kind::Existing => assert!(path.exists(), "{} is not there", path.display()),
        }
        if let Some(mode) = &self.mode {
            let mode = u32::from_str_radix(mode, 8).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        }
    }
}

fn make_fifo(path: &Path) {
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
}

/// The ends of the names of files that databases are made from.
const DATABASE_SOURCES: [&str; 2] = [".db.sql", ".sqlite.sql"];

/// Copies a home tree, with the temporary home in place of the mark in every
/// file. Files get mode 0600 and directories 0700, whatever the checkout has.
/// Of `NAME.db.sql` the database `NAME.db` is made, and the like of `NAME.sqlite.sql`.
pub fn copy_tree(from: &Path, to: &Path, home: &Path) {
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        let file_type = entry.file_type().unwrap();
        if file_type.is_dir() {
            fs::create_dir_all(&target).unwrap();
            copy_tree(&entry.path(), &target, home);
            fs::set_permissions(&target, fs::Permissions::from_mode(0o700)).unwrap();
        } else if file_type.is_symlink() {
            symlink(fs::read_link(entry.path()).unwrap(), &target).unwrap();
        } else if DATABASE_SOURCES
            .iter()
            .any(|end| target.to_str().unwrap().ends_with(end))
        {
            let sql = String::from_utf8(fs::read(entry.path()).unwrap()).unwrap();
            make_database(&target.with_extension(""), &expand(&sql, home));
        } else {
            fs::write(&target, expand_bytes(fs::read(entry.path()).unwrap(), home)).unwrap();
            fs::set_permissions(&target, fs::Permissions::from_mode(0o600)).unwrap();
        }
    }
}

/// Makes a database as a program leaves it that is still using it: in WAL mode,
/// with all that was written in the WAL.
fn make_database(path: &Path, sql: &str) {
    use rusqlite::config::DbConfig;

    let connection = rusqlite::Connection::open(path).unwrap();
    connection
        .pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(()))
        .unwrap();
    // To wait for the disk at each row takes most of the time.
    connection
        .pragma_update(None, "synchronous", "off")
        .unwrap();
    connection
        .set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)
        .unwrap();
    connection.execute_batch(sql).unwrap();
    connection.close().unwrap();
    let beside = |suffix: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        PathBuf::from(name)
    };
    assert!(beside("-wal").exists(), "{} has no WAL", path.display());
    for file in [path.to_owned(), beside("-wal"), beside("-shm")] {
        if file.exists() {
            fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        }
    }
}

fn expand_bytes(bytes: Vec<u8>, home: &Path) -> Vec<u8> {
    // Byte for byte it takes long in a build that is not optimized.
    if let Ok(text) = std::str::from_utf8(&bytes) {
        return expand(text, home).into_bytes();
    }
    let mark = HOME_MARK.as_bytes();
    let mut expanded = Vec::with_capacity(bytes.len());
    let mut rest = bytes.as_slice();
    while let Some(at) = rest.windows(mark.len()).position(|window| window == mark) {
        expanded.extend_from_slice(&rest[..at]);
        expanded.extend_from_slice(home.to_str().unwrap().as_bytes());
        rest = &rest[at + mark.len()..];
    }
    expanded.extend_from_slice(rest);
    expanded
}

/// Gives every transcript below a directory the date of its last record, as one has that
/// an agent wrote. One without a date, or of the time after `now_ms`, keeps its own.
pub fn date_transcripts(directory: &Path, now_ms: i64) {
    for entry in fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        let (path, file_type) = (entry.path(), entry.file_type().unwrap());
        if file_type.is_dir() {
            date_transcripts(&path, now_ms);
        } else if file_type.is_file()
            && path.extension().is_some_and(|end| end == "jsonl")
            && entry.metadata().unwrap().len() <= Tree::BYTES_MAX
            && let Some(at_ms) = last_date_ms(&fs::read(&path).unwrap())
            && at_ms <= now_ms
        {
            set_modified(&path, at_ms);
        }
    }
}

/// The latest date in any record of a transcript, whatever the agent calls it.
fn last_date_ms(transcript: &[u8]) -> Option<i64> {
    let lines = transcript.split(|byte| *byte == b'\n');
    let records = lines.filter_map(|line| serde_json::from_slice::<Value>(line).ok());
    records.filter_map(|record| last_date_in(&record)).max()
}

fn last_date_in(value: &Value) -> Option<i64> {
    const NAMES: &[&str] = &["created_at", "time", "timestamp"];
    let fields = value.as_object().into_iter().flatten();
    let own = fields.filter_map(|(name, value)| {
        if let Some(text) = value.as_str() {
            let at: jiff::Timestamp = text.parse().ok()?;
            return Some(at.as_millisecond());
        }
        let number = value.as_f64().filter(|_| NAMES.contains(&name.as_str()))?;
        let in_ms = if number < 1e11 { number * 1e3 } else { number };
        Some(in_ms as i64)
    });
    let within = value
        .as_object()
        .into_iter()
        .flat_map(|fields| fields.values());
    let within = within.chain(value.as_array().into_iter().flatten());
    own.chain(within.filter_map(last_date_in)).max()
}

fn set_modified(path: &Path, at_ms: i64) {
    let at = UNIX_EPOCH + Duration::from_millis(u64::try_from(at_ms).unwrap());
    let file = File::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    file.set_modified(at).unwrap();
}

/// Sets when files were last modified.
pub fn set_times(times: &BTreeMap<String, String>, home: &Path) {
    for (path, time) in times {
        set_modified(Path::new(&expand(path, home)), time_ms(time));
    }
}

/// Every file below a directory as it is at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tree(BTreeMap<PathBuf, Leaf>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Leaf {
    inode: u64,
    mode: u32,
    len: u64,
    modified: SystemTime,
    bytes: Option<Vec<u8>>,
}

impl Tree {
    /// How large a file may be to be compared byte by byte.
    const BYTES_MAX: u64 = 1 << 20;

    /// Reads the tree below `root`; access times aside, all that a reader
    /// could have changed.
    pub fn read(root: &Path) -> Self {
        let mut tree = Self(BTreeMap::new());
        tree.add(root);
        tree
    }

    fn add(&mut self, path: &Path) {
        let metadata = fs::symlink_metadata(path).unwrap();
        let is_small_file = metadata.is_file() && metadata.len() <= Self::BYTES_MAX;
        let leaf = Leaf {
            inode: metadata.ino(),
            mode: metadata.mode(),
            len: metadata.len(),
            modified: metadata.modified().unwrap(),
            bytes: is_small_file.then(|| fs::read(path).ok()).flatten(),
        };
        self.0.insert(path.to_owned(), leaf);
        if metadata.is_dir() {
            for entry in fs::read_dir(path).unwrap() {
                self.add(&entry.unwrap().path());
            }
        }
    }

    /// The paths that differ between two looks at a tree.
    pub fn changed(&self, after: &Self) -> Vec<PathBuf> {
        let both = self.0.keys().chain(after.0.keys());
        let mut changed: Vec<_> = both
            .filter(|path| self.0.get(*path) != after.0.get(*path))
            .cloned()
            .collect();
        changed.sort();
        changed.dedup();
        changed
    }
}
