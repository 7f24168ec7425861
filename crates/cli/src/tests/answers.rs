//! `whosup agents`, `completions`, `man`, and the configuration's errors

use serde_json::json;

use super::world::{S1, World};

#[test]
fn agents_shows_where_each_is_looked_for_and_what_was_found() {
    let mut world = World::new();
    world.add_claude(4711, S1, "src/shop", 3, &json!({}));
    let said = world.run("agents");
    let claude = said.out.split("\n\n").next().unwrap().to_owned();
    insta::assert_snapshot!(claude);
    let answer = world.run("agents --json").json();
    let claude = &answer["agents"][0];
    assert_eq!(claude["id"], "claude-code");
    assert_eq!(claude["live_sessions"], 1);
    assert_eq!(claude["homes"][0]["path"], "@HOME@/.claude");
    assert_eq!(claude["homes"][0]["exists"], true);
    assert_eq!(
        claude["processes"],
        json!([{ "pid": 4711, "role": "session" }])
    );
    let ids: Vec<&str> = answer["agents"]
        .as_array()
        .unwrap()
        .iter()
        .map(|agent| agent["id"].as_str().unwrap())
        .collect();
    assert!(
        ids.starts_with(&["claude-code", "codex", "qwen-code", "kimi-cli"]),
        "{ids:?}"
    );
}

#[test]
fn every_shell_gets_a_script_that_asks_for_completions() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let said = World::new().run(&format!("completions {shell}"));
        assert_eq!(said.status, 0);
        assert!(
            said.out.contains("WHOSUP_COMPLETE"),
            "{shell}: {}",
            said.out
        );
    }
}

#[test]
fn man_prints_a_page_or_writes_all_of_them() {
    let world = World::new();
    let said = world.run("man");
    assert!(said.out.contains(".TH \"whosup\" 1"), "{}", said.out);
    let said = world.run("man @HOME@/man/man1");
    assert_eq!(said.status, 0, "{}", said.text());
    for page in ["whosup", "whosup-list", "whosup-check", "whosup-why"] {
        let text = std::fs::read_to_string(world.path(&format!("man/man1/{page}.1"))).unwrap();
        let name = page.replace('-', "\\-");
        assert!(text.contains(&format!(".TH \"{name}\" 1")), "{text}");
        assert!(text.contains("\\-\\-color"), "{page}: {text}");
    }
}

#[test]
fn a_broken_configuration_ends_every_look_and_nothing_else() {
    let world = World::new();
    world.write(
        ".config/whosup/config.toml",
        "prompts = \"hide\"\n\nprompt = 1\n",
    );
    for line in ["list", "check x", "agents", "why --pid 1"] {
        let said = world.run(line);
        assert_eq!(said.status, 2, "{line}");
        assert_eq!(said.out, "", "{line}");
    }
    assert_eq!(world.run("completions bash").status, 0);
    insta::assert_snapshot!(world.run("list").text());
}

#[test]
fn a_directory_that_is_not_there_is_named() {
    let world = World::new();
    world.write("file", "");
    insta::assert_snapshot!(world.run("list --cwd @HOME@/nowhere").text());
    // Nothing was looked at, so no line says so.
    assert_eq!(world.run("list --ndjson --cwd @HOME@/nowhere").out, "");
    let said = world.run("list --cwd @HOME@/file");
    assert!(
        said.err.contains("it is not a directory"),
        "{}",
        said.text()
    );
}
