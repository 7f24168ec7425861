//! A session's condition in a word or two, for people.

use anstyle::{AnsiColor, Color, Style};
use whosup_core::adapter::phase::Phase;
use whosup_core::judging::verdict::{Confidence, Liveness};
use whosup_core::sessions::session::Session;

pub(crate) use whosup_core::reader::{Condition, Wording};

/// The style of a condition unless the configuration sets one.
pub(crate) fn default_style(condition: Condition) -> Style {
    let colour = |colour| Style::new().fg_color(Some(Color::Ansi(colour)));
    match condition {
        Condition::Waiting(_) => colour(AnsiColor::Yellow).bold(),
        Condition::Working => colour(AnsiColor::Green).bold(),
        Condition::Idle | Condition::Starting | Condition::Live => colour(AnsiColor::Green),
        Condition::NoSession | Condition::Unknown => colour(AnsiColor::Magenta),
        Condition::Orphaned => colour(AnsiColor::Red),
        Condition::Exited => Style::new().dimmed(),
    }
}

/// The liveness is only the likeliest reading of the facts.
pub(crate) fn is_inferred(session: &Session) -> bool {
    session.verdict.confidence() == Some(Confidence::Inferred)
}

/// Silence of at least this long is mentioned, in milliseconds.
pub(crate) const SILENT_MS: i64 = 60 * 60 * 1_000;

/// Its state is unknown, and it has been silent for long.
pub(crate) fn is_stale(session: &Session, now_ms: i64) -> bool {
    session.liveness() == Liveness::Unknown && !session.is_dismissed && is_silent(session, now_ms)
}

/// Silent for long. A session without any date is not known to be silent.
pub(crate) fn is_silent(session: &Session, now_ms: i64) -> bool {
    let last = session.last_heard_of_ms();
    last.is_some_and(|at_ms| now_ms.saturating_sub(at_ms) > SILENT_MS)
}

/// The condition of a session, with remarks for people.
#[derive(Debug, Clone, Copy)]
pub(crate) struct State {
    /// The condition.
    pub(crate) condition: Condition,
    is_inferred: bool,
    beside: Option<&'static str>,
}

impl State {
    /// The condition of a process without a session.
    pub(crate) const NO_SESSION: Self = Self {
        condition: Condition::NoSession,
        is_inferred: false,
        beside: None,
    };

    /// The condition of a session.
    pub(crate) fn of(session: &Session) -> Self {
        let beside = if session.is_suspended() {
            Some("suspended")
        } else if session.is_in_background() {
            Some("background")
        } else {
            match session.phase_at_exit() {
                Some(Phase::Working | Phase::Waiting) => Some("in a turn"),
                Some(Phase::Idle | Phase::Starting) => Some("idle"),
                Some(Phase::Ended) | None => None,
            }
        };
        Self {
            condition: Condition::of(session),
            is_inferred: is_inferred(session),
            beside,
        }
    }

    /// In words, with a mark where it is inferred.
    pub(crate) fn words(self, wording: Wording) -> String {
        let beside = self.beside.map(|text| format!(" ({text})"));
        let mark = if self.is_inferred { " ?" } else { "" };
        let words = self.condition.words(wording);
        format!("{words}{}{mark}", beside.unwrap_or_default())
    }
}

/// The state of a session in words.
pub(crate) fn words_of(session: &Session, wording: Wording) -> String {
    State::of(session).words(wording)
}
