//! qwen-code's hooks.
//!
//! Seen in qwen-code 0.24.4, 2026-11: `UserPromptSubmit` comes a second time,
//! with an empty prompt, after a tool has run; `PreToolUse` comes after leave was
//! given. A session that is left by `/resume` gets no `SessionEnd`, nor does a
//! one-shot run; one under an editor gets two.

use crate::agents::hooks::{Hooks, SettingsForm, session_by_file_stem, started};
use crate::hook_event::{EventKind, HookError, HookPayload};
use crate::phase::WaitingFor;

pub(super) static HOOKS: Hooks = Hooks {
    meaning,
    session_of_transcript: session_by_file_stem,
    settings_file: "settings.json",
    form: SettingsForm::JsonGroups,
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
    must_be_trusted: false,
};

fn meaning(name: &str, payload: &HookPayload<'_>) -> Result<EventKind, HookError> {
    Ok(match name {
        "SessionStart" => started(payload)?,
        "UserPromptSubmit" => EventKind::TurnStarted,
        "PreToolUse" => EventKind::ToolStarted,
        "PostToolUse" | "PostToolUseFailure" | "PermissionDenied" => EventKind::ToolEnded,
        "PermissionRequest" => EventKind::InputRequested(WaitingFor::Permission),
        "Notification" => match payload.text("notification_type")? {
            Some("permission_prompt") => EventKind::InputRequested(WaitingFor::Permission),
            _ => EventKind::Heartbeat,
        },
        "Stop" | "StopFailure" => EventKind::TurnEnded,
        "PreCompact" | "PostCompact" => EventKind::Compacted,
        "SessionEnd" => EventKind::SessionEnded,
        "SubagentStart" => EventKind::SubAgentStarted,
        "SubagentStop" => EventKind::SubAgentEnded,
        _ => EventKind::Heartbeat,
    })
}
