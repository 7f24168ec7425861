//! kimi-cli's hooks.
//!
//! Seen in kimi-cli 1.50.0, 2026-11: payloads name no transcript; `prompt` is
//! empty in the terminal. `/clear` and `/new` send `SessionEnd` with the reason
//! `exit` and `SessionStart` with the source `startup`, from the same process.
//! SIGTERM and a terminal that goes send nothing.

use crate::adapter::hook_event::PayloadKeys;
use crate::adapter::{Hooks, SettingsFile, SettingsForm, SettingsPlace, no_session_by_path};
use crate::sources::agents::kit::event_names::usual_meaning;

pub(super) static HOOKS: Hooks = Hooks {
    meaning: usual_meaning,
    keys: PayloadKeys::SNAKE_CASE,
    session_of_transcript: no_session_by_path,
    settings: &[SettingsFile {
        place: SettingsPlace::Home("config.toml"),
        form: SettingsForm::TomlTables,
    }],
    events: &[
        "SessionStart",
        "UserPromptSubmit",
        "PreToolUse",
        "PostToolUse",
        "PostToolUseFailure",
        "SubagentStart",
        "SubagentStop",
        "PreCompact",
        "Stop",
        "StopFailure",
        "SessionEnd",
    ],
    trust: None,
};
