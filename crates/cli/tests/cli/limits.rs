//! What is left where no thread or process can be started, and where a command leaves
//! its output to somebody else.

use std::time::{Duration, Instant};

use serde_json::json;

use super::sandboxes::{is_root, run_in};
use super::shell_agent::event;
use super::world::{World, copy_program, said};

/// A user of whom no process runs, so that the limit of processes counts ours alone.
const LONELY: &str = "54321";

/// Lets another user use a world.
fn give_to(world: &World, user: &str) {
    for arguments in [
        vec!["chmod", "-R", "a+rX", world.root().to_str().unwrap()],
        vec!["chown", "-R", user, world.home().to_str().unwrap()],
    ] {
        let status = std::process::Command::new(arguments[0])
            .args(&arguments[1..])
            .status();
        assert!(status.unwrap().success());
    }
}

/// An agent's burst of processes, or a container's `pids.max`, left no thread: whosup
/// panicked, and the hook's event was lost.
#[test]
fn without_threads_an_event_is_kept_and_sessions_are_listed() {
    if !is_root() {
        return;
    }
    let world = World::new();
    let told = event(
        &world,
        &world.s1,
        "SessionStart",
        json!({"source": "startup"}),
    );
    let payload = world.write("event", told.to_string());
    world.write_claude_transcript(".claude", &world.s2);
    give_to(&world, LONELY);
    let wrapper = [
        "setpriv",
        "--reuid",
        LONELY,
        "--regid",
        LONELY,
        "--clear-groups",
        "--",
    ];
    // The shell that sets the limit counts too, and is replaced by what is limited.
    let line = format!(
        "limited() {{ (ulimit -u 1 && exec \"$WHOSUP\" \"$@\"); }}; \
         (ulimit -u 1 && (exec true) 2>/dev/null) && echo unlimited && exit 0; \
         limited hook claude-code <'{}' || exit 1; \
         limited list --all --json",
        payload.display()
    );
    let Some(answer) = run_in(&world, &wrapper, &line) else {
        panic!("it fails");
    };
    if answer.trim() == "unlimited" {
        eprintln!("skipped: the limit of processes does not hold here");
        return;
    }
    let answer: serde_json::Value = serde_json::from_str(&answer).unwrap();
    for id in [&world.s1, &world.s2] {
        let sessions = answer["sessions"].as_array().unwrap();
        assert!(
            sessions.iter().any(|one| one["session_id"] == json!(id)),
            "{id}: {answer}"
        );
    }
}

/// A `tmux` on PATH that leaves a child behind which holds the output.
#[test]
fn a_child_that_a_pane_host_leaves_behind_is_not_waited_for() {
    let world = World::new();
    let bin = world.root().join("bin");
    std::fs::create_dir(&bin).unwrap();
    let left = world.root().join("left");
    let script = format!(
        "#!/bin/sh\nsleep 120 &\necho $! >'{}'\nexit 0\n",
        left.display()
    );
    let tmux = world.write("tmux", script);
    copy_program(&tmux, bin.join("tmux"));
    let status = std::process::Command::new("chmod")
        .args(["755", bin.join("tmux").to_str().unwrap()])
        .status();
    assert!(status.unwrap().success());
    // A socket of ours, so that it is asked for panes, and an agent in a terminal.
    let socket = world.root().join("socket");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let agent = world.pose_as_claude();
    world.write_claude_record(agent.pid(), &agent.start(), &world.s1);
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let began = Instant::now();
    let answer = said(
        world
            .whosup()
            .args(["list", "--json"])
            .env("PATH", path)
            .env("TMUX", format!("{},1,0", socket.display())),
    );
    let took = began.elapsed();
    if let Ok(left) = std::fs::read_to_string(&left) {
        // A child of our script's.
        std::process::Command::new("kill")
            .arg(left.trim())
            .status()
            .ok();
    } else {
        eprintln!("tmux was not asked: no agent here has a terminal");
    }
    assert!(took < Duration::from_secs(60), "{took:?}");
    assert_eq!(answer.status, 0, "{}", answer.err);
}
