//! Gemini CLI's hooks.
//!
//! Seen in Gemini CLI 0.61.0, 2026-11: `BeforeTool` comes before the question for
//! permission, and no event reports the permission until `AfterTool`. `PreCompress` comes
//! before every turn. `/clear` ends one session and starts another. `/quit` sends
//! `SessionEnd` twice, SIGTERM two or three times, a closed terminal never, and the process
//! survives it. The turn waits for its hooks.

use crate::adapter::hook_event::{EventKind, HookError, HookPayload};
use crate::adapter::phase::WaitingFor;
use crate::adapter::{Hooks, started};
use crate::sources::agents::kit::event_names::{SETTINGS_JSON, USUAL_HOOKS};

pub(super) static HOOKS: Hooks = Hooks {
    meaning,
    // The names of its transcripts have only a prefix of the id, which names no session.
    settings: SETTINGS_JSON,
    events: &[
        "SessionStart",
        "BeforeAgent",
        "BeforeTool",
        "Notification",
        "AfterTool",
        "AfterAgent",
        "SessionEnd",
    ],
    ..USUAL_HOOKS
};

fn meaning(name: &str, payload: &HookPayload<'_>) -> Result<EventKind, HookError> {
    Ok(match name {
        "SessionStart" => started(payload)?,
        "BeforeAgent" => EventKind::TurnStarted,
        "AfterAgent" => EventKind::TurnEnded,
        "BeforeTool" => EventKind::ToolStarted,
        "AfterTool" => EventKind::ToolEnded,
        "Notification" => match payload.text("notification_type")? {
            Some("ToolPermission") => EventKind::InputRequested(WaitingFor::Permission),
            _ => EventKind::Heartbeat,
        },
        "PreCompress" => EventKind::Compacted,
        "SessionEnd" => EventKind::SessionEnded,
        _ => EventKind::Heartbeat,
    })
}
