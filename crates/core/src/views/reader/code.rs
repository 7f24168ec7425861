//! Errors for programs: a stable code, and the sessions that an ambiguous id may mean.

use std::path::PathBuf;

use super::{AgentError, IdError, ReadError, in_full};
use crate::adapter::claim::SessionKey;
use crate::adapter::names::names;
use crate::judging::verdict::Liveness;
use crate::views::wire::{WireCandidate, WireError, WireReply};

/// What kind of error it is. Codes are stable; texts are for people and may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorCode {
    /// Several sessions match the id: [`ReadError::candidates`].
    Ambiguous,
    /// An id, an agent's name or a directory is malformed or missing.
    BadArgument,
    /// The configuration cannot be read or understood.
    BadConfig,
    /// The agent is not supported, and has announced no session.
    NoSuchAgent,
    /// Every place was searched, and no session matches the id.
    NoSuchSession,
    /// No session matches the id, but some places could not be searched.
    Unreadable,
}

names!(ErrorCode {
    Ambiguous => "ambiguous",
    BadArgument => "bad_argument",
    BadConfig => "bad_config",
    NoSuchAgent => "no_such_agent",
    NoSuchSession => "no_such_session",
    Unreadable => "unreadable",
});

/// A session that an ambiguous id may mean.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// Agent, id and home, which together mean this session alone.
    pub key: SessionKey,
    /// Whether it is live.
    pub liveness: Liveness,
    /// The directory that it works in.
    pub work_dir: Option<PathBuf>,
    /// All of this in one line, for people.
    pub line: String,
}

impl ReadError {
    /// The kind of error, for programs.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Config(_) => ErrorCode::BadConfig,
            Self::Id(error) => error.code(),
            Self::Agent(error) => error.code(),
            Self::Filter(_) => ErrorCode::BadArgument,
        }
    }

    /// The sessions that an ambiguous id may mean; at most 20 of them.
    #[must_use]
    pub fn candidates(&self) -> &[Candidate] {
        match self {
            Self::Id(IdError::Ambiguous { candidates, .. }) => candidates,
            _ => &[],
        }
    }
}

impl IdError {
    /// The kind of error, for programs.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Malformed { .. } => ErrorCode::BadArgument,
            Self::Agent(error) => error.code(),
            Self::NotFound { .. } => ErrorCode::NoSuchSession,
            Self::NotSeen { .. } => ErrorCode::Unreadable,
            Self::Ambiguous { .. } => ErrorCode::Ambiguous,
        }
    }
}

impl AgentError {
    /// The kind of error, for programs.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Malformed { .. } => ErrorCode::BadArgument,
            Self::Unsupported { .. } => ErrorCode::NoSuchAgent,
        }
    }
}

impl<T> From<Result<T, ReadError>> for WireReply<T> {
    fn from(answer: Result<T, ReadError>) -> Self {
        answer.map_or_else(|error| Self::Error((&error).into()), Self::Answer)
    }
}

impl From<&ReadError> for WireError {
    fn from(error: &ReadError) -> Self {
        Self {
            code: error.code().name(),
            message: in_full(error),
            candidates: error.candidates().iter().map(Into::into).collect(),
        }
    }
}

impl From<&Candidate> for WireCandidate {
    fn from(candidate: &Candidate) -> Self {
        let key = &candidate.key;
        let text = |path: &std::path::Path| path.to_string_lossy().into_owned();
        Self {
            agent: key.agent.to_string(),
            session_id: key.session.to_string(),
            home: text(&key.home),
            liveness: candidate.liveness.name(),
            work_dir: candidate.work_dir.as_deref().map(text),
        }
    }
}
