//! Claude Code's hooks.
//!
//! Seen in Claude Code 2.1.197 and 2.1.332, 2026-11:
//!
//! - `SessionStart` comes twice on `--continue`, with a throw-away id first.
//!   `--fork-session` starts with source `resume` and the parent's id in 2.1.197,
//!   with source `fork` and the new id in 2.1.332.
//! - `/clear` ends one session and starts another; so does `/resume` within a
//!   session (`SessionEnd` with reason `resume` in 2.1.332). `SessionEnd` comes on
//!   SIGTERM and when the terminal goes, never on SIGKILL.
//! - A reminder that it has been idle for a minute is a `Notification`, as a
//!   request for leave is.
//! - In 2.1.332 sub-agents run in the background: `Stop` comes while they work,
//!   and names them in `background_tasks`. When they are done a prompt follows
//!   that no person wrote (`<task-notification>`), and a second `Stop`.

use serde_json::Value;

use crate::agents::event_names::usual_meaning;
use crate::agents::hooks::{
    Hooks, SettingsFile, SettingsForm, SettingsPlace, session_by_file_stem,
};
use crate::hook_event::{EventKind, HookError, HookPayload, PayloadKeys};

/// How many background tasks of one payload are looked at.
const TASKS_MAX: usize = 1_000;

/// The background tasks in which the agent itself goes on working. The other types
/// (`shell`, `monitor`, `MCP task`, `dream`, `memory save`, `cloud session` …) run
/// beside an agent that waits for a prompt. Read in the program of 2.1.332;
/// `subagent` was seen.
const WORKING_TASKS: &[&str] = &["subagent", "workflow"];

pub(super) static HOOKS: Hooks = Hooks {
    meaning,
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

/// What an event means. A `Stop` ends the work only if none goes on in the
/// background: the registry calls the session `busy` until then, too.
fn meaning(name: &str, payload: &HookPayload<'_>) -> Result<EventKind, HookError> {
    let usual = usual_meaning(name, payload)?;
    let is_end = name == "Stop" && usual == EventKind::TurnEnded;
    if is_end && works_in_background(payload) {
        // The session does what it did before: it works, or it waits for the answer
        // to a question of a sub-agent.
        return Ok(EventKind::Heartbeat);
    }
    Ok(usual)
}

/// The list is an extra: a form that is not understood leaves a `Stop` what it is.
fn works_in_background(payload: &HookPayload<'_>) -> bool {
    let tasks = payload.value("background_tasks").ok().flatten();
    let Some(Value::Array(tasks)) = tasks.as_deref() else {
        return false;
    };
    tasks.iter().take(TASKS_MAX).any(|task| {
        let text = |key: &str| task.get(key).and_then(Value::as_str).unwrap_or_default();
        WORKING_TASKS.contains(&text("type")) && matches!(text("status"), "running" | "pending")
    })
}

#[cfg(test)]
#[path = "hooks_tests.rs"]
mod tests;
