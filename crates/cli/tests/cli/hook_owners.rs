//! The owner of a session that hooks reported, and which of several sessions of one
//! process is current.

use serde_json::{Value, json};

use super::shell_agent::{ShellAgent, event, record_of};
use super::world::{WHOSUP, World, copy_program};

/// The answer about a session: its liveness, the reason, and the owner's PID.
#[track_caller]
fn said_of(world: &World, session: &str) -> (String, String, Option<u64>) {
    let sessions = world.run(["list", "--all", "--json"]).sessions();
    let its: Vec<&Value> = sessions
        .iter()
        .filter(|its| its["session_id"] == session)
        .collect();
    let [its] = its.as_slice() else {
        panic!("{session}: {its:?}");
    };
    // Every command gives the same answer.
    let check = world.run(["check", session]).status;
    let liveness = its["liveness"].as_str().unwrap();
    let expected = match liveness {
        "live" => 0,
        "exited" => 1,
        _ => 3,
    };
    assert_eq!(check, expected, "{its}");
    let reason = its["reason"].as_str().unwrap();
    let pid = its["owner"]["pid"].as_u64();
    (liveness.to_owned(), reason.to_owned(), pid)
}

#[track_caller]
fn check_live(world: &World, session: &str, agent: &ShellAgent<'_>) {
    let (liveness, reason, pid) = said_of(world, session);
    let expected = ("live", "start-stamp", Some(u64::from(agent.pid())));
    assert_eq!((liveness.as_str(), reason.as_str(), pid), expected);
}

#[track_caller]
fn check_not_live(world: &World, session: &str, liveness: &str, reason: &str) {
    let said = said_of(world, session);
    assert_eq!((said.0.as_str(), said.1.as_str()), (liveness, reason));
}

/// It has ended, and is shown without a process: a process without a known session may
/// have resumed it.
#[track_caller]
fn check_ended(world: &World, session: &str) {
    assert_eq!(record_of(world, session)["phase"], "ended");
    let (liveness, reason, pid) = said_of(world, session);
    let said = (liveness.as_str(), reason.as_str());
    let right = [("exited", "released"), ("unknown", "may-be-served-by")];
    assert!(right.contains(&said) && pid.is_none(), "{said:?}");
}

fn start(source: &str) -> Value {
    json!({ "source": source })
}

#[test]
fn an_agent_that_nothing_recognizes_owns_its_session_while_it_lives() {
    let world = World::new();
    let mut agent = ShellAgent::start_unrecognized(&world);
    agent.report(&world.s1, "SessionStart", start("startup"));
    let owner = record_of(&world, &world.s1)["owner"].clone();
    assert_eq!(owner["pid"], agent.pid());
    assert_eq!(owner["unrecognized"], true);
    check_live(&world, &world.s1, &agent);
    let sessions = world.run(["list", "--json", "--cwd", "."]).sessions();
    assert_eq!(sessions[0]["confidence"], "consistent", "{sessions:?}");

    agent.report(&world.s2, "SessionStart", start("clear"));
    agent.prompt(&world.s2);
    check_live(&world, &world.s2, &agent);
    agent.kill();
    // It was the nearest process above two hooks, so it was no short-lived helper.
    let (liveness, reason, _) = said_of(&world, &world.s2);
    assert_eq!(liveness, "exited", "{reason}");
}

#[test]
fn the_exit_of_a_process_that_ran_a_single_hook_proves_nothing() {
    let world = World::new();
    let mut agent = ShellAgent::start_unrecognized(&world);
    agent.prompt(&world.s1);
    agent.kill();
    check_not_live(&world, &world.s1, "unknown", "owner-not-found");
    assert_eq!(world.run(["sweep"]).out, "nothing to end\n");
}

#[test]
fn a_program_inside_of_an_agents_shell_does_not_make_the_agent_its_owner() {
    let world = World::new();
    let mut outer = ShellAgent::start(&world);
    let cc = world.root().join("opt/bin/cc");
    std::fs::create_dir_all(cc.parent().unwrap()).unwrap();
    copy_program("/bin/sh", &cc);
    let hook_event = event(&world, &world.s1, "SessionStart", start("startup"));
    let payload = outer.payload(&hook_event);
    for variables in ["", "CLAUDE_PID=$$ "] {
        let line = format!(
            "{variables}'{}' -c \"'{WHOSUP}' hook claude-code < '{}'; true\"",
            cc.display(),
            payload.display()
        );
        assert_eq!(outer.run(&line), ("0".to_owned(), String::new()));
        let owner = record_of(&world, &world.s1)["owner"].clone();
        assert_ne!(owner["pid"], outer.pid());
        assert_eq!(owner["unrecognized"], true, "{owner}");
    }
    let (liveness, _, _) = said_of(&world, &world.s1);
    assert_eq!(liveness, "unknown");
    // Its registry names this very session.
    world.write_claude_record(outer.pid(), &outer.start_stamp(), &world.s1);
    outer.run(&format!(
        "'{}' -c \"'{WHOSUP}' hook claude-code < '{}'; true\"",
        cc.display(),
        payload.display()
    ));
    assert_eq!(record_of(&world, &world.s1)["owner"]["pid"], outer.pid());
}

#[test]
fn an_agent_that_names_itself_is_the_owner_whatever_it_looks_like() {
    let world = World::new();
    let mut agent = ShellAgent::start_unrecognized(&world);
    let hook_event = event(&world, &world.s1, "SessionStart", start("startup"));
    agent.hook_with("CLAUDE_PID=$$", &hook_event);
    let owner = record_of(&world, &world.s1)["owner"].clone();
    assert_eq!(owner["pid"], agent.pid());
    assert!(owner["unrecognized"].is_null(), "{owner}");
    check_live(&world, &world.s1, &agent);
}

#[test]
fn a_session_without_an_agent_above_its_hooks_is_unknown() {
    let world = World::new();
    let mut cron = ShellAgent::start_cron(&world);
    cron.report(&world.s1, "SessionStart", start("startup"));
    cron.prompt(&world.s1);
    assert!(record_of(&world, &world.s1)["owner"].is_null());
    check_not_live(&world, &world.s1, "unknown", "owner-not-found");
    cron.report(&world.s1, "SessionEnd", json!({"reason": "other"}));
    check_not_live(&world, &world.s1, "exited", "released");
}

#[test]
fn a_registry_that_is_behind_its_hooks_does_not_bring_a_session_back() {
    let world = World::new();
    let mut agent = ShellAgent::start(&world);
    agent.report(&world.s1, "SessionStart", start("startup"));
    world.write_claude_record(agent.pid(), &agent.start_stamp(), &world.s1);
    check_live(&world, &world.s1, &agent);
    agent.report(&world.s1, "SessionEnd", json!({"reason": "clear"}));
    agent.report(&world.s2, "SessionStart", start("clear"));
    // A heartbeat.
    world.write_claude_record(agent.pid(), &agent.start_stamp(), &world.s1);
    check_live(&world, &world.s2, &agent);
    check_not_live(&world, &world.s1, "exited", "superseded");
    let live = world.run(["list", "--json", "--cwd", "."]).sessions();
    assert_eq!(live.len(), 1, "{live:?}");
    assert_eq!(live[0]["session_id"], world.s2);
}

#[test]
fn a_late_event_of_a_left_session_does_not_make_it_current() {
    let world = World::new();
    let mut agent = ShellAgent::start(&world);
    agent.report(&world.s1, "SessionStart", start("startup"));
    agent.prompt(&world.s1);
    agent.report(&world.s2, "SessionStart", start("clear"));
    for late in ["PostToolUse", "SubagentStop", "Stop", "PreToolUse"] {
        agent.report(&world.s1, late, json!({}));
        check_live(&world, &world.s2, &agent);
        check_not_live(&world, &world.s1, "exited", "superseded");
    }
    // A process that returns to a session reports it.
    agent.report(&world.s1, "SessionStart", start("resume"));
    check_live(&world, &world.s1, &agent);
    check_not_live(&world, &world.s2, "exited", "superseded");
}

#[test]
fn work_reopens_a_session_that_has_ended_and_a_stop_does_not() {
    let world = World::new();
    let mut agent = ShellAgent::start(&world);
    agent.report(&world.s1, "SessionStart", start("startup"));
    agent.report(&world.s1, "SessionEnd", json!({"reason": "other"}));
    for trailing in ["PostToolUse", "SubagentStop", "Stop"] {
        agent.report(&world.s1, trailing, json!({}));
        assert_eq!(record_of(&world, &world.s1)["phase"], "ended", "{trailing}");
    }
    check_ended(&world, &world.s1);
    for (name, phase) in [
        ("PreToolUse", "working"),
        ("PostToolUse", "working"),
        ("Stop", "idle"),
    ] {
        agent.report(&world.s1, name, json!({}));
        assert_eq!(record_of(&world, &world.s1)["phase"], phase, "{name}");
        check_live(&world, &world.s1, &agent);
    }
}

#[test]
fn a_headless_run_on_a_session_leaves_it_to_the_process_that_has_it() {
    let world = World::new();
    let mut first = ShellAgent::start(&world);
    first.report(&world.s1, "SessionStart", start("startup"));
    let mut second = ShellAgent::start(&world);
    second.report(&world.s1, "SessionStart", start("resume"));
    second.prompt(&world.s1);
    second.report(&world.s1, "SessionEnd", json!({"reason": "other"}));
    check_live(&world, &world.s1, &first);
    // The next process is killed.
    let mut third = ShellAgent::start(&world);
    third.prompt(&world.s1);
    third.kill();
    check_live(&world, &world.s1, &first);
    assert_eq!(world.run(["sweep"]).out, "nothing to end\n");
    check_live(&world, &world.s1, &first);
    first.kill();
    let said = world.run(["sweep"]).out;
    assert!(said.contains(&world.s1), "{said}");
}

#[test]
fn a_session_that_was_left_does_not_come_back_when_the_next_one_ends() {
    let world = World::new();
    let mut agent = ShellAgent::start(&world);
    agent.report(&world.s1, "SessionStart", start("startup"));
    agent.report(&world.s2, "SessionStart", start("clear"));
    agent.report(&world.s2, "SessionEnd", json!({"reason": "other"}));
    check_not_live(&world, &world.s1, "exited", "superseded");
    check_ended(&world, &world.s2);
    let listed = world.run(["list", "--json"]).json();
    let free = listed["unattributed"].as_array().unwrap().iter();
    let free: Vec<&Value> = free.filter(|its| its["pid"] == agent.pid()).collect();
    assert_eq!(free.len(), 1, "{listed}");
}

#[test]
fn only_the_last_session_of_a_killed_process_is_an_orphan() {
    let world = World::new();
    let mut agent = ShellAgent::start(&world);
    let session = |number: usize| format!("{:02x}{}", 0x30 + number, &world.s1[2..]);
    let sessions: Vec<String> = (0..4).map(session).collect();
    for (number, session) in sessions.iter().enumerate() {
        let source = if number == 0 { "startup" } else { "clear" };
        agent.report(session, "SessionStart", start(source));
        agent.prompt(session);
        world.write_claude_transcript(".claude", session);
    }
    agent.kill();
    for is_swept in [false, true] {
        if is_swept {
            world.run(["sweep"]);
        }
        let orphans = world.run(["orphans", "--json", "--cwd", "."]).sessions();
        let orphans: Vec<&str> = orphans
            .iter()
            .map(|its| its["session_id"].as_str().unwrap())
            .collect();
        assert_eq!(orphans, [sessions[3].as_str()], "swept: {is_swept}");
        for left in &sessions[..3] {
            let (liveness, reason, _) = said_of(&world, left);
            assert_eq!(liveness, "exited");
            assert!(is_swept || reason == "superseded", "{reason}");
        }
    }
    // No file leads to the process any more.
    let histories = world.home().join(".local/state/whosup/owners");
    world.run(["sweep"]);
    assert_eq!(std::fs::read_dir(histories).unwrap().count(), 0);
}

#[test]
fn a_home_that_hooks_reach_through_a_link_has_its_sessions_once() {
    let world = World::new();
    let link = world.root().join("link");
    std::os::unix::fs::symlink(world.home(), &link).unwrap();
    let mut agent = ShellAgent::start(&world);
    world.write_claude_transcript(".claude", &world.s1);
    let mut hook_event = event(&world, &world.s1, "SessionStart", start("startup"));
    let transcript = link.join(format!(".claude/projects/-x/{}.jsonl", world.s1));
    hook_event["transcript_path"] = json!(transcript);
    agent.hook_with(&format!("HOME='{}'", link.display()), &hook_event);
    let home = record_of(&world, &world.s1)["home"].clone();
    assert_eq!(home, json!(link.join(".claude")));
    world.write_claude_record(agent.pid(), &agent.start_stamp(), &world.s1);
    check_live(&world, &world.s1, &agent);
}
