//! What the last use of a terminal shows about the sessions there.
//!
//! A person begins and prompts a session in the terminal of its process, and the
//! replies are shown there. Linux notes the last input and output of a terminal, in
//! steps of eight seconds (see `whosup_process::TerminalUse`). Seen 2026-11: terminals of
//! idle pi, Kimi Code, Gemini CLI and opencode stay quiet; kimi-cli draws all the time,
//! so that only its input counts.

use whosup_process::TerminalUse;

use crate::adapter::AgentProcess;

/// How long after a key was read an agent has acted on it and recorded when, or how long
/// before something is shown it was recorded, in milliseconds. This includes a loaded
/// machine.
const ACTED_ON_MS_MAX: i64 = 10_000;
/// How long before it is shown a reply is recorded, in milliseconds.
const SHOWN_MS_MAX: i64 = 1_000;
/// How much earlier than noted a terminal may have been used, in milliseconds: the step
/// in which the kernel notes it.
const STEP_MS: i64 = 8_000;

/// The use of a terminal, where the kernel was seen to note it.
fn noted_use(process: &AgentProcess) -> Option<&TerminalUse> {
    let last = process.details.terminal_use.as_ref().ok()?;
    last.is_noted.then_some(last)
}

/// The latest time at which something typed there can have been recorded, in
/// milliseconds since 1970. `None` where the use is not known.
pub(super) fn typed_until_ms(process: &AgentProcess) -> Option<i64> {
    Some(typed_until(noted_use(process)?))
}

const fn typed_until(last: &TerminalUse) -> i64 {
    last.no_input_since_ms.saturating_add(ACTED_ON_MS_MAX)
}

/// Whether the terminal had input since shortly before `at_ms`. `false` where the use
/// is not known.
pub(super) fn was_typed_since(process: &AgentProcess, at_ms: i64) -> bool {
    typed_until_ms(process).is_some_and(|until| until >= at_ms)
}

/// Whether the terminal had no input since shortly before `at_ms`. `false` where the
/// use is not known.
pub(super) fn was_silent_since(process: &AgentProcess, at_ms: i64) -> bool {
    typed_until_ms(process).is_some_and(|until| until < at_ms)
}

/// Whether nothing was shown there when something was recorded at `at_ms`, although a
/// reply is shown where a person sits before it. `false` where the use is not known, or
/// the agent draws while it is idle.
pub(super) fn showed_nothing_at(process: &AgentProcess, at_ms: i64) -> bool {
    is_quiet_when_idle(process)
        && noted_use(process)
            .is_some_and(|last| last.no_output_since_ms.saturating_add(SHOWN_MS_MAX) < at_ms)
}

/// Whether the last use of the terminal and what was recorded at `at_ms` fit each other.
pub(super) fn was_last_used_at(process: &AgentProcess, at_ms: i64) -> bool {
    let fits = |no_use_since_ms: i64| {
        let earliest = no_use_since_ms.saturating_sub(STEP_MS + ACTED_ON_MS_MAX);
        let latest = no_use_since_ms.saturating_add(ACTED_ON_MS_MAX);
        (earliest..=latest).contains(&at_ms)
    };
    noted_use(process).is_some_and(|last| {
        fits(last.no_input_since_ms)
            || (is_quiet_when_idle(process) && fits(last.no_output_since_ms))
    })
}

fn is_quiet_when_idle(process: &AgentProcess) -> bool {
    process.adapter.profile().is_quiet_when_idle
}

/// Whether a session that was born at `born_at_ms` and recorded something last at
/// `last_at_ms` cannot have been begun in this terminal: it is too young to be the one
/// that the process was launched with, and the terminal had no input when it was born.
pub(super) fn rules_out_birth(process: &AgentProcess, born_at_ms: i64) -> bool {
    let began = process.process.began_ms();
    let is_by_hand =
        began.is_some_and(|began| born_at_ms > began.saturating_add(LAUNCH_MS_LONGEST));
    is_by_hand && was_silent_since(process, born_at_ms)
}

/// How long after its start a process may make the session that it is launched with, in
/// milliseconds, without input in the terminal.
const LAUNCH_MS_LONGEST: i64 = 60_000;
