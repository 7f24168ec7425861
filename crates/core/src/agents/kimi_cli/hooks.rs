//! kimi-cli's hooks.
//!
//! Seen in kimi-cli 1.50.0, 2026-11: payloads name no transcript; `prompt` is
//! empty in the terminal. `/clear` and `/new` send `SessionEnd` with the reason
//! `exit` and `SessionStart` with the source `startup`, from the same process.
//! SIGTERM and a terminal that goes send nothing.

use crate::agents::hooks::{Hooks, SettingsForm, no_session_by_path, started};
use crate::hook_event::{EventKind, HookError, HookPayload};

pub(super) static HOOKS: Hooks = Hooks {
    meaning,
    session_of_transcript: no_session_by_path,
    settings_file: "config.toml",
    form: SettingsForm::TomlTables,
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
    must_be_trusted: false,
};

fn meaning(name: &str, payload: &HookPayload<'_>) -> Result<EventKind, HookError> {
    Ok(match name {
        "SessionStart" => started(payload)?,
        "UserPromptSubmit" => EventKind::TurnStarted,
        "PreToolUse" => EventKind::ToolStarted,
        "PostToolUse" | "PostToolUseFailure" => EventKind::ToolEnded,
        "Stop" | "StopFailure" => EventKind::TurnEnded,
        "PreCompact" | "PostCompact" => EventKind::Compacted,
        "SessionEnd" => EventKind::SessionEnded,
        "SubagentStart" => EventKind::SubAgentStarted,
        "SubagentStop" => EventKind::SubAgentEnded,
        // `Notification` says no more than that it is there.
        _ => EventKind::Heartbeat,
    })
}
