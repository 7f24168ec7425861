//! One record of a rollout, as far as it matters here.
//!
//! Seen in Codex 0.171.0, 2026-11: every line is `{"timestamp", "ordinal",
//! "type", "payload"}`; a turn goes from `event_msg`/`task_started` to
//! `task_complete` or `turn_aborted`. What asks a person for leave is not
//! recorded: a call of a tool without its output is all there is of it.
//!
//! Until September 2025 a line was the item of the conversation itself, without
//! a date, and turns were not recorded: `{"type": "message", "role", "content"}`.
//! Between them stand `{"record_type": "state"}`, which tell nothing. Taken from
//! public descriptions and examples of such rollouts, 2026-11.

use std::path::PathBuf;

use serde_json::Value;

use crate::adapter::MessageRole;
use crate::adapter::phase::WaitingFor;
use crate::sources::agents::kit::prompt::Wrapping;

/// What Codex itself writes in the person's name, in releases that do not mark
/// such messages.
pub(super) const WRAPPING: Wrapping = Wrapping {
    elements: &[
        "apps_instructions",
        "collaboration_mode",
        "environment_context",
        "model_switch",
        "permissions",
        "personality_spec",
        "plugins_instructions",
        "recommended_plugins",
        "skill",
        "skills_instructions",
        "turn_aborted",
        "user_instructions",
        "user_shell_command",
    ],
    notices: &["# AGENTS.md instructions"],
};

/// One record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Record {
    /// When it was written, in milliseconds since 1970.
    pub(super) at_ms: Option<i64>,
    /// What it is.
    pub(super) kind: Kind,
}

/// The kinds of records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    /// Written when a thread is opened or closed, also long after its last turn.
    Bookkeeping,
    /// A turn began.
    TurnStarted {
        /// Its id.
        turn: Option<String>,
        /// The turn that it is a part of, mostly itself.
        root: Option<String>,
    },
    /// A turn ended, one way or another.
    TurnEnded {
        /// Its id; early releases may not tell.
        turn: Option<String>,
    },
    /// What a turn works with.
    TurnContext {
        /// The model.
        model: Option<String>,
        /// The directory.
        work_dir: Option<PathBuf>,
    },
    /// A call that needs an answer.
    Call {
        /// Its id.
        id: Option<String>,
        /// The tool.
        name: String,
        /// It asks the person, and nobody else answers it.
        asks_for: Option<WaitingFor>,
    },
    /// The answer to a call.
    Answer {
        /// The call's id.
        id: Option<String>,
    },
    /// A message in the conversation.
    Message {
        /// Who speaks.
        role: MessageRole,
        /// What is said.
        text: String,
    },
    /// The same of a person, as an event: told beside the message.
    Prompt {
        /// What is said.
        text: String,
    },
    /// Anything else that happens in a turn.
    Other,
}

impl Record {
    /// Reads a line's value. `None`: it is no record.
    pub(super) fn of(value: &Value) -> Option<Self> {
        let kind = value.get("type")?.as_str()?;
        let Some(payload) = value.get("payload") else {
            return Self::of_bare(value);
        };
        let kind = match kind {
            "session_meta" => Kind::Bookkeeping,
            "turn_context" => Kind::TurnContext {
                model: text(payload, "model"),
                work_dir: text(payload, "cwd").map(PathBuf::from),
            },
            "event_msg" => event(payload),
            "response_item" => response_item(payload),
            _ => Kind::Other,
        };
        Some(Self {
            at_ms: value
                .get("timestamp")
                .and_then(Value::as_str)
                .and_then(time_ms),
            kind,
        })
    }

    /// Reads an item without a payload around it, as of 2025.
    fn of_bare(item: &Value) -> Option<Self> {
        let kind = match environment_in(item) {
            Some(work_dir) => Kind::TurnContext {
                model: None,
                work_dir: Some(work_dir),
            },
            None => response_item(item),
        };
        let at_ms = None;
        (kind != Kind::Other).then_some(Self { at_ms, kind })
    }
}

/// The directory that a message of Codex itself names, in both forms of 2025.
fn environment_in(item: &Value) -> Option<PathBuf> {
    let text = item.pointer("/content/0/text")?.as_str()?;
    let text = text.trim_start().strip_prefix("<environment_context>")?;
    let path = match text.split_once("<cwd>") {
        Some((_, rest)) => rest.split_once("</cwd>")?.0,
        None => {
            let (_, rest) = text.split_once("Current working directory: ")?;
            rest.lines().next()?
        }
    };
    let path = PathBuf::from(path);
    path.is_absolute().then_some(path)
}

/// Reads a time as it is written in rollouts.
pub(super) fn time_ms(text: &str) -> Option<i64> {
    let time: jiff::Timestamp = text.parse().ok()?;
    Some(time.as_millisecond())
}

fn event(payload: &Value) -> Kind {
    let asks = |asks_for| Kind::Call {
        id: text(payload, "call_id"),
        name: text(payload, "type").unwrap_or_default(),
        asks_for: Some(asks_for),
    };
    match payload.get("type").and_then(Value::as_str) {
        Some("task_started" | "turn_started") => Kind::TurnStarted {
            turn: text(payload, "turn_id"),
            root: text(payload, "root_turn_id"),
        },
        Some("task_complete" | "turn_complete" | "turn_aborted") => Kind::TurnEnded {
            turn: text(payload, "turn_id"),
        },
        Some("thread_settings_applied" | "shutdown_complete") => Kind::Bookkeeping,
        Some("exec_approval_request" | "apply_patch_approval_request" | "request_permissions") => {
            asks(WaitingFor::Permission)
        }
        Some("request_user_input" | "elicitation_request") => asks(WaitingFor::Question),
        Some("user_message") => prompt(payload.get("message").and_then(Value::as_str)),
        Some("item_completed") => completed_item(payload.get("item")),
        _ => Kind::Other,
    }
}

fn completed_item(item: Option<&Value>) -> Kind {
    let Some(item) = item else {
        return Kind::Other;
    };
    if item.get("type").and_then(Value::as_str) != Some("UserMessage") {
        return Kind::Other;
    }
    let parts = item.get("content").and_then(Value::as_array);
    let texts = parts.into_iter().flatten();
    prompt(texts.filter_map(|part| part.get("text")?.as_str()))
}

fn prompt<'t>(texts: impl IntoIterator<Item = &'t str>) -> Kind {
    let text = WRAPPING.typed_in(texts);
    text.map_or(Kind::Other, |text| Kind::Prompt { text })
}

fn response_item(payload: &Value) -> Kind {
    match payload.get("type").and_then(Value::as_str) {
        Some("message") => message(payload),
        Some("function_call" | "custom_tool_call" | "local_shell_call") => {
            let name = text(payload, "name").unwrap_or_else(|| "shell".to_owned());
            Kind::Call {
                id: text(payload, "call_id"),
                // The tool by which the model puts a question to the person.
                asks_for: (name == "request_user_input").then_some(WaitingFor::Question),
                name,
            }
        }
        Some("function_call_output" | "custom_tool_call_output") => Kind::Answer {
            id: text(payload, "call_id"),
        },
        _ => Kind::Other,
    }
}

fn message(payload: &Value) -> Kind {
    let parts = payload.get("content").and_then(Value::as_array);
    let texts = || {
        let parts = parts.into_iter().flatten();
        parts.map(|part| part.get("text").and_then(Value::as_str))
    };
    let role = payload.get("role").and_then(Value::as_str);
    let (role, text) = match role {
        Some("assistant") => (MessageRole::Assistant, joined(texts().flatten())),
        Some("user") => {
            let kinds = payload
                .get("internal_chat_message_metadata_passthrough")
                .and_then(|metadata| metadata.get("content_item_kinds"))
                .and_then(Value::as_array);
            let text = match kinds {
                Some(kinds) => WRAPPING.typed_in(
                    texts()
                        .zip(kinds)
                        .filter(|(_, kind)| is_by_person(kind))
                        .filter_map(|(text, _)| text),
                ),
                None => WRAPPING.typed_in(texts().flatten()),
            };
            (MessageRole::User, text)
        }
        _ => return Kind::Other,
    };
    text.map_or(Kind::Other, |text| Kind::Message { role, text })
}

fn is_by_person(kind: &Value) -> bool {
    kind.as_str().is_some_and(|kind| kind.starts_with("user."))
}

/// `None` if there is nothing to read in them.
fn joined<'a>(texts: impl Iterator<Item = &'a str>) -> Option<String> {
    let text = texts.collect::<Vec<_>>().join("\n");
    (!text.trim().is_empty()).then_some(text)
}

/// A text that is not empty.
fn text(value: &Value, key: &str) -> Option<String> {
    let text = value.get(key)?.as_str()?;
    (!text.is_empty()).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(kind: &str, payload: Value, right: &Kind) {
        let value =
            json!({"timestamp": "2026-11-27T20:54:09.579Z", "type": kind, "payload": payload});
        let record = Record::of(&value).unwrap();
        assert_eq!(record.kind, *right, "{value}");
        assert_eq!(record.at_ms, Some(1_795_812_849_579));
    }

    fn message(role: MessageRole, text: &str) -> Kind {
        let text = text.to_owned();
        Kind::Message { role, text }
    }

    #[test]
    fn turns_begin_and_end() {
        let turn = Some("t".to_owned());
        let started = Kind::TurnStarted {
            turn: turn.clone(),
            root: Some("r".to_owned()),
        };
        let ids = json!({"type": "task_started", "turn_id": "t", "root_turn_id": "r"});
        check("event_msg", ids, &started);
        let ended = Kind::TurnEnded { turn };
        for kind in ["task_complete", "turn_aborted"] {
            check("event_msg", json!({"type": kind, "turn_id": "t"}), &ended);
        }
        let unnamed = Kind::TurnEnded { turn: None };
        check(
            "event_msg",
            json!({"type": "turn_aborted", "turn_id": null}),
            &unnamed,
        );
    }

    #[test]
    fn what_a_person_said_is_told_from_what_codex_said_in_their_name() {
        let part = |text: &str| json!({"type": "input_text", "text": text});
        let marked = |kinds: &[&str]| json!({"content_item_kinds": kinds});
        let said = json!({"type": "message", "role": "user", "content": [part("a"), part("hello")],
            "internal_chat_message_metadata_passthrough": marked(&["environments.environment_context", "user.text"])});
        check("response_item", said, &message(MessageRole::User, "hello"));
        let own = json!({"type": "message", "role": "user", "content": [part("hello")],
            "internal_chat_message_metadata_passthrough": marked(&["host_skills.instructions"])});
        check("response_item", own, &Kind::Other);
        let early = json!({"type": "message", "role": "user",
            "content": [part("<environment_context>\n<cwd>/w</cwd>"), part("hello")]});
        check("response_item", early, &message(MessageRole::User, "hello"));
        let developer = json!({"type": "message", "role": "developer", "content": [part("x")]});
        check("response_item", developer, &Kind::Other);
    }

    #[test]
    fn the_request_stands_behind_what_an_editor_tells() {
        let context = "# Context from my IDE setup:\n\n## Open tabs:\n- a.rs\n";
        let asked = format!("{context}\n## My request for Codex:\nfix it\n");
        let fix_it = Kind::Prompt {
            text: "fix it".to_owned(),
        };
        check(
            "event_msg",
            json!({"type": "user_message", "message": asked}),
            &fix_it,
        );
        let said = |text: &str| json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]});
        check(
            "response_item",
            said(&asked),
            &message(MessageRole::User, "fix it"),
        );
        for own in [
            context,
            "<recommended_plugins>\n- a\n</recommended_plugins>",
            "<subagent_notification>{}</subagent_notification>",
        ] {
            check("response_item", said(own), &Kind::Other);
            check(
                "event_msg",
                json!({"type": "user_message", "message": own}),
                &Kind::Other,
            );
        }
    }

    #[test]
    fn calls_and_their_answers_have_ids() {
        let call = |name: &str, asks_for| Kind::Call {
            id: Some("c".to_owned()),
            name: name.to_owned(),
            asks_for,
        };
        check(
            "response_item",
            json!({"type": "function_call", "name": "exec_command", "call_id": "c"}),
            &call("exec_command", None),
        );
        check(
            "response_item",
            json!({"type": "function_call", "name": "request_user_input", "call_id": "c"}),
            &call("request_user_input", Some(WaitingFor::Question)),
        );
        check(
            "event_msg",
            json!({"type": "exec_approval_request", "call_id": "c"}),
            &call("exec_approval_request", Some(WaitingFor::Permission)),
        );
        let answer = Kind::Answer {
            id: Some("c".to_owned()),
        };
        check(
            "response_item",
            json!({"type": "function_call_output", "call_id": "c"}),
            &answer,
        );
    }

    #[test]
    fn prompts_are_read_in_both_forms_of_event() {
        let prompt = Kind::Prompt {
            text: "hello".to_owned(),
        };
        check(
            "event_msg",
            json!({"type": "user_message", "message": "hello"}),
            &prompt,
        );
        let item = json!({"type": "UserMessage", "content": [{"type": "text", "text": "hello"}]});
        check(
            "event_msg",
            json!({"type": "item_completed", "item": item}),
            &prompt,
        );
    }

    #[test]
    fn items_of_2025_have_no_payload_and_no_date() {
        let check = |value: Value, right: Option<Kind>| {
            let record = Record::of(&value);
            let right = right.map(|kind| Record { at_ms: None, kind });
            assert_eq!(record, right, "{value}");
        };
        let said = |role: &str, text: &str| json!({"type": "message", "id": null, "role": role, "content": [{"type": "input_text", "text": text}]});
        check(
            said("user", "hello"),
            Some(message(MessageRole::User, "hello")),
        );
        check(
            said("assistant", "hi"),
            Some(message(MessageRole::Assistant, "hi")),
        );
        check(
            said("user", "<user_instructions>x</user_instructions>"),
            None,
        );
        let call =
            json!({"type": "function_call", "name": "shell", "arguments": "{}", "call_id": "c"});
        let shell = Kind::Call {
            id: Some("c".to_owned()),
            name: "shell".to_owned(),
            asks_for: None,
        };
        check(call, Some(shell));
        check(json!({"record_type": "state"}), None);
        check(json!({"type": "reasoning", "summary": []}), None);
    }

    #[test]
    fn what_is_no_record_is_none_and_what_is_unknown_is_other() {
        for value in [
            json!(7),
            json!({}),
            json!({"type": 7, "payload": {}}),
            json!({"type": "x"}),
        ] {
            assert_eq!(Record::of(&value), None, "{value}");
        }
        check("event_msg", json!({"type": "of_the_future"}), &Kind::Other);
        check("of_the_future", json!({}), &Kind::Other);
        check("event_msg", json!(7), &Kind::Other);
        let bad_time = json!({"timestamp": "yesterday", "type": "x", "payload": {}});
        assert_eq!(Record::of(&bad_time).unwrap().at_ms, None);
    }
}
