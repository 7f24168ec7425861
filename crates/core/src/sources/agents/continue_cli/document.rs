//! `sessions/UUID.json`: the conversation, one JSON document that is written anew at each
//! step.
//!
//! | What counts in it: seen in Continue CLI 1.5.47, 2026-11 | |
//! |---|---|
//! | `usage` of a reply | one request: `prompt_tokens` with what a cache gave; no date |
//! | `usage` of the document | the sums of the requests that this session made, those for titles included. A fork begins at nothing, though it has a copy of the history with all counts |
//! | `cachedTokens` in it | 0 also where the replies have them: it reads another field |
//! | `totalCost`, `cost_cents` | by a guess where the price of the model is not known: not used |

use serde_json::{Value, json};

use crate::adapter::Description;
use crate::adapter::phase::{Phase, WaitingFor};
use crate::sources::agents::kit::dialect::{
    Dialect, Record, Step, TokenCount, count_at, joined, text_at, texts_in, value_at,
};
use crate::sources::agents::kit::title::one_line;
use crate::sources::usage::Counting;

/// How long a document may be.
pub(super) const BYTES_MAX: u64 = 32 << 20;
/// The title of a session that has none yet.
const NO_TITLE: &str = "Untitled Session";
/// What stands for the output of a tool call that a person refused. Read in the bundle of
/// 1.5.47.
const REFUSED: &str = "Permission denied by user";

/// How an item of a history reads. Nothing in it has a date.
pub(super) const DIALECT: Dialect = Dialect::of(record_of);

pub(super) static COUNTING: Counting = Counting::of(&DIALECT, &[]);

/// Escape in a turn leaves the prompt as the last item, and the answers of tools as well:
/// these show no phase.
fn record_of(item: &Value) -> Record<'_> {
    let content = value_at(item, "/message/content");
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
                tokens: value_at(item, "/message/usage").map(tokens_of),
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

/// The items that count: those at the end of the history that add up to what the session
/// used, and an item for what none of them counts. Before these are copies.
pub(super) fn counted(document: &Value) -> Vec<Value> {
    let Some(usage) = document.get("usage") else {
        return history(document).to_vec();
    };
    let of = |value: &Value, names: [&str; 2]| names.map(|name| count_at(value, name).unwrap_or(0));
    let mut left = of(usage, ["/promptTokens", "/completionTokens"]);
    let mut counted = Vec::new();
    for item in history(document).iter().rev() {
        let Some(usage) = value_at(item, "/message/usage") else {
            continue;
        };
        let [prompt, reply] = of(usage, ["/prompt_tokens", "/completion_tokens"]);
        let (Some(prompt), Some(reply)) = (left[0].checked_sub(prompt), left[1].checked_sub(reply))
        else {
            break;
        };
        left = [prompt, reply];
        counted.push(item.clone());
    }
    counted.reverse();
    if left != [0, 0] {
        let usage = json!({ "prompt_tokens": left[0], "completion_tokens": left[1] });
        counted.push(json!({ "message": { "role": "assistant", "usage": usage } }));
    }
    counted
}

fn tokens_of(usage: &Value) -> TokenCount {
    let cached = count_at(usage, "/prompt_tokens_details/cached_tokens");
    let prompt = count_at(usage, "/prompt_tokens");
    TokenCount {
        context: prompt.filter(|prompt| *prompt > 0),
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
            context: Some(40),
            input: Some(10),
            cached_input: Some(30),
            output: Some(5),
            ..TokenCount::default()
        };
        assert_eq!(record_of(&history(&document)[1]).tokens, Some(right));
    }

    #[test]
    fn a_fork_counts_what_it_used_and_not_what_it_copied() {
        let reply = |prompt: u64| {
            let usage = json!({ "prompt_tokens": prompt, "completion_tokens": 5,
                "prompt_tokens_details": { "cached_tokens": 30 } });
            json!({ "message": { "role": "assistant", "content": "x", "usage": usage } })
        };
        let counts = |prompt: u64, completion: u64| {
            let document = json!({ "history": [reply(40), reply(60)],
                "usage": { "promptTokens": prompt, "completionTokens": completion } });
            let total = COUNTING.count_records(&counted(&document), None).total();
            [total.input, total.cached_input, total.output]
        };
        assert_eq!(counts(100, 10), [40, 60, 10]);
        assert_eq!(counts(60, 5), [30, 30, 5]);
        assert_eq!(counts(0, 0), [0; 3]);
        // What was asked for beside the conversation, or was summarized since.
        assert_eq!(counts(160, 17), [100, 60, 17]);
    }
}
