//! What a person is told of a session in a word or two.

use anstyle::{AnsiColor, Color, Style};
use whosup_core::session::Session;
use whosup_core::verdict::{Confidence, Liveness};

pub(crate) use whosup_core::reader::{Condition, Wording};

/// How a condition is shown when nothing else is said.
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

/// The life of a session is the likeliest reading of the facts, no more.
pub(crate) fn is_inferred(session: &Session) -> bool {
    session.verdict.confidence() == Some(Confidence::Inferred)
}

/// How long a session may be silent before that is worth a word, in milliseconds.
pub(crate) const SILENT_MS: i64 = 60 * 60 * 1_000;

/// Nobody can tell of it, and nothing was heard of it for long.
pub(crate) fn is_stale(session: &Session, now_ms: i64) -> bool {
    session.liveness() == Liveness::Unknown && is_silent(session, now_ms)
}

/// Nothing was heard of it for long. One of which nothing is dated is not known
/// to be silent.
pub(crate) fn is_silent(session: &Session, now_ms: i64) -> bool {
    let last = session.last_heard_of_ms();
    last.is_some_and(|at_ms| now_ms.saturating_sub(at_ms) > SILENT_MS)
}

/// The condition in words, with a mark where it is inferred.
pub(crate) fn words_of(session: &Session, wording: Wording) -> String {
    marked_words(Condition::of(session), is_inferred(session), wording)
}

/// A condition in words, with a mark where it is inferred.
pub(crate) fn marked_words(condition: Condition, is_inferred: bool, wording: Wording) -> String {
    let mark = if is_inferred { " ?" } else { "" };
    format!("{}{mark}", condition.words(wording))
}
