//! Copilot CLI's hooks.
//!
//! Seen in Copilot CLI 1.0.102, 2026-11: every file of its `hooks` directory counts.
//! Payloads do not name their event, so the command line does. `sessionStart` comes
//! at the first prompt, `sessionEnd` on SIGTERM and when the terminal goes too, never
//! on SIGKILL. Events of a sub-agent's tools have the sub-agent's id as the session, and the
//! session's id as `parentAgentId`.

use std::fmt::Write as _;

use crate::adapter::hook_event::{EventKind, HookError, HookPayload, PayloadKeys, StartSource};
use crate::adapter::phase::WaitingFor;
use crate::adapter::{HookCommand, Hooks, SettingsFile, SettingsForm, started};
use crate::sources::agents::kit::event_names::USUAL_HOOKS;

/// How long it waits for a hook, in seconds.
const HOOK_SECONDS_MAX: u32 = 5;

const EVENTS: &[&str] = &[
    "sessionStart",
    "userPromptSubmitted",
    "preToolUse",
    "permissionRequest",
    "notification",
    "postToolUse",
    "subagentStart",
    "subagentStop",
    "agentStop",
    "sessionEnd",
];

pub(super) static HOOKS: Hooks = Hooks {
    meaning,
    keys: PayloadKeys {
        event: None,
        session: &["parentAgentId", "sessionId"],
        work_dir: "cwd",
        transcript: "transcriptPath",
        prompt: "prompt",
        reason: "reason",
        sub_agent: "agentId",
    },
    settings: &[SettingsFile::in_home(
        "hooks/whosup.json",
        SettingsForm::OwnFile(file),
    )],
    events: EVENTS,
    ..USUAL_HOOKS
};

fn meaning(name: &str, payload: &HookPayload<'_>) -> Result<EventKind, HookError> {
    Ok(match name {
        "sessionStart" if payload.text("source")? == Some("new") => {
            EventKind::SessionStarted(StartSource::Startup)
        }
        "sessionStart" => started(payload)?,
        "userPromptSubmitted" => EventKind::TurnStarted,
        "preToolUse" => EventKind::ToolStarted,
        "postToolUse" | "postToolUseFailure" => EventKind::ToolEnded,
        "permissionRequest" => EventKind::InputRequested(WaitingFor::Permission),
        "notification" => match payload.text("notification_type")? {
            Some("permission_prompt") => EventKind::InputRequested(WaitingFor::Permission),
            _ => EventKind::Heartbeat,
        },
        "subagentStart" => EventKind::SubAgentStarted,
        "subagentStop" => EventKind::SubAgentEnded,
        "preCompact" => EventKind::Compacted,
        "agentStop" => EventKind::TurnEnded,
        "sessionEnd" => EventKind::SessionEnded,
        _ => EventKind::Heartbeat,
    })
}

/// The file of our hooks.
fn file(command: &HookCommand) -> String {
    let mut text = "{\n  \"version\": 1,\n  \"hooks\": {".to_owned();
    for (at, event) in EVENTS.iter().enumerate() {
        let comma = if at == 0 { "" } else { "," };
        let line = serde_json::Value::from(format!("{} {event}", command.line()));
        // A `String` takes everything.
        write!(
            text,
            "{comma}\n    \"{event}\": [{{ \"type\": \"command\", \"bash\": {line}, \
             \"timeoutSec\": {HOOK_SECONDS_MAX} }}]"
        )
        .ok();
    }
    text + "\n  }\n}\n"
}
