//! What the last use of a terminal tells of the sessions there.
//!
//! A session that was begun or prompted by hand was so in the terminal of its
//! process, and what it says is shown there. So a process in whose terminal
//! nobody has typed since, or nothing was shown, was not the one, whatever its
//! directory and dates say. Terminals of idle pi, Kimi Code, Gemini CLI and
//! opencode are as quiet as that; kimi-cli draws all the time, which proves
//! nothing. Seen 2026-11.

use whosup_process::TerminalUse;

use super::AgentProcess;

/// How long after a key was read an agent has acted on it and noted when, or how
/// long before something is shown it was noted, in milliseconds; a loaded
/// machine included.
const ACTED_ON_MS_MAX: i64 = 10_000;
/// How long after its start a process may still make the session that it begins
/// with, in milliseconds. Nobody types for that.
const LAUNCH_MS_LONGEST: i64 = 60_000;

/// The latest that something typed in this process's terminal can be noted.
/// `None` where nothing is known of the terminal.
pub(super) fn typed_until_ms(process: &AgentProcess) -> Option<i64> {
    Some(typed_until(noted_use(process)?))
}

fn noted_use(process: &AgentProcess) -> Option<&TerminalUse> {
    let last = process.details.terminal_use.as_ref().ok()?;
    last.is_noted.then_some(last)
}

const fn typed_until(last: &TerminalUse) -> i64 {
    last.no_input_since_ms.saturating_add(ACTED_ON_MS_MAX)
}

const fn shown_until(last: &TerminalUse) -> i64 {
    last.no_output_since_ms.saturating_add(ACTED_ON_MS_MAX)
}

/// The latest that something which was shown there can have been noted.
pub(super) fn shown_until_ms(process: &AgentProcess) -> Option<i64> {
    Some(shown_until(noted_use(process)?))
}

/// The same also where that has not been used since it was made, as far as is known: it
/// is not known whether the kernel would have noted it.
pub(super) fn hardly_typed_until_ms(process: &AgentProcess) -> Option<i64> {
    let last = process.details.terminal_use.as_ref().ok()?;
    Some(typed_until(last))
}

/// The same of what was shown there.
pub(super) fn hardly_shown_until_ms(process: &AgentProcess) -> Option<i64> {
    let last = process.details.terminal_use.as_ref().ok()?;
    Some(shown_until(last))
}

/// Tells whether what was typed at `at_ms` was not typed in this process's
/// terminal. Where nothing is known of the terminal it may have been.
pub(super) fn was_typed_elsewhere(process: &AgentProcess, at_ms: i64) -> bool {
    typed_until_ms(process).is_some_and(|until| at_ms > until)
}

/// Tells whether what was noted at `at_ms` was not shown in this process's
/// terminal, as it is where a person sits before it.
pub(super) fn was_shown_elsewhere(process: &AgentProcess, at_ms: i64) -> bool {
    shown_until_ms(process).is_some_and(|until| at_ms > until)
}

/// Tells whether it is doubtful that what was typed at `at_ms` was typed in this process's
/// terminal: also where that has not been used since it was made, as far as is known, for
/// it is not known whether the kernel would have noted it.
pub(super) fn was_hardly_typed_here(process: &AgentProcess, at_ms: i64) -> bool {
    hardly_typed_until_ms(process).is_some_and(|until| at_ms > until)
}

/// The same of what was shown there.
pub(super) fn was_hardly_shown_here(process: &AgentProcess, at_ms: i64) -> bool {
    hardly_shown_until_ms(process).is_some_and(|until| at_ms > until)
}

/// Tells whether a session is none that somebody began by hand in this
/// process's terminal, though it is too young to be the one that the process
/// began with: nobody had typed there when it was born, or what it says is not
/// shown there.
pub(super) fn was_begun_elsewhere(
    process: &AgentProcess,
    born_at_ms: Option<i64>,
    last_at_ms: Option<i64>,
) -> bool {
    let told = (born_at_ms, last_at_ms);
    is_ruled_out(process, told, was_typed_elsewhere, was_shown_elsewhere)
}

/// Tells whether it is doubtful that somebody began a session by hand in this process's
/// terminal: as [`was_begun_elsewhere`], also where it is not known whether the kernel
/// would have noted it.
pub(super) fn was_hardly_begun_here(
    process: &AgentProcess,
    born_at_ms: Option<i64>,
    last_at_ms: Option<i64>,
) -> bool {
    let told = (born_at_ms, last_at_ms);
    is_ruled_out(process, told, was_hardly_typed_here, was_hardly_shown_here)
}

/// Tells whether the use of a process's terminal rules out that a session, with the dates
/// of its birth and of what it says last, was begun there by hand.
fn is_ruled_out(
    process: &AgentProcess,
    (born_at_ms, last_at_ms): (Option<i64>, Option<i64>),
    is_typed_elsewhere: fn(&AgentProcess, i64) -> bool,
    is_shown_elsewhere: fn(&AgentProcess, i64) -> bool,
) -> bool {
    let is_shown_elsewhere = || last_at_ms.is_some_and(|at_ms| is_shown_elsewhere(process, at_ms));
    born_at_ms.is_some_and(|born_at_ms| {
        is_begun_by_hand(process, born_at_ms)
            && (is_typed_elsewhere(process, born_at_ms) || is_shown_elsewhere())
    })
}

/// Tells whether a session that was born at `born_at_ms` was begun by hand if it
/// is this process's: it is too young to be the one that the process began with.
pub(super) fn is_begun_by_hand(process: &AgentProcess, born_at_ms: i64) -> bool {
    let began_at_ms = process.process.began_at_ms.as_ref();
    began_at_ms.is_ok_and(|began| born_at_ms > began.saturating_add(LAUNCH_MS_LONGEST))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use whosup_process::{RecordedProcess, TerminalUse};
    use whosup_sidecar::AgentId;

    use super::*;
    use crate::agents::Role;

    const T: i64 = 1_795_800_000_000;

    fn process(last_ms: Option<(i64, i64)>) -> AgentProcess {
        in_terminal(last_ms, true)
    }

    fn in_terminal(last_ms: Option<(i64, i64)>, is_noted: bool) -> AgentProcess {
        let mut recorded = RecordedProcess::new(7, 1, T);
        if let Some((no_input_since_ms, no_output_since_ms)) = last_ms {
            recorded = recorded.terminal_use(TerminalUse {
                no_input_since_ms,
                no_output_since_ms,
                is_noted,
            });
        }
        AgentProcess {
            agent: AgentId::from_static("pi"),
            process: recorded.process,
            details: Arc::new(recorded.details),
            role: Role::Session,
            homes: Vec::new(),
        }
    }

    #[test]
    fn what_was_typed_or_shown_after_a_terminal_fell_silent_was_so_elsewhere() {
        let silent = process(Some((T + 600_000, T + 700_000)));
        assert!(!was_typed_elsewhere(&silent, T + 500_000));
        assert!(!was_typed_elsewhere(&silent, T + 605_000));
        assert!(was_typed_elsewhere(&silent, T + 611_000));
        assert!(!was_shown_elsewhere(&silent, T + 705_000));
        assert!(was_shown_elsewhere(&silent, T + 711_000));
    }

    #[test]
    fn where_the_kernel_may_note_nothing_silence_raises_doubt_and_proves_nothing() {
        let silent = in_terminal(Some((T + 600_000, T + 700_000)), false);
        assert!(!was_typed_elsewhere(&silent, T + 900_000));
        assert!(!was_shown_elsewhere(&silent, T + 900_000));
        assert!(was_hardly_typed_here(&silent, T + 611_000));
        assert!(was_hardly_shown_here(&silent, T + 711_000));
        assert!(!was_hardly_typed_here(&silent, T + 605_000));
        assert!(!was_hardly_shown_here(&silent, T + 705_000));
        assert!(!was_hardly_typed_here(&process(None), i64::MAX));
    }

    #[test]
    fn of_a_terminal_that_nothing_is_known_of_nothing_follows() {
        assert!(!was_typed_elsewhere(&process(None), i64::MAX));
        assert!(!was_shown_elsewhere(&process(None), i64::MAX));
    }

    #[test]
    fn a_session_is_begun_elsewhere_if_it_can_not_have_been_begun_or_shown_here() {
        let silent = process(Some((T + 600_000, T + 700_000)));
        let check = |born: Option<i64>, last: Option<i64>, right: bool| {
            let found = was_begun_elsewhere(&silent, born, last);
            assert_eq!(found, right, "{born:?} {last:?}");
        };
        check(Some(T + 500_000), Some(T + 690_000), false);
        check(Some(T + 500_000), Some(T + 800_000), true);
        check(Some(T + 620_000), None, true);
        check(None, Some(T + 800_000), false);
        // The process may have begun with it, and print what it says at its end.
        check(Some(T + 50_000), Some(T + 800_000), false);
        // Where the kernel may note nothing the same is doubtful, and no more.
        let unused = in_terminal(Some((T + 600_000, T + 700_000)), false);
        let dates = (Some(T + 620_000), Some(T + 800_000));
        assert!(!was_begun_elsewhere(&unused, dates.0, dates.1));
        assert!(was_hardly_begun_here(&unused, dates.0, dates.1));
        assert!(!was_hardly_begun_here(&unused, Some(T + 50_000), dates.1));
        assert!(!was_hardly_begun_here(&process(None), dates.0, dates.1));
    }
}
