//! Claude Code's hooks.
//!
//! Seen in Claude Code 2.1.197, 2026-11: `SessionStart` comes twice on
//! `--continue`, with a throw-away id first; with the old id on `--fork-session`.
//! `/clear` ends one session and starts another. `SessionEnd` comes on SIGTERM and
//! when the terminal goes, never on SIGKILL. A reminder that it has been idle for
//! a minute is a `Notification`, as a request for leave is.

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
        "Elicitation" => EventKind::InputRequested(WaitingFor::Question),
        "ElicitationResult" => EventKind::ToolEnded,
        "Notification" => match payload.text("notification_type")? {
            Some("permission_prompt") => EventKind::InputRequested(WaitingFor::Permission),
            // `idle_prompt`, `auth_success` and whatever else: nobody is asked.
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
