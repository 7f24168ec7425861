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
use whosup_core::sources::config::Config;
use whosup_core::sources::recognize::Users;
use whosup_core::views::reader::{IdError, IdQuery, ListQuery, Reader, Wish};
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
        users: Users::All,
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
fn a_session_is_live_if_its_row_says_so_and_not_if_it_says_exited() {
    let config = Config::default();
    let mut seen = BTreeMap::new();
    for case in cases() {
        let world = World::of_fixture(&case);
        let machine = world.machine();
        let reader = Reader::new(&machine, &config);
        let query = ListQuery {
            users: Users::Own,
            ..everything()
        };
        for row in reader.list_sessions(&query).unwrap().sessions {
            let query = IdQuery {
                id: format!("{}:{}", row.agent, row.session_id),
                home: None,
            };
            let (is_live, session, why) = match reader.is_live(&query) {
                Err(IdError::Ambiguous { .. }) => continue,
                is_live => (
                    is_live.unwrap(),
                    reader.session(&query).unwrap().unwrap(),
                    reader.why(&query).unwrap().unwrap(),
                ),
            };
            let [alone] = session.sessions.as_slice() else {
                panic!("{} sessions", session.sessions.len());
            };
            let expected = match alone.liveness {
                "live" => Some(true),
                "exited" => Some(false),
                _ => None,
            };
            assert_eq!(is_live, expected, "{} {}", case.display(), query.id);
            assert_eq!(alone.session_id, row.session_id);
            assert!(!why.explanation.is_empty());
            *seen.entry(alone.liveness).or_insert(0) += 1;
        }
    }
    assert!(["live", "exited", "unknown"].iter().all(|it| seen[it] > 10));
}

#[test]
fn no_such_session_is_no_answer_and_an_id_that_can_be_none_is_an_error() {
    let world = World::empty("2026-11-27T21:00:00Z");
    let machine = world.machine();
    let config = Config::default();
    let reader = Reader::new(&machine, &config);
    let absent = IdQuery::from("s1");
    assert!(reader.session(&absent).unwrap().is_none());
    assert!(reader.why(&absent).unwrap().is_none());
    assert_eq!(reader.is_live(&absent).unwrap(), None);
    let malformed = reader.is_live(&"../x".into()).unwrap_err();
    assert!(
        matches!(malformed, IdError::Malformed { .. }),
        "{malformed}"
    );
    let agent = reader.session(&"nobody:x".into()).unwrap_err();
    assert!(matches!(agent, IdError::Agent(_)), "{agent}");
}
