//! `status`: its sweep, and its lines.

use serde_json::{Value, json};

use super::sandboxes::{is_root, run_in};
use super::shell_agent::{ShellAgent, event, owner_elsewhere, write_record};
use super::world::{World, copy_program};

/// Starts a program in a PID namespace, which ends with it.
const OWN_PROCESSES: [&str; 5] = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"];

/// A line of shell that starts an agent, whose hooks report these events, and waits until
/// they have.
fn agent_line(world: &World, session: &str, events: &[Value]) -> String {
    let mut script = String::new();
    for (number, hook_event) in events.iter().enumerate() {
        let payload = world.write(&format!("{session}-{number}"), hook_event.to_string());
        script += &format!("\"$WHOSUP\" hook claude-code < '{}'\n", payload.display());
    }
    let ready = world.home().join(format!("{session}-ready"));
    script += &format!("mkdir '{}'\nwhile :; do sleep 0.1; done\n", ready.display());
    let script = world.write(&format!("{session}-script"), script);
    format!(
        "'{}' '{}' >/dev/null & while [ ! -d '{}' ]; do sleep 0.02; done; ",
        world
            .root()
            .join("opt/@anthropic-ai/claude-code/bin/claude")
            .display(),
        script.display(),
        ready.display()
    )
}

/// Runs a line of shell with three sessions: one works, one waits, one is unknown. They
/// have a PID namespace of their own, since other tests run agents too.
fn among_three_sessions(world: &World, line: &str) -> Option<String> {
    if !is_root() {
        return None;
    }
    let program = world
        .root()
        .join("opt/@anthropic-ai/claude-code/bin/claude");
    std::fs::create_dir_all(program.parent().unwrap()).unwrap();
    copy_program("/bin/sh", &program);
    let turn = |session: &str| event(world, session, "UserPromptSubmit", json!({"prompt": "p"}));
    let asked = json!({"tool_name": "Bash", "tool_input": {"command": "ls"}});
    let asked = event(world, &world.s2, "PermissionRequest", asked);
    let agents = agent_line(world, &world.s1, &[turn(&world.s1)])
        + &agent_line(world, &world.s2, &[turn(&world.s2), asked]);
    let stale = format!("0c{}", &world.s1[2..]);
    let lost = json!({"owner": owner_elsewhere(), "work_dir": "/w/elsewhere"});
    write_record(world, &stale, &lost);
    // The agents of the namespace end with its first process.
    run_in(world, &OWN_PROCESSES, &format!("{agents}{line}"))
}

#[test]
fn every_form_is_one_line_of_numbers_for_its_reader() {
    let world = World::new();
    let line = "for form in plain starship tmux waybar; do \
                \"$WHOSUP\" status --format $form 2>&1; done";
    if is_root()
        && let Some(nothing) = run_in(&world, &OWN_PROCESSES, line)
    {
        let empty = "{\"class\":\"none\",\"text\":\"\",\"tooltip\":\"\"}";
        assert_eq!(nothing, format!("\n\n\n{empty}\n"));
    }
    let Some(answer) = among_three_sessions(&world, line) else {
        return;
    };
    let lines: Vec<&str> = answer.lines().collect();
    let plain = "1 waiting, 1 working, 1 stale";
    let coloured = "#[fg=yellow]1 waiting#[default], #[fg=green]1 working#[default], 1 stale";
    assert_eq!(lines[..3], [plain, plain, coloured], "{answer}");
    let for_waybar: Value = serde_json::from_str(lines[3]).unwrap();
    let expected = json!({ "text": plain, "tooltip": plain, "class": "waiting" });
    assert_eq!((for_waybar, lines.len()), (expected, 4));
}

#[test]
fn status_says_once_how_many_it_ended_and_then_what_goes_on_the_newest_first() {
    let world = World::new();
    let Some(answer) = among_three_sessions(&world, "\"$WHOSUP\" status") else {
        return;
    };
    let lines: Vec<&str> = answer.lines().collect();
    let row = |words: &str, id: &str| format!("  {words}  claude-code {}", &id[..8]);
    let waiting = row("waiting for you (permission)", &world.s2);
    assert_eq!(lines[0], "~/src/shop", "{answer}");
    assert!(lines[1].starts_with(&waiting), "{answer}");
    assert!(lines[2].starts_with(&row("working", &world.s1)), "{answer}");
    assert_eq!(lines[3], "/w/elsewhere", "{answer}");
    assert!(lines[4].starts_with("  stale  claude-code 0c"), "{answer}");
    assert_eq!(lines[5..], ["1 waiting, 1 working, 1 stale"], "{answer}");

    let world = World::new();
    let mut agents = [ShellAgent::start(&world), ShellAgent::start(&world)];
    agents[0].prompt(&world.s1);
    agents[1].prompt(&world.s2);
    for agent in &mut agents {
        agent.kill();
    }
    let answer = world.run(["status"]).out;
    let first = "ended 2 sessions whose agent had exited\n";
    assert!(answer.starts_with(first), "{answer}");
    let answer = world.run(["status"]).out;
    assert!(!answer.contains("whose agent had exited"), "{answer}");
}

#[test]
fn an_unknown_session_is_stale_only_after_an_hour_of_silence() {
    let world = World::new();
    let heard = |minutes: i64| -> Value {
        let now_ms = i64::try_from(super::world::now_ms()).unwrap();
        json!(whosup_core::views::wire::timestamp(now_ms - minutes * 60_000).unwrap())
    };
    for (session, minutes) in [(&world.s1, 58), (&world.s2, 62)] {
        let lost = json!({"owner": owner_elsewhere(), "last_event_at": heard(minutes)});
        write_record(&world, session, &lost);
    }
    let answer = world.run(["status"]).out;
    assert!(
        answer.contains(&format!("  unknown  claude-code {}", &world.s1[..8])),
        "{answer}"
    );
    assert!(
        answer.contains(&format!("  stale  claude-code {}", &world.s2[..8])),
        "{answer}"
    );
    let answer = world.run(["doctor"]).out;
    assert!(
        !answer.contains(&format!("session {} is stale", world.s1)),
        "{answer}"
    );
    assert!(
        answer.contains(&format!("session {} is stale", world.s2)),
        "{answer}"
    );
}

#[test]
fn a_failed_sweep_does_not_stop_the_command() {
    let world = World::new();
    let agent = world.pose_as_claude();
    world.write_claude_record(agent.pid(), &agent.start(), &world.s1);
    // A file is in the place of the records' directory.
    world.write(".local/state/whosup/sessions", "");
    let answer = world.run(["status"]);
    assert_eq!(answer.status, 0, "{}", answer.err);
    assert!(answer.out.contains(&world.s1[..8]), "{}", answer.out);
    let hook_event = event(&world, &world.s1, "Stop", json!({})).to_string();
    let mut hook = world.whosup();
    let answer = super::world::said(hook.args(["hook", "claude-code"]).write_stdin(hook_event));
    assert_eq!((answer.status, answer.out.as_str()), (0, ""));
}
