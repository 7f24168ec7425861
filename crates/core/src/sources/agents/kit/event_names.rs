//! The form of hooks and the names of events that most agents use, first seen in Claude
//! Code.

use crate::adapter::hook_event::{EventKind, HookError, HookPayload, PayloadKeys};
use crate::adapter::phase::WaitingFor;
use crate::adapter::{Hooks, SettingsFile, SettingsForm, no_session_by_path, started};

/// Hooks as most agents have them, to declare others from.
pub(crate) const USUAL_HOOKS: Hooks = Hooks {
    meaning: usual_meaning,
    keys: PayloadKeys::SNAKE_CASE,
    session_of_transcript: no_session_by_path,
    settings: &[],
    events: &[],
    trust: None,
};

/// The events of Claude Code that show something about a session; qwen-code has the same.
pub(crate) const CLAUDE_EVENTS: &[&str] = &[
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
];

/// The settings of several agents, in which their hooks are set.
pub(crate) const SETTINGS_JSON: &[SettingsFile] = &[SettingsFile::in_home(
    "settings.json",
    SettingsForm::JsonGroups,
)];

/// The settings of both agents of Moonshot's, in which their hooks are set.
pub(crate) const CONFIG_TOML: &[SettingsFile] = &[SettingsFile::in_home(
    "config.toml",
    SettingsForm::TomlTables,
)];

/// The meaning of a usual event name. A reminder that an agent has been idle for a while is
/// a `Notification`, and so is a request for permission.
pub(crate) fn usual_meaning(name: &str, payload: &HookPayload<'_>) -> Result<EventKind, HookError> {
    Ok(match name {
        "SessionStart" => started(payload)?,
        "UserPromptSubmit" => EventKind::TurnStarted,
        // Whatever the answer was, the turn continues.
        "PreToolUse" | "PermissionResult" => EventKind::ToolStarted,
        "PostToolUse" | "PostToolUseFailure" | "PermissionDenied" | "ElicitationResult" => {
            EventKind::ToolEnded
        }
        "PermissionRequest" => EventKind::InputRequested(WaitingFor::Permission),
        "Elicitation" => EventKind::InputRequested(WaitingFor::Question),
        "Notification" => match payload.text("notification_type")? {
            Some("permission_prompt") => EventKind::InputRequested(WaitingFor::Permission),
            // `idle_prompt`, `auth_success` and all others: no question to a person.
            _ => EventKind::Heartbeat,
        },
        "Stop" | "StopFailure" | "Interrupt" => EventKind::TurnEnded,
        "PreCompact" | "PostCompact" => EventKind::Compacted,
        "SessionEnd" => EventKind::SessionEnded,
        "SubagentStart" => EventKind::SubAgentStarted,
        "SubagentStop" => EventKind::SubAgentEnded,
        _ => EventKind::Heartbeat,
    })
}
