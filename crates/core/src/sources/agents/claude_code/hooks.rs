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

use crate::adapter::hook_event::{EventKind, HookError, HookPayload};
use crate::adapter::phase::WaitingFor;
use crate::adapter::{Hooks, session_by_file_stem};
use crate::sources::agents::kit::event_names::{
    CLAUDE_EVENTS, SETTINGS_JSON, USUAL_HOOKS, usual_meaning,
};

/// How many background tasks of one payload are looked at.
const TASKS_MAX: usize = 1_000;

/// The background tasks in which the agent itself works. The other types
/// (`shell`, `monitor`, `MCP task`, `dream`, `memory save`, `cloud session` …) run
/// beside an agent that waits for a prompt. Read in the program of 2.1.332;
/// `subagent` was seen.
const WORKING_TASKS: &[&str] = &["subagent", "workflow"];

pub(super) static HOOKS: Hooks = Hooks {
    meaning,
    session_of_transcript: session_by_file_stem,
    settings: SETTINGS_JSON,
    events: CLAUDE_EVENTS,
    ..USUAL_HOOKS
};

/// The tools by which the model puts a question to the person: to answer it is not to
/// permit anything.
pub(super) const QUESTION_TOOLS: &[&str] = &["AskUserQuestion", "ExitPlanMode"];

fn meaning(name: &str, payload: &HookPayload<'_>) -> Result<EventKind, HookError> {
    let is_question = |tool| QUESTION_TOOLS.contains(&tool);
    Ok(match name {
        "PermissionRequest" if payload.text("tool_name")?.is_some_and(is_question) => {
            EventKind::InputRequested(WaitingFor::Question)
        }
        "Stop" if works_on(payload) => EventKind::TurnEndedInBackground,
        _ => usual_meaning(name, payload)?,
    })
}

/// Sub-agents run on. A shell in the background may run for days, and the agent waits for
/// a prompt meanwhile: that is no work of it.
fn works_on(payload: &HookPayload<'_>) -> bool {
    let tasks = payload.list("background_tasks");
    tasks.iter().take(TASKS_MAX).any(|task| {
        let is = |key: &str, text: &str| task.get(key).and_then(|it| it.as_str()) == Some(text);
        WORKING_TASKS.iter().any(|kind| is("type", kind))
            && (is("status", "running") || is("status", "pending"))
    })
}

#[cfg(test)]
#[path = "hooks_tests.rs"]
mod tests;
