//! The output of `--help`.

use super::world::{World, said};

#[test]
fn every_command_explains_itself_with_examples() {
    let world = World::new();
    let commands = [
        "",
        "list",
        "show",
        "why",
        "check",
        "pid",
        "watch",
        "top",
        "wait",
        "notify",
        "status",
        "doctor",
        "orphans",
        "resume",
        "attach",
        "send",
        "stop",
        "usage",
        "dismiss",
        "end",
        "hook",
        "hooks",
        "sweep",
        "agents",
        "demo",
        "run",
        "serve",
        "service",
        "conformance",
        "help",
        "completions",
        "man",
    ];
    for command in commands {
        let arguments = command.split_whitespace().chain(["--help"]);
        let said = said(world.whosup().env("COLUMNS", "100").args(arguments));
        assert_eq!((said.status, said.err.as_str()), (0, ""), "{command}");
        assert!(said.out.contains("Examples:"), "{command}: {}", said.out);
        let name = if command.is_empty() {
            "whosup"
        } else {
            command
        };
        insta::assert_snapshot!(format!("help_{name}"), said.out);
    }
}

#[test]
fn help_is_another_way_to_ask_for_help() {
    let world = World::new();
    for (words, option) in [
        (&["help"][..], &["--help"][..]),
        (&["help", "list"], &["list", "--help"]),
        (
            &["help", "hooks", "install"],
            &["hooks", "install", "--help"],
        ),
        (&["help", "go"], &["go", "--help"]),
        (&["help", "after-end"], &["after-end", "--help"]),
    ] {
        let (by_command, by_option) = (world.run(words), world.run(option));
        assert_eq!((by_command.status, by_command.err.as_str()), (0, ""));
        assert_eq!(by_command.out, by_option.out, "{words:?}");
    }
    assert!(!world.run(["help"]).out.contains("after-end"));
}

#[test]
fn help_of_a_command_that_does_not_exist_is_a_usage_error() {
    let world = World::new();
    for (words, expected) in [
        (&["help", "lst"][..], "'list'"),
        (&["help", "hooks", "instal"], "'install'"),
        (&["help", "show", "codex"], "`show` has no command `codex`"),
    ] {
        let said = world.run(words);
        assert_eq!((said.status, said.out.as_str()), (2, ""), "{words:?}");
        assert!(said.err.contains(expected), "{}", said.err);
    }
}

#[test]
fn the_version_is_shown_without_looking_at_anything() {
    let world = World::new();
    // A configuration that makes every scan fail.
    world.write(".config/whosup/config.toml", "x");
    let said = world.run(["--version"]);
    assert_eq!(said.status, 0);
    assert_eq!(said.out, format!("whosup {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn help_and_usage_errors_have_the_colours_that_are_asked_for() {
    let world = World::new();
    for words in [&["help", "list"][..], &["list", "-h"], &["list", "--bogus"]] {
        for (choice, has_colours) in [("always", true), ("never", false), ("auto", false)] {
            let said = world.run(["--color", choice].iter().chain(words));
            let shown = said.out + &said.err;
            assert_eq!(shown.contains('\u{1b}'), has_colours, "{choice}: {shown}");
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn help_that_cannot_be_written_is_a_failure() {
    let world = World::new();
    for words in [&["help", "list"][..], &["list", "--help"], &["--version"]] {
        let mut command = std::process::Command::new(super::world::WHOSUP);
        let full = std::fs::File::options()
            .write(true)
            .open("/dev/full")
            .unwrap();
        command.args(words).env("HOME", world.home()).stdout(full);
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(error.contains("No space left"), "{error}");
    }
}
