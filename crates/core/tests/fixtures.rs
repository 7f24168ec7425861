//! Every fixture gives the answer that is written beside it, and a look leaves
//! its files as they were.
//!
//! `tests/fixtures/README.md` tells the format. `WHOSUP_FIXTURES=codex` runs
//! only the cases whose `agent/case` contains that text; `WHOSUP_BLESS=1`
//! writes the answers, to be read by a person afterwards.

#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test makes its own world, and fails where that fails"
)]

mod world;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use serde_json::Value;
use whosup_core::adapter::Depth;
use whosup_sidecar::SessionId;
use world::{Defaults, DepthName, Tree, World, differences, stated};

/// How many differences of one case are printed.
const DIFFERENCES_SHOWN_MAX: usize = 25;

#[test]
fn every_fixture_gives_the_answer_beside_it() {
    check_all("its answer", check_answer);
}

#[test]
fn a_look_leaves_every_file_of_a_fixture_as_it_was() {
    check_all("its files", check_files_are_left_alone);
}

#[test]
fn the_live_rows_of_the_fast_path_are_those_of_the_full_walk() {
    check_all("its live rows", check_live_rows);
}

/// Whoever ends a session looks at that one alone.
#[test]
fn a_look_at_one_session_finds_all_that_the_full_walk_finds_of_it() {
    check_all("its sessions one by one", check_looks_at_one);
}

/// Runs a check on every case and reports all that fail by name.
#[track_caller]
fn check_all(what: &str, check: fn(&Path) -> Result<(), String>) {
    let wanted = std::env::var("WHOSUP_FIXTURES").unwrap_or_default();
    let cases: Vec<_> = cases()
        .into_iter()
        .filter(|case| name_of(case).contains(&wanted))
        .collect();
    assert!(!cases.is_empty(), "no fixture is called `{wanted}`");
    let mut report = String::new();
    let mut failed = 0;
    for case in &cases {
        let answer = catch_unwind(AssertUnwindSafe(|| check(case)));
        let answer = answer.unwrap_or_else(|panic| Err(panic_text(panic.as_ref())));
        if let Err(reason) = answer {
            failed += 1;
            let _ = writeln!(report, "\n{}:\n{reason}", name_of(case));
        }
    }
    let total = cases.len();
    assert!(
        failed == 0,
        "{failed} of {total} fixtures fail in {what}:\n{report}"
    );
}

fn check_answer(case: &Path) -> Result<(), String> {
    let world = World::of_fixture(case);
    let found = world.look(world.file().depth);
    keep_if_asked(case, &found);
    let defaults = Defaults::of(world.file());
    if std::env::var_os("WHOSUP_BLESS").is_some_and(|value| value == "1") {
        let text = serde_json::to_string_pretty(&defaults.leave_out(found)).unwrap() + "\n";
        let written = std::fs::write(case.join("expected.json"), text);
        return written.map_err(|error| error.to_string());
    }
    report(differences(&defaults.fill(stated(case)), &found))
}

/// Writes the whole answer to the directory that `WHOSUP_ANSWERS` names, for other
/// programs to look at.
fn keep_if_asked(case: &Path, found: &Value) {
    if let Some(directory) = std::env::var_os("WHOSUP_ANSWERS") {
        let name = format!("{}.json", name_of(case).replace('/', "."));
        std::fs::write(Path::new(&directory).join(name), found.to_string()).unwrap();
    }
}

/// Whatever is stated counts, and so does whatever is not: no field of `expected.json`
/// can be changed or left out, and none of its defaults can be another value.
#[test]
fn a_wrong_field_fails_whether_it_is_stated_or_not() {
    for case in [
        "claude-code/live-session-is-proven-by-its-start-stamp",
        "claude-code/killed-session-is-an-orphan",
        "pi/a-session-of-which-only-half-a-line-is-left-may-be-the-one",
    ] {
        let case = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/fixtures")
            .join(case);
        let defaults = Defaults::of(World::of_fixture(&case).file());
        let stated = stated(&case);
        let whole = defaults.fill(stated.clone());
        assert_eq!(
            defaults.leave_out(whole.clone()),
            stated,
            "it is not in its short form"
        );
        let is_noticed = |changed: Value| !differences(&defaults.fill(changed), &whole).is_empty();
        for place in places(&stated, "") {
            let mut other = stated.clone();
            *other.pointer_mut(&place).unwrap() = serde_json::json!("something else");
            assert!(is_noticed(other), "{place} may have another value");
            assert!(
                is_noticed(without(&stated, &place)),
                "{place} may be left out"
            );
        }
        for place in places(&whole, "") {
            let mut other = whole.clone();
            *other.pointer_mut(&place).unwrap() = serde_json::json!("something else");
            let found = differences(&whole, &other);
            assert!(!found.is_empty(), "{place} may be found to be another");
        }
    }
}

/// The pointer to each field of a document, however deep.
fn places(value: &Value, at: &str) -> Vec<String> {
    let children: Vec<(String, &Value)> = match value {
        Value::Object(fields) => fields
            .iter()
            .map(|(name, one)| (name.clone(), one))
            .collect(),
        Value::Array(items) => (0..).map(|at: usize| at.to_string()).zip(items).collect(),
        _ => Vec::new(),
    };
    let below = children.into_iter().flat_map(|(name, child)| {
        let place = format!("{at}/{name}");
        let within = places(child, &place);
        std::iter::once(place).chain(within)
    });
    below.collect()
}

fn without(value: &Value, place: &str) -> Value {
    let mut value = value.clone();
    let (parent, name) = place.rsplit_once('/').unwrap();
    match value.pointer_mut(parent).unwrap() {
        Value::Object(fields) => drop(fields.remove(name)),
        Value::Array(items) => drop(items.remove(name.parse().unwrap())),
        other => panic!("{other} has no fields"),
    }
    value
}

fn check_files_are_left_alone(case: &Path) -> Result<(), String> {
    let world = World::of_fixture(case);
    let before = Tree::read(world.home());
    world.look(DepthName::Live);
    world.look(DepthName::All);
    let changed = before.changed(&Tree::read(world.home()));
    if changed.is_empty() {
        return Ok(());
    }
    Err(format!("  changed by a look: {changed:?}"))
}

fn check_live_rows(case: &Path) -> Result<(), String> {
    let world = World::of_fixture(case);
    let fast = live_rows(&world.look(DepthName::Live));
    let full = live_rows(&world.look(DepthName::All));
    report(differences(&full, &fast))
}

fn live_rows(snapshot: &Value) -> Value {
    let sessions = snapshot["sessions"].as_array().into_iter().flatten();
    sessions
        .filter(|session| session["liveness"] == "live")
        .cloned()
        .collect()
}

fn check_looks_at_one(case: &Path) -> Result<(), String> {
    let world = World::of_fixture(case);
    let full = world.look(DepthName::All);
    let sessions = full["sessions"].as_array().unwrap();
    for session in sessions {
        // What becomes of a sub-agent depends on its parent.
        let named = [&session["session_id"], &session["parent_session_id"]];
        let ids = named.into_iter().filter_map(Value::as_str);
        let ids: BTreeSet<SessionId> = ids.map(|id| SessionId::parse(id).unwrap()).collect();
        let narrow = world.look_at(&Depth::Sessions(ids));
        let id = session["session_id"].as_str().unwrap();
        let of = |snapshot: &Value| what_is_said_of(snapshot, session);
        report(differences(&of(&full), &of(&narrow)))
            .map_err(|differences| format!("  session {id}:\n{differences}"))?;
    }
    Ok(())
}

/// All that could keep somebody from ending a session: its row with all its
/// evidence, the processes that may serve it, and what could not be read of it.
fn what_is_said_of(snapshot: &Value, session: &Value) -> Value {
    let id = &session["session_id"];
    let rows = |name: &str| snapshot[name].as_array().into_iter().flatten();
    let is_its = |row: &&Value| {
        row["session_id"] == *id
            && row["agent"] == session["agent"]
            && row["home"] == session["home"]
    };
    let is_candidate = |process: &&Value| {
        let mut candidates = process["candidates"].as_array().into_iter().flatten();
        candidates.any(|candidate| candidate == id)
    };
    let is_about = |problem: &&Value| {
        let path = problem["path"].as_str().unwrap_or_default();
        path.contains(id.as_str().unwrap_or_default())
    };
    let pids = rows("unattributed")
        .filter(is_candidate)
        .map(|one| one["pid"].clone());
    serde_json::json!({
        "rows": rows("sessions").filter(is_its).collect::<Vec<_>>(),
        "may_be_served_by": pids.collect::<Vec<_>>(),
        "problems": rows("problems").filter(is_about).collect::<Vec<_>>(),
    })
}

fn report(differences: Vec<world::Difference>) -> Result<(), String> {
    if differences.is_empty() {
        return Ok(());
    }
    let mut text = String::new();
    for difference in differences.iter().take(DIFFERENCES_SHOWN_MAX) {
        let _ = writeln!(text, "  {difference}");
    }
    if differences.len() > DIFFERENCES_SHOWN_MAX {
        let _ = writeln!(
            text,
            "  and {} more",
            differences.len() - DIFFERENCES_SHOWN_MAX
        );
    }
    Err(text)
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    format!("  panicked: {}", text.unwrap_or("(no text)"))
}

/// Every folder `tests/fixtures/AGENT/CASE`, by name.
fn cases() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let mut cases: Vec<_> = folders(&root)
        .iter()
        .flat_map(|agent| folders(agent))
        .collect();
    cases.sort();
    cases
}

fn folders(path: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(path).unwrap();
    entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir())
        .collect()
}

fn name_of(case: &Path) -> String {
    let mut parts = case
        .components()
        .rev()
        .map(|part| part.as_os_str().to_string_lossy());
    let case = parts.next().unwrap_or_default().into_owned();
    format!("{}/{case}", parts.next().unwrap_or_default())
}
