//! What `--help` says.

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
        "conformance",
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
fn the_version_is_told_without_looking_at_anything() {
    let world = World::new();
    // A configuration that would end every look.
    world.write(".config/whosup/config.toml", "x");
    let said = world.run(["--version"]);
    assert_eq!(said.status, 0);
    assert_eq!(said.out, format!("whosup {}\n", env!("CARGO_PKG_VERSION")));
}
