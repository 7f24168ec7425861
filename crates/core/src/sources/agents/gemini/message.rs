//! The records of a chat.

use serde_json::Value;

use crate::adapter::phase::Phase;
use crate::sources::agents::kit::dialect::{
    Dialect, Record, Step, TokenCount, count_at, date_at, text_at, texts_in,
};
use crate::sources::agents::kit::prompt::Wrapping;
use crate::sources::usage::Counting;

/// Text that Gemini CLI itself sends to the model, such as the first message of every
/// session.
const WRAPPING: Wrapping = Wrapping {
    elements: &["session_context"],
    notices: &["This is the Gemini CLI. We are setting up the context"],
};

/// The text that Gemini CLI records when a person interrupts a turn.
const CANCELLED: &str = "Request cancelled";

/// The dialect of Gemini CLI's records. A summary may stand anywhere. A session without a
/// message waits for the first prompt.
pub(super) const DIALECT: Dialect = Dialect {
    wrapping: WRAPPING,
    rare_bytes: 64 * 1024,
    phase_without_turn: Some(Phase::Idle),
    ..Dialect::of(record_of)
};

/// A prompt or tool results are on their way to the model. A reply is recorded before the
/// tools that it calls run, and tool calls only after they finish: so after a reply the turn
/// has ended, or a tool runs, or a person is asked. (The phase in the terminal's title is
/// certain.)
pub(super) const COUNTING: Counting = Counting {
    messages: Some(messages_in),
    keys: &[
        "$set",
        "cached",
        "id",
        "input",
        "lastUpdated",
        "messages",
        "model",
        "startTime",
        "thoughts",
        "timestamp",
        "tokens",
        "total",
        "type",
    ],
    ..Counting::of(&DIALECT, &["\"tokens\""])
};

fn record_of(record: &Value) -> Record<'_> {
    let text = |pointer: &str| text_at(record, pointer);
    let mut found = Record {
        id: text("/id"),
        at_ms: last_date(record),
        born_at_ms: date_at(record, "/startTime"),
        title: summary_in(record),
        ..Record::default()
    };
    if record.get("$rewindTo").is_some() {
        found.step = Step::Shows(Some(Phase::Idle));
        found.is_compaction = true;
    }
    if found.id.is_none() {
        // It is no message.
        return found;
    }
    // What was typed is beside the content where that has more: files, or a command's text.
    let mut contents = ["displayContent", "content"].into_iter();
    let content = contents.find_map(|key| record.get(key).filter(|content| !content.is_null()));
    let texts: Vec<&str> = texts_in(content).collect();
    let first = texts.first();
    let is_cancelled = first.is_some_and(|text| text.starts_with(CANCELLED));
    match text("/type") {
        Some("user") if texts.iter().all(|text| text.trim().is_empty()) => {
            // The answers of tools.
            found.step = Step::Shows(Some(Phase::Working));
        }
        Some("user") if WRAPPING.typed_in(texts.iter().copied()).is_some() => {
            found.typed = texts;
            found.step = Step::Shows(Some(Phase::Working));
        }
        Some("gemini") => {
            let calls = record.get("toolCalls").and_then(Value::as_array);
            let calls = calls.into_iter().flatten();
            found.calls = calls.filter_map(|call| text_at(call, "/name")).collect();
            found.reply = texts;
            found.model = text("/model");
            found.step = Step::Shows(None);
            found.tokens = record.get("tokens").map(tokens_in);
            found.request = found.id;
        }
        Some("info") if !is_cancelled => {}
        Some("info" | "error") => found.step = Step::Shows(Some(Phase::Idle)),
        _ => {}
    }
    found
}

fn tokens_in(tokens: &Value) -> TokenCount {
    let count = |name: &str| count_at(tokens, name);
    let less = |all: Option<u64>, part: Option<u64>| all?.checked_sub(part.unwrap_or(0));
    let cached_input = count("/cached");
    TokenCount {
        context: count("/input"),
        input: less(count("/input"), cached_input),
        cached_input,
        output: less(count("/total"), count("/input")),
        reasoning: count("/thoughts"),
        ..TokenCount::default()
    }
}

/// The date of a record: of a message, or of a metadata change that records when the session
/// was last served. A summary that a later start adds has no such date.
pub(super) fn last_date(value: &Value) -> Option<i64> {
    let mut places = ["/timestamp", "/$set/lastUpdated", "/lastUpdated"].into_iter();
    places.find_map(|place| date_at(value, place))
}

/// The messages in a record that has the whole conversation.
pub(super) fn messages_in(value: &Value) -> &[Value] {
    let whole = value.get("$set").unwrap_or(value);
    let messages = whole.get("messages").and_then(Value::as_array);
    messages.map(Vec::as_slice).unwrap_or_default()
}

/// The summary in a record that sets one.
fn summary_in(value: &Value) -> Option<&str> {
    let whole = value.get("$set").unwrap_or(value);
    let summary = whole.get("summary")?.as_str()?;
    (!summary.trim().is_empty()).then_some(summary)
}
