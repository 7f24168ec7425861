//! Claude Code's hooks.
//!
//! Seen in Claude Code 2.1.197, 2026-11: `SessionStart` comes twice on
//! `--continue`, with a throw-away id first; with the old id on `--fork-session`.
//! `/clear` ends one session and starts another. `SessionEnd` comes on SIGTERM and
//! when the terminal goes, never on SIGKILL. A reminder that it has been idle for
//! a minute is a `Notification`, as a request for leave is. In 2.1.332 the turn ends
//! while sub-agents work on, `Stop` lists them in `background_tasks`, and
//! `UserPromptSubmit` follows once they are done.

use crate::agents::event_names::usual_meaning;
use crate::agents::hooks::{
    Hooks, SettingsFile, SettingsForm, SettingsPlace, session_by_file_stem,
};
use crate::hook_event::{EventKind, HookError, HookPayload, PayloadKeys};
use crate::phase::WaitingFor;

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

/// The tools by which the model puts a question to the person: to answer it is not to
/// permit anything.
pub(super) const QUESTION_TOOLS: &[&str] = &["AskUserQuestion", "ExitPlanMode"];

fn meaning(name: &str, payload: &HookPayload<'_>) -> Result<EventKind, HookError> {
    Ok(match name {
        "PermissionRequest" if is_question(payload)? => {
            EventKind::InputRequested(WaitingFor::Question)
        }
        "Stop" if works_on(payload) => EventKind::TurnEndedInBackground,
        _ => usual_meaning(name, payload)?,
    })
}

fn is_question(payload: &HookPayload<'_>) -> Result<bool, HookError> {
    let tool = payload.text("tool_name")?;
    Ok(tool.is_some_and(|tool| QUESTION_TOOLS.contains(&tool)))
}

/// Sub-agents run on. A shell in the background may run for days, and the agent waits for
/// a prompt meanwhile: that is no work of it.
fn works_on(payload: &HookPayload<'_>) -> bool {
    let tasks = payload.list("background_tasks");
    tasks.iter().any(|task| {
        let is = |key: &str, text: &str| task.get(key).and_then(|it| it.as_str()) == Some(text);
        is("type", "subagent") && is("status", "running")
    })
}
