//! opencode's hooks: a plugin of ours that runs the command.
//!
//! Seen in opencode 1.18.33, 2026-11: it loads every file of its `plugin` directory
//! into its own process. A plugin gets no event when the process exits.

use std::path::PathBuf;

use crate::adapter::{HookCommand, Hooks, SettingsFile, SettingsForm, SettingsPlace};
use crate::machine::Environment;
use crate::sources::agents::kit::event_names::USUAL_HOOKS;

/// The plugin, with `"PROGRAM"` in the place of the program.
const PLUGIN: &str = include_str!("plugin.js");

pub(super) static HOOKS: Hooks = Hooks {
    settings: &[SettingsFile {
        place: SettingsPlace::Environment(plugin_file),
        form: SettingsForm::OwnFile(plugin),
    }],
    events: &[
        "SessionStart",
        "UserPromptSubmit",
        "PreToolUse",
        "PermissionRequest",
        "PermissionResult",
        "Elicitation",
        "ElicitationResult",
        "PostToolUse",
        "SubagentStart",
        "SubagentStop",
        "PostCompact",
        "Stop",
        "SessionEnd",
    ],
    ..USUAL_HOOKS
};

/// Where it looks for plugins: not in its home, which is where its database is.
fn plugin_file(environment: &Environment) -> Option<PathBuf> {
    let configuration = environment.xdg_directory("XDG_CONFIG_HOME", ".config")?;
    Some(configuration.join("opencode/plugin/whosup.js"))
}

fn plugin(command: &HookCommand) -> String {
    let program = serde_json::Value::from(command.program.as_str()).to_string();
    PLUGIN.replacen("\"PROGRAM\"", &program, 1)
}
