//! `wait`: its targets, and its exit statuses.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::json;

use super::shell_agent::ShellAgent;
use super::watching::{Watching, is, session_in};
use super::world::{WHOSUP, World, signal, wait_for};

fn start(world: &World, arguments: &[&str]) -> Child {
    let path = std::env::var_os("PATH").unwrap_or_default();
    Command::new(WHOSUP)
        .arg("wait")
        .args(arguments)
        .env_clear()
        .env("HOME", world.home())
        .env("PATH", path)
        .current_dir(world.work_dir())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

#[track_caller]
fn end_of(child: Child) -> (i32, String) {
    let output = child.wait_with_output().unwrap();
    let out = String::from_utf8(output.stdout).unwrap();
    (output.status.code().unwrap(), out)
}

/// Whether a command still waits after enough time for a look.
fn still_waits(child: &mut Child) -> bool {
    std::thread::sleep(Duration::from_millis(1_500));
    child.try_wait().unwrap().is_none()
}

#[test]
fn a_phase_that_is_reached_already_counts_unless_a_change_is_asked_for() {
    let world = World::new();
    let mut agent = ShellAgent::start(&world);
    agent.report(&world.s1, "SessionStart", json!({ "source": "startup" }));
    agent.report(&world.s1, "Stop", json!({}));
    let (status, out) = end_of(start(&world, &[&world.s1, "--until", "idle"]));
    assert_eq!(status, 0, "{out}");
    assert!(out.contains(&world.s1) && out.contains("idle"), "{out}");
    let mut next = start(&world, &[&world.s1, "--until", "idle", "--next"]);
    assert!(still_waits(&mut next));
    agent.report(&world.s1, "UserPromptSubmit", json!({ "prompt": "Fix it" }));
    assert!(still_waits(&mut next));
    agent.report(&world.s1, "Stop", json!({}));
    assert_eq!(end_of(next).0, 0);
}

#[test]
fn an_exit_before_the_phase_is_1_and_an_exit_that_is_waited_for_is_0() {
    let world = World::new();
    let mut posing = world.pose_as_claude();
    world.write_claude_record(posing.pid(), &posing.start(), &world.s1);
    let mut phase = start(&world, &[&world.s1, "--until", "waiting"]);
    let exit = start(&world, &[&world.s1, "--until", "exited"]);
    assert!(still_waits(&mut phase));
    posing.kill();
    assert_eq!(end_of(phase).0, 1);
    let (status, out) = end_of(exit);
    assert_eq!(status, 0, "{out}");
    assert!(out.contains("exited"), "{out}");
}

#[test]
fn a_session_that_is_not_there_is_4_and_what_does_not_come_in_time_is_124() {
    let world = World::new();
    let (status, _) = end_of(start(&world, &["nope", "--until", "idle"]));
    assert_eq!(status, 4);
    let here = ["--cwd", "."];
    let all = ["--all", "--until", "idle", here[0], here[1]];
    assert_eq!(end_of(start(&world, &all)).0, 4);
    let any = [
        "--any",
        "--until",
        "idle",
        "--timeout",
        "1s",
        here[0],
        here[1],
    ];
    assert_eq!(end_of(start(&world, &any)).0, 124);
    let (status, _) = end_of(start(&world, &["--until", "idle"]));
    assert_eq!(status, 2);
}

#[test]
fn any_takes_the_first_session_and_all_takes_the_existing_sessions() {
    let world = World::new();
    let mut any = start(&world, &["--any", "--until", "waiting", "--cwd", "."]);
    assert!(still_waits(&mut any));
    let mut first = ShellAgent::start(&world);
    first.report(&world.s1, "SessionStart", json!({ "source": "startup" }));
    let mut second = ShellAgent::start(&world);
    second.report(&world.s2, "SessionStart", json!({ "source": "startup" }));
    let mut all = start(&world, &["--all", "--until", "waiting", "--cwd", "."]);
    second.report(
        &world.s2,
        "PermissionRequest",
        json!({ "tool_name": "Bash" }),
    );
    let (status, out) = end_of(any);
    assert_eq!(status, 0);
    assert!(out.contains(&world.s2), "{out}");
    assert!(still_waits(&mut all));
    first.report(
        &world.s1,
        "PermissionRequest",
        json!({ "tool_name": "Bash" }),
    );
    let (status, out) = end_of(all);
    assert_eq!((status, out.lines().count()), (0, 2), "{out}");
}

#[test]
fn all_that_one_look_shows_is_judged_together() {
    let world = World::new();
    let mut first = ShellAgent::start(&world);
    first.report(&world.s1, "SessionStart", json!({ "source": "startup" }));
    first.report(&world.s1, "Stop", json!({}));
    let mut second = ShellAgent::start(&world);
    second.report(&world.s2, "SessionStart", json!({ "source": "startup" }));
    second.report(&world.s2, "UserPromptSubmit", json!({ "prompt": "Fix it" }));
    for is_first_idle in [true, false] {
        let mut all = start(&world, &["--all", "--until", "idle", "--cwd", "."]);
        assert!(still_waits(&mut all));
        signal(all.id(), "STOP");
        let (idle, working) = if is_first_idle {
            ((&mut first, &world.s1), (&mut second, &world.s2))
        } else {
            ((&mut second, &world.s2), (&mut first, &world.s1))
        };
        // They are never idle together.
        idle.0
            .report(idle.1, "UserPromptSubmit", json!({ "prompt": "Fix it" }));
        working.0.report(working.1, "Stop", json!({}));
        signal(all.id(), "CONT");
        assert!(still_waits(&mut all));
        all.kill().unwrap();
        all.wait().unwrap();
    }
}

#[test]
fn a_process_that_runs_on_without_its_record_may_write_it_again() {
    let world = World::new();
    let mut posing = world.pose_as_claude();
    let record = world.write_claude_record(posing.pid(), &posing.start(), &world.s1);
    let mut exit = start(&world, &[&world.s1, "--until", "exited"]);
    assert!(still_waits(&mut exit));
    let aside = record.with_extension("aside");
    std::fs::rename(&record, &aside).unwrap();
    assert!(still_waits(&mut exit));
    std::fs::rename(&aside, &record).unwrap();
    assert!(still_waits(&mut exit));
    posing.kill();
    assert_eq!(end_of(exit).0, 0);
}

#[test]
fn a_home_is_refused_where_it_would_choose_nothing() {
    let world = World::new();
    for whom in ["--any", "--all"] {
        let (status, _) = end_of(start(&world, &[whom, "--until", "idle", "--home", "/nope"]));
        assert_eq!(status, 2, "{whom}");
    }
}

#[test]
fn an_unknown_that_nothing_can_change_is_3() {
    let world = World::new();
    let posing = world.pose_as_claude();
    let record = world.write_claude_record(posing.pid(), &posing.start(), &world.s1);
    // The record names process 1, so the state of its session stays unknown.
    let text = std::fs::read_to_string(&record).unwrap();
    let pid = posing.pid();
    drop(posing);
    let text = text.replace(&format!("\"pid\":{pid}"), "\"pid\":1");
    std::fs::write(&record, text).ok();
    let other = record.with_file_name("1.json");
    std::fs::rename(&record, &other).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o666);
    std::fs::set_permissions(&other, mode).unwrap();
    wait_for("the session to be unknown", || {
        let sessions = world.run(["list", "--json", "--cwd", "."]).sessions();
        let is_unknown = |one: &serde_json::Value| one["liveness"] == "unknown";
        sessions.iter().any(is_unknown).then_some(())
    });
    let (status, out) = end_of(start(&world, &[&world.s1, "--until", "idle"]));
    assert_eq!(status, 3, "{out}");
    assert!(out.contains("unknown"), "{out}");
}

#[test]
fn a_clean_end_is_an_exit_once_the_process_that_removed_its_sidecar_is_gone() {
    let world = World::new();
    let mut posing = world.pose("my-agent", |_| {});
    let fields = json!({
        "pid": posing.pid(),
        "my_agent_version": null,
        "process_start": posing.start(),
        "process_start_kind": "linux-ticks",
    });
    let sidecar = world.announce("my-agent", &world.s1, fields);
    let mut watching = Watching::start(&world);
    assert!(is(&watching.state, &world.s1, "liveness", "live"));
    let mut exit = start(&world, &[&world.s1, "--until", "exited"]);
    assert!(still_waits(&mut exit));
    std::fs::remove_file(sidecar).unwrap();
    watching.until("the removal", |state| {
        session_in(state, &world.s1).is_none()
    });
    let last = |watching: &Watching| watching.read.last().unwrap().1.clone();
    assert_eq!(last(&watching)["why"], "hidden");
    assert_eq!(last(&watching)["session"]["liveness"], "unknown");
    assert!(still_waits(&mut exit));
    posing.kill();
    posing.reap();
    let (status, out) = end_of(exit);
    assert_eq!(status, 0, "{out}");
    assert!(out.contains("exited (no-such-process)"), "{out}");
    let end = Duration::from_secs(30);
    while last(&watching)["why"] != "exited" {
        assert!(watching.take(end), "{:#?}", watching.read);
    }
    assert_eq!(last(&watching)["session"]["session_id"], world.s1.as_str());
}
