//! The state of a session in a word or two, for people.

use crate::adapter::phase::{Phase, WaitingFor};
use crate::judging::verdict::Liveness;
use crate::sessions::session::Session;

/// The state of a session in a word or two: the phase if it is live, else what became of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition {
    /// In a turn, stopped until a person answers.
    Waiting(Option<WaitingFor>),
    /// In a turn.
    Working,
    /// Between turns.
    Idle,
    /// Begun, and nothing reported yet.
    Starting,
    /// Live, with an unknown phase.
    Live,
    /// An agent process without a known session.
    NoSession,
    /// It could not be determined.
    Unknown,
    /// Exited without an end.
    Orphaned,
    /// Exited.
    Exited,
}

impl Condition {
    /// Every condition, waiting only once, in the order of the table.
    pub const ALL: [Self; 9] = [
        Self::Waiting(None),
        Self::Working,
        Self::Idle,
        Self::Starting,
        Self::Live,
        Self::NoSession,
        Self::Unknown,
        Self::Orphaned,
        Self::Exited,
    ];

    /// The condition of a session.
    pub fn of(session: &Session) -> Self {
        match (session.liveness(), session.phase()) {
            (Liveness::Live, Some(Phase::Waiting)) => Self::Waiting(session.waiting_for()),
            (Liveness::Live, Some(Phase::Working)) => Self::Working,
            (Liveness::Live, Some(Phase::Idle)) => Self::Idle,
            (Liveness::Live, Some(Phase::Starting)) => Self::Starting,
            // A live process whose conversation has ended is about to exit.
            (Liveness::Live, Some(Phase::Ended) | None) => Self::Live,
            (Liveness::Unknown, _) => Self::Unknown,
            (Liveness::Exited, _) if session.is_orphan() => Self::Orphaned,
            (Liveness::Exited, _) => Self::Exited,
        }
    }

    /// The place in the table: what needs a person first, what has exited last.
    pub fn rank(self) -> usize {
        let is_same = |other: &Self| other.name() == self.name();
        Self::ALL
            .iter()
            .position(is_same)
            .unwrap_or(Self::ALL.len())
    }

    /// Its name in the configuration.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Waiting(_) => "waiting",
            Self::Working => "working",
            Self::Idle => "idle",
            Self::Starting => "starting",
            Self::Live => "live",
            Self::NoSession => "no-session",
            Self::Unknown => "unknown",
            Self::Orphaned => "orphaned",
            Self::Exited => "exited",
        }
    }

    /// The words shown to a person.
    pub fn words(self, wording: Wording) -> String {
        match self {
            Self::Waiting(what) => {
                let head = match wording {
                    Wording::Full => "waiting for you",
                    Wording::Short => "waiting",
                };
                what.map_or_else(
                    || head.to_owned(),
                    |what| format!("{head} ({})", what.name()),
                )
            }
            Self::NoSession => "no session known".to_owned(),
            other => other.name().to_owned(),
        }
    }
}

/// The length of the words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wording {
    /// Complete.
    Full,
    /// Short, for a narrow terminal.
    Short,
}

#[cfg(test)]
mod tests {
    use crate::adapter::phase::WaitingFor;

    use super::{Condition, Wording};

    #[test]
    fn every_condition_has_a_rank_of_its_own() {
        let ranks: Vec<usize> = Condition::ALL.iter().map(|one| one.rank()).collect();
        assert_eq!(ranks, (0..Condition::ALL.len()).collect::<Vec<_>>());
    }

    #[test]
    fn what_is_waited_for_changes_the_words_alone() {
        let waiting = Condition::Waiting(Some(WaitingFor::Permission));
        assert_eq!(waiting.rank(), 0);
        assert_eq!(waiting.words(Wording::Full), "waiting for you (permission)");
        assert_eq!(waiting.words(Wording::Short), "waiting (permission)");
    }
}
