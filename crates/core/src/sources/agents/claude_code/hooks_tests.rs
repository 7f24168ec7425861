use super::*;
use crate::adapter::hook_event::StartSource;

const ID: &str = "0a022b20-e8f2-410e-9552-8385582a8e8b";

#[track_caller]
fn check(event: &str, fields: &str, right: EventKind) {
    let payload = format!(r#"{{"session_id":"{ID}","hook_event_name":"{event}"{fields}}}"#);
    let heard = HOOKS.parse(payload.as_bytes(), None).unwrap();
    assert_eq!(heard.kind, right, "{payload}");
    assert_eq!(heard.session.as_str(), ID);
}

#[test]
fn a_stop_beside_a_working_sub_agent_is_no_end_of_the_work() {
    let stop = |tasks: &str, right| {
        check("Stop", &format!(r#","background_tasks":{tasks}"#), right);
    };
    // As 2.1.332 sends it, 2026-11.
    let agent = r#"{"id":"a1","type":"subagent","status":"running","description":"look","agent_type":"general-purpose"}"#;
    let shell = r#"{"id":"b1","type":"shell","status":"running","description":"wait","command":"sleep 60"}"#;
    stop(&format!("[{agent}]"), EventKind::TurnEndedInBackground);
    stop(
        &format!("[{shell},{agent}]"),
        EventKind::TurnEndedInBackground,
    );
    stop(
        r#"[{"id":"w1","type":"workflow","status":"pending"}]"#,
        EventKind::TurnEndedInBackground,
    );
    // The registry has `shell` then: the agent waits for a prompt.
    stop(&format!("[{shell}]"), EventKind::TurnEnded);
    stop("[]", EventKind::TurnEnded);
    stop(
        r#"[{"id":"a1","type":"subagent","status":"completed"}]"#,
        EventKind::TurnEnded,
    );
}

#[test]
fn background_tasks_of_another_form_leave_a_stop_what_it_is() {
    check("Stop", "", EventKind::TurnEnded);
    for odd in [
        "null",
        "7",
        r#""subagent""#,
        "{}",
        "[7]",
        r#"[{"type":7,"status":"running"}]"#,
    ] {
        check(
            "Stop",
            &format!(r#","background_tasks":{odd}"#),
            EventKind::TurnEnded,
        );
    }
}

#[test]
fn only_a_stop_asks_for_background_tasks() {
    let tasks = r#","background_tasks":[{"type":"subagent","status":"running"}]"#;
    check("UserPromptSubmit", tasks, EventKind::TurnStarted);
    check("SessionEnd", tasks, EventKind::SessionEnded);
    check("StopFailure", tasks, EventKind::TurnEnded);
}

#[test]
fn a_fork_starts_with_its_own_id_and_a_resume_ends_what_it_leaves() {
    let fork = r#","source":"fork","session_title":"mine""#;
    check(
        "SessionStart",
        fork,
        EventKind::SessionStarted(StartSource::Other),
    );
    check(
        "SessionEnd",
        r#","reason":"resume""#,
        EventKind::SessionEnded,
    );
}
