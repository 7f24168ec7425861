//! Codex's hooks.
//!
//! Seen in Codex 0.171.0, 2026-11: hooks run only once a person has trusted them
//! in Codex. `SessionStart` comes at the first prompt, not at launch. The shared
//! daemon sends `SessionEnd` about a minute after the last terminal has gone; a
//! Codex without a daemon sends it at `/exit` only.

use crate::agents::event_names::usual_meaning;
use crate::agents::hooks::{Hooks, SettingsFile, SettingsForm, SettingsPlace, no_session_by_path};
use crate::hook_event::PayloadKeys;

pub(super) static HOOKS: Hooks = Hooks {
    meaning: usual_meaning,
    keys: PayloadKeys::SNAKE_CASE,
    session_of_transcript: no_session_by_path,
    settings: &[SettingsFile {
        place: SettingsPlace::Home("hooks.json"),
        form: SettingsForm::JsonGroups,
    }],
    events: &[
        "SessionStart",
        "UserPromptSubmit",
        "PreToolUse",
        "PermissionRequest",
        "PostToolUse",
        "SubagentStart",
        "SubagentStop",
        "PreCompact",
        "Stop",
        "SessionEnd",
    ],
    must_be_trusted: true,
};
