//! Every fixture of every agent once more, after something has befallen its
//! processes, its files or its host that befell users of other tools: no
//! session may be called live, or exited, for it.
//!
//! `WHOSUP_FIXTURES=codex/` runs only the cases with that text in `AGENT/CASE`.

#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test makes its own world, and fails where that fails"
)]

mod deaths;
mod homes;
mod hosts;
mod links;
mod logs;
mod newcomers;
mod processes;
mod state_files;
mod torn;
mod transcripts;
#[path = "../world/mod.rs"]
mod world;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use serde_json::{Value, json};
use world::{DepthName, World, time_ms};

/// A session of an answer, as far as it is compared.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Row {
    liveness: String,
    reason: String,
    confidence: Option<String>,
    owner: Option<i64>,
    has_pane: bool,
    is_sub_agent: bool,
    has_transcript: bool,
}

/// The sessions of an answer by agent, id and home.
type Rows = BTreeMap<String, Row>;

fn rows(answer: &Value) -> Rows {
    let sessions = answer["sessions"].as_array().unwrap().iter();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    sessions
        .map(|one| {
            let key = [&one["agent"], &one["session_id"], &one["home"]].map(text);
            let row = Row {
                liveness: text(&one["liveness"]),
                reason: text(&one["reason"]),
                confidence: one["confidence"].as_str().map(str::to_owned),
                owner: one["owner"]["pid"].as_i64(),
                has_pane: !one["pane"].is_null(),
                is_sub_agent: !one["parent_session_id"].is_null(),
                has_transcript: !one["files"]["transcript"].is_null(),
            };
            (key.join(" "), row)
        })
        .collect()
}

impl Row {
    fn is_live(&self) -> bool {
        self.liveness == "live"
    }
}

/// A full walk of a fixture as it is, and after a change to its `world.json`.
struct Answers {
    /// Whoever looks has variables set, which may name another home.
    has_own_environment: bool,
    before: Rows,
    after: Rows,
    answer: Value,
}

/// Runs a check on every fixture that has a live session, and reports all that fail.
#[track_caller]
fn check_all(change: impl Fn(&mut Value), check: impl Fn(&Answers) -> Vec<String>) {
    let wanted = std::env::var("WHOSUP_FIXTURES").unwrap_or_default();
    let mut report = String::new();
    let mut checked = 0;
    for (name, case) in cases() {
        if !name.contains(&wanted) {
            continue;
        }
        let before = rows_of(&case);
        if !before.values().any(Row::is_live) {
            continue;
        }
        let world = World::of_changed_fixture(&case, |world| change(world));
        let answer = world.look(DepthName::All);
        let answers = Answers {
            has_own_environment: !world.file().env.is_empty(),
            before,
            after: rows(&answer),
            answer,
        };
        checked += 1;
        for fault in check(&answers) {
            let _ = writeln!(report, "{name}: {fault}");
        }
    }
    assert!(
        checked > 0,
        "no fixture with a live session is called `{wanted}`"
    );
    assert!(report.is_empty(), "of {checked} fixtures\n{report}");
}

/// The rows of a fixture as it is. Many tests compare with them, so that they are kept.
fn rows_of(case: &Path) -> Rows {
    static KNOWN: Mutex<BTreeMap<PathBuf, Rows>> = Mutex::new(BTreeMap::new());
    let known = KNOWN.lock().unwrap().get(case).cloned();
    known.unwrap_or_else(|| {
        let found = rows(&World::of_fixture(case).look(DepthName::All));
        KNOWN.lock().unwrap().insert(case.to_owned(), found.clone());
        found
    })
}

/// Every folder `tests/fixtures/AGENT/CASE`, with its name.
fn cases() -> Vec<(String, PathBuf)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let folders = |path: &Path| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(path).unwrap();
        let paths = entries.map(|entry| entry.unwrap().path());
        paths.filter(|path| path.is_dir()).collect()
    };
    let mut cases: Vec<_> = folders(&root).iter().flat_map(|one| folders(one)).collect();
    cases.sort();
    let name = |case: &PathBuf| case.strip_prefix(&root).unwrap().display().to_string();
    cases.into_iter().map(|case| (name(&case), case)).collect()
}

/// Changes every process of a world.
fn each_process(world: &mut Value, change: impl Fn(&mut Value)) {
    let processes = world.get_mut("processes").and_then(Value::as_array_mut);
    processes.into_iter().flatten().for_each(change);
}

/// The PIDs of a world's processes, which are taken out of it.
fn take_processes(world: &mut Value) -> Value {
    let taken = world.as_object_mut().unwrap().remove("processes");
    let taken = taken.unwrap_or_else(|| json!([]));
    let pids = taken.as_array().unwrap().iter();
    pids.map(|process| process["pid"].clone()).collect()
}

fn set_view(world: &mut Value, changes: Value) {
    let mut view = world["view"].as_object().cloned().unwrap_or_default();
    view.extend(changes.as_object().unwrap().clone());
    world["view"] = Value::Object(view);
}

/// Moves a time of a world by some seconds.
fn shift(time: &mut Value, seconds: i64) {
    let moved = time_ms(time.as_str().unwrap()) + seconds * 1000;
    let moved = jiff::Timestamp::from_millisecond(moved).unwrap();
    *time = json!(moved.to_string());
}

/// Nothing is live, and nobody is there.
fn nobody_is_there(answers: &Answers) -> Vec<String> {
    let live = answers.after.iter().filter(|(_, row)| row.is_live());
    let mut faults: Vec<_> = live.map(|(key, row)| format!("{key}: {row:?}")).collect();
    let unattributed = answers.answer["unattributed"].as_array().unwrap();
    faults.extend(unattributed.iter().map(|one| format!("is there: {one}")));
    faults
}

/// Sessions that were live and are not listed, though their files are there.
/// Where to look may be known by the process alone: by its environment, which
/// names a home, or by its directory; sessions of such places go with it.
fn lost(answers: &Answers) -> Vec<String> {
    let live = answers.before.iter().filter(|(_, row)| row.is_live());
    let lost = live.filter(|(key, row)| {
        let is_known_without = row.has_transcript && row.confidence.as_deref() != Some("inferred");
        let is_looked_at = key.ends_with(' ') && !answers.has_own_environment;
        is_known_without && is_looked_at && !answers.after.contains_key(*key)
    });
    lost.map(|(key, row)| format!("{key} is lost: {row:?}"))
        .collect()
}

/// What was live has not exited: it is live or unknown.
fn nothing_has_exited(answers: &Answers) -> Vec<String> {
    let live = answers.before.iter().filter(|(_, row)| row.is_live());
    let exited = live.filter_map(|(key, before)| {
        let after = answers.after.get(key)?;
        // That an exclusive claim is dead counts, unless arguments say otherwise,
        // and those can't be seen any more.
        let is_dead_claim = before.reason == "arguments" && after.reason == "no-such-process";
        // The title of its terminal chose it, of those that a log connects with a process,
        // and can't be seen any more.
        let is_hidden = before.confidence.as_deref() == Some("inferred")
            && (before.has_pane, after.has_pane) == (true, false)
            && after.reason == "superseded";
        let has_exited = after.liveness == "exited" && !is_dead_claim && !is_hidden;
        has_exited.then(|| format!("{key}: {before:?} became {after:?}"))
    });
    exited.chain(lost(answers)).collect()
}

/// What was live is so still, by the same process.
fn all_live_on(answers: &Answers) -> Vec<String> {
    let live = answers.before.iter().filter(|(_, row)| row.is_live());
    let changed = live.filter_map(|(key, before)| {
        let after = answers.after.get(key)?;
        let is_same = after.is_live() && after.owner == before.owner;
        (!is_same).then(|| format!("{key}: {before:?} became {after:?}"))
    });
    changed.chain(lost(answers)).collect()
}
