//! What the reader answers is what the line found, in every fixture's world.

#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test makes its own world, and fails where that fails"
)]

mod world;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;
use whosup_core::judging::verdict::Liveness;
use whosup_core::reader::{ErrorCode, IdError, IdQuery, ListQuery, ReadError, Reader, Wish};
use whosup_core::sources::config::Config;
use whosup_core::sources::recognize::Users;
use world::{DepthName, World, with_mark};

fn cases() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let folders = |path: &Path| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(path).unwrap();
        let paths = entries.map(|entry| entry.unwrap().path());
        paths.filter(|path| path.is_dir()).collect()
    };
    let mut cases: Vec<PathBuf> = folders(&root)
        .iter()
        .flat_map(|agent| folders(agent))
        .collect();
    cases.sort();
    assert!(cases.len() > 100, "only {} fixtures", cases.len());
    cases
}

/// Rows by what tells sessions apart.
fn by_key(answer: &Value) -> BTreeMap<String, Value> {
    let rows = answer["sessions"].as_array().unwrap().iter();
    let key = |row: &Value| format!("{} {} {}", row["agent"], row["session_id"], row["home"]);
    rows.map(|row| (key(row), row.clone())).collect()
}

fn everything() -> ListQuery {
    ListQuery {
        wish: Wish {
            is_all: true,
            ..Wish::default()
        },
        users: Users::Own,
        ..ListQuery::default()
    }
}

#[test]
fn a_list_of_all_has_every_session_that_a_look_finds() {
    let config = Config::default();
    let mut titles = 0;
    for case in cases() {
        let world = World::of_fixture(&case);
        let machine = world.machine();
        let reader = Reader::new(&machine, &config);
        let list = reader.list_sessions(&everything()).unwrap();
        let candidates = list.unattributed.iter();
        let candidates = candidates.flat_map(|process| &process.candidate_titles);
        titles += candidates.flatten().count();
        let list = with_mark(serde_json::to_value(list).unwrap(), world.home());
        let look = world.look(DepthName::All);
        assert_eq!(by_key(&list), by_key(&look), "{}", case.display());
        assert_eq!(list["unattributed"], look["unattributed"]);
        assert_eq!(list["problems"], look["problems"]);
    }
    assert!(titles > 0, "no list has the title of a candidate");
}

#[test]
fn the_liveness_of_a_session_is_that_of_the_row() {
    let config = Config::default();
    let mut seen = BTreeMap::new();
    for case in cases() {
        let world = World::of_fixture(&case);
        let machine = world.machine();
        let reader = Reader::new(&machine, &config);
        for row in reader.list_sessions(&everything()).unwrap().sessions {
            let query = IdQuery {
                id: format!("{}:{}", row.agent, row.session_id),
                home: None,
            };
            let liveness = match reader.liveness(&query) {
                Err(IdError::Ambiguous { .. }) => continue,
                liveness => liveness.unwrap().map(Liveness::name),
            };
            let session = reader.session(&query).unwrap();
            let why = reader.why(&query).unwrap();
            let [alone] = session.sessions.as_slice() else {
                panic!("{} sessions", session.sessions.len());
            };
            let expected = Some(alone.liveness);
            assert_eq!(liveness, expected, "{} {}", case.display(), query.id);
            assert_eq!(alone.session_id, row.session_id);
            assert!(!why.explanation.is_empty());
            *seen.entry(alone.liveness).or_insert(0) += 1;
        }
    }
    assert!(["live", "exited", "unknown"].iter().all(|it| seen[it] > 10));
}

#[test]
fn an_id_of_no_session_is_none_alone_where_everything_was_searched() {
    let world = World::empty("2026-11-27T21:00:00Z");
    let config = Config::default();
    let absent = IdQuery::from("s1");
    let machine = world.machine();
    let reader = Reader::new(&machine, &config);
    assert_eq!(reader.liveness(&absent).unwrap(), None);
    check_code(reader.session(&absent), ErrorCode::NoSuchSession);
    check_code(reader.why(&absent), ErrorCode::NoSuchSession);
    let claude = world.home().join(".claude");
    std::fs::create_dir(&claude).unwrap();
    std::os::unix::fs::symlink("projects", claude.join("projects")).unwrap();
    let machine = world.machine();
    let reader = Reader::new(&machine, &config);
    assert_eq!(reader.liveness(&absent).unwrap(), Some(Liveness::Unknown));
    check_code(reader.session(&absent), ErrorCode::Unreadable);
}

/// A file that can be opened and not understood hides what it may be about.
#[test]
fn an_id_may_be_that_of_what_is_in_a_broken_file() {
    const DATABASE: &str = ".local/share/opencode/opencode.db";
    const TRANSCRIPT: &str = ".pi/agent/sessions/--w--/2026-11-27T20-00-00-000Z_0a022b20.jsonl";
    const ANNOUNCED: &str = ".local/state/agent-sessions/newagent/s-1.runtime.json";
    const RECORD: &str = ".claude/sessions/4711.json";
    for (id, path, expected) in [
        ("ses_1", DATABASE, ErrorCode::Unreadable),
        ("0a022b20", TRANSCRIPT, ErrorCode::Unreadable),
        ("0b", TRANSCRIPT, ErrorCode::NoSuchSession),
        ("s-1", ANNOUNCED, ErrorCode::Unreadable),
        ("s-2", ANNOUNCED, ErrorCode::NoSuchSession),
        // No process has that PID.
        ("0a022b20", RECORD, ErrorCode::NoSuchSession),
    ] {
        let world = World::empty("2026-11-27T21:00:00Z");
        let path = world.home().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, "{\"pid\": 4711").unwrap();
        let (machine, config) = (world.machine(), Config::default());
        let reader = Reader::new(&machine, &config);
        let answer = reader.session(&id.into()).err().map(|error| error.code());
        assert_eq!(answer, Some(expected), "{id} {}", path.display());
    }
}

#[track_caller]
fn check_code<T>(answer: Result<T, IdError>, expected: ErrorCode) {
    assert_eq!(answer.err().map(|error| error.code()), Some(expected));
}

#[test]
fn what_can_be_no_id_has_a_code() {
    let world = World::empty("2026-11-27T21:00:00Z");
    let machine = world.machine();
    let config = Config::default();
    let reader = Reader::new(&machine, &config);
    for (id, code) in [
        ("../x", ErrorCode::BadArgument),
        ("", ErrorCode::BadArgument),
        ("Codex:x", ErrorCode::BadArgument),
        ("nobody:x", ErrorCode::NoSuchAgent),
    ] {
        check_code(reader.liveness(&id.into()), code);
        check_code(reader.session(&id.into()), code);
    }
}

#[test]
fn each_candidate_of_an_ambiguous_id_can_be_asked_for() {
    let config = Config::default();
    let mut seen = 0;
    for case in cases() {
        let world = World::of_fixture(&case);
        let machine = world.machine();
        let reader = Reader::new(&machine, &config);
        let list = reader.list_sessions(&everything()).unwrap();
        let first = list
            .sessions
            .first()
            .and_then(|row| row.session_id.chars().next());
        let Some(Err(error)) =
            first.map(|first| reader.liveness(&first.to_string().as_str().into()))
        else {
            continue;
        };
        let error = ReadError::from(error);
        assert_eq!(error.code(), ErrorCode::Ambiguous, "{error}");
        assert!(error.candidates().len() > 1, "{error}");
        for candidate in error.candidates() {
            let query = IdQuery {
                id: format!("{}:{}", candidate.key.agent, candidate.key.session),
                home: Some(candidate.key.home.to_path_buf()),
            };
            let liveness = reader.liveness(&query).unwrap();
            assert_eq!(liveness, Some(candidate.liveness), "{}", candidate.line);
            assert!(error.to_string().contains(&candidate.line), "{error}");
            seen += 1;
        }
    }
    assert!(seen > 100, "only {seen} candidates");
}
