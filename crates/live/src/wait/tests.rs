use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use serde_json::json;
use whosup_core::adapter::claim::SessionKey;
use whosup_core::sidecar::{AgentId, SessionId};

use super::{Filter, Known, Meant, Until, Wait, Waited, Whom};
use crate::rows::{Row, Rows};

/// The sessions that the view shows: ID, liveness, phase.
type Shown<'a> = &'a [(&'a str, &'a str, &'a str)];

/// Hears one view after the other, and returns the IDs of what is reached, if the wait ends.
#[track_caller]
fn wait(whom: Whom, until: &str, is_next: bool, filter: Filter, views: &[Shown]) -> Option<String> {
    let wait = Wait {
        whom,
        until: Until::from_name(until).unwrap(),
        is_next,
        filter,
    };
    let mut known = Known::default();
    let mut meant: Option<Meant> = None;
    let waited = views.iter().find_map(|shown| {
        known.take_all(&rows(shown));
        known.step(&wait, &mut meant)
    })?;
    let Waited::Reached(sessions) = waited else {
        panic!("{waited:?}");
    };
    let ids = sessions
        .iter()
        .map(|one| one["session_id"].as_str().unwrap());
    Some(ids.collect::<Vec<_>>().join(" "))
}

fn rows(shown: Shown) -> Arc<Rows> {
    let row = |(id, liveness, phase): &(&str, &str, &str)| {
        let key = SessionKey {
            agent: AgentId::from_static("codex"),
            session: SessionId::parse(id).unwrap(),
            home: Path::new("/home/dev/.codex").into(),
        };
        let session = json!({
            "agent": "codex", "session_id": id, "liveness": liveness, "phase": phase,
            "owner": {}, "parent_session_id": null,
        });
        let row = Row {
            session: session.as_object().unwrap().clone(),
            directory: None,
        };
        (key, Arc::new(row))
    };
    let sessions: BTreeMap<_, _> = shown.iter().map(row).collect();
    Arc::new(Rows {
        sessions,
        ..Rows::default()
    })
}

fn working() -> Filter {
    Filter {
        phases: ["working".to_owned()].into(),
        ..Filter::default()
    }
}

#[test]
fn any_and_all_take_the_filters_by_what_sessions_are_before_the_target() {
    let start: Shown = &[("a", "live", "idle"), ("b", "live", "working")];
    for whom in [Whom::Any, Whom::Every] {
        let wait = |views: &[Shown]| wait(whom.clone(), "idle", false, working(), views);
        assert_eq!(wait(&[start]), None, "{whom:?}");
        let done: Shown = &[("b", "live", "idle")];
        assert_eq!(wait(&[start, done]).as_deref(), Some("b"), "{whom:?}");
    }
    // One that comes to match later counts from then on.
    let later: [Shown; 3] = [
        &[("a", "live", "idle")],
        &[("a", "live", "working")],
        &[("a", "live", "idle")],
    ];
    let any = |views: &[Shown]| wait(Whom::Any, "idle", false, working(), views);
    assert_eq!(any(&later[..2]), None);
    assert_eq!(any(&later).as_deref(), Some("a"));
    let live = Filter {
        liveness: ["live".to_owned()].into(),
        ..Filter::default()
    };
    let orphan: Shown = &[("a", "exited", "idle")];
    assert_eq!(wait(Whom::Any, "exited", false, live, &[orphan]), None);
}

#[test]
fn the_next_session_counts_also_if_there_was_none_at_the_start() {
    let next = |views: &[Shown]| wait(Whom::Any, "idle", true, Filter::default(), views);
    let new: Shown = &[("a", "live", "idle")];
    assert_eq!(next(&[&[], new]).as_deref(), Some("a"));
    assert_eq!(next(&[new, new]), None);
    let other: Shown = &[("b", "live", "idle")];
    assert_eq!(next(&[new, other]).as_deref(), Some("b"));
}
