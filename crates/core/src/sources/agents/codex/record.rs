//! How the records of a rollout read.
//!
//! Seen in Codex 0.171.0, 2026-11: every line is `{"timestamp", "ordinal",
//! "type", "payload"}`; a turn goes from `event_msg`/`task_started` to
//! `task_complete` or `turn_aborted`. What asks a person for leave is not
//! recorded: a call of a tool without its output is all there is of it.
//!
//! Until September 2025 a line was the item of the conversation itself, without
//! a date, and turns were not recorded: `{"type": "message", "role", "content"}`.
//! Between them stand `{"record_type": "state"}` lines, which carry nothing of use. Taken
//! from
//! public descriptions and examples of such rollouts, 2026-11.

use std::path::Path;

use serde_json::Value;

use crate::adapter::phase::WaitingFor;
use crate::sources::agents::kit::dialect::{
    Dialect, Record, TokenCount, count_at, date_at, text_at, texts_in, value_at,
};
use crate::sources::agents::kit::prompt::Wrapping;
use crate::sources::transcript::HeadBounds;
use crate::sources::usage::Counting;

/// Texts that Codex adds in the person's name, in releases that do not mark such messages.
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
        "user_action",
        "user_instructions",
        "user_shell_command",
    ],
    notices: &[
        "# AGENTS.md instructions",
        // An image stands between two texts.
        "</image>",
        "<image name=[Image #",
        "<image>",
    ],
};

/// How the records of Codex read. Its turns have parts, which [`TurnEvent`]s show.
pub(super) const DIALECT: Dialect = Dialect {
    wrapping: WRAPPING,
    // Instructions of hundreds of kilobytes come before the first prompt.
    head_bounds: HeadBounds {
        bytes_max: 1 << 20,
        lines_max: 128,
    },
    has_turns: false,
    ..Dialect::of(record_of)
};

/// What is counted, and what shows thread, model, branch and directory.
pub(super) const COUNTING: Counting = Counting {
    keys: &[
        "branch",
        "cache_write_input_tokens",
        "cached_input_tokens",
        "cwd",
        "forked_from_id",
        "git",
        "history_base",
        "info",
        "input_tokens",
        "last_token_usage",
        "model",
        "output_tokens",
        "payload",
        "reasoning_output_tokens",
        "timestamp",
        "total_token_usage",
        "type",
    ],
    ..Counting::of(
        &DIALECT,
        &["\"token_count\"", "\"turn_context\"", "\"session_meta\""],
    )
};

/// What a record shows about a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TurnEvent<'a> {
    /// A turn began: its ID, and the ID of the turn that contains it, mostly itself.
    Started {
        turn: Option<&'a str>,
        root: Option<&'a str>,
    },
    /// A turn ended, one way or another. Early releases may not name it.
    Ended { turn: Option<&'a str> },
    /// A call that needs an answer, by ID.
    Called {
        id: Option<&'a str>,
        /// The tool asks the person, and no other answers.
        asks_for: Option<WaitingFor>,
    },
    /// The answer to the call with this ID.
    Answered { id: Option<&'a str> },
}

/// The kind of a record, and what it is about: an item without a payload around it, as
/// of 2025, is a `response_item`.
fn opened(record: &Value) -> Option<(&str, &Value)> {
    let kind = text_at(record, "/type")?;
    Some(match record.get("payload") {
        Some(payload) => (kind, payload),
        None => ("response_item", record),
    })
}

/// Reads a record. A value that is no record is an aside, as are records that are written
/// when a thread is opened or closed, even long after its last turn.
fn record_of(record: &Value) -> Record<'_> {
    let Some((kind, payload)) = opened(record) else {
        return Record {
            is_aside: true,
            ..Record::default()
        };
    };
    let has_payload = record.get("payload").is_some();
    let text = |pointer: &str| text_at(payload, pointer);
    let mut found = Record {
        at_ms: date_at(record, "/timestamp").filter(|_| has_payload),
        ..Record::default()
    };
    match (kind, text("/type").unwrap_or_default()) {
        ("session_meta", _) => {
            found.is_aside = true;
            found.work_dir = text("/cwd");
            found.git_branch = text("/git/branch");
            // Releases before `history_base` copied the messages of the other thread.
            found.begins_copy = text("/forked_from_id").is_some()
                && payload.get("history_base").is_none_or(Value::is_null);
        }
        ("event_msg", "thread_settings_applied" | "shutdown_complete") => found.is_aside = true,
        ("turn_context", _) => {
            found.model = text("/model");
            found.work_dir = text("/cwd");
        }
        ("compacted", _) => found.is_compaction = true,
        ("event_msg", "user_message") => found.repeated.extend(text("/message")),
        ("event_msg", "item_completed") if text("/item/type") == Some("UserMessage") => {
            found.repeated = texts_in(value_at(payload, "/item/content")).collect();
        }
        ("event_msg", "token_count") => {
            let info = payload.get("info");
            let all = info.filter(|info| info.get("total_token_usage").is_some());
            found.tokens = info.map(|info| tokens_in(info, "last_token_usage"));
            found.total = all.map(|info| tokens_in(info, "total_token_usage"));
        }
        ("response_item", kind) => {
            let is_item = add_item(&mut found, kind, payload);
            found.work_dir = environment_in(record).filter(|_| is_item);
            let is_of_codex = found.work_dir.is_none() && is_nothing_typed(&found.typed);
            found.is_aside = !has_payload && (!is_item || is_of_codex);
        }
        _ => {}
    }
    found
}

/// Adds an item of the conversation; `false` for one of another kind.
fn add_item<'a>(found: &mut Record<'a>, kind: &str, item: &'a Value) -> bool {
    let content = item.get("content");
    match (kind, text_at(item, "/role")) {
        ("message", Some("assistant")) => found.reply = texts_in(content).collect(),
        ("message", Some("user")) => found.typed = typed_in(item).collect(),
        ("function_call" | "custom_tool_call" | "local_shell_call", _) => {
            found.calls.push(text_at(item, "/name").unwrap_or("shell"));
        }
        ("function_call_output" | "custom_tool_call_output", _) => {}
        _ => return false,
    }
    true
}

/// A message in the person's name, in which a person typed nothing.
fn is_nothing_typed(texts: &[&str]) -> bool {
    !texts.is_empty() && WRAPPING.typed_in(texts.iter().copied()).is_none()
}

/// The texts of a message in the person's name: those that are marked as the person's,
/// where they are marked.
fn typed_in(item: &Value) -> impl Iterator<Item = &str> {
    let kinds = "/internal_chat_message_metadata_passthrough/content_item_kinds";
    let kinds = value_at(item, kinds).and_then(Value::as_array);
    let parts = item.get("content").and_then(Value::as_array);
    let parts = parts.into_iter().flatten().enumerate();
    parts.filter_map(move |(at, part)| {
        let is_by_person = kinds.is_none_or(|kinds| {
            let kind = kinds.get(at).and_then(Value::as_str);
            kind.is_some_and(|kind| kind.starts_with("user."))
        });
        text_at(part, "/text").filter(|_| is_by_person)
    })
}

/// The directory that a message of Codex itself names, in both forms of 2025.
fn environment_in(item: &Value) -> Option<&str> {
    let text = value_at(item, "/content/0/text")?.as_str()?;
    let text = text.trim_start().strip_prefix("<environment_context>")?;
    let path = match text.split_once("<cwd>") {
        Some((_, rest)) => rest.split_once("</cwd>")?.0,
        None => {
            let (_, rest) = text.split_once("Current working directory: ")?;
            rest.lines().next()?
        }
    };
    Path::new(path).is_absolute().then_some(path)
}

/// The tokens in one of the two counts: of the last request, or of all.
fn tokens_in(info: &Value, counted: &str) -> TokenCount {
    let counts = info.get(counted);
    let count = |name: &str| counts?.get(name)?.as_u64();
    let cached_input = count("cached_input_tokens");
    let cache_writes = count("cache_write_input_tokens");
    let cached = cached_input
        .unwrap_or(0)
        .saturating_add(cache_writes.unwrap_or(0));
    let all = count("input_tokens");
    TokenCount {
        context: count("total_tokens"),
        window: count_at(info, "/model_context_window"),
        input: all.and_then(|all| all.checked_sub(cached)),
        cached_input,
        cache_writes,
        output: count("output_tokens"),
        reasoning: count("reasoning_output_tokens"),
        ..TokenCount::default()
    }
}

/// What a record shows about a turn.
pub(super) fn turn_event(record: &Value) -> Option<TurnEvent<'_>> {
    let (kind, payload) = opened(record)?;
    let text = |pointer: &str| text_at(payload, pointer);
    let called = |asks_for| TurnEvent::Called {
        id: text("/call_id"),
        asks_for,
    };
    Some(match (kind, text("/type")?) {
        ("event_msg", "task_started" | "turn_started") => TurnEvent::Started {
            turn: text("/turn_id"),
            root: text("/root_turn_id"),
        },
        ("event_msg", "task_complete" | "turn_complete" | "turn_aborted") => TurnEvent::Ended {
            turn: text("/turn_id"),
        },
        (
            "event_msg",
            "exec_approval_request" | "apply_patch_approval_request" | "request_permissions",
        ) => called(Some(WaitingFor::Permission)),
        ("event_msg", "request_user_input" | "elicitation_request") => {
            called(Some(WaitingFor::Question))
        }
        // The tool by which the model puts a question to the person.
        ("response_item", "function_call" | "custom_tool_call")
            if text("/name") == Some("request_user_input") =>
        {
            called(Some(WaitingFor::Question))
        }
        ("response_item", "function_call" | "custom_tool_call" | "local_shell_call") => {
            called(None)
        }
        ("response_item", "function_call_output" | "custom_tool_call_output") => {
            TurnEvent::Answered {
                id: text("/call_id"),
            }
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn record(kind: &str, payload: Value) -> Value {
        json!({"timestamp": "2026-11-27T20:54:09.579Z", "type": kind, "payload": payload})
    }

    #[track_caller]
    fn check_turn(kind: &str, payload: Value, right: TurnEvent<'_>) {
        let record = record(kind, payload);
        assert_eq!(turn_event(&record), Some(right), "{record}");
        assert_eq!(record_of(&record).at_ms, Some(1_795_812_849_579));
    }

    /// Checks the prompt in a record: in the conversation, or beside it.
    #[track_caller]
    fn check_said(record: &Value, right: Option<&str>) {
        let found = record_of(record);
        let said = found.typed.into_iter().chain(found.repeated);
        assert_eq!(WRAPPING.typed_in(said).as_deref(), right, "{record}");
    }

    #[test]
    fn turns_begin_and_end() {
        let turn = Some("t");
        let started = TurnEvent::Started {
            turn,
            root: Some("r"),
        };
        let ids = json!({"type": "task_started", "turn_id": "t", "root_turn_id": "r"});
        check_turn("event_msg", ids, started);
        for kind in ["task_complete", "turn_aborted"] {
            let payload = json!({"type": kind, "turn_id": "t"});
            check_turn("event_msg", payload, TurnEvent::Ended { turn });
        }
        let unnamed = json!({"type": "turn_aborted", "turn_id": null});
        check_turn("event_msg", unnamed, TurnEvent::Ended { turn: None });
    }

    #[test]
    fn prompts_are_separated_from_texts_that_codex_adds() {
        let part = |text: &str| json!({"type": "input_text", "text": text});
        let said = |content: Value, kinds: Option<&[&str]>| {
            let marked = kinds.map(|kinds| json!({"content_item_kinds": kinds}));
            let message = json!({"type": "message", "role": "user", "content": content,
                "internal_chat_message_metadata_passthrough": marked});
            record("response_item", message)
        };
        let both = json!([part("a"), part("hello")]);
        let kinds = ["environments.environment_context", "user.text"];
        check_said(&said(both, Some(&kinds)), Some("hello"));
        let own = json!([part("hello")]);
        check_said(&said(own, Some(&["host_skills.instructions"])), None);
        let early = json!([part("<environment_context>\n<cwd>/w</cwd>"), part("hello")]);
        check_said(&said(early, None), Some("hello"));
        let image = json!([part("<image name=[Image #1]>"), {"type": "input_image"},
            part("</image>"), part("why is this red?")]);
        check_said(&said(image, None), Some("why is this red?"));
        let review = json!([part("<user_action>\n<context>x</context>\n</user_action>")]);
        check_said(&said(review, None), None);
        let developer = json!({"type": "message", "role": "developer", "content": [part("x")]});
        check_said(&record("response_item", developer), None);
    }

    #[test]
    fn the_request_stands_behind_what_an_editor_tells() {
        let context = "# Context from my IDE setup:\n\n## Open tabs:\n- a.rs\n";
        let asked = format!("{context}\n## My request for Codex:\nfix it\n");
        for (text, right) in [
            (asked.as_str(), Some("fix it")),
            (context, None),
            ("<recommended_plugins>\n- a\n</recommended_plugins>", None),
            ("<subagent_notification>{}</subagent_notification>", None),
        ] {
            let content = json!([{"type": "input_text", "text": text}]);
            let message = json!({"type": "message", "role": "user", "content": content});
            check_said(&record("response_item", message), right);
            let event = json!({"type": "user_message", "message": text});
            check_said(&record("event_msg", event), right);
        }
    }

    #[test]
    fn calls_and_their_answers_have_ids() {
        let id = Some("c");
        let call = |name: &str| json!({"type": "function_call", "name": name, "call_id": "c"});
        let called = |asks_for| TurnEvent::Called { id, asks_for };
        check_turn("response_item", call("exec_command"), called(None));
        let asked = called(Some(WaitingFor::Question));
        check_turn("response_item", call("request_user_input"), asked);
        let approval = json!({"type": "exec_approval_request", "call_id": "c"});
        let asked = called(Some(WaitingFor::Permission));
        check_turn("event_msg", approval, asked);
        let output = json!({"type": "function_call_output", "call_id": "c"});
        check_turn("response_item", output, TurnEvent::Answered { id });
    }

    #[test]
    fn prompts_are_read_in_both_forms_of_event() {
        let event = json!({"type": "user_message", "message": "hello"});
        check_said(&record("event_msg", event), Some("hello"));
        let item = json!({"type": "UserMessage", "content": [{"type": "text", "text": "hello"}]});
        let event = json!({"type": "item_completed", "item": item});
        check_said(&record("event_msg", event), Some("hello"));
    }

    #[test]
    fn items_of_2025_have_no_payload_and_no_date() {
        let said = |role: &str, text: &str| json!({"type": "message", "id": null, "role": role, "content": [{"type": "input_text", "text": text}]});
        check_said(&said("user", "hello"), Some("hello"));
        check_said(
            &said("user", "<user_instructions>x</user_instructions>"),
            None,
        );
        assert_eq!(record_of(&said("assistant", "hi")).reply, ["hi"]);
        let environment = said("user", "<environment_context>\n<cwd>/w</cwd>");
        assert_eq!(record_of(&environment).work_dir, Some("/w"));
        let call = json!({"type": "function_call", "arguments": "{}", "call_id": "c"});
        assert_eq!(record_of(&call).calls, ["shell"]);
        for record in [
            said("user", "<user_instructions>x</user_instructions>"),
            json!({"record_type": "state"}),
            json!({"type": "reasoning", "summary": []}),
        ] {
            assert!(record_of(&record).is_aside, "{record}");
        }
    }

    #[test]
    fn what_is_no_record_is_an_aside_and_what_is_unknown_is_activity() {
        for value in [
            json!(7),
            json!({}),
            json!({"type": 7, "payload": {}}),
            json!({"type": "x"}),
        ] {
            assert!(record_of(&value).is_aside, "{value}");
            assert_eq!(turn_event(&value), None, "{value}");
        }
        for value in [
            record("event_msg", json!({"type": "of_the_future"})),
            record("of_the_future", json!({})),
            record("event_msg", json!(7)),
        ] {
            assert!(!record_of(&value).is_aside, "{value}");
        }
        let bad_time = json!({"timestamp": "yesterday", "type": "x", "payload": {}});
        assert_eq!(record_of(&bad_time).at_ms, None);
    }

    #[test]
    fn the_last_request_counts_tokens() {
        let usage = json!({"input_tokens": 1234, "cached_input_tokens": 1000,
            "cache_write_input_tokens": 0, "output_tokens": 56, "reasoning_output_tokens": 8,
            "total_tokens": 1290});
        let info = json!({"last_token_usage": usage, "model_context_window": 258_400});
        let counted = record("event_msg", json!({"type": "token_count", "info": info}));
        let right = TokenCount {
            context: Some(1290),
            window: Some(258_400),
            input: Some(234),
            cached_input: Some(1000),
            cache_writes: Some(0),
            output: Some(56),
            reasoning: Some(8),
            ..TokenCount::default()
        };
        assert_eq!(record_of(&counted).tokens, Some(right));
    }
}
