//! `status`: what it ends first, and its lines.

use serde_json::{Value, json};

use super::shell_agent::{ShellAgent, event, owner_elsewhere, write_record};
use super::world::World;

/// A home with a session that works, one that waits and one that nobody can tell of.
fn three_sessions(world: &World) -> [ShellAgent<'_>; 2] {
    let mut agents = [ShellAgent::start(world), ShellAgent::start(world)];
    agents[0].prompt(&world.s1);
    agents[1].prompt(&world.s2);
    let asked = json!({"tool_name": "Bash", "tool_input": {"command": "ls"}});
    agents[1].tell(&world.s2, "PermissionRequest", asked);
    let stale = format!("0c{}", &world.s1[2..]);
    let lost = json!({"owner": owner_elsewhere(), "work_dir": "/w/elsewhere"});
    write_record(world, &stale, &lost);
    agents
}

#[test]
fn every_form_is_one_line_of_numbers_for_its_reader() {
    let world = World::new();
    let empty = |form: &str| world.run(["status", "--format", form]).out;
    for (form, line) in [
        ("plain", "\n"),
        ("starship", "\n"),
        ("tmux", "\n"),
        (
            "waybar",
            "{\"class\":\"none\",\"text\":\"\",\"tooltip\":\"\"}\n",
        ),
    ] {
        assert_eq!(empty(form), line, "{form}");
    }
    let _agents = three_sessions(&world);
    for (form, line) in [
        ("plain", "1 waiting, 1 working, 1 stale\n"),
        ("starship", "1 waiting, 1 working, 1 stale\n"),
        (
            "tmux",
            "#[fg=yellow]1 waiting#[default], #[fg=green]1 working#[default], 1 stale\n",
        ),
    ] {
        let answer = world.run(["status", "--format", form]);
        assert_eq!(
            (answer.status, answer.out.as_str()),
            (0, line),
            "{form}: {}",
            answer.err
        );
    }
    let answer = world.run(["status", "--format", "waybar"]);
    assert_eq!(answer.out.lines().count(), 1, "{}", answer.out);
    let expected = json!({
        "text": "1 waiting, 1 working, 1 stale",
        "tooltip": "1 waiting, 1 working, 1 stale",
        "class": "waiting",
    });
    assert_eq!(answer.json(), expected);
}

#[test]
fn status_says_once_how_many_it_ended_and_then_what_goes_on_the_newest_first() {
    let world = World::new();
    let [working, mut waiting] = three_sessions(&world);
    let answer = world.run(["status"]).out;
    let lines: Vec<&str> = answer.lines().collect();
    let row = |words: &str, id: &str| format!("  {words}  claude-code {}", &id[..8]);
    assert_eq!(lines[0], "~/src/shop", "{answer}");
    assert!(
        lines[1].starts_with(&row("waiting for you (permission)", &world.s2)),
        "{answer}"
    );
    assert!(lines[2].starts_with(&row("working", &world.s1)), "{answer}");
    assert_eq!(lines[3], "/w/elsewhere", "{answer}");
    assert!(lines[4].starts_with("  stale  claude-code 0c"), "{answer}");
    assert_eq!(lines[5], "1 waiting, 1 working, 1 stale", "{answer}");

    // Heard of last, so first.
    waiting.kill();
    drop(working);
    let answer = world.run(["status"]).out;
    assert!(
        answer.starts_with("ended 2 sessions whose agent had exited\n"),
        "{answer}"
    );
    assert!(
        !answer.contains("working") && !answer.contains("waiting"),
        "{answer}"
    );
    let answer = world.run(["status"]).out;
    assert!(!answer.contains("whose agent had exited"), "{answer}");
}

#[test]
fn what_is_unknown_is_stale_only_after_an_hour_of_silence() {
    let world = World::new();
    let heard = |minutes: i64| -> Value {
        let now_ms = i64::try_from(super::world::now_ms()).unwrap();
        json!(whosup_core::wire::timestamp(now_ms - minutes * 60_000).unwrap())
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
fn a_sweep_that_can_not_be_made_stops_nobody_from_looking() {
    let world = World::new();
    let agent = world.pose_as_claude();
    world.write_claude_record(agent.pid(), &agent.start(), &world.s1);
    // A file is in the place of the records.
    world.write(".local/state/whosup/sessions", "");
    let answer = world.run(["status"]);
    assert_eq!(answer.status, 0, "{}", answer.err);
    assert!(answer.out.contains(&world.s1[..8]), "{}", answer.out);
    let told = event(&world, &world.s1, "Stop", json!({})).to_string();
    let mut hook = world.whosup();
    let answer = super::world::said(hook.args(["hook", "claude-code"]).write_stdin(told));
    assert_eq!((answer.status, answer.out.as_str()), (0, ""));
}
