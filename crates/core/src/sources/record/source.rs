//! Session records as a source of claims.

use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};

use whosup_sidecar::file::{FileFacts, Links, ReadFileError, read_regular};
use whosup_sidecar::{AgentId, SessionId};

use super::history::{Histories, HistoryEvent, HistoryLine};
use super::{
    EndCause, KnownOwner, RECORD_BYTES_MAX, RecordedOwner, SessionRecord, Shown, fold, parse_record,
};
use crate::adapter::claim::{
    Claim, ClaimedScope, Evidence, EvidenceKind, Exclusivity, Leaving, Serving, SessionKey,
    Subject, TakenUp, Trust,
};
use crate::adapter::phase::{BACKGROUND, FactSource, Phase, PhaseFact};
use crate::adapter::{AgentScan, Clue, Depth, Home, LiveTime, Sketch};
use crate::machine::problem::{Found, Problem};
use crate::machine::{Environment, Machine};
use crate::sessions::session::ORPHAN_SHOWN_MS;
use crate::sources::agents::kit::folder::list_outside_homes;
use crate::sources::trust::trust_of;

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

/// Reads every session record as a source of claims; those of ended sessions only on request.
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
    let mut stored = read_open(&root, &is_wanted).take(&mut found.problems);
    if !matches!(depth, Depth::Live) {
        let ended = read_ended(&root, &is_wanted, &stored);
        stored.extend(ended.take(&mut found.problems));
    }
    let mut histories = Histories::of(machine);
    for stored in stored {
        let record = &stored.record;
        let is_open = record.phase != Phase::Ended;
        let matters = || {
            has_died_lately(record, machine)
                || depth.reaches(&record.session)
                || was_left_by_running(record, machine)
        };
        if is_open || matters() {
            add(&mut found.found, &stored, &home, (machine, &mut histories));
        }
    }
    for (path, history) in histories.known() {
        let Some(current) = history.current() else {
            continue;
        };
        let left = history.lines.iter().filter(|line| is_wanted(&line.agent));
        for line in left.filter(|line| has_left(line, current)) {
            found.found.claim(Claim {
                taken_up: TakenUp::Left(Leaving {
                    at_ms: current.at_ms,
                    ended_at_ms: history.ended_at_ms(),
                }),
                ..claim_of_history(line, &path, machine)
            });
        }
    }
    found
}

/// A process found gone in the last day: shown like a fresh exit, whether or not a sweep
/// ran meanwhile.
fn has_died_lately(record: &SessionRecord, machine: &Machine) -> bool {
    let has_died = record.heard.end_cause.is_some_and(EndCause::is_death);
    let ago_ms = machine.now_ms().saturating_sub(record.last_event_at_ms);
    has_died && ago_ms <= ORPHAN_SHOWN_MS
}

/// A running process had it, whose arguments may still name it.
fn was_left_by_running(record: &SessionRecord, machine: &Machine) -> bool {
    let mut owners = record.owners.iter();
    owners.any(|owner| is_running(owner, machine))
}

/// The process of an owner runs, and is seen from here.
fn is_running(owner: &KnownOwner, machine: &Machine) -> bool {
    let Some(owner) = &owner.identity else {
        return false;
    };
    let process = machine.table().seen(owner.pid);
    let stamp = owner.stamp.as_ref();
    process.zip(stamp).is_some_and(|(process, stamp)| {
        !process.is_exited && stamp.is_same_as(&process.stamp) == Some(true)
    })
}

/// Whether the process moved from this line's session to `current`.
fn has_left(line: &HistoryLine, current: &HistoryLine) -> bool {
    let name = |line: &HistoryLine| (line.agent.clone(), line.session.clone());
    line.what == HistoryEvent::TakenUp && name(line) != name(current)
}

/// The directory is ours: its owner may write what is in it.
fn home_of_records(root: &Path) -> Home {
    Home {
        owner_uid: whosup_sidecar::file::owner_of(root),
        is_default: true,
        root: root.into(),
    }
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
fn read_ended(
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

fn read_open(root: &Path, is_wanted: impl Fn(&AgentId) -> bool) -> Found<Vec<StoredRecord>> {
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

impl StoredRecord {
    /// The claims that the owners who have not released the session serve it, each with its owner.
    /// Whether a *shared* owner still serves it is shown by the agent's own lock, so a scan does not
    /// make that claim.
    #[must_use]
    pub fn claims_of_owners(&self, machine: &Machine) -> Vec<(&RecordedOwner, Claim)> {
        let known = self.record.owners.open();
        known
            .filter_map(|known| Some((known.identity.as_ref()?, self.claim_of(known, machine)?)))
            .collect()
    }

    /// The claim that this owner serves the session; `None` if it was not found.
    fn claim_of(&self, known: &KnownOwner, machine: &Machine) -> Option<Claim> {
        let owner = known.identity.as_ref()?;
        let root = records_root(machine)?;
        let trust = trust_of(&self.facts, &home_of_records(&root), machine);
        let subject = match owner.is_unrecognized {
            true => Subject::Unrecognized {
                pid: owner.pid,
                is_settled: known.is_settled(),
            },
            false => Subject::Process(owner.pid),
        };
        Some(Claim {
            subject,
            dated_at_ms: Some(known.last_event_at_ms),
            taken_up: TakenUp::At(known.taken_up_at_ms()),
            serving: if owner.is_shared {
                Serving::Many
            } else {
                Serving::One
            },
            ..about(owner, self.claim(trust, says_of(owner), machine))
        })
    }

    /// The claims of an open session: one for each owner that has not released it.
    fn claims_of_open(&self, machine: &Machine, histories: &mut Histories<'_>) -> Vec<Claim> {
        let record = &self.record;
        let mut claims = Vec::new();
        for known in record.owners.open() {
            let Some(owner) = known.identity.as_ref().filter(|owner| !owner.is_shared) else {
                continue;
            };
            let heard_at_ms = known.claimed_at_ms.or(known.worked_at_ms);
            let history = histories.of_process(owner);
            let left_at_ms = history.and_then(|history| {
                history.left_at_ms(&record.agent, &record.session, heard_at_ms)
            });
            let Some(mut claim) = self.claim_of(known, machine) else {
                continue;
            };
            if let Some(at_ms) = left_at_ms {
                let ended_at_ms = None;
                claim.taken_up = TakenUp::Left(Leaving { at_ms, ended_at_ms });
            }
            claims.push(claim);
        }
        if record.owners.may_be_another() || record.owners.have_let_go() {
            let says = "its hooks had no process of the agent above them".to_owned();
            let trust = Trust::Trusted;
            claims.push(Claim {
                subject: Subject::NotFound,
                ..self.claim(trust, says, machine)
            });
        }
        claims
    }

    /// What every claim of a record has, without an owner.
    fn claim(&self, trust: Trust, says: String, machine: &Machine) -> Claim {
        Claim {
            dated_at_ms: Some(self.record.last_event_at_ms),
            modified_at_ms: self.facts.modified_ms,
            work_dir: self.record.work_dir.clone(),
            // Some agents report a new process only at its first prompt.
            exclusivity: Exclusivity::Shared,
            trust,
            placement: machine.mounts().placement_of(&self.path),
            ..Claim::new(
                key_of(&self.record),
                Subject::Released,
                Evidence::new(EvidenceKind::Record, Some(self.path.clone()), says),
            )
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

fn says_of(owner: &RecordedOwner) -> String {
    let start = owner.stamp.as_ref().map(ToString::to_string);
    let start = start.as_deref().unwrap_or("unknown");
    let as_what = if owner.is_unrecognized {
        ", not recognized as the agent"
    } else {
        ""
    };
    format!("pid {}, start {start}{as_what}", owner.pid)
}

/// The claim, about this process.
fn about(owner: &RecordedOwner, claim: Claim) -> Claim {
    Claim {
        scope: ClaimedScope {
            host: owner.host.clone(),
            boot: owner.boot.clone(),
            pid_namespace: owner.pid_namespace,
        },
        stamp: owner.stamp.clone(),
        executable: owner.executable.clone(),
        ..claim
    }
}

/// The claim that a process had this line's session and has left it. It shows that what
/// another source still says of that session and that process is old.
#[must_use]
pub fn claim_of_history(line: &HistoryLine, path: &Path, machine: &Machine) -> Claim {
    let owner = &line.owner;
    let claim = Claim {
        dated_at_ms: Some(line.at_ms),
        // An untrusted history is not read.
        trust: Trust::Trusted,
        placement: machine.mounts().placement_of(path),
        ..Claim::new(
            SessionKey {
                agent: line.agent.clone(),
                session: line.session.clone(),
                home: line.home.as_path().into(),
            },
            Subject::Process(owner.pid),
            Evidence::new(
                EvidenceKind::Record,
                Some(path.to_owned()),
                format!("{}, and has left it", says_of(owner)),
            ),
        )
    };
    about(owner, claim)
}

fn add(
    found: &mut AgentScan,
    stored: &StoredRecord,
    home: &Home,
    (machine, histories): (&Machine, &mut Histories<'_>),
) {
    let record = &stored.record;
    if record.phase == Phase::Ended {
        let how = record
            .heard
            .end_cause
            .map(|cause| format!(" ({})", cause.name()));
        let says = format!("the session has ended{}", how.unwrap_or_default());
        let trust = trust_of(&stored.facts, home, machine);
        let subject = match record.heard.end_cause {
            Some(cause) if cause.is_death() => Subject::Gone,
            _ => Subject::Released,
        };
        found.claim(Claim {
            subject,
            ..stored.claim(trust, says, machine)
        });
    } else {
        found.claim_all(stored.claims_of_open(machine, histories));
    }
    let mut sketch = Sketch::new(key_of(record));
    sketch.parent.clone_from(&record.parent);
    sketch.work_dir.clone_from(&record.work_dir);
    // Hooks may run before there is a transcript. Where the check could block for ever, the
    // reader of the transcript reports that instead.
    let is_there = |path: &&PathBuf| {
        let checked = machine.mounts().touchable(path);
        checked.map_or(true, |path| path.exists())
    };
    sketch.transcript = record.transcript.as_ref().filter(is_there).cloned();
    sketch.started_at_ms = record.started_at_ms;
    sketch.ended_at_ms = record.ended_at_ms;
    let cause = record.heard.end_cause;
    sketch.end_cause = cause.map(|cause| cause.name().into_owned());
    sketch.cpu_at_least_ms = record.heard.cpu.at_least_ms;
    sketch.live = live_time(record);
    sketch.is_orphan_when_stale = !record.owners.was_released_last();
    sketch.has_died = cause.is_some_and(EndCause::is_death);
    sketch.phase_at_end = record.heard.phase_at_end;
    sketch.heard_at_ms = Some(record.last_event_at_ms);
    sketch.facts.extend(fact_of(record, machine));
    sketch.clues.extend(clues_of_hosts(record, machine));
    found.sketch(sketch);
}

/// How long processes had the session, as far as hooks reported.
fn live_time(record: &SessionRecord) -> Option<LiveTime> {
    let known = record.owners.iter();
    let known = known.filter(|owner| owner.identity.is_some() && owner.is_settled());
    let spans = known.map(|owner| {
        let until_ms = owner.let_go_at_ms.unwrap_or(owner.last_event_at_ms);
        (owner.first_event_at_ms, until_ms)
    });
    let open = record.owners.open().map(|owner| owner.last_event_at_ms);
    let heard_at_ms = open.max().filter(|_| record.ended_at_ms.is_none());
    LiveTime::of(spans.collect(), heard_at_ms)
}

/// Shared processes that run, took up the session by their hooks and reported no end of it.
/// Each may have left it without a report.
fn clues_of_hosts(record: &SessionRecord, machine: &Machine) -> Vec<Clue> {
    let hosts = record.owners.open().filter(|owner| {
        let identity = owner.identity.as_ref();
        identity.is_some_and(|identity| identity.is_shared) && is_running(owner, machine)
    });
    let identities = hosts.filter_map(|host| host.identity.as_ref());
    let says = "its hooks reported the session, and no end of it";
    identities.map(|host| Clue::gap(host.pid, says)).collect()
}

/// What hooks report of the phase: of the owner with the latest event, but not of an owner
/// that is gone while another one runs.
fn shown(record: &SessionRecord, machine: &Machine) -> Option<(Option<RecordedOwner>, Shown)> {
    let mut running = record
        .owners
        .open()
        .filter(|owner| is_running(owner, machine));
    let latest = record.owners.open().next_back();
    match running.next_back() {
        Some(owner) if latest.is_some_and(|latest| !is_running(latest, machine)) => {
            Some((owner.identity.clone(), owner.shown?))
        }
        _ => Some((record.owner.clone(), Shown::in_record(record))),
    }
}

/// The phase that hooks reported; `None` if none reported a phase, as for a program that only
/// `whosup run` knows.
fn fact_of(record: &SessionRecord, machine: &Machine) -> Option<PhaseFact> {
    let (owner, shown) = shown(record, machine)?;
    // Records of earlier releases date only the change, or nothing.
    let last_ms = (shown.phase != Phase::Starting).then_some(record.last_event_at_ms);
    let at_ms = shown.at_ms.or(shown.since_ms).or(last_ms)?;
    let word = match shown.is_in_background {
        true => BACKGROUND,
        false => shown.phase.name(),
    };
    let fact = PhaseFact::new(FactSource::Hook, Some(shown.phase));
    Some(PhaseFact {
        since_ms: shown.since_ms,
        process: owner.and_then(|owner| Some((owner.pid, owner.stamp?))),
        ..fact
            .waiting_for(shown.waiting_for)
            .in_word(word)
            .dated(Some(at_ms))
    })
}
