//! Gemini CLI's hooks.
//!
//! Seen in Gemini CLI 0.61.0, 2026-11: `BeforeTool` comes before the question for
//! permission, and no event reports the permission until `AfterTool`. `PreCompress` comes
//! before every turn. `/clear` ends one session and starts another. `/quit` sends
//! `SessionEnd` twice, SIGTERM two or three times, a closed terminal never, and the process
//! survives it. The turn waits for its hooks.

use crate::adapter::hook_event::{EventKind, HookError, HookPayload, PayloadKeys};
use crate::adapter::phase::WaitingFor;
use crate::adapter::{
    Hooks, SettingsFile, SettingsForm, SettingsPlace, no_session_by_path, started,
};

pub(super) static HOOKS: Hooks = Hooks {
    meaning,
    keys: PayloadKeys::SNAKE_CASE,
    // The names of its transcripts have only a prefix of the id.
    session_of_transcript: no_session_by_path,
    settings: &[SettingsFile {
        place: SettingsPlace::Home("settings.json"),
        form: SettingsForm::JsonGroups,
    }],
    events: &[
        "SessionStart",
        "BeforeAgent",
        "BeforeTool",
        "Notification",
        "AfterTool",
        "AfterAgent",
        "SessionEnd",
    ],
    trust: None,
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
