//! Hooks are set in settings without touching what is there, and taken out so
//! that the bytes of before are left.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use serde_json::Value;
use tempfile::TempDir;
use whosup_core::adapter::Adapter;
use whosup_core::machine::Environment;
use whosup_core::sources::agents::AGENTS;
use whosup_track::{
    Change, HookSite, Installed, Store, TrackError, installed, make, plan_install, plan_uninstall,
};

/// A program whose path needs quotes in a shell and in JSON.
const PROGRAM: &str = "/opt/my \"tools\"/whosup";

struct World {
    directory: TempDir,
    adapter: &'static dyn Adapter,
    environment: Environment,
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
            environment,
            adapter: *adapter,
            directory,
        }
    }

    fn home(&self) -> PathBuf {
        self.directory.path().join("dev/agent")
    }

    /// The settings that are used where there are none yet.
    fn settings(&self) -> PathBuf {
        let file = self
            .adapter
            .profile()
            .hooks
            .unwrap()
            .settings
            .last()
            .unwrap();
        file.path(&self.home(), &self.environment).unwrap()
    }

    fn plan(&self, program: &str) -> Result<Option<Change>, TrackError> {
        let home = self.home();
        plan_install(&self.site(&home, program), &self.store)
    }

    fn site<'a>(&'a self, home: &'a Path, program: &'a str) -> HookSite<'a> {
        HookSite {
            adapter: self.adapter,
            home,
            environment: &self.environment,
            program: Path::new(program),
        }
    }

    fn install(&self) -> Result<bool, TrackError> {
        self.install_of(PROGRAM)
    }

    fn install_of(&self, program: &str) -> Result<bool, TrackError> {
        let plan = self.plan(program)?;
        plan.map_or(Ok(false), |change| make(&change).map(|()| true))
    }

    fn uninstall(&self) -> Result<bool, TrackError> {
        let plan = plan_uninstall(&self.site(&self.home(), PROGRAM), &self.store)?;
        plan.map_or(Ok(false), |change| make(&change).map(|()| true))
    }

    fn installed(&self) -> Installed {
        installed(&self.site(&self.home(), PROGRAM), &self.store).unwrap()
    }

    /// Everything that is in the agent's home and in the configuration.
    fn files(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let mut directories = vec![self.home(), self.directory.path().join("dev/.config")];
        while let Some(directory) = directories.pop() {
            for entry in std::fs::read_dir(directory).into_iter().flatten() {
                let path = entry.unwrap().path();
                directories.extend(path.is_dir().then(|| path.clone()));
                found.push(path);
            }
        }
        found
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
        let set = self.installed();
        assert!(set.missing.is_empty(), "{with}");
        assert_eq!(set.programs.iter().collect::<Vec<_>>(), [PROGRAM], "{with}");
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
    for agent in ["claude-code", "codex", "qwen-code", "gemini", "droid"] {
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
    for agent in ["kimi-cli", "kimi-code", "vibe"] {
        World::new(agent).check_there_and_back(None);
    }
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
        let count_commands = |value: &Value| value.to_string().matches("\"command\":").count();
        assert_eq!(
            count_commands(&after["hooks"]),
            count_commands(&before["hooks"]),
            "{after}"
        );
    }
}

#[test]
fn hooks_in_one_group_with_ours_stay() {
    let theirs = "{\"type\":\"command\",\"command\":\"say done\"}";
    for agent in ["claude-code", "codex", "qwen-code", "gemini", "droid"] {
        let event = World::new(agent).adapter.profile().hooks.unwrap().events[0];
        let ours = format!("{{\"type\":\"command\",\"command\":\"/opt/whosup hook {agent}\"}}");
        let settings = |hooks: &[&str]| {
            let hooks = hooks.join(",");
            format!("{{\"hooks\":{{\"{event}\":[{{\"matcher\":\"mine\",\"hooks\":[{hooks}]}}]}}}}")
        };
        for (with, without) in [
            (settings(&[&ours, theirs]), settings(&[theirs])),
            (settings(&[theirs, &ours]), settings(&[theirs])),
            (
                settings(&[theirs, &ours, &ours, theirs]),
                settings(&[theirs, theirs]),
            ),
        ] {
            let world = World::new(agent);
            std::fs::write(world.settings(), &with).unwrap();
            assert!(world.install().unwrap());
            assert_eq!(world.installed().programs.len(), 1, "{with}");
            world.uninstall().unwrap();
            assert_eq!(std::fs::read_to_string(world.settings()).unwrap(), without);
            std::fs::write(world.settings(), &with).unwrap();
            assert!(world.uninstall().unwrap());
            assert_eq!(std::fs::read_to_string(world.settings()).unwrap(), without);
        }
    }
}

#[test]
fn of_two_members_with_one_key_the_last_gets_the_hooks() {
    for text in [
        "{\"hooks\": {\"Stop\": []}, \"hooks\": {}}",
        "{\"hooks\": {\"Stop\": [], \"Stop\": []}}",
    ] {
        let with = World::new("claude-code").check_there_and_back(Some(text));
        let read: Value = serde_json::from_str(&with).unwrap();
        assert_eq!(read["hooks"]["Stop"].as_array().unwrap().len(), 1, "{with}");
        assert_eq!(read["hooks"].as_object().unwrap().len(), 13, "{with}");
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
    let plan = world.plan(PROGRAM);
    let change = plan.unwrap().unwrap();
    std::fs::write(world.settings(), "{\"a\": 1}").unwrap();
    let error = make(&change).unwrap_err().to_string();
    assert!(error.contains("changed meanwhile"), "{error}");
    assert_eq!(
        std::fs::read_to_string(world.settings()).unwrap(),
        "{\"a\": 1}"
    );
}

#[test]
fn vibes_hooks_have_names_of_their_own() {
    let before = "[[hooks]]\nname = \"mine\"\ntype = \"pre_tool\"\ncommand = \"say it\"\n";
    let with = World::new("vibe").check_there_and_back(Some(before));
    let parsed: toml::Table = with.parse().unwrap();
    let hooks = parsed["hooks"].as_array().unwrap();
    let kinds = |key: &str| -> Vec<_> { hooks.iter().map(|hook| hook[key].as_str()).collect() };
    let expected = [
        "mine",
        "whosup-pre_tool",
        "whosup-post_tool",
        "whosup-post_agent",
    ];
    assert_eq!(kinds("name"), expected.map(Some), "{with}");
    let expected = ["pre_tool", "pre_tool", "post_tool", "post_agent"];
    assert_eq!(kinds("type"), expected.map(Some), "{with}");
}

#[test]
fn a_file_of_our_own_goes_with_the_directory_that_was_made_for_it() {
    for agent in ["copilot", "opencode"] {
        let world = World::new(agent);
        let with = world.check_there_and_back(None);
        assert!(with.contains("whosup"), "{with}");
        let left: Vec<_> = world
            .files()
            .into_iter()
            .filter(|path| path.is_file())
            .collect();
        assert!(left.is_empty(), "{left:?}");
        assert!(!world.settings().parent().unwrap().exists(), "{agent}");
        // One that others use stays.
        let other = world.settings().with_file_name("mine.json");
        std::fs::create_dir_all(other.parent().unwrap()).unwrap();
        std::fs::write(&other, "{}").unwrap();
        world.check_there_and_back(None);
        assert_eq!(std::fs::read_to_string(&other).unwrap(), "{}");
    }
}

#[test]
fn copilots_hooks_name_their_event_on_the_command_line() {
    let world = World::new("copilot");
    world.install().unwrap();
    let text = std::fs::read_to_string(world.settings()).unwrap();
    let value: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["version"], 1);
    let hooks = value["hooks"].as_object().unwrap();
    for (event, hooks) in hooks {
        let line = hooks[0]["bash"].as_str().unwrap();
        let end = format!("/whosup' hook copilot {event}");
        assert!(line.ends_with(&end), "{line}");
    }
    let asked_for = world.adapter.profile().hooks.unwrap().events;
    assert_eq!(hooks.len(), asked_for.len());
}

#[test]
fn a_file_of_our_own_name_that_is_not_ours_is_left_alone() {
    let world = World::new("opencode");
    std::fs::create_dir_all(world.settings().parent().unwrap()).unwrap();
    for text in ["export const Mine = async () => ({})\n", "\n"] {
        std::fs::write(world.settings(), text).unwrap();
        for error in [world.install().unwrap_err(), world.uninstall().unwrap_err()] {
            assert!(error.to_string().contains("remove it"), "{error}");
        }
        assert_eq!(std::fs::read_to_string(world.settings()).unwrap(), text);
    }
}

#[test]
fn hooks_of_a_whosup_elsewhere_are_replaced_and_both_leave_the_bytes_of_before() {
    let befores = [
        ("claude-code", "{\n  \"model\": \"opus\"\n}\n"),
        ("gemini", "{}"),
        ("kimi-code", "default_model = \"k2\"\n"),
        (
            "vibe",
            "[[hooks]]\nname = \"mine\"\ntype = \"pre_tool\"\ncommand = \"say it\"\n",
        ),
        ("copilot", ""),
        ("opencode", ""),
    ];
    for (agent, before) in befores {
        for keeps_note in [true, false] {
            let world = World::new(agent);
            if !before.is_empty() {
                std::fs::write(world.settings(), before).unwrap();
            }
            assert!(world.install_of("/old/bin/whosup").unwrap(), "{agent}");
            if !keeps_note {
                std::fs::remove_dir_all(world.directory.path().join("dev/.local")).unwrap();
            }
            let set = world.installed();
            assert!(set.present.is_empty() && set.programs.contains("/old/bin/whosup"));
            assert!(world.install().unwrap(), "{agent}");
            let with = std::fs::read_to_string(world.settings()).unwrap();
            assert!(!with.contains("/old/bin"), "{with}");
            assert!(world.installed().missing.is_empty(), "{with}");
            assert!(!world.install().unwrap(), "{agent}: twice is once");
            assert!(world.uninstall().unwrap(), "{agent}");
            let after = std::fs::read_to_string(world.settings()).unwrap_or_default();
            if keeps_note {
                assert_eq!(after, before, "{agent}");
            }
            assert!(!after.contains("whosup"), "{after}");
        }
    }
}

#[test]
fn droids_hooks_go_where_droid_looks_for_them() {
    let world = World::new("droid");
    let own = world.home().join("hooks.json");
    std::fs::write(&own, "{}\n").unwrap();
    assert!(world.install().unwrap());
    assert!(!world.settings().exists());
    let text = std::fs::read_to_string(&own).unwrap();
    let value: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["Stop"][0]["hooks"][0]["type"], "command", "{text}");
    assert!(value["hooks"].is_null(), "{text}");
    assert!(world.uninstall().unwrap());
    assert_eq!(std::fs::read_to_string(&own).unwrap(), "{}\n");
}

#[test]
fn a_link_to_nothing_is_left_alone() {
    let world = World::new("claude-code");
    symlink("dotfiles/settings.json", world.settings()).unwrap();
    let error = world.install().unwrap_err().to_string();
    assert!(error.contains("link to nothing"), "{error}");
    assert!(world.settings().is_symlink());
}

#[test]
fn settings_of_another_user_stay_theirs() {
    use std::os::unix::fs::{MetadataExt as _, chown};
    let world = World::new("gemini");
    std::fs::write(world.settings(), "{}").unwrap();
    // The whole home is that user's: a file of another user amid ours is refused.
    for path in [world.settings(), world.home()] {
        if chown(path, Some(65_534), Some(65_534)).is_err() {
            eprintln!("skipped: needs root to give a file away");
            return;
        }
    }
    world.install().unwrap();
    let file = std::fs::metadata(world.settings()).unwrap();
    assert_eq!((file.uid(), file.gid()), (65_534, 65_534));
}
