use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use whosup_core::adapter::claim::SessionKey;
use whosup_core::sidecar::{AgentId, SessionId};

use super::{Slow, steady};
use crate::rows::{Row, Rows};

fn rows(session: Value) -> Rows {
    let key = SessionKey {
        agent: AgentId::from_static("codex"),
        session: SessionId::parse("s1").unwrap(),
        home: Path::new("/home/dev/.codex").into(),
    };
    let row = Row {
        session: session.as_object().unwrap().clone(),
        directory: None,
    };
    Rows {
        sessions: [(key, Arc::new(row))].into(),
        ..Rows::default()
    }
}

fn session(rows: &Rows) -> Value {
    json!(rows.sessions.values().next().unwrap().session)
}

#[test]
fn the_date_of_a_process_that_is_the_same_is_no_change() {
    let owner = |stamp: &str, ms: u32| {
        json!({
            "owner": { "pid": 7, "start_stamp": stamp, "started_at": format!("2026-11-27T09:00:00.{ms:03}Z") },
            "phase_since": format!("2026-11-27T09:00:00.{ms:03}Z"),
        })
    };
    let before = rows(owner("1", 500));
    let mut after = rows(owner("1", 501));
    steady(&before, &mut after);
    assert_eq!(session(&after), owner("1", 500));
    let mut other = rows(owner("2", 700));
    steady(&before, &mut other);
    assert_eq!(session(&other), owner("2", 700));
}

#[test]
fn a_date_that_an_agent_wrote_is_shown_as_it_is() {
    let state = |since| {
        rows(json!({
            "owner": { "pid": 7, "start_stamp": "1", "started_at": "2026-11-27T09:00:00.000Z" },
            "phase_since": since,
        }))
    };
    let before = state("2026-11-27T09:10:00.500Z");
    let mut after = state("2026-11-27T09:10:00.510Z");
    steady(&before, &mut after);
    assert_eq!(session(&after)["phase_since"], "2026-11-27T09:10:00.510Z");
}

#[test]
fn what_changes_with_each_record_is_published_once_a_second_and_the_last_of_it_is_not_lost() {
    let start = Instant::now();
    let at = |ms| start + Duration::from_millis(ms);
    let state =
        |activity: u32, phase: &str| rows(json!({ "last_activity_at": activity, "phase": phase }));
    let mut slow = Slow::default();
    let (first, due) = slow.hold(&state(1, "idle"), &state(2, "idle"), at(0));
    assert_eq!(
        (session(&first)["last_activity_at"].clone(), due),
        (json!(2), None)
    );
    // Other fields are never held back.
    let (second, due) = slow.hold(&first, &state(3, "working"), at(100));
    assert_eq!(
        session(&second),
        json!({ "last_activity_at": 2, "phase": "working" })
    );
    assert_eq!(due, Some(at(1_000)));
    let (third, due) = slow.hold(&second, &state(3, "working"), at(1_000));
    assert_eq!(
        (session(&third)["last_activity_at"].clone(), due),
        (json!(3), None)
    );
}
