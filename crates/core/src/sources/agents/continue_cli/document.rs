//! `sessions/UUID.json`: the conversation, one JSON document that is written anew at each
//! step.

use serde_json::Value;

use crate::adapter::Description;
use crate::adapter::phase::{Phase, WaitingFor};
use crate::sources::agents::kit::dialect::{
    Dialect, Record, Step, TokenCount, count_at, joined, text_at, texts_in,
};
use crate::sources::agents::kit::title::one_line;

/// How long a document may be.
pub(super) const BYTES_MAX: u64 = 32 << 20;
/// The title of a session that has none yet.
const NO_TITLE: &str = "Untitled Session";
/// What stands for the output of a tool call that a person refused. Read in the bundle of
/// 1.5.47.
const REFUSED: &str = "Permission denied by user";

/// How an item of a history reads. Nothing in it has a date.
pub(super) const DIALECT: Dialect = Dialect::of(record_of);

/// Escape in a turn leaves the prompt as the last item, and the answers of tools as well:
/// these show no phase.
fn record_of(item: &Value) -> Record<'_> {
    let content = item.pointer("/message/content");
    match text_at(item, "/message/role") {
        Some("user") => Record {
            typed: texts_in(content).collect(),
            step: Step::Shows(None),
            ..Record::default()
        },
        Some("assistant") => {
            let calls = item.get("toolCallStates").and_then(Value::as_array);
            let calls = calls.map_or(&[][..], Vec::as_slice);
            Record {
                reply: texts_in(content).collect(),
                calls: (calls.iter())
                    .filter_map(|call| text_at(call, "/toolCall/function/name"))
                    .collect(),
                step: step_of(calls),
                model: text_at(item, "/message/usage/model"),
                tokens: item.pointer("/message/usage").map(tokens_of),
                ..Record::default()
            }
        }
        _ => Record::default(),
    }
}

/// A person who refuses a call ends the turn. One that a policy blocks does not.
fn step_of(calls: &[Value]) -> Step<'static> {
    let is_any = |place: &str, wanted: &str| {
        let mut calls = calls.iter();
        calls.any(|call| text_at(call, place) == Some(wanted))
    };
    let (names, waiting_for) = ([None; 2], Some(WaitingFor::Permission));
    if calls.is_empty() || is_any("/output/0/content", REFUSED) {
        Step::Shows(Some(Phase::Idle))
    } else if is_any("/status", "generated") {
        Step::Asked { names, waiting_for }
    } else {
        Step::Shows(is_any("/status", "calling").then_some(Phase::Working))
    }
}

fn tokens_of(usage: &Value) -> TokenCount {
    let cached = count_at(usage, "/prompt_tokens_details/cached_tokens");
    let prompt = count_at(usage, "/prompt_tokens");
    TokenCount {
        input: prompt.map(|prompt| prompt.saturating_sub(cached.unwrap_or(0))),
        cached_input: cached,
        output: count_at(usage, "/completion_tokens"),
        ..TokenCount::default()
    }
}

/// The items of the conversation, oldest first.
pub(super) fn history(document: &Value) -> &[Value] {
    let items = document.get("history").and_then(Value::as_array);
    items.map_or(&[], Vec::as_slice)
}

/// The title that the model gave the session.
pub(super) fn title_in(record: &Value) -> Option<String> {
    text_at(record, "/title")
        .filter(|title| *title != NO_TITLE)
        .and_then(one_line)
}

/// What a document shows of the session.
pub(super) fn describe(document: &Value) -> Description {
    let items = history(document);
    let found = joined(DIALECT.tail_of(items), DIALECT.head_of(items));
    let title = title_in(document);
    Description {
        is_title_a_prompt: title.is_none() && found.is_title_a_prompt,
        title: title.or(found.title),
        ..found
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn document(title: &str, status: Option<&str>) -> Value {
        let call = |status| {
            json!({ "toolCallId": "c", "status": status,
                "toolCall": { "function": { "name": "Bash", "arguments": "{}" } } })
        };
        let usage = json!({ "model": "m-1", "prompt_tokens": 40, "completion_tokens": 5,
            "prompt_tokens_details": { "cached_tokens": 30 } });
        json!({ "sessionId": "s-1", "title": title, "workspaceDirectory": "/w/app", "history": [
            { "message": { "role": "user", "content": "fix\nit" }, "contextItems": [] },
            { "message": { "role": "assistant", "content": "I look.", "usage": usage },
              "toolCallStates": status.map(call).into_iter().collect::<Vec<_>>() } ] })
    }

    #[test]
    fn the_last_item_shows_the_phase() {
        let check = |document: &Value, right: (Option<Phase>, Option<WaitingFor>)| {
            let found = describe(document);
            assert_eq!((found.phase, found.waiting_for), right, "{document}");
        };
        check(&document("t", None), (Some(Phase::Idle), None));
        let asked = (Some(Phase::Waiting), Some(WaitingFor::Permission));
        check(&document("t", Some("generated")), asked);
        let working = (Some(Phase::Working), None);
        check(&document("t", Some("calling")), working);
        check(&document("t", Some("done")), (None, None));
        let mut refused = document("t", Some("canceled"));
        refused["history"][1]["toolCallStates"][0]["output"] = json!([{ "content": REFUSED }]);
        check(&refused, (Some(Phase::Idle), None));
        let mut prompted = document("t", None);
        prompted["history"].as_array_mut().unwrap().truncate(1);
        check(&prompted, (None, None));
    }

    #[test]
    fn a_title_is_the_models_or_else_the_prompt() {
        let found = describe(&document("The fix", None));
        assert_eq!(found.title.as_deref(), Some("The fix"));
        assert_eq!(found.model.as_deref(), Some("m-1"));
        assert!(!found.is_title_a_prompt);
        let found = describe(&document(NO_TITLE, None));
        assert_eq!(found.title.as_deref(), Some("fix it"));
        assert!(found.is_title_a_prompt);
    }

    #[test]
    fn texts_and_tools_are_messages_and_tokens_are_counted() {
        let document = document("t", Some("done"));
        let messages = DIALECT.messages_in(history(&document), 9);
        let texts: Vec<&str> = messages.iter().map(|one| one.text.as_str()).collect();
        assert_eq!(texts, ["fix\nit", "I look.", "Bash"]);
        let right = TokenCount {
            input: Some(10),
            cached_input: Some(30),
            output: Some(5),
            ..TokenCount::default()
        };
        assert_eq!(record_of(&history(&document)[1]).tokens, Some(right));
    }
}
