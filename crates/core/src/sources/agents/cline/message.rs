//! `sessions/ID/ID.messages.json`: the conversation, one JSON document.
//!
//! | What counts in it: seen in Cline CLI 3.0.65, 2026-11 | |
//! |---|---|
//! | `metrics` of a reply | one request: `inputTokens` with what a cache gave and took, `outputTokens`, `cost` where the provider has a price |
//! | `metadata.usageBefore` of a message with `kind: "compaction"` | the sums of the messages that it took the place of (read in the executable) |
//! | a sub-agent | is a session of its own |

use serde_json::Value;

use super::row::plain_prompt;
use crate::adapter::{Message, MessageRole};
use crate::sources::agents::kit::dialect::{
    self, Dialect, Record, TokenCount, count_at, nano_at, text_at, texts_in, value_at,
};
use crate::sources::usage::Counting;

/// How long the document may be: it can only be read as a whole.
pub(super) const MESSAGES_BYTES_MAX: u64 = 16 << 20;

/// What a message counts. The rest of it is read by [`parts`].
pub(super) const DIALECT: Dialect = Dialect {
    has_turns: false,
    ..Dialect::of(record_of)
};

pub(super) static COUNTING: Counting = Counting::of(&DIALECT, &[]);

fn record_of(message: &Value) -> Record<'_> {
    let is_summary = text_at(message, "/metadata/kind") == Some("compaction");
    let counts = match is_summary {
        true => value_at(message, "/metadata/usageBefore"),
        false => message.get("metrics"),
    };
    let is_prompt = text_at(message, "/role") == Some("user") && !is_summary;
    let typed = message.get("content").filter(|_| is_prompt);
    let model = text_at(message, "/modelInfo/id");
    Record {
        at_ms: message.get("ts").and_then(Value::as_i64),
        typed: texts_in(typed).collect(),
        request: text_at(message, "/id"),
        model,
        counted_model: model,
        tokens: counts.map(|counts| tokens_of(counts, is_summary)),
        is_compaction: is_summary,
        ..Record::default()
    }
}

fn tokens_of(counts: &Value, is_summary: bool) -> TokenCount {
    let count = |name: &str| count_at(counts, name);
    let all = count("/inputTokens");
    let (cached_input, cache_writes) = (count("/cacheReadTokens"), count("/cacheWriteTokens"));
    let cached = [cached_input, cache_writes].into_iter().flatten();
    let cached = cached.fold(0, u64::saturating_add);
    TokenCount {
        context: all.filter(|all| *all > 0 && !is_summary),
        input: all.map(|all| all.saturating_sub(cached)),
        cached_input,
        cache_writes,
        output: count("/outputTokens"),
        cost_nano: nano_at(counts, "/cost"),
        ..TokenCount::default()
    }
}

/// The messages of a document, oldest first.
pub(super) fn messages_in(document: &Value) -> &[Value] {
    let messages = document.get("messages").and_then(Value::as_array);
    messages.map_or(&[], Vec::as_slice)
}

/// The last messages of a document, oldest first.
pub(super) fn last_of(document: &Value, messages_max: usize) -> Vec<Message> {
    let newest_first = messages_in(document).iter().rev();
    let newest_first = newest_first.flat_map(|message| parts(message).into_iter().rev());
    let mut last: Vec<Message> = newest_first.take(messages_max).collect();
    last.reverse();
    last
}

/// What one message says: texts, and calls of tools by their names.
fn parts(message: &Value) -> Vec<Message> {
    let role = match text_at(message, "/role") {
        Some("user") => MessageRole::User,
        Some("assistant") => MessageRole::Assistant,
        _ => return Vec::new(),
    };
    let at_ms = message.get("ts").and_then(Value::as_i64);
    let of = |role, text: &str| dialect::message(role, at_ms, text);
    let part_of = |part: &Value| {
        let field = |key: &str| part.get(key).and_then(Value::as_str);
        match field("type")? {
            "text" => Some(of(role, plain_prompt(field("text")?))),
            "tool_use" => Some(of(MessageRole::Tool, field("name")?)),
            _ => None,
        }
    };
    match message.get("content") {
        Some(Value::String(text)) => vec![of(role, plain_prompt(text))],
        Some(Value::Array(content)) => content.iter().filter_map(part_of).collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests make their own files")]
mod tests {
    use std::path::Path;

    use super::super::AGENT;
    use super::*;
    use crate::sources::agents::kit::document::{from_document, read_document};

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
        let document = read_document(&path, MESSAGES_BYTES_MAX)?.unwrap();
        let messages = last_of(&document, max).into_iter();
        Ok(messages.map(|said| (said.role, said.text)).collect())
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
        let none = Some(Path::new("/nonexistent"));
        let read = from_document(&AGENT, none, 9, |document| last_of(document, 9));
        assert_eq!((read.found, read.problems), (Vec::new(), Vec::new()));
    }
}
