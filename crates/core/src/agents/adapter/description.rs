//! What a session's own files tell of it once somebody wants to see it.

use std::path::PathBuf;

use crate::phase::{Phase, WaitingFor};

/// What a session's own files tell about it.
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
    /// What its last records say it was doing.
    pub phase: Option<Phase>,
    /// What it was waiting for, by its last records.
    pub waiting_for: Option<WaitingFor>,
    /// It runs without a person at a terminal.
    pub is_headless: Option<bool>,
    /// Its transcript.
    pub transcript: Option<PathBuf>,
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
