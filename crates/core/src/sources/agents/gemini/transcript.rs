//! Describes a session from its chat, when a user asks for details.

use std::path::Path;

use serde_json::Value;

use super::AGENT;
use super::chat::{is_object, read_object};
use super::message::{self, DIALECT};
use crate::adapter::{Description, Message};
use crate::machine::problem::Found;
use crate::sources::agents::kit::bad_lines::{BadLines, LineReader};
use crate::sources::agents::kit::dialect::joined;
use crate::sources::agents::kit::folder::is_there;
use crate::sources::agents::kit::reading::found_at;
use crate::sources::transcript::{Line, TranscriptFile};

/// The records of a chat's beginning, for its title.
struct Opening<'b>(&'b mut BadLines);

impl LineReader for Opening<'_> {
    fn values(&mut self, line: &Line) -> Vec<Value> {
        titling(self.0.values(line))
    }
}

/// Records, and the messages in those that have the whole conversation; without those
/// that ask for Gemini CLI's own help.
fn titling(records: Vec<Value>) -> Vec<Value> {
    let mut all = Vec::new();
    for record in records {
        let messages = message::messages_in(&record).to_vec();
        all.push(record);
        all.extend(messages);
    }
    all.retain(|record| {
        let prompt = DIALECT.prompt_of(record);
        prompt.is_none_or(|text| !text.starts_with('?'))
    });
    all
}

/// Reads head and tail of the chat at `path`. The text is a problem with it.
pub(super) fn describe(path: &Path) -> Result<(Description, Option<String>), String> {
    let mut bad_lines = BadLines::default();
    let (tail, head) = if is_object(path) {
        let object = read_object(path)?;
        let mut records = message::messages_in(&object).to_vec();
        records.push(object);
        (
            DIALECT.tail_of(&records),
            DIALECT.head_of(&titling(records)),
        )
    } else {
        let read = TranscriptFile::open(path).and_then(|file| {
            let tail = DIALECT.tail(&file, &mut bad_lines)?;
            Ok((tail, DIALECT.head(&file, &mut Opening(&mut bad_lines))?))
        });
        read.map_err(|error| error.reason())?
    };
    let found = Description {
        transcript: Some(path.to_owned()),
        ..joined(tail, head)
    };
    Ok((found, bad_lines.message()))
}

/// Reads the last messages, oldest first.
pub(super) fn messages(path: &Path, messages_max: usize) -> Found<Vec<Message>> {
    if !is_object(path) {
        return DIALECT.messages(&AGENT, Some(path), messages_max);
    }
    match read_object(path) {
        Ok(object) => {
            let records = message::messages_in(&object);
            Found::clean(DIALECT.messages_in(records, messages_max))
        }
        Err(_) if !is_there(path) => Found::default(),
        Err(message) => found_at(&AGENT, path, Vec::new(), Some(message)),
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests make their own files")]
#[path = "transcript_tests.rs"]
mod tests;
