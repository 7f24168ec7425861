//! Codex's hooks.
//!
//! Seen in Codex 0.171.0, 2026-11: hooks run only once a person has trusted them
//! in Codex. `SessionStart` comes at the first prompt, not at launch. The shared
//! daemon sends `SessionEnd` about a minute after the last terminal has gone; a
//! Codex without a daemon sends it at `/exit` only.

use crate::agents::hooks::{Hooks, SettingsForm, no_session_by_path, started};
use crate::hook_event::{EventKind, HookError, HookPayload};
use crate::phase::WaitingFor;

pub(super) static HOOKS: Hooks = Hooks {
    meaning,
    session_of_transcript: no_session_by_path,
    settings_file: "hooks.json",
    form: SettingsForm::JsonGroups,
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

fn meaning(name: &str, payload: &HookPayload<'_>) -> Result<EventKind, HookError> {
    Ok(match name {
        "SessionStart" => started(payload)?,
        "UserPromptSubmit" => EventKind::TurnStarted,
        "PreToolUse" => EventKind::ToolStarted,
        "PostToolUse" => EventKind::ToolEnded,
        "PermissionRequest" => EventKind::InputRequested(WaitingFor::Permission),
        "Stop" => EventKind::TurnEnded,
        "PreCompact" | "PostCompact" => EventKind::Compacted,
        "SessionEnd" => EventKind::SessionEnded,
        "SubagentStart" => EventKind::SubAgentStarted,
        "SubagentStop" => EventKind::SubAgentEnded,
        _ => EventKind::Heartbeat,
    })
}
