//! The command line, and the messages for wrong command lines.

use std::process::{Command as StdCommand, Stdio};

use super::world::{WHOSUP, World, said};

#[track_caller]
fn check_usage(arguments: &[&str], names: &[&str]) {
    let said = World::new().run(arguments);
    assert_eq!(said.status, 2, "{arguments:?}: {}", said.err);
    assert_eq!(said.out, "", "{arguments:?}");
    for name in names {
        assert!(
            said.err.contains(name),
            "{arguments:?}: {name}: {}",
            said.err
        );
    }
}

#[test]
fn a_wrong_name_is_answered_with_the_valid_ones() {
    check_usage(&["list", "--agent", "Claude"], &["'Claude'", "lower-case"]);
    check_usage(
        &["hooks", "install", "claude"],
        &["'claude'", "claude-code", "codex", "qwen-code", "kimi-cli"],
    );
    check_usage(
        &["list", "--phase", "busy"],
        &["'busy'", "working", "waiting"],
    );
    check_usage(
        &["list", "--liveness", "dead"],
        &["'dead'", "live", "exited", "unknown"],
    );
    check_usage(
        &["list", "--sort", "size"],
        &["'size'", "state", "age", "cpu"],
    );
    check_usage(
        &["list", "--columns", "id,size"],
        &["'size'", "title", "pane"],
    );
    check_usage(&["list", "--since", "tomorrow"], &["'tomorrow'", "90m"]);
    check_usage(&["list", "--since", "2026-13-01"], &["2026-11-28"]);
    check_usage(
        &["list", "--format", "{sesion_id}"],
        &["`sesion_id`", "`session_id`", "--format help"],
    );
    check_usage(&["list", "--format", "{id"], &["`{id`", "`}`"]);
    for program in ["--json", "--ndjson"] {
        check_usage(&["list", "-q", program], &["--quiet-ids", program]);
        check_usage(
            &["list", "--format", "{id}", program],
            &["--format", program],
        );
    }
    check_usage(
        &["list", "-q", "--format", "{id}"],
        &["--quiet-ids", "--format"],
    );
    check_usage(&["--color", "blue", "list"], &["'blue'", "never"]);
    check_usage(&["lst"], &["'lst'", "list"]);
    check_usage(&["list", "--json", "--ndjson"], &["--json", "--ndjson"]);
    check_usage(&["list", "--json", "--problems"], &["--json", "--problems"]);
}

#[test]
fn a_wrong_id_or_pid_says_why() {
    check_usage(&["show", "../../x"], &["`../../x`", "must not contain `/`"]);
    check_usage(&["check", "--quiet", "a\nb"], &["control character"]);
    check_usage(&["why", "--pid", "0"], &["not a process id"]);
    check_usage(&["why", "--pid", "x"], &["expected a number"]);
    check_usage(&["why"], &["<ID|--pid <N>>"]);
    check_usage(&["why", "0a02", "--pid", "1"], &["cannot be used with"]);
    check_usage(&["show", "0a02", "--tail", "0"], &["0 is not in 1..=1000"]);
}

#[test]
fn a_configuration_that_is_named_must_be_there() {
    let world = World::new();
    let said = world.run(["list", "--config", "/nowhere/config.toml"]);
    assert_eq!(said.status, 2);
    let expected = "error: cannot use the configuration `/nowhere/config.toml`\n\
                    cause: cannot read `/nowhere/config.toml`: ";
    assert!(said.err.starts_with(expected), "{}", said.err);
}

#[test]
fn the_configuration_follows_xdg() {
    let world = World::new();
    let path = world.write("xdg/whosup/config.toml", "[colours]\n");
    let said = said(
        world
            .whosup()
            .env("XDG_CONFIG_HOME", world.home().join("xdg")),
    );
    assert_eq!(said.status, 2);
    assert!(said.err.contains(path.to_str().unwrap()), "{}", said.err);
    assert!(said.err.contains("line 1"), "{}", said.err);
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let world = World::new();
    world.write_claude_transcript(".claude", &world.s1);
    for arguments in [
        &["list", "--all", "--json"][..],
        &["list", "--all", "--ndjson"],
        &["list", "--all"],
        &["show", world.s1.as_str()],
        &["completions", "bash"],
        &["list", "--help"],
    ] {
        let mut child = StdCommand::new(WHOSUP)
            .args(arguments)
            .env_clear()
            .env("HOME", world.home())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        let err = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {err}");
        assert!(!err.contains("error"), "{arguments:?}: {err}");
    }
}

#[test]
fn output_that_cannot_be_written_is_a_failure() {
    let world = World::new();
    world.write_claude_transcript(".claude", &world.s1);
    let Ok(full) = std::fs::File::options().write(true).open("/dev/full") else {
        eprintln!("skipped: /dev/full is not here");
        return;
    };
    // More than the output buffer holds.
    for number in 0..100 {
        let id = format!("00000000-e8f2-410e-9552-{number:012}");
        world.write_claude_transcript(".claude", &id);
    }
    for form in ["--json", "--ndjson"] {
        let output = StdCommand::new(WHOSUP)
            .args(["list", "--all", form])
            .env_clear()
            .env("HOME", world.home())
            .stdin(Stdio::null())
            .stdout(full.try_clone().unwrap())
            .output()
            .unwrap();
        let err = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{form}: {err}");
        assert!(err.contains("No space left on device"), "{form}: {err}");
    }
}

#[test]
fn a_pipe_gets_colours_only_when_they_are_asked_for() {
    let world = World::new();
    world.write_claude_transcript(".claude", &world.s1);
    let run = |arguments: &[&str], variables: &[(&str, &str)]| {
        let mut command = world.whosup();
        command.args(["list", "--all"]).args(arguments);
        for (name, value) in variables {
            command.env(name, value);
        }
        said(&mut command).out.contains('\u{1b}')
    };
    assert!(!run(&[], &[]));
    assert!(!run(&[], &[("CLICOLOR", "1"), ("TERM", "xterm-256color")]));
    assert!(!run(&["--color", "never"], &[("CLICOLOR_FORCE", "1")]));
    assert!(!run(&[], &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]));
    assert!(run(&[], &[("CLICOLOR_FORCE", "1")]));
    assert!(run(&["--color", "always"], &[("NO_COLOR", "1")]));
}

#[test]
fn a_home_that_is_not_set_is_no_failure() {
    let world = World::new();
    let said = said(
        world
            .whosup()
            .env_remove("HOME")
            .args(["list", "--json", "--cwd", "."]),
    );
    assert_eq!(said.status, 0, "{}", said.err);
    assert_eq!(said.sessions().len(), 0);
}

#[test]
fn an_agent_that_announces_its_sessions_is_selected_by_name() {
    let world = World::new();
    let ours = std::env::current_exe().unwrap();
    let fields = serde_json::json!({
        "pid": std::process::id(), "work_dir": std::env::current_dir().unwrap(),
        "executable": ours.canonicalize().unwrap(),
    });
    world.announce("my-agent", &world.s1, fields);

    let said = world.run(["list", "--agent", "my-agent", "--json"]);
    assert_eq!(said.status, 0, "{}", said.err);
    let sessions = said.sessions();
    assert_eq!(sessions.len(), 1, "{}", said.out);
    assert_eq!(sessions[0]["agent"], "my-agent");
    assert_eq!(sessions[0]["liveness"], "live", "{}", said.out);
    assert_eq!(sessions[0]["owner"]["pid"], std::process::id());
    let of_all = world.run(["list", "--json"]).sessions();
    assert!(
        of_all
            .iter()
            .any(|one| one["session_id"] == world.s1.as_str())
    );
    let shown = world.run(["show", &format!("my-agent:{}", world.s1)]);
    assert_eq!(shown.status, 0, "{}", shown.err);
    assert!(shown.out.contains("my-agent"), "{}", shown.out);
    // Another name has no sessions yet.
    let other = world.run(["list", "--agent", "their-agent"]);
    assert_eq!((other.status, other.out.as_str()), (0, ""));
    assert!(other.err.contains("`their-agent`"), "{}", other.err);
    for command in ["check", "pid", "show"] {
        let said = world.run([command, "their-agent:0a"]);
        assert_eq!(said.status, 4, "{command}: {}", said.err);
        assert!(said.err.contains("claude-code, codex"), "{}", said.err);
    }
}

#[test]
fn each_reason_is_named_once() {
    let world = World::new();
    // No record can be written below a file.
    world.write(".local/state/whosup", "");
    let said = world.run(["run", "--", "true"]);
    assert_eq!(said.status, 0, "{}", said.err);
    assert_eq!(said.err.matches("(os error ").count(), 1, "{}", said.err);
    let said = world.run(["list", "--config", "/nowhere/config.toml"]);
    assert_eq!(said.err.matches("no such file").count(), 1, "{}", said.err);
}
