//! Panes of agents whose hooks have no pane in their environment, and the questions to tmux.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use serde_json::{Value, json};

use super::shell_agent::{event, file_of, record_of};
use super::terminal::Tmux;
use super::world::{WHOSUP, World, said, wait_for};

/// A line that runs an agent in an environment without a pane: its hook reports a turn of
/// the session, and it stays until there is a file `end`.
fn agent_line(world: &World, program: &Path, session: &str) -> String {
    let hook_event = event(world, session, "UserPromptSubmit", json!({"prompt": "p"}));
    let payload = world.write(&format!("payload-{session}"), hook_event.to_string());
    let script = format!(
        "'{WHOSUP}' hook claude-code < '{}'\nwhile [ ! -e 'end-{session}' ]; do sleep 0.02; done\n\
         kill -9 $$\n",
        payload.display()
    );
    let script = world.write(&format!("script-{session}"), script);
    format!(
        "cd '{home}' && env -i HOME='{home}' PATH=\"$PATH\" '{}' '{}'",
        program.display(),
        script.display(),
        home = world.home().display(),
    )
}

/// A `tmux` on the path that records its arguments and runs the real tmux.
fn listening_tmux(world: &World) -> String {
    let script = format!(
        "#!/bin/sh\nprintf '%s\\n' \"$*\" >> '{}'\nPATH=\"${{PATH#*:}}\" exec tmux \"$@\"\n",
        world.home().join("asked").display()
    );
    let path = world.write("bin/tmux", script);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    let bin = path.parent().unwrap().display().to_string();
    format!("{bin}:{}", std::env::var("PATH").unwrap())
}

/// The row of a session.
fn row(world: &World, path: &str, variable: &str, session: &str) -> Option<Value> {
    let mut list = world.whosup();
    list.args(["list", "--all", "--json"]);
    let answer = said(list.env("PATH", path).env("TMUX", variable));
    let rows = answer.sessions();
    rows.into_iter().find(|row| row["session_id"] == session)
}

/// The environment of hooks lacked `TMUX` (claude-code#84892), and a new agent in a
/// pane was refused since the pane was taken (herdr#700).
#[test]
fn a_pane_is_found_by_where_an_agent_lives_and_passes_to_the_next_agent() {
    let world = World::new();
    let program = world.shell_as_claude();
    let line = format!(
        "{}; {}; exec cat",
        agent_line(&world, &program, &world.s1),
        agent_line(&world, &program, &world.s2)
    );
    let Some(tmux) = Tmux::start(&world, 80, &line) else {
        return;
    };
    let printed = tmux.run(&[
        "display-message",
        "-p",
        "#{socket_path},#{pid},0 #{pane_id}",
    ]);
    let printed = String::from_utf8(printed.stdout).unwrap();
    let (variable, pane) = printed.trim().split_once(' ').unwrap();
    let path = listening_tmux(&world);
    let live_in_pane = |session: &str| {
        wait_for("the session to be live in the pane", || {
            let row = row(&world, &path, variable, session)?;
            // The line of its hook may be there before its record is.
            let is_recorded = file_of(&world, session, "json").is_file();
            (is_recorded && row["liveness"] == "live" && row["pane"]["pane"] == *pane)
                .then_some(row)
        })
    };
    let first = live_in_pane(&world.s1);
    assert!(record_of(&world, &world.s1)["pane"].is_null());

    world.write(&format!("end-{}", world.s1), "");
    let second = live_in_pane(&world.s2);
    assert_ne!(first["owner"]["pid"], second["owner"]["pid"]);
    let row = row(&world, &path, variable, &world.s1).unwrap();
    assert_eq!(
        (&row["liveness"], &row["pane"]),
        (&json!("exited"), &Value::Null)
    );
    for command in ["status", "doctor", "sweep", "orphans"] {
        said(
            world
                .whosup()
                .arg(command)
                .env("PATH", &path)
                .env("TMUX", variable),
        );
    }
    assert_eq!(record_of(&world, &world.s1)["phase"], "ended");
    assert_eq!(record_of(&world, &world.s2)["phase"], "working");
    live_in_pane(&world.s2);

    // No other sessions were killed (agetor#85, gastown#923): tmux only got questions, and
    // no commands.
    let asked = std::fs::read_to_string(world.home().join("asked")).unwrap();
    let is_question = |line: &str| {
        let mut words = line.split(' ');
        words.any(|word| ["list-panes", "list-clients", "display-message", "-V"].contains(&word))
    };
    assert!(asked.lines().all(is_question), "{asked}");
    assert!(!asked.contains("kill"), "{asked}");
    assert!(asked.lines().count() >= 5, "{asked}");
}

/// Claude Code runs its hook for the end of a session also when its terminal is closed.
#[test]
fn a_session_whose_terminal_was_closed_is_an_orphan_though_its_agent_announced_the_end() {
    let world = World::new();
    let program = world.shell_as_claude();
    let line = |session: &str, reason: &str, until: &str| {
        let payload = |name: &str, more: Value| {
            let payload = event(&world, session, name, more).to_string();
            world.write(&format!("{name}-{session}"), payload)
        };
        let start = payload("SessionStart", json!({"source": "startup"}));
        let end = payload("SessionEnd", json!({ "reason": reason }));
        let hook =
            |payload: &Path| format!("'{WHOSUP}' hook claude-code < '{}'", payload.display());
        let script = format!(
            "end() {{ {}; exit 0; }}\ntrap end HUP\n{}\n{until}\nend\n",
            hook(&end),
            hook(&start),
        );
        let script = world.write(&format!("script-{session}"), script);
        format!(
            "cd '{home}' && env -i HOME='{home}' PATH=\"$PATH\" '{}' '{}'",
            program.display(),
            script.display(),
            home = world.home().display(),
        )
    };
    let waits = "while :; do sleep 0.02; done";
    let panes = format!(
        "{}; {}",
        line(&world.s1, "prompt_input_exit", ":"),
        line(&world.s2, "other", waits)
    );
    let Some(tmux) = Tmux::start(&world, 80, &panes) else {
        return;
    };
    let ended = |session: &str| {
        wait_for("the end of the session to be recorded", || {
            file_of(&world, session, "json").is_file().then_some(())?;
            let record = record_of(&world, session);
            (record["phase"] == "ended").then_some(record)
        })
    };
    assert_eq!(ended(&world.s1)["end_cause"], "exit-hook");
    wait_for("the second session to begin", || {
        file_of(&world, &world.s2, "json").is_file().then_some(())
    });
    tmux.run(&["kill-server"]);
    let record = ended(&world.s2);
    assert_eq!(record["end_cause"], "terminal-closed", "{record}");
    let pid = record["owner"]["pid"].as_i64().unwrap();
    wait_for("the agent to be gone", || {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        (stat.is_empty() || stat.contains(") Z ")).then_some(())
    });
    let mut orphans = world.whosup();
    orphans.args(["orphans", "--json", "--cwd", "."]);
    let rows = said(&mut orphans).sessions();
    let ids: Vec<&Value> = rows.iter().map(|row| &row["session_id"]).collect();
    assert_eq!(ids, [&json!(world.s2)]);
}
