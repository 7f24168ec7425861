//! What the last thing typed in a terminal tells of the sessions there.
//!
//! A session that was begun or prompted by hand was so in the terminal of its
//! process. So a process in whose terminal nobody has typed since was not the
//! one, whatever its directory and dates say.

use super::AgentProcess;

/// How long after a key was read an agent has acted on it and noted when, in
/// milliseconds; a loaded machine included.
const ACTED_ON_MS_MAX: i64 = 10_000;
/// How long after its start a process may still make the session that it begins
/// with, in milliseconds. Nobody types for that.
const LAUNCH_MS_LONGEST: i64 = 60_000;

/// Tells whether what was typed at `at_ms` was not typed in this process's
/// terminal. Where nothing is known of the terminal it may have been.
pub(super) fn was_typed_elsewhere(process: &AgentProcess, at_ms: i64) -> bool {
    let silent_since_ms = process.details.terminal_silent_since_ms.as_ref();
    silent_since_ms.is_ok_and(|since| at_ms > since.saturating_add(ACTED_ON_MS_MAX))
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

    use whosup_process::RecordedProcess;
    use whosup_sidecar::AgentId;

    use super::*;
    use crate::agents::Role;

    const T: i64 = 1_795_800_000_000;

    fn process(silent_since_ms: Option<i64>) -> AgentProcess {
        let mut recorded = RecordedProcess::new(7, 1, T);
        if let Some(at_ms) = silent_since_ms {
            recorded = recorded.terminal_silent_since(at_ms);
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
    fn what_was_typed_after_a_terminal_fell_silent_was_typed_elsewhere() {
        let silent = process(Some(T + 600_000));
        assert!(!was_typed_elsewhere(&silent, T + 500_000));
        assert!(!was_typed_elsewhere(&silent, T + 605_000));
        assert!(was_typed_elsewhere(&silent, T + 611_000));
    }

    #[test]
    fn of_a_terminal_that_nothing_is_known_of_nothing_follows() {
        assert!(!was_typed_elsewhere(&process(None), i64::MAX));
    }

    #[test]
    fn what_a_process_may_have_begun_with_was_not_begun_by_hand() {
        assert!(!is_begun_by_hand(&process(None), T + 59_000));
        assert!(is_begun_by_hand(&process(None), T + 61_000));
    }
}
