//! Installing hooks, running them as the agent would, and removing them.

use serde_json::{Value, json};

use super::shell_agent::{ShellAgent, event, record_of};
use super::world::World;

#[test]
fn installed_hooks_report_and_are_removed_without_a_trace() {
    let world = World::new();
    let before = "{\n  // mine\n  \"model\": \"opus\"\n}\n";
    let settings = world.write(".claude/settings.json", before);
    let said = world.run(["hooks", "status"]);
    assert_eq!(said.status, 0, "{}", said.err);
    let line = "claude-code: not installed, never heard (~/.claude/settings.json)\n";
    assert_eq!(said.out, line);

    let said = world.run(["hooks", "install", "--dry-run"]);
    assert_eq!(said.status, 0, "{}", said.err);
    assert!(
        said.out.contains("+     \"SessionStart\": ["),
        "{}",
        said.out
    );
    assert!(said.out.ends_with("nothing was changed\n"), "{}", said.out);
    assert_eq!(std::fs::read_to_string(&settings).unwrap(), before);

    // There is no person to ask.
    let said = world.run(["hooks", "install"]);
    assert_eq!(said.status, 2, "{}", said.out);
    assert!(said.err.contains("--yes"), "{}", said.err);
    assert!(
        said.out.contains(" lines added, 1 removed\n"),
        "{}",
        said.out
    );
    assert!(!said.out.contains("SessionStart"), "{}", said.out);
    assert_eq!(std::fs::read_to_string(&settings).unwrap(), before);

    let said = world.run(["hooks", "install", "--yes"]);
    assert_eq!(said.status, 0, "{}", said.err);
    let line = "Claude Code: installed (~/.claude/settings.json)\n";
    assert_eq!(said.out, line);
    let with = std::fs::read_to_string(&settings).unwrap();
    assert!(with.contains("// mine"), "{with}");
    let said = world.run(["hooks", "install", "claude-code", "--yes"]);
    assert_eq!(said.out, "Claude Code: already installed (~/.claude)\n");
    assert_eq!(std::fs::read_to_string(&settings).unwrap(), with);

    // The agent runs what the settings say.
    let plain: String = with
        .lines()
        .filter(|line| !line.contains("// mine"))
        .collect();
    let value: Value = serde_json::from_str(&plain).unwrap();
    let command = value["hooks"]["SessionStart"][0]["hooks"][0]["command"]
        .as_str()
        .unwrap();
    let mut agent = ShellAgent::start(&world);
    let hook_event = event(
        &world,
        &world.s1,
        "SessionStart",
        json!({"source": "startup"}),
    );
    let payload = agent.payload(&hook_event);
    let line = format!("{command} < '{}'", payload.display());
    assert_eq!(agent.run(&line), ("0".to_owned(), String::new()));
    assert_eq!(record_of(&world, &world.s1)["owner"]["pid"], agent.pid());
    let said = world.run(["hooks", "status"]);
    assert!(
        said.out.starts_with("claude-code: installed, last heard "),
        "{}",
        said.out
    );

    let said = world.run(["hooks", "uninstall", "--yes"]);
    assert_eq!(said.status, 0, "{}", said.err);
    assert_eq!(std::fs::read_to_string(&settings).unwrap(), before);
    assert_eq!(
        world.run(["hooks", "uninstall", "--yes"]).out,
        "Claude Code: not installed (~/.claude)\n"
    );
}

#[test]
fn settings_that_can_not_be_understood_stop_no_other_agent() {
    let world = World::new();
    let broken = world.write(".claude/settings.json", "{");
    world.write(".codex/config.toml", "");
    let said = world.run(["hooks", "install", "--yes"]);
    assert_eq!(said.status, 2);
    assert!(said.err.contains("settings.json"), "{}", said.err);
    assert!(
        said.out
            .ends_with("; start it, and trust the hooks that it asks about\n"),
        "{}",
        said.out
    );
    assert_eq!(std::fs::read_to_string(broken).unwrap(), "{");
    assert!(world.home().join(".codex/hooks.json").exists());
}

#[test]
fn an_agent_without_hooks_hides_no_other() {
    let world = World::new();
    world.write(".codex/config.toml", "");
    let refused = "error: pi supports no hooks, or whosup does not know them\n";
    for (words, out) in [
        (
            &["install", "--yes"][..],
            "; start it, and trust the hooks that it asks about\n",
        ),
        (&["status"], ", never heard (~/.codex/hooks.json)\n"),
        (
            &["uninstall", "--yes"],
            "Codex: removed (~/.codex/hooks.json)\n",
        ),
    ] {
        let said = world.run(["hooks"].iter().chain(words).chain(&["pi", "codex"]));
        assert_eq!((said.status, said.err.as_str()), (2, refused), "{words:?}");
        assert!(said.out.ends_with(out), "{words:?}: {}", said.out);
    }
    let said = world.run(["hooks", "status", "--json", "pi", "codex"]);
    assert_eq!((said.status, said.err.as_str()), (2, ""));
    let document: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(document["hooks"][0]["agent"], "codex");
    assert_eq!(document["problems"][0]["agent"], "pi");
}

#[test]
fn unreadable_settings_fail_the_status_and_the_others_are_reported() {
    let world = World::new();
    world.write(".claude/settings.json", "{");
    world.write(".codex/config.toml", "");
    let said = world.run(["hooks", "status"]);
    assert_eq!(said.status, 2, "{}", said.out);
    assert!(said.err.contains("settings.json"), "{}", said.err);
    let line = "codex: not installed, never heard (~/.codex/hooks.json)\n";
    assert_eq!(said.out, line);
    let document: Value =
        serde_json::from_str(&world.run(["hooks", "status", "--json"]).out).unwrap();
    let path = world.home().join(".claude/settings.json");
    assert_eq!(document["problems"][0]["path"], path.to_str().unwrap());
    assert_eq!(world.run(["hooks", "status", "codex"]).status, 0);
    world.write(".local/state/whosup/sessions/codex/x.json", "{");
    let said = world.run(["hooks", "status", "codex"]);
    let words = "codex: not installed, not known whether ever heard (";
    assert!(said.out.starts_with(words), "{}", said.out);
}

#[test]
fn settings_that_can_not_be_written_stop_no_other_agent() {
    let world = World::new();
    let settings = world.write(".claude/settings.json", "{}");
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(settings.parent().unwrap(), open).unwrap();
    world.write(".qwen/settings.json", "{}");
    let said = world.run(["hooks", "install", "--yes"]);
    assert_eq!(said.status, 2, "{}", said.out);
    assert!(said.err.contains(".claude/settings.json"), "{}", said.err);
    assert!(
        said.out
            .ends_with("Qwen Code: installed (~/.qwen/settings.json)\n"),
        "{}",
        said.out
    );
    assert!(said.err.contains("everybody may write `"), "{}", said.err);
    assert_eq!(std::fs::read_to_string(settings).unwrap(), "{}");
}

#[test]
fn the_lines_are_shown_if_that_is_asked_for() {
    let world = World::new();
    world.write(".claude/settings.json", "{}");
    let said = world.run(["hooks", "install", "--yes", "-v"]);
    assert_eq!(said.status, 0, "{}", said.err);
    let first = "Claude Code: ~/.claude/settings.json, ";
    assert!(said.out.starts_with(first), "{}", said.out);
    assert!(said.out.contains("\"SessionStart\": ["), "{}", said.out);
    let last = "Claude Code: installed (~/.claude/settings.json)\n";
    assert!(said.out.ends_with(last), "{}", said.out);
}
