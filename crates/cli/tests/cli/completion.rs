//! What a shell offers.

use super::world::{World, said};

/// What fish would show for a command line, of which the last word is being typed.
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
    for command in ["show", "attach", "send", "stop", "why"] {
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
