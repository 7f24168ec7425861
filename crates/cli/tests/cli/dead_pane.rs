//! The exit status of an agent whose pane tmux keeps.

use std::path::Path;
use std::process::Command;

use serde_json::json;

use super::shell_agent::{event, record_of};
use super::terminal::Tmux;
use super::world::{WHOSUP, World, ignoring_pid_reuse, wait_for};

/// Runs a line of shell in a new pane that stays after its end, and waits for that end.
fn run_in_pane(tmux: &Tmux, line: &str) {
    let made = tmux.run(&["new-window", "-P", "-F", "#{pane_id}", line]);
    let pane = String::from_utf8(made.stdout).unwrap().trim().to_owned();
    wait_for("the pane to be dead", || {
        let answer = tmux.run(&["display-message", "-p", "-t", &pane, "#{pane_dead}"]);
        (answer.stdout == b"1\n").then_some(())
    });
}

/// A line that runs the agent, whose hook reports a turn and which then does `last`.
fn agent_line(world: &World, program: &Path, session: &str, last: &str) -> String {
    let hook_event = event(world, session, "UserPromptSubmit", json!({"prompt": "p"}));
    let payload = world.write(&format!("payload-{session}"), hook_event.to_string());
    let script = format!(
        "'{WHOSUP}' hook claude-code < '{}'\n{last}\n",
        payload.display()
    );
    let script = world.write(&format!("script-{session}"), script);
    format!(
        "env -i HOME='{}' PATH=\"$PATH\" TMUX=\"$TMUX\" TMUX_PANE=\"$TMUX_PANE\" '{}' '{}'",
        world.home().display(),
        program.display(),
        script.display()
    )
}

#[test]
fn only_a_pane_that_waited_for_the_agent_itself_knows_how_it_ended() {
    let world = World::new();
    let program = world.shell_as_claude();
    let Some(tmux) = Tmux::start(&world, 80, "exec cat") else {
        return;
    };
    tmux.run(&["set-option", "-g", "remain-on-exit", "on"]);
    let third = format!("0b{}", &world.s1[2..]);
    let line = |session: &str, last: &str| agent_line(&world, &program, session, last);
    run_in_pane(&tmux, &format!("exec {}", line(&world.s1, "kill -9 $$")));
    run_in_pane(&tmux, &format!("exec {}", line(&world.s2, "exit 3")));
    // Here the pane's status is that of the shell around it.
    run_in_pane(&tmux, &format!("{}; exit 5", line(&third, "kill -9 $$")));

    let said = world.run(["sweep"]);
    for (session, cause) in [
        (&world.s1, "signal 9"),
        (&world.s2, "exit code 3"),
        (&third, "process-gone"),
    ] {
        let record = record_of(&world, session);
        let reported = ignoring_pid_reuse(record["end_cause"].as_str().unwrap_or_default());
        assert_eq!(reported, cause, "{record} {}{}", said.out, said.err);
        assert_eq!(record["ended_at"], record["last_event_at"]);
    }
    let shown = world.run(["show", &world.s1]).out;
    assert!(shown.contains("end cause     signal 9"), "{shown}");
}

/// The parent has not waited for it yet, so the kernel still has the exit status.
#[test]
fn a_zombie_shows_how_it_ended_until_its_parent_has_waited_for_it() {
    let world = World::new();
    let program = world.shell_as_claude();
    let third = format!("0c{}", &world.s1[2..]);
    let mut zombies = Vec::new();
    for (session, last) in [
        (&world.s1, "kill -9 $$"),
        (&world.s2, "exit 3"),
        (&third, "kill -9 $$"),
    ] {
        let line = agent_line(&world, &program, session, last);
        let child = Command::new("sh")
            .args(["-c", &format!("exec {line}")])
            .spawn();
        let child = child.unwrap();
        let stat = format!("/proc/{}/stat", child.id());
        wait_for("it to be a zombie", || {
            let stat = std::fs::read_to_string(&stat).unwrap();
            let (_, fields) = stat.rsplit_once(") ").unwrap();
            fields.starts_with('Z').then_some(())
        });
        zombies.push(child);
    }
    zombies.pop().unwrap().wait().unwrap();
    let said = world.run(["sweep"]);
    for child in &mut zombies {
        child.wait().unwrap();
    }
    for (session, cause) in [
        (&world.s1, "signal 9"),
        (&world.s2, "exit code 3"),
        (&third, "process-gone"),
    ] {
        let record = record_of(&world, session);
        let reported = ignoring_pid_reuse(record["end_cause"].as_str().unwrap());
        assert_eq!(reported, cause, "{} {}", said.out, said.err);
    }
}
