//! One look at the machine, as `whosup list` takes it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, Value, json};
use whosup_core::adapter::claim::SessionKey;
use whosup_core::adapter::{Depth, Description};
use whosup_core::judging::verdict::{Liveness, Verdict};
use whosup_core::machine::Machine;
use whosup_core::machine::problem::Problem;
use whosup_core::process::Pid;
use whosup_core::reader::{Form, ListQuery, Reach, Reader};
use whosup_core::sessions::scan::Judged;
use whosup_core::sessions::session::{Session, Snapshot};
use whosup_core::sessions::watch::Watch;
use whosup_core::sources::config::Config;
use whosup_core::views::wire::{self, WireSession, WireSnapshot};

use crate::change::Why;
use crate::rows::{Gone, Row, Rows};

/// How many sessions that nothing leads to any more are looked for at once.
const LOST_MAX: usize = 64;

/// What a look has shown.
pub(crate) struct Seen {
    pub(crate) rows: Rows,
    /// Of sessions that were shown before and are not now: what is known of them.
    pub(crate) gone: BTreeMap<SessionKey, Gone>,
    /// What can change the answer.
    pub(crate) watch: Watch,
    /// Some session or process is in a pane, of which the title may change.
    pub(crate) has_panes: bool,
    /// What the verdicts were made from, if that is not too much.
    pub(crate) judged: Option<Judged>,
    /// What the files of the live sessions have said.
    pub(crate) descriptions: BTreeMap<SessionKey, Description>,
}

impl Seen {
    /// Keeps a session of which only the last process is left.
    fn await_exit(&mut self, key: &SessionKey, row: &Arc<Row>) {
        self.watch.processes.extend(row.owner());
        self.rows.leaving.insert(key.clone(), Arc::clone(row));
    }
}

/// Looks once. `before` is what was shown before.
pub(crate) fn look(machine: &Machine, config: &Config, before: &Rows) -> Seen {
    let reader = Reader::new(machine, config);
    let mut form = Live {
        machine,
        before,
        sessions: BTreeMap::new(),
        gone: BTreeMap::new(),
        watch: Watch::default(),
        has_panes: false,
        descriptions: BTreeMap::new(),
    };
    // Only a directory that is asked for can be missing.
    let rest = reader.choose(&ListQuery::default(), &mut form);
    let mut seen = match rest {
        Ok(chosen) => form.finish(&chosen.rest, chosen.judged),
        Err(_) => form.finish(&nothing(machine), None),
    };
    find_lost(reader, before, &mut seen);
    seen
}

fn nothing(machine: &Machine) -> Snapshot {
    Snapshot {
        taken_at_ms: machine.now_ms(),
        scope: machine.table().scope().clone(),
        sessions: Vec::new(),
        unattributed: Vec::new(),
        problems: Vec::new(),
        looked_at: Vec::new(),
        processes: Vec::new(),
    }
}

/// Takes the sessions of a look.
struct Live<'a> {
    machine: &'a Machine,
    before: &'a Rows,
    sessions: BTreeMap<SessionKey, Arc<Row>>,
    gone: BTreeMap<SessionKey, Gone>,
    watch: Watch,
    has_panes: bool,
    descriptions: BTreeMap<SessionKey, Description>,
}

impl Form for Live<'_> {
    type Row = ();
    const NEEDS_IDS: bool = false;
    const JUDGES_AGAIN: bool = true;

    fn row(&mut self, session: &Session) {
        self.watch.add_session(session, self.machine.now_ms());
        self.has_panes |= session.pane.is_some();
        if session.liveness() == Liveness::Live {
            let described = session.description.clone();
            self.descriptions.insert(session.key.clone(), described);
        }
        let row = Arc::new(row_of(self.machine, session));
        self.sessions.insert(session.key.clone(), row);
    }

    fn follows(&self, key: &SessionKey) -> bool {
        self.before.sessions.contains_key(key) || self.before.leaving.contains_key(key)
    }

    fn pass_over(&mut self, session: &Session) {
        let gone = gone(self.machine, session);
        self.gone.insert(session.key.clone(), gone);
    }
}

impl Live<'_> {
    fn finish(mut self, rest: &Snapshot, judged: Option<Judged>) -> Seen {
        self.watch.add_look(self.machine, rest);
        let has_panes = rest.unattributed.iter().any(|one| one.pane.is_some());
        let WireSnapshot {
            schema_version,
            host,
            unattributed,
            problems,
            ..
        } = wire::snapshot(self.machine, rest);
        let frame = json!({ "schema_version": schema_version, "host": host });
        Seen {
            rows: Rows {
                as_of_ms: rest.taken_at_ms,
                frame: Arc::new(object(frame)),
                sessions: self.sessions,
                leaving: BTreeMap::new(),
                unattributed: Arc::new(unattributed.iter().map(|one| json!(one)).collect()),
                problems: Arc::new(problems.iter().map(|one| json!(one)).collect()),
            },
            gone: self.gone,
            watch: self.watch,
            has_panes: has_panes || self.has_panes,
            judged,
            descriptions: self.descriptions,
        }
    }
}

pub(crate) fn row_of(machine: &Machine, session: &Session) -> Row {
    let wire: WireSession = wire::session(machine, session);
    let directory = session.work_dir();
    Row {
        session: object(json!(wire)),
        directory: directory.map(|directory| machine.mounts().real_path(directory)),
    }
}

pub(crate) fn gone(machine: &Machine, session: &Session) -> Gone {
    let has_exited = session.liveness() == Liveness::Exited;
    let is_hidden = session.is_dismissed || session.is_orphan();
    Gone {
        why: if has_exited && !is_hidden {
            Why::Exited
        } else {
            Why::Hidden
        },
        row: Arc::new(row_of(machine, session)),
    }
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

/// Looks on disk for what was shown before and nothing leads to any more.
fn find_lost(reader: Reader<'_>, before: &Rows, seen: &mut Seen) {
    let machine = reader.machine();
    let known = before.sessions.iter().chain(&before.leaving);
    let is_lost =
        |key: &SessionKey| !seen.rows.sessions.contains_key(key) && !seen.gone.contains_key(key);
    let (staying, lost): (Vec<_>, Vec<_>) =
        known
            .filter(|(key, _)| is_lost(key))
            .partition(|(key, row)| {
                let is_leaving = before.leaving.contains_key(*key);
                is_leaving && matches!(owner_of(machine, row), Owner::Runs(_))
            });
    for (key, row) in staying {
        seen.await_exit(key, row);
    }
    if lost.is_empty() {
        return;
    }
    let sought = lost.iter().take(LOST_MAX);
    let ids: BTreeSet<_> = sought.map(|(key, _)| key.session.clone()).collect();
    let mut scanned = reader.scan(&Reach {
        depth: Depth::Sessions(ids),
        agents: Some(lost.iter().map(|(key, _)| key.agent.clone()).collect()),
        ..Reach::default()
    });
    scanned.snapshot.unattributed.clear();
    reader.describe(&mut scanned, |session| {
        lost.iter().any(|(key, _)| **key == session.key)
    });
    let unread = unread_paths(&seen.rows.problems, &scanned.snapshot.problems);
    for (key, before) in lost {
        let is_unread = is_named_below(before, &unread);
        let mut found = scanned.snapshot.sessions.iter();
        let found = found.find(|session| session.key == *key);
        let found = found.map(|session| (session, session.liveness()));
        let gone = match (found, owner_of(machine, before)) {
            // One of the two looks failed, or it began in between.
            (Some((session, Liveness::Live)), _) => {
                seen.watch.add_session(session, machine.now_ms());
                let row = Arc::new(row_of(machine, session));
                seen.rows.sessions.insert(key.clone(), row);
                continue;
            }
            (Some((session, Liveness::Exited)), _) => gone(machine, session),
            (None, Owner::Exited) => vanished(before, Verdict::of_vanished(true), Why::Exited),
            // Not being able to look is never absence.
            _ if is_unread && may_serve_still(machine, &seen.rows, before) => {
                seen.watch.processes.extend(before.owner());
                let row = judged_again(before, Verdict::of_unread());
                seen.rows.sessions.insert(key.clone(), Arc::new(row));
                continue;
            }
            (_, Owner::Runs(pid)) if seen.rows.leaving.len() < LOST_MAX => {
                seen.await_exit(key, before);
                vanished(before, Verdict::of_unnamed(pid), Why::Hidden)
            }
            (Some((session, Liveness::Unknown)), _) => gone(machine, session),
            (None, _) => vanished(before, Verdict::of_vanished(false), Why::Hidden),
        };
        seen.gone.insert(key.clone(), gone);
    }
}

/// The files and directories that neither look could read.
fn unread_paths(seen: &[Value], scanned: &[Problem]) -> BTreeSet<PathBuf> {
    let seen = seen.iter().filter_map(|problem| problem["path"].as_str());
    let scanned = scanned.iter().filter_map(|problem| problem.path.clone());
    seen.map(PathBuf::from).chain(scanned).collect()
}

/// Whether the session was known by a file that is one of these, or lies below one of them.
fn is_named_below(before: &Row, paths: &BTreeSet<PathBuf>) -> bool {
    let evidence = before.session.get("evidence").and_then(Value::as_array);
    let mut named = evidence
        .into_iter()
        .flatten()
        .filter_map(|one| one["path"].as_str());
    named.any(|named| paths.iter().any(|path| Path::new(named).starts_with(path)))
}

/// A session that is no longer found anywhere on disk.
fn vanished(before: &Row, verdict: Verdict, why: Why) -> Gone {
    let mut row = judged_again(before, verdict);
    row.session.insert("owner".to_owned(), Value::Null);
    let row = Arc::new(row);
    Gone { why, row }
}

/// The session with another verdict, and without what only a look can find.
fn judged_again(before: &Row, verdict: Verdict) -> Row {
    let mut row = before.clone();
    let words = [
        ("liveness", verdict.liveness().name()),
        ("reason", verdict.reason()),
    ];
    for (field, word) in words {
        row.session.insert(field.to_owned(), word.into());
    }
    for field in OF_THE_FOUND {
        row.session.insert(field.to_owned(), Value::Null);
    }
    row
}

/// Whether the last known owner runs and serves no other session.
fn may_serve_still(machine: &Machine, rows: &Rows, before: &Row) -> bool {
    let Some(owner) = before.owner() else {
        return false;
    };
    let is_alone = |row: &Row| {
        row.session.get("owner_shared") != Some(&Value::Bool(true))
            && row.text("parent_session_id").is_none()
    };
    let has_another = |row: &Arc<Row>| is_alone(row) && row.owner().as_ref() == Some(&owner);
    let has_left = || is_alone(before) && rows.sessions.values().any(has_another);
    !matches!(owner_of(machine, before), Owner::Exited) && !has_left()
}

/// The last known process of a session.
enum Owner {
    Runs(Pid),
    Exited,
    /// None is known, or it can't be looked at.
    NotKnown,
}

fn owner_of(machine: &Machine, before: &Row) -> Owner {
    let Some((pid, stamp)) = before.owner() else {
        return Owner::NotKnown;
    };
    match machine.table().probe(pid) {
        Ok(Some(process)) if !process.is_exited && process.stamp == stamp => Owner::Runs(pid),
        Ok(_) => Owner::Exited,
        Err(_) => Owner::NotKnown,
    }
}

/// What a session has, besides its owner, only while a look finds its process.
const OF_THE_FOUND: [&str; 10] = [
    "confidence",
    "phase",
    "phase_since",
    "waiting_for",
    "waiting_on",
    "phase_word",
    "client",
    "pane",
    "attach",
    "endpoint",
];
