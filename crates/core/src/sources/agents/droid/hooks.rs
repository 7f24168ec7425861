//! Droid's hooks.
//!
//! By its documentation and the names in droid 0.225.2, 2026-11; not seen at work,
//! for it does not start without an account. Hooks in `settings.json` count only
//! where there is no `hooks.json`.

use crate::adapter::{Hooks, SettingsFile, SettingsForm, session_by_file_stem};
use crate::sources::agents::kit::event_names::USUAL_HOOKS;

pub(super) static HOOKS: Hooks = Hooks {
    session_of_transcript: session_by_file_stem,
    settings: &[
        SettingsFile::in_home("hooks.json", SettingsForm::JsonGroupsAtRoot),
        SettingsFile::in_home("settings.json", SettingsForm::JsonGroups),
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
    ..USUAL_HOOKS
};
