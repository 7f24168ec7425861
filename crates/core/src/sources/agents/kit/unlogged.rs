//! What an agent's log lacks: after a full disk, a torn write, or a copy that was made early.
//!
//! A log that names the sessions of terminals is no proof of where a terminal is if a session
//! was used later, and the log lacks that use. Then the terminal may have moved to that
//! session: it is in neither for certain, and both are its candidates.

use std::collections::{BTreeMap, BTreeSet};

use whosup_process::Pid;
use whosup_sidecar::SessionId;

use crate::adapter::Clue;
use crate::adapter::claim::{Claim, Subject};

/// How much later than its log line a use may be dated, in milliseconds.
const LAG_MS: i64 = 2_000;

/// Where the text after the last hole in a line begins: zeros are in its place, or another
/// line begins in the middle of this one. `begin` is how lines begin, with a `0` for any digit.
pub(crate) fn after_hole(line: &[u8], begin: &[u8]) -> Option<usize> {
    let is_begin = |at: &[u8]| {
        let mut bytes = at.iter().zip(begin);
        bytes.all(|(byte, shape)| match shape {
            b'0' => byte.is_ascii_digit(),
            shape => byte == shape,
        })
    };
    let begins = line.windows(begin.len()).rposition(is_begin);
    let zeros = line.iter().rposition(|byte| *byte == 0);
    let begins = begins.filter(|at| *at > 0);
    begins.max(zeros.map(|at| at.saturating_add(1)))
}

/// The log lacks a use of a session: all that it has of the session is older.
pub(crate) fn is_unlogged(used_at_ms: Option<i64>, logged_at_ms: Option<i64>) -> bool {
    used_at_ms > logged_at_ms.map(|at| at.saturating_add(LAG_MS))
}

/// The terminals that may have moved to a session whose use the log lacks, with these
/// sessions: all that the log has of the terminal is older than that use.
#[derive(Debug, Default)]
pub(crate) struct Strayed(BTreeMap<Pid, BTreeSet<SessionId>>);

impl Strayed {
    /// A terminal may have moved to these sessions.
    pub(crate) fn add<'a>(&mut self, terminal: Pid, to: impl Iterator<Item = &'a SessionId>) {
        let to: BTreeSet<SessionId> = to.cloned().collect();
        if !to.is_empty() {
            self.0.insert(terminal, to);
        }
    }

    /// It is not known for certain in which session a terminal is.
    pub(crate) fn has(&self, terminal: Pid) -> bool {
        self.0.contains_key(&terminal)
    }

    /// The clues about the terminals that may have moved to a session, or away from it:
    /// `is_in` tells whether a terminal is in it by the log.
    pub(crate) fn gaps(&self, session: &SessionId, is_in: impl Fn(Pid) -> bool) -> Vec<Clue> {
        let all = self.0.iter();
        let about = all.filter(|(pid, to)| to.contains(session) || is_in(**pid));
        let says = "the log lacks a part in which it may have gone on";
        about.map(|(pid, _)| Clue::gap(*pid, says)).collect()
    }
}

/// The claim of a terminal that may have moved on: where it was last is no proof.
pub(crate) fn doubted(mut claim: Claim) -> Claim {
    claim.subject = Subject::Unreadable;
    claim.evidence.says += ", and the log lacks a part after that";
    claim
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hole_ends_where_another_line_begins_or_zeros_end() {
        let after_hole = |line: &str| after_hole(line.as_bytes(), b"at=00:00 ");
        assert_eq!(after_hole("at=21:05 level=INFO"), None);
        assert_eq!(after_hole("at=21:05 levat=21:07 leat=21:09 x"), Some(23));
        assert_eq!(after_hole("at=21:05 \0\0\0x"), Some(12));
        assert_eq!(after_hole("at=21:05 said at=noon"), None);
        assert_eq!(after_hole(""), None);
    }

    #[test]
    fn a_use_is_unlogged_if_the_log_has_nothing_as_late() {
        assert!(is_unlogged(Some(10_000), None));
        assert!(is_unlogged(Some(10_000), Some(7_000)));
        assert!(!is_unlogged(Some(10_000), Some(9_000)));
        assert!(!is_unlogged(None, None));
    }
}
