//! What a session's files contain, read only for sessions that are shown.

use std::path::PathBuf;

use crate::adapter::names::names;
use crate::adapter::phase::{FactSource, Phase, PhaseFact, WaitingFor};

/// What a session's files contain about it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Description {
    /// Its title: given by a person or the agent, else its first prompt.
    pub title: Option<String>,
    /// The title is a prompt's text, so that a setting may keep it out.
    pub is_title_a_prompt: bool,
    /// The model of its last reply.
    pub model: Option<String>,
    /// The agent's version that wrote last.
    pub agent_version: Option<String>,
    /// The branch it was on last.
    pub git_branch: Option<String>,
    /// The directory it works in now.
    pub work_dir: Option<PathBuf>,
    /// When it began, in milliseconds since 1970.
    pub started_at_ms: Option<i64>,
    /// The date inside its last record.
    pub last_activity_at_ms: Option<i64>,
    /// What it was doing, by its last records.
    pub phase: Option<Phase>,
    /// What it was waiting for, by its last records.
    pub waiting_for: Option<WaitingFor>,
    /// The date inside the last record that shows this phase.
    pub phase_at_ms: Option<i64>,
    /// The date inside the record that began it, if that is another record.
    pub phase_since_ms: Option<i64>,
    /// It runs without a person at a terminal.
    pub is_headless: Option<bool>,
    /// Its transcript.
    pub transcript: Option<PathBuf>,
    /// How full its context is.
    pub context: Option<Context>,
    /// Its current turn, else its last turn.
    pub turn: Option<TurnTokens>,
}

/// How full a session's context is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Context {
    /// Tokens in it.
    pub tokens: u64,
    /// Tokens that fit.
    pub window: Option<u64>,
    /// The agent does not record its window: this is what its model has by a table.
    pub is_window_assumed: bool,
}

impl Context {
    /// How much of the window is used, in percent with one decimal.
    #[must_use]
    pub fn percent(self) -> Option<f64> {
        let window = self.window.filter(|window| *window > 0)?;
        let tenths = u128::from(self.tokens) * 1_000 / u128::from(window);
        u32::try_from(tenths)
            .ok()
            .map(|tenths| f64::from(tenths) / 10.0)
    }
}

/// A turn: from a prompt to the agent's stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TurnTokens {
    /// When it began, in milliseconds since 1970.
    pub started_at_ms: Option<i64>,
    /// The tokens that it has produced, as far as the agent counted them.
    pub output_tokens: Option<u64>,
}

impl Description {
    /// What its last records report of its phase.
    #[must_use]
    pub(crate) fn fact(&self) -> Option<PhaseFact> {
        let phase = self.phase?;
        Some(PhaseFact {
            since_ms: self.phase_since_ms,
            ..PhaseFact::new(FactSource::Transcript, Some(phase))
                .waiting_for(self.waiting_for)
                .dated(self.phase_at_ms)
        })
    }
}

/// One message of a transcript.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Who speaks.
    pub role: MessageRole,
    /// When, in milliseconds since 1970.
    pub at_ms: Option<i64>,
    /// The text; of a tool call its name.
    pub text: String,
}

/// Who speaks in a transcript.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageRole {
    /// The person.
    User,
    /// The agent.
    Assistant,
    /// A tool call or its result.
    Tool,
}

names!(MessageRole {
    User => "user",
    Assistant => "assistant",
    Tool => "tool",
});
