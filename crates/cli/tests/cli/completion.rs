//! Shell completion.

use super::world::{World, said};

/// The completions in fish for a command line whose last word is being typed.
fn offered(world: &World, words: &[&str]) -> Vec<String> {
    let mut command = world.whosup();
    command
        .env("WHOSUP_COMPLETE", "fish")
        .args(["--", "whosup"]);
    let said = said(command.args(words));
    assert_eq!((said.status, said.err.as_str()), (0, ""));
    said.out.lines().map(str::to_owned).collect()
}

#[test]
fn sessions_are_offered_with_title_and_directory() {
    let world = World::new();
    let posing = world.pose_as_claude();
    world.write_claude_record(posing.pid(), &posing.start(), &world.s1);
    world.write_claude_transcript(".claude", &world.s1);
    for command in ["show", "attach", "send", "stop", "why", "wait"] {
        let lines = offered(&world, &[command, &world.s1[..6]]);
        let [line] = lines.as_slice() else {
            panic!("{command}: {lines:?}");
        };
        assert!(line.starts_with(&world.s1), "{line}");
        assert!(line.contains("Fix the flaky login test"), "{line}");
        assert!(line.contains("~/src/shop"), "{line}");
    }
}

#[test]
fn agents_columns_and_commands_are_offered() {
    let world = World::new();
    let has = |words: &[&str], expected: &str| {
        let lines = offered(&world, words);
        let is_it = |line: &String| line.split('\t').next() == Some(expected);
        assert!(lines.iter().any(is_it), "{words:?}: {lines:?}");
    };
    has(&["list", "--agent", "cla"], "claude-code");
    has(&["list", "--columns", "t"], "tty");
    has(&["list", "--columns", "c"], "cpu");
    has(&["list", "--sort", "a"], "age");
    has(&["list", "--fo"], "--format");
    has(&["att"], "attach");
    has(&["help", "ho"], "hooks");
    has(&["help", "hooks", "in"], "install");
    assert_eq!(offered(&world, &["help", "hooks", "att"]), [""; 0]);
    // Only the options are left.
    let lines = offered(&world, &["help", "list", ""]);
    assert!(lines.iter().all(|line| line.starts_with("--")), "{lines:?}");
}

#[test]
fn the_script_of_bash_asks_for_completions() {
    let world = World::new();
    let posing = world.pose_as_claude();
    world.write_claude_record(posing.pid(), &posing.start(), &world.s1);
    let script = world.run(["completions", "bash"]).out;
    let function = script
        .split_whitespace()
        .find(|word| word.starts_with("_clap_complete"))
        .unwrap()
        .trim_end_matches("()")
        .to_owned();
    let file = world.write("completions", &script);
    let directory = std::path::Path::new(super::world::WHOSUP).parent().unwrap();
    let line = format!(
        "PATH='{}':$PATH; source '{}'; COMP_WORDS=(whosup show {}); COMP_CWORD=2; \
         COMP_TYPE=9; {function} whosup; echo \"${{COMPREPLY[@]}}\"",
        directory.display(),
        file.display(),
        &world.s1[..6]
    );
    let mut bash = std::process::Command::new("bash");
    bash.env("HOME", world.home()).current_dir(world.work_dir());
    let output = bash.args(["-c", &line]).output().unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(
        printed.contains(&world.s1),
        "{printed:?} {:?}",
        output.stderr
    );
}

#[test]
fn programs_and_paths_are_offered_behind_run() {
    let world = World::new();
    let program = world.write("bin/my-agent", "");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(program, mode).unwrap();
    world.write("bin/my-notes", "");
    std::fs::write(world.work_dir().join("my-plan.md"), "").unwrap();
    let names = |words: &[&str]| -> Vec<String> {
        let mut command = world.whosup();
        command
            .env("WHOSUP_COMPLETE", "fish")
            .env("PATH", world.home().join("bin"))
            .args(["--", "whosup"]);
        let lines = said(command.args(words)).out;
        let names = lines.lines().filter_map(|line| line.split('\t').next());
        names.map(str::to_owned).collect()
    };
    assert_eq!(names(&["run", "--", "my-"]), ["my-agent"]);
    assert_eq!(names(&["run", "--pty", "--", "my-"]), ["my-agent"]);
    assert_eq!(names(&["run", "--", "my-agent", "my-"]), ["my-plan.md"]);
}

#[test]
fn commands_of_whosup_are_offered_behind_demo() {
    let world = World::new();
    let posing = world.pose_as_claude();
    world.write_claude_record(posing.pid(), &posing.start(), &world.s1);
    let has = |words: &[&str], expected: &str| {
        let lines = offered(&world, words);
        let is_it = |line: &String| line.split('\t').next() == Some(expected);
        lines.iter().any(is_it)
    };
    assert!(has(&["demo", "--", "sh"], "show"));
    assert!(has(&["demo", "--", "list", "--phase", "wa"], "waiting"));
    // The sessions of the demo, not those of this machine.
    let demo = "4f1c0a52-6b0e-4c59-8a1d-2f6f0c9b7d11";
    assert!(has(&["demo", "--", "show", ""], demo));
    assert!(!has(&["demo", "--", "show", ""], &world.s1));
}

#[test]
fn hidden_commands_are_never_offered() {
    let world = World::new();
    for words in [&["after"][..], &["demo", "--", "after"], &["help", "after"]] {
        assert_eq!(offered(&world, words), [""; 0], "{words:?}");
    }
    let nushell = world.run(["completions", "nushell"]).out;
    assert!(
        nushell.contains("export extern \"whosup list\""),
        "{nushell}"
    );
    assert!(nushell.contains("--liveness"), "{nushell}");
    assert!(!nushell.contains("after-end"), "{nushell}");
}

/// Runs a line in a shell with whosup on its search path.
fn run_in(world: &World, shell: &str, arguments: &[&str]) -> Option<String> {
    let directory = std::path::Path::new(super::world::WHOSUP).parent().unwrap();
    let search = format!("{}:{}", directory.display(), std::env::var("PATH").unwrap());
    let mut command = std::process::Command::new(shell);
    command
        .args(arguments)
        .env("HOME", world.home())
        .env("PATH", search)
        .env_remove("XDG_STATE_HOME")
        .current_dir(world.work_dir());
    let Ok(output) = command.output() else {
        eprintln!("skipped: there is no {shell} here");
        return None;
    };
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{shell}: {error}");
    Some(String::from_utf8(output.stdout).unwrap())
}

#[test]
fn the_script_of_zsh_completes() {
    let world = World::new();
    let posing = world.pose_as_claude();
    world.write_claude_record(posing.pid(), &posing.start(), &world.s1);
    world.write_claude_transcript(".claude", &world.s1);
    let script = world.run(["completions", "zsh"]).out;
    let file = world.write("functions/_whosup", &script);
    // zsh shows what it passes to `_describe`.
    let line = format!(
        "compdef() {{ }}; _describe() {{ print -rl -- \"${{(@P)3}}\" }}; compadd() {{ print -rl -- \"$@\" }}; \
         source '{}'; words=(whosup show {}); CURRENT=3; PREFIX={}; _clap_dynamic_completer_whosup",
        file.display(),
        &world.s1[..6],
        &world.s1[..6],
    );
    if let Some(printed) = run_in(&world, "zsh", &["-f", "-c", &line]) {
        assert!(printed.contains(&world.s1), "{printed}");
        assert!(printed.contains("Fix the flaky login test"), "{printed}");
    }
}

#[test]
fn the_script_of_fish_completes() {
    let world = World::new();
    let posing = world.pose_as_claude();
    world.write_claude_record(posing.pid(), &posing.start(), &world.s1);
    world.write_claude_transcript(".claude", &world.s1);
    let script = world.run(["completions", "fish"]).out;
    let file = world.write("whosup.fish", &script);
    let line = format!(
        "source '{}'; complete -C 'whosup show {}'",
        file.display(),
        &world.s1[..6]
    );
    if let Some(printed) = run_in(&world, "fish", &["--no-config", "-c", &line]) {
        assert!(printed.starts_with(&world.s1), "{printed}");
        assert!(printed.contains("Fix the flaky login test"), "{printed}");
    }
}

/// Announces a session of an agent without an adapter.
fn announce(world: &World, agent: &str, session: &str) {
    let fields = serde_json::json!({
        "pid": 1, "hostname": "another", "started_at": 1_730_000_000.0,
    });
    world.announce(agent, session, fields);
}

#[test]
fn an_id_that_a_shell_would_take_apart_is_not_offered() {
    let world = World::new();
    for session in [
        "job$(touch pwned)",
        "job;id",
        "job `id`",
        "job'",
        "job-1.a_b",
    ] {
        announce(&world, "alpha", session);
    }
    assert_eq!(
        world
            .run(["list", "--agent", "alpha", "-q"])
            .out
            .lines()
            .count(),
        5
    );
    for words in [
        ["check", "job"],
        ["check", "alpha:job"],
        ["why", "job"],
        ["attach", "job"],
    ] {
        let lines = offered(&world, &words);
        assert_eq!(lines.len(), 1, "{words:?}: {lines:?}");
        assert!(lines[0].contains("job-1.a_b"), "{lines:?}");
    }
}

#[test]
fn an_id_of_two_agents_is_offered_with_its_agent() {
    let world = World::new();
    for (agent, session) in [("alpha", "f-1"), ("beta", "f-1"), ("beta", "f-2")] {
        announce(&world, agent, session);
    }
    let ids = |typed: &str| -> Vec<String> {
        let lines = offered(&world, &["check", typed]);
        let ids = lines.iter().filter_map(|line| line.split('\t').next());
        ids.map(str::to_owned).collect()
    };
    assert_eq!(ids("f"), ["f-2"]);
    assert_eq!(ids("al"), ["alpha:f-1"]);
    let mut of_beta = ids("beta:");
    of_beta.sort_unstable();
    assert_eq!(of_beta, ["beta:f-1", "beta:f-2"]);
    assert_eq!(ids("beta:f-2"), ["beta:f-2"]);
}
