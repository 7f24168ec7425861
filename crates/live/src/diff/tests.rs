use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};
use whosup_core::adapter::claim::SessionKey;
use whosup_core::sidecar::{AgentId, SessionId};

use super::diff;
use crate::change::{Change, Why, replay};
use crate::filter::Filter;
use crate::history::Shared;
use crate::rows::{Gone, Row, Rows};
use crate::subscription::{Message, Received, Subscription};

fn key(number: u8) -> SessionKey {
    let homes = ["/home/dev/.claude", "/elsewhere"];
    SessionKey {
        agent: AgentId::from_static(["codex", "claude-code"][usize::from(number % 2)]),
        session: SessionId::parse(&format!("s{}", number / 4)).unwrap(),
        home: Path::new(homes[usize::from(number / 2 % 2)]).into(),
    }
}

/// A session with fields that are null, absent, or change.
fn row(key: &SessionKey, (phase, title, activity, evidence): (u8, u8, u8, u8)) -> Arc<Row> {
    let is_default = key.home.starts_with("/home");
    let liveness = ["live", "unknown"][usize::from(phase % 2)];
    let phase = [Some("idle"), Some("working"), Some("waiting"), None][usize::from(phase % 4)];
    let session = json!({
        "agent": key.agent.as_str(),
        "session_id": key.session.as_str(),
        "home": (!is_default).then_some("/elsewhere"),
        "liveness": liveness,
        "phase": phase,
        "title": (title > 0).then(|| format!("title {title}\u{2028}\r\n")),
        "last_activity_at": activity,
        "evidence": [evidence],
    });
    let mut session = session.as_object().unwrap().clone();
    if title == 2 {
        session.insert("work_dir_bytes".to_owned(), json!("/w=="));
    }
    let directory = Some(format!("/w/{}", title % 2).into());
    Arc::new(Row { session, directory })
}

prop_compose! {
    fn rows()(
        sessions in prop::collection::btree_map(0..12_u8, (0..4_u8, 0..3_u8, 0..3_u8, 0..3_u8), 0..8),
        processes in prop::collection::vec(0..3_i32, 0..3),
        problems in prop::collection::vec(0..2_u8, 0..2),
    ) -> Rows {
        let sessions = sessions.into_iter().map(|(number, fields)| {
            let key = key(number);
            let row = row(&key, fields);
            (key, row)
        });
        let process = |pid| json!({ "agent": "codex", "pid": pid, "work_dir": format!("/w/{}", pid % 2) });
        Rows {
            sessions: sessions.collect(),
            unattributed: Arc::new(processes.into_iter().map(process).collect()),
            problems: Arc::new(problems.into_iter().map(|one| json!({ "message": one, "agent": null })).collect()),
            ..Rows::default()
        }
    }
}

fn filters() -> [Filter; 4] {
    let set = |word: &str| [word.to_owned()].into();
    [
        Filter::default(),
        Filter {
            agents: set("codex"),
            ..Filter::default()
        },
        Filter {
            directory: Some("/w/1".into()),
            ..Filter::default()
        },
        Filter {
            phases: set("waiting"),
            liveness: set("live"),
            ..Filter::default()
        },
    ]
}

/// The state of a reader, sorted, and without what does not count.
fn known(snapshot: &Value) -> Value {
    let mut known = snapshot.clone();
    let sessions = known["sessions"].as_array_mut().unwrap();
    for session in sessions.iter_mut() {
        let fields = session.as_object_mut().unwrap();
        fields.retain(|name, value| name != "evidence" && !value.is_null());
    }
    sessions.sort_by_key(ToString::to_string);
    json!([known["sessions"], known["unattributed"], known["problems"]])
}

fn read(subscription: &mut Subscription) -> Vec<Value> {
    let mut read = Vec::new();
    while let Received::Message(message) = subscription.next(std::time::Duration::ZERO) {
        let line = message.to_string();
        assert!(!line.contains(['\n', '\r']), "{line}");
        read.push(serde_json::from_str(&line).unwrap());
    }
    read
}

fn snapshot_of(shared: &Shared, filter: &Filter) -> Value {
    Message::snapshot(&shared.lock(), filter).to_json()
}

proptest! {
    #[test]
    fn replaying_the_changes_on_what_was_gives_what_is_whatever_the_filter(
        steps in prop::collection::vec(rows(), 1..6),
    ) {
        let mut steps = steps.into_iter();
        let shared = Arc::new(Shared::new(1, steps.next().unwrap()));
        let mut readers: Vec<(Filter, Subscription, Value)> = Vec::new();
        for filter in filters() {
            let mut reader = Subscription::new(Arc::clone(&shared), filter.clone(), None);
            let first = read(&mut reader);
            prop_assert_eq!(first.len(), 1);
            readers.push((filter, reader, first[0].clone()));
        }
        for after in steps {
            let before = Arc::clone(&shared.lock().rows);
            let changes = diff(&before, &after, &BTreeMap::new());
            shared.publish(Arc::new(after), changes);
            for (filter, reader, state) in &mut readers {
                for change in read(reader) {
                    let was = known(state);
                    replay(state, &change);
                    prop_assert_ne!(was, known(state), "it changes nothing: {}", change);
                }
                prop_assert_eq!(known(state), known(&snapshot_of(&shared, filter)));
            }
        }
    }

    #[test]
    fn equal_looks_differ_in_nothing(rows in rows()) {
        prop_assert_eq!(diff(&rows, &rows.clone(), &BTreeMap::new()), Vec::new());
    }

    #[test]
    fn who_comes_back_gets_what_it_has_missed_and_nothing_else(
        steps in prop::collection::vec(rows(), 1..6),
        left_after in 0..40_u64,
    ) {
        let shared = Arc::new(Shared::new(7, Rows::default()));
        let mut all = Vec::new();
        let mut stays = Subscription::new(Arc::clone(&shared), Filter::default(), None);
        read(&mut stays);
        for after in steps {
            let before = Arc::clone(&shared.lock().rows);
            let changes = diff(&before, &after, &BTreeMap::new());
            shared.publish(Arc::new(after), changes);
            all.extend(read(&mut stays));
        }
        let last = shared.lock().cursor().sequence;
        let cursor = format!("7-{left_after}").parse().unwrap();
        let mut back = Subscription::new(Arc::clone(&shared), Filter::default(), Some(cursor));
        let missed = read(&mut back);
        if left_after > last {
            prop_assert_eq!(&missed[0]["kind"], "snapshot");
        } else {
            let skipped = usize::try_from(left_after).unwrap();
            prop_assert_eq!(&missed[..], &all[skipped..]);
        }
        let other = "8-0".parse().unwrap();
        let mut stranger = Subscription::new(shared, Filter::default(), Some(other));
        prop_assert_eq!(&read(&mut stranger)[0]["kind"], "snapshot");
    }
}

#[test]
fn a_reader_that_is_too_slow_gets_a_snapshot_again() {
    let shared = Arc::new(Shared::new(1, Rows::default()));
    let mut slow = Subscription::new(Arc::clone(&shared), Filter::default(), None);
    read(&mut slow);
    for number in 0..3_000_u32 {
        let before = Arc::clone(&shared.lock().rows);
        let after = Rows {
            problems: Arc::new(vec![json!({ "message": number })]),
            ..Rows::default()
        };
        let changes = diff(&before, &after, &BTreeMap::new());
        shared.publish(Arc::new(after), changes);
    }
    let read = read(&mut slow);
    assert_eq!(read.len(), 1);
    assert_eq!(read[0]["kind"], "snapshot");
    assert_eq!(read[0]["problems"][0]["message"], 2_999);
}

#[test]
fn a_session_that_only_its_last_process_is_left_of_is_removed_again_when_that_exits() {
    let key = key(0);
    let shown = row(&key, (0, 0, 0, 0));
    let one = |row: &Arc<Row>| BTreeMap::from([(key.clone(), Arc::clone(row))]);
    let live = Rows {
        sessions: one(&shown),
        ..Rows::default()
    };
    let leaving = Rows {
        leaving: one(&shown),
        ..Rows::default()
    };
    let none = Rows::default();
    let gone = |why| {
        let row = Arc::clone(&shown);
        BTreeMap::from([(key.clone(), Gone { why, row })])
    };
    let whys = |before, after, why| -> Vec<Why> {
        let changes = diff(before, after, &gone(why));
        let why = |change: &Change| match change {
            Change::Removed { why, .. } => *why,
            other => panic!("{other:?}"),
        };
        changes.iter().map(why).collect()
    };
    assert_eq!(whys(&live, &leaving, Why::Hidden), [Why::Hidden]);
    assert_eq!(whys(&leaving, &leaving, Why::Exited), []);
    assert_eq!(whys(&leaving, &none, Why::Exited), [Why::Exited]);
    let is_back = diff(&leaving, &live, &BTreeMap::new());
    assert!(matches!(is_back[..], [Change::Added { .. }]), "{is_back:?}");
}

#[test]
fn a_session_whose_directory_is_another_by_a_link_leaves_one_filter_for_the_other() {
    let at = |directory: &str| {
        let key = key(0);
        let row = Row {
            directory: Some(directory.into()),
            ..(*row(&key, (0, 0, 0, 0))).clone()
        };
        Rows {
            sessions: [(key, Arc::new(row))].into(),
            ..Rows::default()
        }
    };
    let shared = Arc::new(Shared::new(1, at("/w/0")));
    let reader = |directory: Option<&str>| {
        let filter = Filter {
            directory: directory.map(Into::into),
            ..Filter::default()
        };
        let mut reader = Subscription::new(Arc::clone(&shared), filter, None);
        read(&mut reader);
        reader
    };
    let readers = [None, Some("/w"), Some("/w/0"), Some("/w/1")].map(reader);
    let changes = diff(&at("/w/0"), &at("/w/1"), &BTreeMap::new());
    shared.publish(Arc::new(at("/w/1")), changes);
    let kinds = readers.map(|mut reader| {
        let read = read(&mut reader).into_iter();
        let kinds = read.map(|change| change["kind"].as_str().unwrap().to_owned());
        kinds.collect::<Vec<_>>().join(" ")
    });
    assert_eq!(kinds, ["", "", "removed", "added"]);
}
