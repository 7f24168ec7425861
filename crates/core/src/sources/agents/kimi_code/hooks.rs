//! kimi-code's hooks.
//!
//! Seen in kimi-code 2.1.0, 2026-11: a session starts with its first prompt; a
//! prompt is a list of parts. `/new` starts the new session before it ends the
//! old one. SIGTERM and a terminal that goes send nothing. A configuration with an
//! event that it does not know is refused, so the newest of them are not asked for.

use crate::adapter::hook_event::{EventKind, HookError, HookPayload};
use crate::adapter::{Hooks, SettingsFile, SettingsForm};
use crate::sources::agents::kit::event_names::{USUAL_HOOKS, usual_meaning};

pub(super) static HOOKS: Hooks = Hooks {
    meaning,
    settings: &[SettingsFile::in_home(
        "config.toml",
        SettingsForm::TomlTables,
    )],
    events: &[
        "SessionStart",
        "UserPromptSubmit",
        "PreToolUse",
        "PermissionRequest",
        "PermissionResult",
        "PostToolUse",
        "PostToolUseFailure",
        "SubagentStart",
        "SubagentStop",
        "PreCompact",
        "Stop",
        "StopFailure",
        "Interrupt",
        "SessionEnd",
    ],
    ..USUAL_HOOKS
};

fn meaning(name: &str, payload: &HookPayload<'_>) -> Result<EventKind, HookError> {
    match name {
        // Whatever the answer was, the turn continues.
        "PermissionResult" => Ok(EventKind::ToolStarted),
        "Interrupt" => Ok(EventKind::TurnEnded),
        _ => usual_meaning(name, payload),
    }
}
