//! What a session is doing, from its last event backwards.
//!
//! Each call of the model is a turn of its own, from `assistant.turn_start` to
//! `assistant.turn_end`; the one that asks for no tool is the last. While a
//! person is asked, a `permission.requested` has no `permission.completed`;
//! other questions are tools, begun and not completed. Seen in Copilot CLI
//! 1.0.102, 2026-11.

use std::collections::HashSet;

use serde_json::Value;

use super::events::{kind, text_at};
use crate::adapter::phase::{Phase, WaitingFor};

/// Tools that put a question to the person.
const QUESTIONS: &[&str] = &["ask_user"];
/// Tools that ask for leave to go on.
const PLANS: &[&str] = &["exit_plan_mode"];

/// Where the conversation stands, read from its last event backwards.
#[derive(Debug, Default)]
pub(super) struct Turn {
    /// Requests and calls that have been answered.
    answered: HashSet<String>,
    /// An event of a turn came after what is read now.
    is_in_turn: bool,
    /// The turn after what is read now has ended, and may not be the last.
    has_ended: bool,
    answer: Option<(Option<Phase>, Option<WaitingFor>)>,
    /// The date of its newest event.
    newest_at_ms: Option<i64>,
    /// The date of the event that began the phase.
    since_ms: Option<i64>,
}

impl Turn {
    pub(super) const fn is_decided(&self) -> bool {
        self.answer.is_some()
    }

    /// Adds an event, `at_ms` its date.
    pub(super) fn add_backwards(&mut self, event: &Value, at_ms: Option<i64>) {
        if self.answer.is_some() {
            return;
        }
        self.judge(event);
        let is_within = self.is_in_turn || self.has_ended || !self.answered.is_empty();
        if is_within || self.answer.is_some() {
            self.newest_at_ms = self.newest_at_ms.or(at_ms);
            let begins_here = matches!(
                kind(event),
                Some("assistant.turn_start" | "user.message" | "permission.requested")
            );
            if begins_here || self.since_ms.is_none() {
                self.since_ms = at_ms;
            }
        }
    }

    /// When the phase was last shown, and when it began.
    pub(super) const fn dates(&self) -> (Option<i64>, Option<i64>) {
        let since_ms = if self.has_ended {
            self.newest_at_ms
        } else {
            self.since_ms
        };
        (self.newest_at_ms, since_ms)
    }

    fn judge(&mut self, event: &Value) {
        let Some(kind) = kind(event).filter(|_| self.answer.is_none()) else {
            return;
        };
        let text = |pointer: &str| text_at(event, pointer);
        match kind {
            "session.shutdown" if !self.is_in_turn => self.decide(Phase::Ended, None),
            "abort" if !self.is_in_turn && !self.has_ended => self.decide(Phase::Idle, None),
            "session.start"
            | "session.resume"
            | "session.context_cleared"
            | "session.shutdown"
            | "abort" => self.turn_begins(),
            "assistant.turn_end" if self.is_in_turn || self.has_ended => self.turn_begins(),
            "assistant.turn_end" => self.has_ended = true,
            "assistant.message" if self.has_ended => {
                let calls = event
                    .pointer("/data/toolRequests")
                    .and_then(Value::as_array);
                match calls {
                    // The answers go to the model next.
                    Some(calls) if !calls.is_empty() => self.decide(Phase::Working, None),
                    _ => self.decide(Phase::Idle, None),
                }
            }
            "assistant.turn_start" | "user.message" => self.turn_begins_with_it(),
            "permission.completed" | "tool.execution_complete" => {
                self.is_in_turn |= !self.has_ended;
                self.answered.extend(text("/data/requestId"));
                self.answered.extend(text("/data/toolCallId"));
            }
            "permission.requested" => {
                self.asks(text("/data/requestId"), WaitingFor::Permission);
            }
            "tool.execution_start" => {
                let tool = text("/data/toolName").unwrap_or_default();
                if QUESTIONS.contains(&tool.as_str()) {
                    self.asks(text("/data/toolCallId"), WaitingFor::Question);
                } else if PLANS.contains(&tool.as_str()) {
                    self.asks(text("/data/toolCallId"), WaitingFor::Permission);
                } else {
                    self.is_in_turn |= !self.has_ended;
                }
            }
            "assistant.message" => self.is_in_turn = true,
            _ => {}
        }
    }

    /// An event could not be read. If it is the last, nothing is certain.
    pub(super) fn skip_one(&mut self) {
        if !self.is_in_turn && self.answer.is_none() {
            self.answer = Some((None, None));
        }
    }

    pub(super) fn finish(self) -> (Option<Phase>, Option<WaitingFor>) {
        let so_far = match (self.is_in_turn, self.has_ended) {
            (true, _) => Some(Phase::Working),
            (false, true) => Some(Phase::Idle),
            (false, false) => None,
        };
        self.answer.unwrap_or((so_far, None))
    }

    fn decide(&mut self, phase: Phase, waiting_for: Option<WaitingFor>) {
        self.answer = Some((Some(phase), waiting_for));
    }

    /// Something outside of the turn is reached.
    fn turn_begins(&mut self) {
        let phase = if self.is_in_turn {
            Phase::Working
        } else {
            Phase::Idle
        };
        self.decide(phase, None);
    }

    /// The first event of the turn is reached: without an end, it goes on.
    fn turn_begins_with_it(&mut self) {
        let phase = if self.has_ended {
            Phase::Idle
        } else {
            Phase::Working
        };
        self.decide(phase, None);
    }

    fn asks(&mut self, id: Option<String>, waiting_for: WaitingFor) {
        if self.has_ended {
            return;
        }
        self.is_in_turn = true;
        if id.is_none_or(|id| !self.answered.contains(&id)) {
            self.decide(Phase::Waiting, Some(waiting_for));
        }
    }
}
