//! Hooks are set in settings without touching what is there, and taken out so
//! that the bytes of before are left.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use serde_json::Value;
use tempfile::TempDir;
use whosup_core::agents::{AGENTS, Adapter};
use whosup_core::machine::Environment;
use whosup_track::{Store, TrackError, installed, make, plan_install, plan_uninstall};

/// A program whose path needs quotes in a shell and in JSON.
const PROGRAM: &str = "/opt/my \"tools\"/whosup";

struct World {
    directory: TempDir,
    adapter: &'static dyn Adapter,
    store: Store,
}

impl World {
    fn new(agent: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let home = directory.path().join("dev");
        std::fs::create_dir_all(home.join("agent")).unwrap();
        let environment = Environment::new(Some(home), None, []);
        let adapter = AGENTS.iter().find(|one| one.profile().id == agent).unwrap();
        Self {
            store: Store::of(&environment).unwrap(),
            adapter: *adapter,
            directory,
        }
    }

    fn home(&self) -> PathBuf {
        self.directory.path().join("dev/agent")
    }

    fn settings(&self) -> PathBuf {
        self.home()
            .join(self.adapter.hooks().unwrap().settings_file)
    }

    fn install(&self) -> Result<bool, TrackError> {
        let plan = plan_install(self.adapter, &self.home(), Path::new(PROGRAM), &self.store)?;
        plan.map_or(Ok(false), |change| make(&change).map(|()| true))
    }

    fn uninstall(&self) -> Result<bool, TrackError> {
        let plan = plan_uninstall(self.adapter, &self.home(), Path::new(PROGRAM), &self.store)?;
        plan.map_or(Ok(false), |change| make(&change).map(|()| true))
    }

    /// Sets the hooks and takes them out again.
    #[track_caller]
    fn check_there_and_back(&self, before: Option<&str>) -> String {
        match before {
            Some(text) => std::fs::write(self.settings(), text).unwrap(),
            None => assert!(!self.settings().exists()),
        }
        assert!(self.install().unwrap(), "{before:?}");
        let with = std::fs::read_to_string(self.settings()).unwrap();
        let set = installed(self.adapter, &self.home(), Path::new(PROGRAM)).unwrap();
        assert!(set.missing.is_empty(), "{with}");
        assert!(!self.install().unwrap(), "twice is once: {with}");
        assert_eq!(std::fs::read_to_string(self.settings()).unwrap(), with);
        assert!(self.uninstall().unwrap(), "{with}");
        let after = std::fs::read_to_string(self.settings()).ok();
        assert_eq!(after.as_deref(), before, "{with}");
        assert!(!self.uninstall().unwrap());
        with
    }
}

/// Settings of all shapes, those with comments last.
const JSON: &[&str] = &[
    "",
    "{}",
    "{ }\n",
    "{\n}\n",
    "{\"model\":\"opus\"}",
    "{\n    \"model\": \"opus\",\n    \"env\": {\"A\": \"}\"}\n}\n",
    "{\r\n  \"model\": \"opus\"\r\n}\r\n",
    "{\"hooks\":{}}",
    "{\"hooks\": {\"Stop\": []}, \"model\": \"opus\"}",
    "{\n  \"hooks\": {\n    \"Stop\": [\n      { \"hooks\": [{ \"type\": \"command\", \"command\": \"say done\" }] }\n    ],\n    \"SessionEnd\": [{\"matcher\":\"x\",\"hooks\":[]}]\n  }\n}\n",
    "{\"hooks\":{\"PreToolUse\":[{\"hooks\":[{\"type\":\"command\",\"command\":\"a\"}]}],\"Stop\":[{\"hooks\":[{\"type\":\"command\",\"command\":\"b\"}]}]}}",
];

const JSON_WITH_COMMENTS: &[&str] = &[
    "// mine\n{\n  // the model\n  \"model\": \"opus\", // not \"hooks\"\n  /* last */\n}\n",
    "{\"hooks\": {\"Stop\": [ {\"hooks\": []}, /* x */ ], }, }",
    "{\n  \"hooks\": { // }\n    \"Stop\": [] // ]\n  }\n}",
];

#[test]
fn json_settings_are_as_before_once_hooks_are_taken_out() {
    for agent in ["claude-code", "codex", "qwen-code"] {
        World::new(agent).check_there_and_back(None);
        for text in JSON.iter().chain(JSON_WITH_COMMENTS) {
            World::new(agent).check_there_and_back(Some(text));
        }
    }
}

#[test]
fn what_was_in_json_settings_still_means_the_same() {
    for text in JSON.iter().filter(|text| !text.is_empty()) {
        let world = World::new("claude-code");
        let with: Value = serde_json::from_str(&world.check_there_and_back(Some(text))).unwrap();
        let before: Value = serde_json::from_str(text).unwrap();
        for (key, value) in before
            .as_object()
            .unwrap()
            .iter()
            .filter(|(key, _)| *key != "hooks")
        {
            assert_eq!(with[key], *value);
        }
        let hooks = before["hooks"].as_object().cloned().unwrap_or_default();
        for (event, groups) in hooks {
            let groups = groups.as_array().unwrap();
            assert_eq!(
                &with["hooks"][&event].as_array().unwrap()[..groups.len()],
                groups
            );
        }
        let ours = with["hooks"]["Notification"][0]["hooks"][0].clone();
        assert_eq!(ours["type"], "command");
        assert_eq!(
            ours["command"],
            "'/opt/my \"tools\"/whosup' hook claude-code"
        );
    }
}

#[test]
fn toml_settings_are_as_before_once_hooks_are_taken_out() {
    World::new("kimi-cli").check_there_and_back(None);
    for text in [
        "",
        "default_model = \"k2\"",
        "default_model = \"k2\" # mine\n\n[loop_control]\nmax_steps_per_run = 100\n",
        "hooks = []\n\n[loop_control]\nmax_steps_per_run = 100\n",
        "hooks = [ { event = \"Stop\", command = \"say done\" } ]\n",
        "[[hooks]]\nevent = \"Stop\"\ncommand = \"say done\"\n",
    ] {
        let with = World::new("kimi-cli").check_there_and_back(Some(text));
        let parsed: toml::Table = with.parse().unwrap();
        let ours = "'/opt/my \"tools\"/whosup' hook kimi-cli";
        let hooks = parsed["hooks"].as_array().unwrap();
        assert!(
            hooks
                .iter()
                .any(|hook| hook["command"].as_str() == Some(ours)),
            "{with}"
        );
        let others = hooks
            .iter()
            .filter(|hook| hook["command"].as_str() == Some("say done"));
        assert_eq!(others.count(), usize::from(text.contains("say done")));
    }
}

#[test]
fn settings_that_the_agent_wrote_anew_lose_our_hooks_alone() {
    for text in JSON.iter().filter(|text| !text.is_empty()) {
        let world = World::new("claude-code");
        std::fs::write(world.settings(), text).unwrap();
        world.install().unwrap();
        let with = std::fs::read_to_string(world.settings()).unwrap();
        let mut value: Value = serde_json::from_str(&with).unwrap();
        value["theme"] = "dark".into();
        std::fs::write(
            world.settings(),
            serde_json::to_string_pretty(&value).unwrap(),
        )
        .unwrap();
        assert!(world.uninstall().unwrap());
        let after = std::fs::read_to_string(world.settings()).unwrap();
        assert!(!after.contains("whosup"), "{after}");
        let after: Value = serde_json::from_str(&after).unwrap();
        assert_eq!(after["theme"], "dark");
        let before: Value = serde_json::from_str(text).unwrap();
        assert_eq!(after["model"], before["model"]);
        let said = |value: &Value| value.to_string().matches("\"command\":").count();
        assert_eq!(said(&after["hooks"]), said(&before["hooks"]), "{after}");
    }
}

#[test]
fn links_and_modes_stay() {
    let world = World::new("claude-code");
    let dotfiles = world.directory.path().join("dotfiles.json");
    std::fs::write(&dotfiles, "{}\n").unwrap();
    std::fs::set_permissions(&dotfiles, std::fs::Permissions::from_mode(0o640)).unwrap();
    symlink(&dotfiles, world.settings()).unwrap();
    world.install().unwrap();
    assert!(world.settings().is_symlink());
    assert!(
        std::fs::read_to_string(&dotfiles)
            .unwrap()
            .contains("hook claude-code")
    );
    let mode = std::fs::metadata(&dotfiles).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o640);
    world.uninstall().unwrap();
    assert!(world.settings().is_symlink());
    assert_eq!(std::fs::read_to_string(&dotfiles).unwrap(), "{}\n");
}

#[test]
fn settings_that_can_not_be_understood_are_left_alone() {
    for (agent, text, named) in [
        ("claude-code", "{\"model\": }", "line 1"),
        ("claude-code", "{\n\"a\": 1\n\"b\": 2}", "line 3"),
        ("claude-code", "[]", "object"),
        ("claude-code", "{\"hooks\": []}", "`hooks` is no object"),
        (
            "claude-code",
            "{\"hooks\": {\"Stop\": {}}}",
            "`hooks.Stop` is no array",
        ),
        ("kimi-cli", "hooks = \"none\"", "no place"),
        ("kimi-cli", "[loop\n", ""),
    ] {
        let world = World::new(agent);
        std::fs::write(world.settings(), text).unwrap();
        let error = world.install().unwrap_err().to_string();
        assert!(
            error.contains(named) && error.contains("cannot use"),
            "{text}: {error}"
        );
        assert_eq!(std::fs::read_to_string(world.settings()).unwrap(), text);
        let names: Vec<_> = std::fs::read_dir(world.home()).unwrap().collect();
        assert_eq!(names.len(), 1, "{names:?}");
    }
}

#[test]
fn settings_that_changed_since_they_were_looked_at_are_left_alone() {
    let world = World::new("claude-code");
    std::fs::write(world.settings(), "{}").unwrap();
    let plan = plan_install(
        world.adapter,
        &world.home(),
        Path::new(PROGRAM),
        &world.store,
    );
    let change = plan.unwrap().unwrap();
    std::fs::write(world.settings(), "{\"a\": 1}").unwrap();
    let error = make(&change).unwrap_err().to_string();
    assert!(error.contains("changed meanwhile"), "{error}");
    assert_eq!(
        std::fs::read_to_string(world.settings()).unwrap(),
        "{\"a\": 1}"
    );
}
