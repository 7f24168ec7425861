//! The phase of a session, from its last record backwards.

use std::collections::HashSet;

use super::{Record, Step};
use crate::adapter::Description;
use crate::adapter::phase::{Phase, WaitingFor};

/// A session is in a turn from its beginning to its end, and waits while a request of
/// that turn has no answer.
#[derive(Default)]
pub(super) struct Turn {
    answered: HashSet<String>,
    is_in_turn: bool,
    /// A newer record answers a request or a call.
    is_any_answered: bool,
    /// All newer records are refused calls.
    is_refused: bool,
    /// The last call of the model ended, and perhaps the turn.
    has_call_ended: bool,
    answer: Option<(Option<Phase>, Option<WaitingFor>)>,
    /// The date of the newest record that shows the phase.
    newest_at_ms: Option<i64>,
    /// The date of the record that began the phase.
    since_ms: Option<i64>,
}

impl Turn {
    pub(super) const fn is_decided(&self) -> bool {
        self.answer.is_some()
    }

    pub(super) fn add_backwards(&mut self, record: &Record<'_>) {
        if self.answer.is_some() || record.step == Step::Aside {
            return;
        }
        let at_ms = record.at_ms;
        self.newest_at_ms = self.newest_at_ms.or(at_ms);
        match record.step {
            Step::Refused => return self.is_refused = true,
            Step::Called => return self.shows(self.is_refused.then_some(Phase::Idle)),
            Step::Shows(phase) => return self.shows(phase.filter(|_| !self.is_refused)),
            _ => {}
        }
        if record.step == Step::Begun || !self.is_in_turn {
            self.since_ms = at_ms;
        }
        match &record.step {
            Step::CallEnded if !self.is_in_turn && !self.has_call_ended => {
                self.has_call_ended = true;
            }
            Step::Replied { calls_tools } if self.has_call_ended => {
                self.shows_turn(*calls_tools);
            }
            Step::SessionEnded if !self.is_in_turn => self.shows(Some(Phase::Ended)),
            Step::Begun => self.shows_turn(!self.has_call_ended),
            Step::Ended | Step::CallEnded | Step::SessionEnded => self.shows_turn(self.is_in_turn),
            Step::Asked { names, waiting_for } if !self.has_call_ended => {
                let mut names = names.iter().flatten();
                if !names.any(|name| self.answered.contains(*name)) {
                    self.since_ms = at_ms;
                    self.answer = Some((Some(Phase::Waiting), *waiting_for));
                }
            }
            Step::Answered(names) => {
                let names = names.iter().flatten();
                self.answered.extend(names.map(|name| (*name).to_owned()));
                // What an interruption cancels may be answered after it.
                self.is_any_answered = true;
                return;
            }
            _ => {}
        }
        self.is_in_turn |= !self.has_call_ended;
    }

    const fn shows_turn(&mut self, is_in_turn: bool) {
        let phase = if is_in_turn {
            Phase::Working
        } else {
            Phase::Idle
        };
        self.shows(Some(phase));
    }

    const fn shows(&mut self, phase: Option<Phase>) {
        self.answer = Some((phase, None));
    }

    /// A record could not be read. If it is the last, nothing is certain.
    pub(super) fn skip_one(&mut self) {
        if !self.is_in_turn && self.answer.is_none() {
            self.answer = Some((None, None));
        }
    }

    pub(super) fn finish(self, without_turn: Option<Phase>, found: &mut Description) {
        let is_in_turn = self.is_in_turn || self.is_any_answered;
        let phase = match (is_in_turn, self.has_call_ended) {
            (true, _) => Some(Phase::Working),
            (false, true) => Some(Phase::Idle),
            (false, false) => without_turn,
        };
        (found.phase, found.waiting_for) = self.answer.unwrap_or((phase, None));
        found.phase_at_ms = self.newest_at_ms;
        found.phase_since_ms = if self.has_call_ended {
            self.newest_at_ms
        } else {
            self.since_ms
        };
    }
}
