//! `sessions/ID/ID.messages.json`: the conversation, one JSON document.

use std::path::Path;

use serde_json::Value;

use super::row::plain_prompt;
use crate::adapter::{Message, MessageRole};
use crate::sources::agents::kit::document::read_document;

/// How long the document may be: it can only be read as a whole.
const MESSAGES_BYTES_MAX: u64 = 16 << 20;

/// Reads the last messages, oldest first. A file that is not there has none.
///
/// # Errors
///
/// Why it can't be read, without its path.
pub(super) fn read(path: &Path, messages_max: usize) -> Result<Vec<Message>, String> {
    let Some(document) = read_document(path, MESSAGES_BYTES_MAX)? else {
        return Ok(Vec::new());
    };
    let told = document.get("messages").and_then(Value::as_array);
    let mut newest_first: Vec<Message> = told
        .into_iter()
        .flatten()
        .rev()
        .flat_map(|message| parts(message).into_iter().rev())
        .take(messages_max)
        .collect();
    newest_first.reverse();
    Ok(newest_first)
}

/// What one message says: texts, and calls of tools by their names.
fn parts(message: &Value) -> Vec<Message> {
    let role = match message.get("role").and_then(Value::as_str) {
        Some("user") => MessageRole::User,
        Some("assistant") => MessageRole::Assistant,
        _ => return Vec::new(),
    };
    let at_ms = message.get("ts").and_then(Value::as_i64);
    let of = |role, text: &str| Message {
        role,
        at_ms,
        text: text.to_owned(),
    };
    match message.get("content") {
        Some(Value::String(text)) => vec![of(role, plain_prompt(text))],
        Some(Value::Array(content)) => content
            .iter()
            .filter_map(|part| {
                let field = |key: &str| part.get(key).and_then(Value::as_str);
                match field("type")? {
                    "text" => Some(of(role, plain_prompt(field("text")?))),
                    "tool_use" => Some(of(MessageRole::Tool, field("name")?)),
                    _ => None,
                }
            })
            .collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests make their own files")]
mod tests {
    use super::*;

    const DOCUMENT: &str = r#"{"messages": [
        {"role": "user", "ts": 1, "content": [{"type": "text", "text": "<user_input mode=\"act\">hi</user_input>"}]},
        {"role": "assistant", "ts": 2, "content": [{"type": "text", "text": "I look"},
            {"type": "tool_use", "name": "run_commands", "input": {}}]},
        {"role": "user", "ts": 3, "content": [{"type": "tool_result", "content": []}]},
        {"role": "system", "content": "x"}, 7,
        {"role": "assistant", "ts": 4, "content": "Done."}]}"#;

    fn read_text(text: &str, max: usize) -> Result<Vec<(MessageRole, String)>, String> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x.messages.json");
        std::fs::write(&path, text).unwrap();
        let messages = read(&path, max)?;
        Ok(messages
            .into_iter()
            .map(|said| (said.role, said.text))
            .collect())
    }

    #[test]
    fn texts_and_calls_are_told_and_results_are_not() {
        let all = [
            (MessageRole::User, "hi".to_owned()),
            (MessageRole::Assistant, "I look".to_owned()),
            (MessageRole::Tool, "run_commands".to_owned()),
            (MessageRole::Assistant, "Done.".to_owned()),
        ];
        assert_eq!(read_text(DOCUMENT, 9).unwrap(), all);
        assert_eq!(read_text(DOCUMENT, 2).unwrap(), all[2..]);
    }

    #[test]
    fn what_is_no_document_is_an_error_and_none_is_nothing() {
        assert!(read_text("{", 9).is_err());
        assert_eq!(read_text("[]", 9).unwrap(), []);
        assert_eq!(read(Path::new("/nonexistent"), 9).unwrap(), []);
    }
}
