//! `stop` ends the right process, and no other.

use serde_json::json;

use super::world::{World, wait_for};

fn has_ended(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    stat.map_or(true, |stat| {
        stat.rsplit_once(") ").unwrap().1.starts_with('Z')
    })
}

#[test]
fn the_process_of_a_session_is_ended_and_waited_for() {
    let world = World::new();
    let posing = world.pose_as_claude();
    world.write_claude_record(posing.pid(), &posing.start(), &world.s1);
    world.write_claude_transcript(".claude", &world.s1);
    let said = world.run(["stop", &world.s1]);
    assert_eq!(said.status, 0, "{}", said.err);
    let expected = format!("process {} exited", posing.pid());
    assert!(said.err.contains(&expected), "{}", said.err);
    assert!(said.err.contains("after SIGTERM"), "{}", said.err);
    assert!(has_ended(posing.pid()));
    posing.reap();
    let shown = |command: &[&str]| {
        let sessions = world.run(command).sessions();
        // Other tests' agents are listed too.
        let mut own = sessions
            .into_iter()
            .filter(|one| one["session_id"] == world.s1);
        own.next()
    };
    assert_eq!(shown(&["list", "--json"]), None);
    assert_eq!(shown(&["orphans", "--json"]), None);
    let orphan = shown(&["orphans", "--all", "--json"]).unwrap();
    assert_eq!(orphan["dismissed"], true);
    let again = world.run(["stop", &world.s1]);
    assert_eq!(again.status, 1, "{}", again.err);
}

/// `nightly-4` was taken for `nightly-42`, which ran.
#[test]
fn a_whole_id_is_not_taken_for_the_beginning_of_a_running_session() {
    let world = World::new();
    let posing = world.pose("lib/my-agent", |_| {});
    let fields = json!({
        "pid": posing.pid(),
        "my_agent_version": null,
        "process_start": posing.start(),
        "process_start_kind": "linux-ticks",
    });
    world.announce("my-agent", "nightly-42", fields);
    assert_eq!(world.run(["check", "nightly-4"]).status, 0, "a beginning");
    let ended = ["run", "--agent", "ci", "--id", "nightly-4", "--", "true"];
    assert_eq!(world.run(ended).status, 0);
    assert_eq!(world.run(["check", "nightly-4"]).status, 1);
    let said = world.run(["stop", "nightly-4"]);
    assert_eq!(said.status, 1, "{}", said.err);
    assert!(!has_ended(posing.pid()));
}

#[test]
fn a_process_that_ignores_the_signal_is_killed_only_if_that_is_asked_for() {
    let world = World::new();
    let program = world.shell_as_claude();
    let ready = world.root().join("ready");
    let script = format!("trap '' TERM; : > '{}'; read line", ready.display());
    let posing = world.pose("@anthropic-ai/claude-code/bin/claude", |command| {
        assert!(program.exists());
        command.args(["-c", &script]);
    });
    wait_for("the trap", || ready.exists().then_some(()));
    world.write_claude_record(posing.pid(), &posing.start(), &world.s1);
    world.write_claude_transcript(".claude", &world.s1);
    let said = world.run(["stop", &world.s1]);
    assert_eq!(said.status, 124, "{}", said.err);
    assert!(
        said.err.contains("still runs 10 s after SIGTERM"),
        "{}",
        said.err
    );
    assert!(said.err.contains("whosup stop --kill"), "{}", said.err);
    assert!(!has_ended(posing.pid()));
    let said = world.run(["stop", "--kill", &world.s1]);
    assert_eq!(said.status, 0, "{}", said.err);
    assert!(said.err.contains("after SIGKILL"), "{}", said.err);
    assert!(has_ended(posing.pid()));
}

#[test]
fn a_process_that_serves_several_sessions_is_left_alone() {
    let world = World::new();
    let posing = world.pose("lib/my-agent", |_| {});
    for session in [&world.s1, &world.s2] {
        let fields = json!({
            "pid": posing.pid(),
            "my_agent_version": null,
            "process_start": posing.start(),
            "process_start_kind": "linux-ticks",
            "serves": "many",
        });
        world.announce("my-agent", session, fields);
    }
    let said = world.run(["stop", "--kill", &world.s1]);
    assert_eq!(said.status, 2, "{} {}", said.out, said.err);
    assert!(said.err.contains("serves"), "{}", said.err);
    assert!(!has_ended(posing.pid()));
}
