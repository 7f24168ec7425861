use serde_json::{Value, json};

use super::Filter;
use crate::rows::Row;

#[track_caller]
fn check(filter: Filter, session: Value, is_shown: bool) {
    let row = Row {
        session: session.as_object().unwrap().clone(),
        directory: Some("/w/app/src".into()),
    };
    assert_eq!(filter.shows(&row), is_shown, "{filter:?} {session}");
}

#[test]
fn each_filter_keeps_out_what_it_names_and_nothing_else() {
    let session = || json!({ "agent": "codex", "liveness": "live", "phase": null, "parent_session_id": null });
    let set = |word: &str| [word.to_owned()].into();
    check(Filter::default(), session(), true);
    let of = |agents: &str| Filter {
        agents: set(agents),
        ..Filter::default()
    };
    check(of("codex"), session(), true);
    check(of("pi"), session(), false);
    let below = |directory: &str| Filter {
        directory: Some(directory.into()),
        ..Filter::default()
    };
    check(below("/w/app"), session(), true);
    check(below("/w/ap"), session(), false);
    // An unknown phase does not match a filter.
    let waiting = Filter {
        phases: set("waiting"),
        ..Filter::default()
    };
    check(waiting, session(), false);
    let top = Filter {
        is_without_sub_agents: true,
        ..Filter::default()
    };
    check(top.clone(), session(), true);
    let sub_agent = json!({ "agent": "codex", "parent_session_id": "p" });
    check(top, sub_agent, false);
}
