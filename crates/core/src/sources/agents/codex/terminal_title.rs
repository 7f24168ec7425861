//! What Codex puts into the title of its terminal.
//!
//! Seen in Codex 0.171.0, 2026-11, by default: `NAME | DIRECTORY`, before the
//! first prompt `DIRECTORY` alone; in a turn with a spinner before it, ten times
//! a second another one; and while a person is asked, `[ ! ] Action Required | `
//! and `[ . ] Action Required | ` in turn. Only permission and the model's
//! questions are shown so (openai/codex#36132), and which of them it is is not.

use crate::adapter::phase::{FactSource, Phase, PhaseFact};

/// The steps of the spinner.
const SPINNER: [char; 10] = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];

/// What blinks before the words, by its two states.
const MARKS_OF_WAITING: [&str; 2] = ["[ ! ] ", "[ . ] "];

/// The words for that a person is asked.
const WAITING: &str = "Action Required";

/// What stands between the parts of a title.
const SEPARATOR: &str = " | ";

/// Splits a title into what it says of the phase, and the rest of it: the name
/// of the thread and the directory.
pub(super) fn split(title: &str) -> (Option<PhaseFact>, &str) {
    let title = title.trim();
    let told =
        |phase, word: &str| Some(PhaseFact::new(FactSource::Title, Some(phase)).in_word(word));
    let unmarked = title
        .strip_prefix(SPINNER)
        .and_then(|rest| rest.strip_prefix(' '));
    if let Some(rest) = unmarked {
        return (told(Phase::Working, "spinner"), rest);
    }
    let mut marks = MARKS_OF_WAITING.iter();
    let rest = marks
        .find_map(|mark| title.strip_prefix(mark))
        .and_then(|rest| rest.strip_prefix(WAITING));
    match rest {
        Some(rest) => (
            told(Phase::Waiting, WAITING),
            rest.strip_prefix(SEPARATOR).unwrap_or(rest),
        ),
        None => (None, title),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(title: &str, phase: Option<Phase>, rest: &str) {
        let (told, found) = split(title);
        assert_eq!((told.and_then(|told| told.phase), found), (phase, rest));
    }

    #[test]
    fn a_spinner_is_work_and_a_blinking_mark_is_a_question() {
        check("⠏ fix it | app", Some(Phase::Working), "fix it | app");
        check("⠋ app", Some(Phase::Working), "app");
        let waiting = Some(Phase::Waiting);
        check(
            "[ ! ] Action Required | fix it | app",
            waiting,
            "fix it | app",
        );
        check("[ . ] Action Required | app", waiting, "app");
        check("[ ! ] Action Required", waiting, "");
    }

    #[test]
    fn a_title_without_either_says_nothing_of_the_phase() {
        for title in [
            "fix it | app",
            "app",
            "",
            "⠏",
            "[ ! ] something | app",
            "Action Required | app",
            "⣿ app",
        ] {
            check(title, None, title);
        }
    }
}
