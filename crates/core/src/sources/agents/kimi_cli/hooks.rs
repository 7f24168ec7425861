//! kimi-cli's hooks.
//!
//! Seen in kimi-cli 1.50.0, 2026-11: payloads name no transcript; `prompt` is
//! empty in the terminal. `/clear` and `/new` send `SessionEnd` with the reason
//! `exit` and `SessionStart` with the source `startup`, from the same process.
//! SIGTERM and a terminal that goes send nothing.

use crate::adapter::Hooks;
use crate::sources::agents::kit::event_names::{CONFIG_TOML, USUAL_HOOKS};

pub(super) static HOOKS: Hooks = Hooks {
    settings: CONFIG_TOML,
    events: &[
        "SessionStart",
        "UserPromptSubmit",
        "PreToolUse",
        "PostToolUse",
        "PostToolUseFailure",
        "SubagentStart",
        "SubagentStop",
        "PreCompact",
        "Stop",
        "StopFailure",
        "SessionEnd",
    ],
    ..USUAL_HOOKS
};
