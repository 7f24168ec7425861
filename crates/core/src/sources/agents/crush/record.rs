//! The rows of a project's database.

use serde_json::Value;
use whosup_sidecar::parse_json;

use crate::adapter::phase::Phase;
use crate::adapter::{Message, MessageRole};
use crate::sources::agents::kit::dialect::message;

/// The id prefix of a session that only makes the title of another session.
const TITLE_SESSION_PREFIX: &str = "title-";

/// A row of `sessions`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct SessionRow {
    pub(super) id: String,
    /// The session that this is a sub-agent of.
    pub(super) parent: Option<String>,
    pub(super) title: Option<String>,
    pub(super) created_at_ms: Option<i64>,
    pub(super) updated_at_ms: Option<i64>,
    pub(super) last_message_at_ms: Option<i64>,
}

impl SessionRow {
    /// The session was made for a single internal request, such as a title.
    pub(super) fn is_passing(&self) -> bool {
        self.parent.is_some() && self.id.starts_with(TITLE_SESSION_PREFIX)
    }

    /// The date of its last record.
    pub(super) fn last_at_ms(&self) -> Option<i64> {
        self.last_message_at_ms.or(self.updated_at_ms)
    }
}

/// A row of `messages`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct MessageRow {
    pub(super) role: String,
    /// JSON: an array of `{"type": …, "data": …}`.
    pub(super) parts: String,
    pub(super) model: Option<String>,
    pub(super) created_at_ms: Option<i64>,
    pub(super) updated_at_ms: Option<i64>,
}

/// The phase of a session, by its last message. A question to the person is kept in memory
/// only, so a session that waits for permission looks like a working session.
pub(super) fn phase(last: &MessageRow) -> Option<Phase> {
    match last.role.as_str() {
        "user" | "tool" => Some(Phase::Working),
        "assistant" => {
            let parts = parts(last);
            let finish = parts.iter().rev().find(|(kind, _)| *kind == "finish");
            let reason = finish.and_then(|(_, data)| data.get("reason")?.as_str());
            Some(match reason {
                None | Some("tool_use") => Phase::Working,
                Some(_) => Phase::Idle,
            })
        }
        _ => None,
    }
}

/// What is shown of a message: its text, and a line for each tool it calls.
pub(super) fn messages_of(row: &MessageRow) -> Vec<Message> {
    let message = |role, text: &str| message(role, row.created_at_ms, text);
    let role = match row.role.as_str() {
        "user" => MessageRole::User,
        "assistant" => MessageRole::Assistant,
        _ => return Vec::new(),
    };
    let parts = parts(row).into_iter();
    let shown = parts.filter_map(|(kind, data)| {
        let text = |key: &str| data.get(key).and_then(Value::as_str);
        match kind.as_str() {
            "text" => Some(message(role, text("text")?)),
            "tool_call" => Some(message(MessageRole::Tool, text("name")?)),
            _ => None,
        }
    });
    shown
        .filter(|message| !message.text.trim().is_empty())
        .collect()
}

fn parts(row: &MessageRow) -> Vec<(String, Value)> {
    let parts: Vec<Value> = parse_json(row.parts.as_bytes()).unwrap_or_default();
    let parts = parts.into_iter().filter_map(|mut part| {
        let kind = part.get("type")?.as_str()?.to_owned();
        Some((kind, part.get_mut("data")?.take()))
    });
    parts.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(role: &str, parts: &str) -> MessageRow {
        MessageRow {
            role: role.to_owned(),
            parts: parts.to_owned(),
            ..MessageRow::default()
        }
    }

    #[test]
    fn the_last_message_tells_the_phase() {
        let check = |role: &str, parts: &str, right: Option<Phase>| {
            assert_eq!(phase(&row(role, parts)), right, "{role} {parts}");
        };
        let finish = |reason: &str| {
            format!(
                r#"[{{"type":"text","data":{{"text":"x"}}}},{{"type":"finish","data":{{"reason":"{reason}"}}}}]"#
            )
        };
        check("user", "[]", Some(Phase::Working));
        check("tool", "[]", Some(Phase::Working));
        check("assistant", "[]", Some(Phase::Working));
        check("assistant", "no json", Some(Phase::Working));
        check("assistant", &finish("tool_use"), Some(Phase::Working));
        for reason in [
            "end_turn",
            "canceled",
            "error",
            "max_tokens",
            "of the future",
        ] {
            check("assistant", &finish(reason), Some(Phase::Idle));
        }
        check("system", "[]", None);
    }

    #[test]
    fn texts_and_tools_are_shown_and_thoughts_are_not() {
        let parts = r#"[{"type":"reasoning","data":{"thinking":"hm"}},
            {"type":"text","data":{"text":"hello"}},
            {"type":"text","data":{"text":" "}},
            {"type":"tool_call","data":{"name":"bash","input":"ls"}},
            {"type":"finish","data":{"reason":"tool_use"}}, 7, {"type":"text"}]"#;
        let shown = messages_of(&row("assistant", parts));
        let texts: Vec<_> = shown
            .iter()
            .map(|one| (one.role, one.text.as_str()))
            .collect();
        assert_eq!(
            texts,
            [
                (MessageRole::Assistant, "hello"),
                (MessageRole::Tool, "bash")
            ]
        );
        assert!(messages_of(&row("tool", parts)).is_empty());
        assert!(messages_of(&row("user", "{")).is_empty());
    }
}
