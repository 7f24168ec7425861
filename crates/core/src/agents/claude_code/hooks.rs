//! Claude Code's hooks.
//!
//! Seen in Claude Code 2.1.197, 2026-11: `SessionStart` comes twice on
//! `--continue`, with a throw-away id first; with the old id on `--fork-session`.
//! `/clear` ends one session and starts another. `SessionEnd` comes on SIGTERM and
//! when the terminal goes, never on SIGKILL. A reminder that it has been idle for
//! a minute is a `Notification`, as a request for leave is.

use crate::agents::event_names::usual_meaning;
use crate::agents::hooks::{
    Hooks, SettingsFile, SettingsForm, SettingsPlace, session_by_file_stem,
};
use crate::hook_event::PayloadKeys;

pub(super) static HOOKS: Hooks = Hooks {
    meaning: usual_meaning,
    keys: PayloadKeys::SNAKE_CASE,
    session_of_transcript: session_by_file_stem,
    settings: &[SettingsFile {
        place: SettingsPlace::Home("settings.json"),
        form: SettingsForm::JsonGroups,
    }],
    events: &[
        "SessionStart",
        "UserPromptSubmit",
        "PreToolUse",
        "PermissionRequest",
        "Notification",
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
