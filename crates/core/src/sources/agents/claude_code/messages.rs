//! The last messages of a session.

use std::path::Path;

use super::AGENT;
use super::line::{Part, Record};
use crate::adapter::{Message, MessageRole};
use crate::machine::problem::{Found, Problem};
use crate::sources::transcript::{TailBounds, TranscriptError, TranscriptFile};

/// How far back messages are looked for, in bytes.
const TAIL: TailBounds = TailBounds {
    bytes_max: 16 * 1024 * 1024,
};
/// How long the text of a message is at most, in characters.
const TEXT_CHARS_MAX: usize = 20_000;

/// Reads the last messages of a transcript, oldest first.
pub(super) fn messages(path: &Path, messages_max: usize) -> Found<Vec<Message>> {
    match read_messages(path, messages_max) {
        Ok(messages) => Found::clean(messages),
        Err(error) => Found {
            found: Vec::new(),
            problems: vec![Problem::at(&AGENT, path, error.reason())],
        },
    }
}

fn read_messages(path: &Path, messages_max: usize) -> Result<Vec<Message>, TranscriptError> {
    let file = TranscriptFile::open(path)?;
    let mut newest_first = Vec::new();
    for line in file.backwards(TAIL)? {
        let json = line?.json();
        for value in json.values.iter().rev() {
            let mut told = messages_of(Record(value));
            told.reverse();
            newest_first.extend(told);
        }
        if newest_first.len() >= messages_max {
            break;
        }
    }
    newest_first.truncate(messages_max);
    newest_first.reverse();
    Ok(newest_first)
}

/// The messages of one record: none of those that only the agent reads.
fn messages_of(record: Record<'_>) -> Vec<Message> {
    let at_ms = record.at_ms();
    let message = |role, text: &str| Message {
        role,
        at_ms,
        text: text.chars().take(TEXT_CHARS_MAX).collect(),
    };
    match record.kind() {
        "user" => record
            .prompt()
            .map(|prompt| message(MessageRole::User, prompt))
            .into_iter()
            .collect(),
        "assistant" => record
            .parts()
            .filter_map(|part| match part {
                Part::Text(text) => Some(message(MessageRole::Assistant, text)),
                Part::ToolCall(name) => Some(message(MessageRole::Tool, name)),
                Part::ToolResult => None,
            })
            .collect(),
        _ => Vec::new(),
    }
}
