//! Session records as a source of claims.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use whosup_sidecar::file::{FileFacts, Links, ReadFileError, read_regular};
use whosup_sidecar::{AgentId, SessionId};

use super::{RECORD_BYTES_MAX, SessionRecord, fold, parse_record};
use crate::agents::{AgentScan, Depth, Home, Published, Sketch, names_in};
use crate::claim::{
    Claim, ClaimedScope, Evidence, EvidenceKind, Exclusivity, Serving, SessionKey, Subject,
    TakenUp, Trust,
};
use crate::machine::{Environment, Machine};
use crate::phase::Phase;
use crate::problem::{Found, Problem};
use crate::trust::trust_of;

/// How many agents' records are read.
const AGENTS_MAX: usize = 256;
/// How many records of one agent are read.
const RECORDS_MAX: usize = 100_000;
/// How many files one session has: record, log and lock.
const FILES_PER_SESSION: usize = 3;

/// How long an event log may be, in bytes, that is read. Logs are shortened long
/// before.
pub const LOG_BYTES_MAX: u64 = 16 << 20;

/// Where session records are.
#[must_use]
pub fn records_root(machine: &Machine) -> Option<PathBuf> {
    records_root_of(machine.environment())
}

/// Where session records are in an environment.
#[must_use]
pub fn records_root_of(environment: &Environment) -> Option<PathBuf> {
    let state = environment.xdg_directory("XDG_STATE_HOME", ".local/state")?;
    Some(state.join("whosup/sessions"))
}

/// Reads every session record as a source of claims. Those of ended
/// sessions are left out unless they are looked for.
#[must_use]
pub fn scan_records(
    machine: &Machine,
    depth: &Depth,
    is_wanted: impl Fn(&AgentId) -> bool,
) -> Found<AgentScan> {
    let mut found: Found<AgentScan> = Found::default();
    let Some(root) = records_root(machine) else {
        return found;
    };
    let home = home_of_records(&root);
    let stored = read_records(&root, is_wanted).take(&mut found.problems);
    for stored in stored {
        let record = &stored.record;
        if record.phase != Phase::Ended || depth.reaches(&record.session) {
            add(&mut found.found, &stored, &home, machine);
        }
    }
    found
}

/// The directory is ours; whoever owns it may write what is in it.
fn home_of_records(root: &Path) -> Home {
    Home {
        owner_uid: whosup_sidecar::file::owner_of(root),
        is_default: true,
        root: root.into(),
    }
}

/// Reads every session record below `root`.
#[must_use]
pub fn read_records(root: &Path, is_wanted: impl Fn(&AgentId) -> bool) -> Found<Vec<StoredRecord>> {
    let mut found: Found<Vec<StoredRecord>> = Found::default();
    for name in list(root, AGENTS_MAX, &mut found.problems) {
        let Ok(agent) = AgentId::parse(&name) else {
            let message = "the name of this directory is no agent's";
            found.problems.push(problem(&root.join(&name), message));
            continue;
        };
        if !is_wanted(&agent) {
            continue;
        }
        let directory = root.join(&name);
        let names_max = FILES_PER_SESSION * RECORDS_MAX;
        let names = list(&directory, names_max, &mut found.problems);
        for stem in records_in(&names) {
            match read_current(&directory, &agent, stem) {
                Ok(stored) => found.found.extend(stored),
                Err((path, message)) => found.problems.push(problem(&path, message)),
            }
        }
    }
    found
}

fn list(directory: &Path, entries_max: usize, problems: &mut Vec<Problem>) -> Vec<String> {
    match names_in(directory, entries_max) {
        Ok(names) => {
            if names.is_cut {
                let message = format!("more than {entries_max} entries: the rest is left out");
                problems.push(problem(directory, message));
            }
            names.texts().map(str::to_owned).collect()
        }
        Err(error) => {
            problems.push(problem(directory, format!("cannot list it: {error}")));
            Vec::new()
        }
    }
}

fn problem(path: &Path, message: impl ToString) -> Problem {
    Problem {
        agent: None,
        path: Some(path.to_owned()),
        message: message.to_string(),
    }
}

/// The sessions that these files are of, each once: those with a record or a log.
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
    /// The record, as it is by its log.
    pub record: SessionRecord,
    /// The record's file, or the log if that knows more.
    pub path: PathBuf,
    /// What the file system tells of it.
    pub facts: FileFacts,
}

/// Reads a record as it is by its log: a record that lags behind its log, or is
/// missing or broken, gives way to the log's fold. `None` where nothing was heard of
/// the session: a hook was killed that had just made the log, or a sweep has removed
/// both since they were listed.
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

impl StoredRecord {
    /// The claim that the record's owner serves the session; `None` if it has
    /// none. Whether a *shared* owner still serves it is for the agent's own lock
    /// to say, so a scan does not make that claim.
    #[must_use]
    pub fn claim_of_owner(&self, machine: &Machine) -> Option<Claim> {
        let owner = self.record.owner.as_ref()?;
        let start = owner.stamp.as_ref().map(ToString::to_string);
        let start = start.as_deref().unwrap_or("not told");
        let says = format!("pid {}, start {start}", owner.pid);
        let root = records_root(machine)?;
        let trust = trust_of(&self.facts, &home_of_records(&root), machine);
        Some(Claim {
            subject: Subject::Process(owner.pid),
            scope: ClaimedScope {
                host: owner.host.clone(),
                boot: owner.boot.clone(),
                pid_namespace: owner.pid_namespace,
            },
            stamp: owner.stamp.clone(),
            executable: owner.executable.clone(),
            serving: if owner.is_shared {
                Serving::Many
            } else {
                Serving::One
            },
            ..self.claim(trust, says, machine)
        })
    }

    /// What every claim of a record has; nobody is claimed.
    fn claim(&self, trust: Trust, says: String, machine: &Machine) -> Claim {
        Claim {
            key: key_of(&self.record),
            subject: Subject::Released,
            scope: ClaimedScope::default(),
            stamp: None,
            dated_at_ms: Some(self.record.last_event_at_ms),
            modified_at_ms: self.facts.modified_ms,
            taken_up: TakenUp::AsDated,
            is_inferred: false,
            executable: None,
            work_dir: self.record.work_dir.clone(),
            // Some agents tell of a new process only at its first prompt.
            exclusivity: Exclusivity::Shared,
            serving: Serving::One,
            trust,
            placement: machine.mounts().placement_of(&self.path),
            evidence: Evidence {
                kind: EvidenceKind::Record,
                path: Some(self.path.clone()),
                says,
            },
        }
    }
}

fn key_of(record: &SessionRecord) -> SessionKey {
    SessionKey {
        agent: record.agent.clone(),
        session: record.session.clone(),
        home: record.home.as_path().into(),
    }
}

fn add(found: &mut AgentScan, stored: &StoredRecord, home: &Home, machine: &Machine) {
    let record = &stored.record;
    if record.phase == Phase::Ended {
        let how = record
            .heard
            .end_cause
            .map(|cause| format!(" ({})", cause.name()));
        let says = format!("the session has ended{}", how.unwrap_or_default());
        let trust = trust_of(&stored.facts, home, machine);
        found.claim(stored.claim(trust, says, machine));
    } else if record.owner.as_ref().is_some_and(|owner| !owner.is_shared) {
        found.claim_all(stored.claim_of_owner(machine));
    }
    let mut sketch = Sketch::new(key_of(record));
    sketch.parent.clone_from(&record.parent);
    sketch.work_dir.clone_from(&record.work_dir);
    // Hooks may run before there is a transcript.
    let is_there = |path: &&PathBuf| path.exists();
    sketch.transcript = record.transcript.as_ref().filter(is_there).cloned();
    sketch.started_at_ms = record.started_at_ms;
    sketch.ended_at_ms = record.ended_at_ms;
    let cause = record.heard.end_cause;
    sketch.end_cause = cause.map(|cause| cause.name().into_owned());
    sketch.cpu_at_least_ms = record.heard.cpu.at_least_ms;
    sketch.is_orphan_when_stale = true;
    sketch.published = Some(Published {
        phase: Some(record.phase),
        waiting_for: record.waiting_for,
        word: record.phase.name().to_owned(),
        at_ms: Some(record.last_event_at_ms),
    });
    found.sketch(sketch);
}
