//! What was found in one file.

use std::fmt::Display;
use std::path::Path;

use whosup_sidecar::AgentId;

use crate::machine::problem::{Found, Problem};

/// What was found at `path`, with what is wrong there, if anything is.
pub(crate) fn found_at<T>(
    agent: &AgentId,
    path: &Path,
    found: T,
    message: Option<impl Display>,
) -> Found<T> {
    let problem = message.map(|message| Problem::at(agent, path, message));
    Found {
        found,
        problems: problem.into_iter().collect(),
    }
}
