//! The last messages of a transcript that has one record a line.

use std::path::Path;

use serde_json::Value;
use whosup_sidecar::AgentId;
use whosup_sidecar::file::ReadFileError;

use crate::adapter::Message;
use crate::machine::problem::{Found, Problem};
use crate::sources::agents::kit::bad_lines::BadLines;
use crate::sources::transcript::{TailBounds, TranscriptError, TranscriptFile};

/// How far back messages are looked for.
const MESSAGES_BOUNDS: TailBounds = TailBounds {
    bytes_max: 16 * 1024 * 1024,
};

/// Reads at most `messages_max` of them, oldest first. Of a session whose
/// transcript is not there yet, or not any more, there are none.
pub(crate) fn last_messages(
    agent: &AgentId,
    transcript: Option<&Path>,
    messages_max: usize,
    messages_of: impl Fn(&Value) -> Vec<Message>,
) -> Found<Vec<Message>> {
    let Some(path) = transcript else {
        return Found::default();
    };
    let (found, problem) = match read(path, messages_max, messages_of) {
        Ok(read) => read,
        Err(TranscriptError::File(ReadFileError::NotFound { .. })) => (Vec::new(), None),
        Err(error) => (Vec::new(), Some(error.reason())),
    };
    let problems = problem.map(|text| Problem::at(agent, path, text));
    Found {
        found,
        problems: problems.into_iter().collect(),
    }
}

fn read(
    path: &Path,
    messages_max: usize,
    messages_of: impl Fn(&Value) -> Vec<Message>,
) -> Result<(Vec<Message>, Option<String>), TranscriptError> {
    let file = TranscriptFile::open(path)?;
    let mut bad_lines = BadLines::default();
    let mut newest_first = Vec::new();
    for line in file.backwards(MESSAGES_BOUNDS)? {
        if newest_first.len() >= messages_max {
            break;
        }
        for record in bad_lines.values(&line?).iter().rev() {
            newest_first.extend(messages_of(record).into_iter().rev());
        }
    }
    newest_first.truncate(messages_max);
    newest_first.reverse();
    Ok((newest_first, bad_lines.message()))
}
