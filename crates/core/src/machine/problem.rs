//! What a scan could not read: reported beside its results, never instead of them.

use std::fmt;
use std::path::{Path, PathBuf};

use whosup_sidecar::AgentId;

/// How many problems one scan keeps; the rest are counted.
pub const PROBLEMS_MAX: usize = 1_000;

/// Something a scan could not read or believe.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Problem {
    /// The agent whose file or process it is about, if any.
    pub agent: Option<AgentId>,
    /// The file or directory, if any.
    pub path: Option<PathBuf>,
    /// What is wrong: lower case, no final stop, values in backticks.
    pub message: String,
}

impl Problem {
    /// A problem with a file, of an agent or of ours (`None`).
    pub fn at<'a>(
        agent: impl Into<Option<&'a AgentId>>,
        path: &Path,
        message: impl fmt::Display,
    ) -> Self {
        Self {
            agent: agent.into().cloned(),
            path: Some(path.to_owned()),
            message: message.to_string(),
        }
    }

    /// A problem of an agent that concerns no file.
    pub fn of(agent: &AgentId, message: impl fmt::Display) -> Self {
        Self {
            agent: Some(agent.clone()),
            path: None,
            message: message.to_string(),
        }
    }

    /// A problem of the machine as a whole.
    pub fn of_machine(message: impl fmt::Display) -> Self {
        Self {
            agent: None,
            path: None,
            message: message.to_string(),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(agent) = &self.agent {
            write!(f, "{agent}: ")?;
        }
        if let Some(path) = &self.path {
            write!(f, "{}: ", path.display())?;
        }
        f.write_str(&self.message)
    }
}

/// A result, with what could not be read on the way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found<T> {
    /// The result.
    pub found: T,
    /// What could not be read.
    pub problems: Vec<Problem>,
}

impl<T> Found<T> {
    /// A result without problems.
    pub const fn clean(found: T) -> Self {
        Self {
            found,
            problems: Vec::new(),
        }
    }

    /// Moves the problems to `problems` and returns the result.
    pub fn take(self, problems: &mut Vec<Problem>) -> T {
        problems.extend(self.problems);
        self.found
    }
}

impl<T: Default> Default for Found<T> {
    fn default() -> Self {
        Self::clean(T::default())
    }
}
