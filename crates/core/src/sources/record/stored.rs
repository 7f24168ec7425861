//! Where session records lie, and how they are read.

use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};

use whosup_sidecar::file::{FileFacts, Links, ReadFileError, read_regular};
use whosup_sidecar::{AgentId, SessionId};

use super::{RECORD_BYTES_MAX, SessionRecord, fold, parse_record};
use crate::machine::problem::{Found, Problem};
use crate::machine::{Environment, Machine};
use crate::sources::agents::kit::folder::list_outside_homes;

/// How many agents' records are read.
const AGENTS_MAX: usize = 256;
/// How many records of one agent are read.
const RECORDS_MAX: usize = 100_000;
/// The number of files per session: record, log and lock.
const FILES_PER_SESSION: usize = 3;

/// The maximum size of an event log, in bytes. Logs are shortened long before.
pub const LOG_BYTES_MAX: u64 = 16 << 20;

/// The directory of session records.
#[must_use]
pub fn records_root(machine: &Machine) -> Option<PathBuf> {
    records_root_of(machine.environment())
}

/// The directory of session records in an environment.
#[must_use]
pub fn records_root_of(environment: &Environment) -> Option<PathBuf> {
    let state = environment.xdg_directory("XDG_STATE_HOME", ".local/state")?;
    Some(state.join("whosup/sessions"))
}

/// The directory for records of ended sessions, so that a scan of live sessions need not list
/// them. The layout is that of `records_root`.
#[must_use]
pub fn ended_root_of(records_root: &Path) -> PathBuf {
    records_root.with_file_name("ended")
}

/// Reads every session record below `root`, and those that were put away.
#[must_use]
pub fn read_records(root: &Path, is_wanted: impl Fn(&AgentId) -> bool) -> Found<Vec<StoredRecord>> {
    let mut found = read_open(root, &is_wanted);
    let ended = read_ended(root, &is_wanted, &found.found);
    let ended = ended.take(&mut found.problems);
    found.found.extend(ended);
    found
}

/// Sessions whose records were put away, except those that came back since: the process
/// that brought them back may not have removed the old record yet.
pub(super) fn read_ended(
    root: &Path,
    is_wanted: impl Fn(&AgentId) -> bool,
    open: &[StoredRecord],
) -> Found<Vec<StoredRecord>> {
    let name = |stored: &StoredRecord| {
        let record = &stored.record;
        (record.agent.clone(), record.session.clone())
    };
    let open: HashSet<_> = open.iter().map(name).collect();
    let mut ended = read_open(&ended_root_of(root), is_wanted);
    ended.found.retain(|stored| !open.contains(&name(stored)));
    ended
}

pub(super) fn read_open(
    root: &Path,
    is_wanted: impl Fn(&AgentId) -> bool,
) -> Found<Vec<StoredRecord>> {
    let mut found: Found<Vec<StoredRecord>> = Found::default();
    for name in list_outside_homes(None, root, AGENTS_MAX, &mut found.problems) {
        let Ok(agent) = AgentId::parse(&name) else {
            let message = "the name of this directory is no agent's";
            found
                .problems
                .push(Problem::at(None, &root.join(&name), message));
            continue;
        };
        if !is_wanted(&agent) {
            continue;
        }
        let directory = root.join(&name);
        let names_max = FILES_PER_SESSION * RECORDS_MAX;
        let names = list_outside_homes(None, &directory, names_max, &mut found.problems);
        for stem in records_in(&names) {
            match read_current(&directory, &agent, stem) {
                Ok(stored) => found.found.extend(stored),
                Err((path, message)) => found.problems.push(Problem::at(None, &path, message)),
            }
        }
    }
    found
}

/// The sessions of these files, each once: those with a record or a log.
fn records_in(names: &[String]) -> BTreeSet<&str> {
    let stems = names.iter().filter_map(|name| {
        name.strip_suffix(".json")
            .or_else(|| name.strip_suffix(".jsonl"))
    });
    stems.collect()
}

/// A record, and the file that it was read from.
#[derive(Debug, Clone)]
pub struct StoredRecord {
    /// The record, up to date with the log.
    pub record: SessionRecord,
    /// The record's file, or the log if that is newer.
    pub path: PathBuf,
    /// What the file system reports of it.
    pub facts: FileFacts,
}

/// Reads a record, up to date with its log: if the record lags behind, is missing or broken, the
/// log is folded. `None` if the session has no events: a hook was killed just after it made the
/// log, or a sweep has removed both files since they were listed.
fn read_current(
    directory: &Path,
    agent: &AgentId,
    stem: &str,
) -> Result<Option<StoredRecord>, (PathBuf, String)> {
    let path = directory.join(format!("{stem}.json"));
    let log = directory.join(format!("{stem}.jsonl"));
    let written = read_record(&path, agent, stem);
    let log_bytes = whosup_sidecar::file::facts(&log, Links::Refuse).map(|facts| facts.len);
    let folded_bytes = written
        .as_ref()
        .ok()
        .and_then(|(record, _)| record.heard.log_bytes);
    match (&written, log_bytes) {
        (Err(_), Ok(0) | Err(ReadFileError::NotFound { .. })) if is_missing(&path) => {
            return Ok(None);
        }
        (Ok(_), Ok(len)) if folded_bytes == Some(len) => {}
        (Ok(_), Err(ReadFileError::NotFound { .. })) => {}
        (_, Err(ReadFileError::NotFound { .. })) => {}
        (_, Err(error)) => return Err((log, error.reason())),
        (_, Ok(_)) => {
            if let Some(read) = read_log(&log, agent, stem).map_err(|message| (log, message))? {
                return Ok(Some(read));
            }
        }
    }
    let stored = |(record, facts)| StoredRecord {
        record,
        path: path.clone(),
        facts,
    };
    let stored = written.map(stored);
    stored.map(Some).map_err(|message| (path, message))
}

fn is_missing(path: &Path) -> bool {
    let facts = whosup_sidecar::file::facts(path, Links::Refuse);
    matches!(facts, Err(ReadFileError::NotFound { .. }))
}

fn read_log(path: &Path, agent: &AgentId, stem: &str) -> Result<Option<StoredRecord>, String> {
    let session = SessionId::parse(stem).map_err(|error| error.to_string())?;
    let file = read_regular(path, LOG_BYTES_MAX, Links::Refuse).map_err(|error| error.reason())?;
    let record = fold(agent, &session, &file.bytes).record;
    Ok(record.map(|record| StoredRecord {
        record,
        path: path.to_owned(),
        facts: file.facts,
    }))
}

fn read_record(
    path: &Path,
    agent: &AgentId,
    stem: &str,
) -> Result<(SessionRecord, FileFacts), String> {
    let file =
        read_regular(path, RECORD_BYTES_MAX, Links::Refuse).map_err(|error| error.reason())?;
    let record = parse_record(&file.bytes).map_err(|error| error.to_string())?;
    if record.agent != *agent || record.session.as_str() != stem {
        return Err(format!(
            "it is about {} session `{}`, which its name does not say",
            record.agent, record.session
        ));
    }
    Ok((record, file.facts))
}
