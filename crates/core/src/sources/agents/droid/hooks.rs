//! Droid's hooks.
//!
//! By its documentation and the names in droid 0.225.2, 2026-11; not seen at work,
//! for it does not start without an account. Hooks in `settings.json` count only
//! where there is no `hooks.json`.

use crate::adapter::hook_event::PayloadKeys;
use crate::adapter::{Hooks, SettingsFile, SettingsForm, SettingsPlace, session_by_file_stem};
use crate::sources::agents::kit::event_names::usual_meaning;

pub(super) static HOOKS: Hooks = Hooks {
    meaning: usual_meaning,
    keys: PayloadKeys::SNAKE_CASE,
    session_of_transcript: session_by_file_stem,
    settings: &[
        SettingsFile {
            place: SettingsPlace::Home("hooks.json"),
            form: SettingsForm::JsonGroupsAtRoot,
        },
        SettingsFile {
            place: SettingsPlace::Home("settings.json"),
            form: SettingsForm::JsonGroups,
        },
    ],
    events: &[
        "SessionStart",
        "UserPromptSubmit",
        "PreToolUse",
        "Notification",
        "PostToolUse",
        "SubagentStop",
        "PreCompact",
        "Stop",
        "SessionEnd",
    ],
    trust: None,
};
