//! What Codex puts into the title of its terminal.
//!
//! Seen in Codex 0.171.0, 2026-11, by default: `NAME | DIRECTORY`, before the first prompt
//! `DIRECTORY` alone; in a turn with a spinner before it that changes ten times a second;
//! and while a person is asked, `[ ! ] Action Required | ` and `[ . ] Action Required | ` in
//! turn. Only requests for permission and the model's questions are shown like this
//! (openai/codex#36132), without a difference between the two.

use crate::adapter::phase::{FactSource, Phase, PhaseFact};

/// The steps of the spinner.
const SPINNER: [char; 10] = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];

/// The blinking mark before the words, in its two states.
const MARKS_OF_WAITING: [&str; 2] = ["[ ! ] ", "[ . ] "];

/// The words for that a person is asked.
const WAITING: &str = "Action Required";

/// The separator of the parts of a title.
const SEPARATOR: &str = " | ";

/// Splits a title into the phase and the rest: the name of the thread and the directory.
pub(super) fn split(title: &str) -> (Option<PhaseFact>, &str) {
    let title = title.trim();
    let fact =
        |phase, word: &str| Some(PhaseFact::new(FactSource::Title, Some(phase)).in_word(word));
    let unmarked = title
        .strip_prefix(SPINNER)
        .and_then(|rest| rest.strip_prefix(' '));
    if let Some(rest) = unmarked {
        return (fact(Phase::Working, "spinner"), rest);
    }
    let mut marks = MARKS_OF_WAITING.iter();
    let rest = marks
        .find_map(|mark| title.strip_prefix(mark))
        .and_then(|rest| rest.strip_prefix(WAITING));
    match rest {
        Some(rest) => (
            fact(Phase::Waiting, WAITING),
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
        let (fact, found) = split(title);
        assert_eq!((fact.and_then(|fact| fact.phase), found), (phase, rest));
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
