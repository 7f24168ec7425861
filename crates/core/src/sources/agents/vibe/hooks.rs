//! Vibe's hooks.
//!
//! Seen in mistral-vibe 3.0.2, 2026-11: three events, in a file of their own. None reports
//! the start or end of a session, or a prompt. `transcript_path` names the session's
//! directory.

use crate::adapter::hook_event::{EventKind, HookError, HookPayload, PayloadKeys};
use crate::adapter::{Hooks, SettingsFile, SettingsForm};
use crate::sources::agents::kit::event_names::USUAL_HOOKS;

pub(super) static HOOKS: Hooks = Hooks {
    meaning,
    keys: PayloadKeys {
        // Its transcript is several files below the directory that it names.
        transcript: "transcript_file",
        ..PayloadKeys::SNAKE_CASE
    },
    settings: &[SettingsFile::in_home(
        "hooks.toml",
        SettingsForm::NamedTomlTables,
    )],
    events: &["pre_tool", "post_tool", "post_agent"],
    ..USUAL_HOOKS
};

fn meaning(name: &str, _: &HookPayload<'_>) -> Result<EventKind, HookError> {
    Ok(match name {
        "pre_tool" => EventKind::ToolStarted,
        "post_tool" => EventKind::ToolEnded,
        "post_agent" => EventKind::TurnEnded,
        _ => EventKind::Heartbeat,
    })
}
