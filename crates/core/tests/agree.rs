//! Every fixture once more: whoever asks about the same moment gets the same answer, and
//! hooks make no answer worse.
//!
//! `WHOSUP_FIXTURES=codex/` runs only the cases with that text in `AGENT/CASE`.

#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test makes its own world, and fails where that fails"
)]

mod world;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use whosup_core::judging::verdict::Liveness;
use whosup_core::reader::{IdQuery, ListQuery, Reader, Wish};
use whosup_core::sources::agents::adapter;
use whosup_core::sources::config::Config;
use whosup_sidecar::AgentId;
use world::{World, time_ms};

/// Every folder `tests/fixtures/AGENT/CASE`, with its name.
fn cases() -> Vec<(String, PathBuf)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let folders = |path: &Path| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(path).unwrap();
        let paths = entries.map(|entry| entry.unwrap().path());
        paths.filter(|path| path.is_dir()).collect()
    };
    let wanted = std::env::var("WHOSUP_FIXTURES").unwrap_or_default();
    let mut cases: Vec<_> = folders(&root).iter().flat_map(|one| folders(one)).collect();
    cases.sort();
    let name = |case: &PathBuf| case.strip_prefix(&root).unwrap().display().to_string();
    let named = cases.into_iter().map(|case| (name(&case), case));
    let wanted: Vec<_> = named.filter(|(name, _)| name.contains(&wanted)).collect();
    assert!(!wanted.is_empty(), "no fixture has that name");
    wanted
}

/// What is compared of a session: all but the evidence, which a deeper look has more of.
fn answer_of(session: &Value) -> Value {
    let keys = [
        "liveness",
        "reason",
        "confidence",
        "phase",
        "phase_since",
        "waiting_for",
    ];
    let mut answer: BTreeMap<&str, &Value> = keys.map(|key| (key, &session[key])).into();
    answer.insert("owner", &session["owner"]["pid"]);
    answer.insert("orphan", &session["orphan"]);
    json!(answer)
}

fn key_of(session: &Value) -> String {
    ["agent", "session_id", "home"]
        .map(|key| session[key].to_string())
        .join(" ")
}

fn listed(reader: Reader<'_>, is_all: bool) -> BTreeMap<String, Value> {
    let wish = Wish {
        is_all,
        ..Wish::default()
    };
    let query = ListQuery {
        wish,
        ..ListQuery::default()
    };
    let list = serde_json::to_value(reader.list_sessions(&query).unwrap()).unwrap();
    let sessions = list["sessions"].as_array().unwrap().iter();
    sessions.map(|one| (key_of(one), one.clone())).collect()
}

/// What those who ask about one moment say differently of what `list` calls live, and how
/// many answers were compared.
fn disagreements(name: &str, world: &World) -> (String, usize) {
    let mut faults = String::new();
    let mut compared = 0;
    let (machine, config) = (world.machine(), Config::default());
    let reader = Reader::new(&machine, &config);
    let (few, all) = (listed(reader, false), listed(reader, true));
    for (key, session) in few.iter().filter(|(_, one)| one["liveness"] == "live") {
        let right = answer_of(session);
        let mut differs = |who: &str, other: Value| {
            compared += 1;
            if other != right {
                faults += &format!("\n{name}: {key}: list {right}, {who} {other}");
            }
        };
        differs("list --all", all.get(key).map_or(Value::Null, answer_of));
        let id = format!(
            "{}:{}",
            session["agent"].as_str().unwrap(),
            session["session_id"].as_str().unwrap()
        );
        let query = IdQuery {
            home: session["home"].as_str().map(PathBuf::from),
            ..IdQuery::from(id.as_str())
        };
        // The same id in two homes has to be distinguished by the home.
        let Ok(liveness) = reader.liveness(&query) else {
            continue;
        };
        assert_eq!(liveness, Some(Liveness::Live), "{name}: {key}");
        let one = |snapshot: Value| answer_of(&snapshot["sessions"][0]);
        let shown = reader.session(&query).unwrap();
        differs("show", one(serde_json::to_value(shown).unwrap()));
        let why = reader.why(&query).unwrap();
        differs("why", one(serde_json::to_value(why).unwrap()));
    }
    (faults, compared)
}

#[test]
fn all_who_ask_about_one_moment_get_one_answer() {
    let mut faults = String::new();
    let mut compared = 0;
    for (name, case) in cases() {
        let (differ, count) = disagreements(&name, &World::of_fixture(&case));
        faults += &differ;
        compared += count;
    }
    assert!(faults.is_empty(), "{faults}");
    assert!(compared > 500, "only {compared} answers were compared");
}

/// Sessions are recorded under the former name of a directory, and nothing shows where
/// its process was started.
#[test]
fn after_a_directory_was_renamed_all_who_ask_get_one_answer() {
    let renamed = tempfile::tempdir().unwrap();
    let renamed = renamed.path().to_str().unwrap();
    let mut faults = String::new();
    let mut compared = 0;
    for (name, case) in cases() {
        for number in 0.. {
            let mut is_there = false;
            let world = World::of_changed_fixture(&case, |world| {
                let processes = world.get_mut("processes");
                if let Some(process) = processes.and_then(|all| all.get_mut(number)) {
                    is_there = true;
                    process["cwd"] = json!(renamed);
                }
            });
            if !is_there {
                break;
            }
            let (differ, count) = disagreements(&format!("{name}, process {number}"), &world);
            faults += &differ;
            compared += count;
        }
    }
    assert!(faults.is_empty(), "{faults}");
    assert!(compared > 500, "only {compared} answers were compared");
}

/// The record that hooks would leave of a session.
fn write_record(world: &World, answer: &Value, session: &Value, phase: &str, at_ms: i64) -> bool {
    let machine = world.machine();
    let agent = AgentId::parse(session["agent"].as_str().unwrap()).unwrap();
    let Some(adapter) = adapter(&agent) else {
        return false;
    };
    let home = match session["home"].as_str() {
        Some(home) => PathBuf::from(world::expand(home, world.home())),
        None => adapter.homes(machine.environment()).remove(0),
    };
    let records = world
        .home()
        .join(".local/state/whosup/sessions")
        .join(agent.as_str());
    let id = session["session_id"].as_str().unwrap();
    let path = records.join(format!("{id}.json"));
    if path.exists() || world.file().env.contains_key("XDG_STATE_HOME") {
        return false;
    }
    let at = whosup_core::views::wire::timestamp(at_ms).unwrap();
    let owner = &session["owner"];
    let record = json!({
        "schema_version": 1, "agent": agent.as_str(), "session_id": id, "home": home,
        "owner": {
            "pid": owner["pid"], "start_stamp": owner["start_stamp"],
            "start_stamp_kind": owner["start_stamp_kind"], "hostname": answer["host"]["hostname"],
            "boot_id": answer["host"]["boot_id"], "pid_namespace": answer["host"]["pid_namespace"],
        },
        "phase": phase, "waiting_for": (phase == "waiting").then_some("permission"),
        "last_event_at": at, "phase_since": at, "phase_at": at, "started_at": at,
    });
    std::fs::create_dir_all(&records).unwrap();
    std::fs::write(path, record.to_string()).unwrap();
    true
}

/// An interrupted turn, an answered question, a question that no hook announces: whatever
/// is newer than the last hook is still seen.
#[test]
fn a_hook_that_is_older_than_what_the_agent_shows_changes_no_phase() {
    let mut faults = String::new();
    let mut agents: BTreeMap<String, usize> = BTreeMap::new();
    for (name, case) in cases() {
        let world = World::of_fixture(&case);
        let before = world.look(world.file().depth);
        for session in before["sessions"].as_array().unwrap() {
            let since = session["phase_since"].as_str().map(time_ms);
            let is_top = session["parent_session_id"].is_null() && !session["owner"].is_null();
            let Some(since_ms) = since.filter(|_| session["liveness"] == "live" && is_top) else {
                continue;
            };
            // Nothing that this process does is reported from before it began.
            let began = session["owner"]["started_at"].as_str().map(time_ms);
            if began >= Some(since_ms) {
                continue;
            }
            let opposite = if session["phase"] == "idle" {
                "working"
            } else {
                "idle"
            };
            for phase in [opposite, "waiting"] {
                let world = World::of_fixture(&case);
                if !write_record(&world, &before, session, phase, since_ms - 1_000) {
                    continue;
                }
                let after = world.look(world.file().depth);
                let key = key_of(session);
                let mut rows = after["sessions"].as_array().unwrap().iter();
                let row = rows.find(|one| key_of(one) == key).unwrap();
                // One more claim may settle which of two sessions a process serves.
                if row["liveness"] != "live" {
                    continue;
                }
                *agents.entry(session["agent"].to_string()).or_default() += 1;
                if (&row["phase"], &row["phase_since"])
                    != (&session["phase"], &session["phase_since"])
                {
                    faults += &format!(
                        "\n{name}: {key}: {} since {} became {} since {} by a hook of {phase}",
                        session["phase"], session["phase_since"], row["phase"], row["phase_since"],
                    );
                }
            }
        }
    }
    assert!(faults.is_empty(), "{faults}");
    if std::env::var_os("WHOSUP_FIXTURES").is_none() {
        assert!(agents.len() >= 9, "only of these agents: {agents:?}");
    }
}
