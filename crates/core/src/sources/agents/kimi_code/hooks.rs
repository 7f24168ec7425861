//! kimi-code's hooks.
//!
//! Seen in kimi-code 2.1.0, 2026-11: a session starts with its first prompt; a
//! prompt is a list of parts. `/new` starts the new session before it ends the
//! old one. SIGTERM and a terminal that goes send nothing. A configuration with an
//! event that it does not know is refused, so the newest of them are not asked for.

use crate::adapter::Hooks;
use crate::sources::agents::kit::event_names::{CONFIG_TOML, USUAL_HOOKS};

pub(super) static HOOKS: Hooks = Hooks {
    settings: CONFIG_TOML,
    events: &[
        "SessionStart",
        "UserPromptSubmit",
        "PreToolUse",
        "PermissionRequest",
        "PermissionResult",
        "PostToolUse",
        "PostToolUseFailure",
        "SubagentStart",
        "SubagentStop",
        "PreCompact",
        "Stop",
        "StopFailure",
        "Interrupt",
        "SessionEnd",
    ],
    ..USUAL_HOOKS
};
