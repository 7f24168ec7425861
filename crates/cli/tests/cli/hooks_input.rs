//! The input of hooks: whatever it is, they print nothing, always succeed, and end.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

use super::shell_agent::{event, record_of};
use super::world::{WHOSUP, World, said, wait_for};

/// A hook that waits for its input; no agent runs it.
pub(crate) fn hook_of(world: &World) -> std::process::Child {
    Command::new(WHOSUP)
        .args(["hook", "claude-code"])
        .env_clear()
        .env("HOME", world.home())
        .current_dir(world.work_dir())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

#[test]
fn a_hook_says_nothing_and_exits_with_0_whatever_it_is_given() {
    let world = World::new();
    let huge = format!("{{\"session_id\":\"s\",\"x\":\"{}\"}}", "x".repeat(2 << 20));
    let cases: &[(&[&str], &str, &str)] = &[
        (&["hook", "claude-code"], "", "empty"),
        (&["hook", "claude-code"], "nonsense", "JSON"),
        (
            &["hook", "claude-code"],
            "{\"hook_event_name\":\"Stop\",\"session_id\":\"../x\"}",
            "session_id",
        ),
        (&["hook", "claude-code"], &huge, "longer than"),
        (&["hook", "no-such-agent"], "{}", "no-such-agent"),
        (&["hook", "../../etc"], "{}", "../../etc"),
        (&["hook"], "{}", "hook"),
        (&["hook", "--no-such-option"], "{}", "hook"),
    ];
    for (arguments, input, noted) in cases {
        let answer = said(world.whosup().args(*arguments).write_stdin(*input));
        assert_eq!(
            (answer.status, answer.out.as_str(), answer.err.as_str()),
            (0, "", ""),
            "{arguments:?}"
        );
        let log = std::fs::read_to_string(world.home().join(".local/state/whosup/hook.log"));
        let log = log.unwrap_or_default();
        let last = log.lines().last().unwrap_or_default();
        assert!(last.contains(noted), "{arguments:?}: {last}");
    }
}

#[test]
fn input_that_never_ends_is_given_up_after_a_second() {
    let world = World::new();
    for (input, is_event) in [("{\"hook_event_name\":", false), ("", false)] {
        let mut hook = hook_of(&world);
        let began = Instant::now();
        let mut stdin = hook.stdin.take().unwrap();
        stdin.write_all(input.as_bytes()).unwrap();
        let status = wait_for("the hook to give up", || hook.try_wait().unwrap());
        assert!(status.success());
        assert!(began.elapsed() >= Duration::from_millis(900), "{is_event}");
        drop(stdin);
    }
    // A whole event is read though the input stays open.
    let mut hook = hook_of(&world);
    let mut stdin = hook.stdin.take().unwrap();
    let hook_event = event(&world, &world.s1, "Stop", json!({}));
    stdin.write_all(hook_event.to_string().as_bytes()).unwrap();
    let status = wait_for("the hook to end", || hook.try_wait().unwrap());
    assert!(status.success());
    assert_eq!(record_of(&world, &world.s1)["phase"], "idle");
    drop(stdin);
}

#[test]
fn the_log_of_problems_stays_small() {
    let world = World::new();
    let log = world.write(".local/state/whosup/hook.log", "x".repeat(300 * 1024));
    let answer = said(world.whosup().args(["hook", "no-agent"]).write_stdin("{}"));
    assert_eq!(answer.status, 0);
    assert!(std::fs::metadata(&log).unwrap().len() < 1024);
    assert!(log.with_extension("log.old").exists());
}
