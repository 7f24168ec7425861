//! Codex's hooks.
//!
//! Seen in Codex 0.171.0, 2026-11: hooks run only once a person has trusted them
//! in Codex. `SessionStart` comes at the first prompt, not at launch. The shared
//! daemon sends `SessionEnd` about a minute after the last terminal has gone; a
//! Codex without a daemon sends it at `/exit` only.
//!
//! `Interrupt` comes instead of `Stop` when a person interrupts the turn of a main thread,
//! just before `turn_aborted` is recorded. Its payload is that of `Stop` without what the
//! model said last (openai/codex, `hooks/src/events/interrupt.rs`; since 0.152).

use std::path::Path;

use crate::adapter::{HookTrust, Hooks, SettingsFile, SettingsForm};
use crate::sources::agents::kit::event_names::USUAL_HOOKS;

pub(super) static HOOKS: Hooks = Hooks {
    settings: &[SettingsFile::in_home(
        "hooks.json",
        SettingsForm::JsonGroups,
    )],
    events: &[
        "SessionStart",
        "UserPromptSubmit",
        "PreToolUse",
        "PermissionRequest",
        "PostToolUse",
        "SubagentStart",
        "SubagentStop",
        "PreCompact",
        "Stop",
        "Interrupt",
        "SessionEnd",
    ],
    trust: Some(HookTrust {
        file: "config.toml",
        count: trusted,
    }),
    ..USUAL_HOOKS
};

/// A table `[hooks.state."FILE:EVENT:GROUP:HOOK"]` for each hook that a person has
/// looked at; those that are trusted have a `trusted_hash`.
fn trusted(configuration: &str, settings: &Path) -> usize {
    let head = format!("[hooks.state.\"{}:", settings.display());
    let mut lines = configuration.lines().map(str::trim).peekable();
    let mut count = 0;
    while let Some(line) = lines.next() {
        let is_ours = line.starts_with(&head);
        let is_trusted = |line: &&str| line.starts_with("trusted_hash");
        count += usize::from(is_ours && lines.peek().is_some_and(is_trusted));
    }
    count
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::trusted;

    #[test]
    fn hooks_that_a_person_has_looked_at_are_counted_where_they_are_trusted() {
        let configuration = "[hooks.state]\n\n\
            [hooks.state.\"/h/.codex/hooks.json:stop:0:0\"]\ntrusted_hash = \"sha256:e745\"\n\n\
            [hooks.state.\"/h/.codex/hooks.json:session_end:0:0\"]\nenabled = false\n\n\
            [hooks.state.\"/elsewhere/hooks.json:stop:0:0\"]\ntrusted_hash = \"sha256:e745\"\n";
        assert_eq!(trusted(configuration, Path::new("/h/.codex/hooks.json")), 1);
        assert_eq!(trusted("", Path::new("/h/.codex/hooks.json")), 0);
    }
}
