//! qwen-code's hooks.
//!
//! Seen in qwen-code 0.24.4, 2026-11: `UserPromptSubmit` comes a second time,
//! with an empty prompt, after a tool has run; `PreToolUse` comes after leave was
//! given. A session that is left by `/resume` gets no `SessionEnd`, nor does a
//! one-shot run; one under an editor gets two.

use crate::adapter::{Hooks, session_by_file_stem};
use crate::sources::agents::kit::event_names::{CLAUDE_EVENTS, SETTINGS_JSON, USUAL_HOOKS};

pub(super) static HOOKS: Hooks = Hooks {
    session_of_transcript: session_by_file_stem,
    settings: SETTINGS_JSON,
    events: CLAUDE_EVENTS,
    ..USUAL_HOOKS
};
