//! The records of a chat.

use serde_json::Value;

use jiff::Timestamp;

use crate::sources::agents::kit::prompt::Wrapping;

/// What Gemini CLI itself tells the model, as in the first message of every
/// session.
const WRAPPING: Wrapping = Wrapping {
    elements: &["session_context"],
    notices: &["This is the Gemini CLI. We are setting up the context"],
};

/// What is noted when a person interrupts a turn.
const CANCELLED: &str = "Request cancelled";

/// A message of a chat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Record {
    /// Its id. A message may be written again, with more in it.
    pub(super) id: String,
    pub(super) at_ms: Option<i64>,
    pub(super) kind: Kind,
}

/// What a message is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    /// A person said it.
    Prompt { text: String },
    /// What tools answered, on its way to the model.
    ToolResults,
    /// The agent tells the model about its surroundings.
    Context,
    /// The model said it, or called tools, or both.
    Reply {
        text: String,
        /// The tools whose calls are done.
        tools: Vec<String>,
        model: Option<String>,
    },
    /// The turn was interrupted.
    Cancelled,
    /// The turn failed.
    Error,
    /// Anything else that was shown.
    Notice,
}

impl Record {
    /// `None` for what is no message.
    pub(super) fn of(value: &Value) -> Option<Self> {
        let text = |key: &str| value.get(key).and_then(Value::as_str);
        let content = value.get("content").unwrap_or(&Value::Null);
        let kind = match text("type")? {
            "user" => user_kind(content),
            "gemini" => Kind::Reply {
                text: text_of(content),
                tools: tools_in(value),
                model: text("model")
                    .filter(|model| !model.is_empty())
                    .map(str::to_owned),
            },
            "info" if text_of(content).starts_with(CANCELLED) => Kind::Cancelled,
            "error" => Kind::Error,
            _ => Kind::Notice,
        };
        Some(Self {
            id: text("id")?.to_owned(),
            at_ms: date_at(value, "timestamp"),
            kind,
        })
    }
}

fn user_kind(content: &Value) -> Kind {
    if text_of(content).trim().is_empty() {
        return Kind::ToolResults;
    }
    match WRAPPING.typed_in(texts_in(content)) {
        Some(text) => Kind::Prompt { text },
        None => Kind::Context,
    }
}

/// A text, or parts some of which are text.
fn text_of(content: &Value) -> String {
    texts_in(content).collect()
}

fn texts_in(content: &Value) -> impl Iterator<Item = &str> {
    let parts = content.as_array().into_iter().flatten();
    let texts = parts.filter_map(|part| part.as_str().or_else(|| part.get("text")?.as_str()));
    content.as_str().into_iter().chain(texts)
}

fn tools_in(value: &Value) -> Vec<String> {
    let calls = value.get("toolCalls").and_then(Value::as_array);
    let calls = calls.into_iter().flatten();
    calls
        .filter_map(|call| call.get("name")?.as_str())
        .map(str::to_owned)
        .collect()
}

/// The date of a record: of a message, or of a change of the whole that says
/// when the session was last served. A summary that a later start adds says
/// nothing of the kind.
pub(super) fn last_date(value: &Value) -> Option<i64> {
    let of_whole = || {
        let set = value.get("$set")?;
        date_at(set, "lastUpdated")
    };
    date_at(value, "timestamp")
        .or_else(of_whole)
        .or_else(|| date_at(value, "lastUpdated"))
}

/// The messages in a record that has the whole conversation.
pub(super) fn messages_in(value: &Value) -> &[Value] {
    let whole = value.get("$set").unwrap_or(value);
    let messages = whole.get("messages").and_then(Value::as_array);
    messages.map(Vec::as_slice).unwrap_or_default()
}

/// The summary in a record that sets one.
pub(super) fn summary_in(value: &Value) -> Option<&str> {
    let whole = value.get("$set").unwrap_or(value);
    let summary = whole.get("summary")?.as_str()?;
    (!summary.trim().is_empty()).then_some(summary)
}

pub(super) fn date_at(value: &Value, key: &str) -> Option<i64> {
    let at: Timestamp = value.get(key)?.as_str()?.parse().ok()?;
    Some(at.as_millisecond())
}
