//! The transcript: `events.jsonl`, one event a line.
//!
//! `{"type":"assistant.turn_end","data":{…},"id":"…","timestamp":"…","parentId":"…"}`;
//! those of a sub-agent have an `agentId` as well. The file comes with the
//! first prompt and is not held open. Seen in Copilot CLI 1.0.102, 2026-11.
//!
//! Each request counts by a `session.usage_record`, whose `usage.accounting` has its
//! `usageId`. The totals of `session.shutdown` are the sums of these over all runs of the
//! session so far: they add nothing.
//!
//! Each call of the model is a turn of its own, from `assistant.turn_start` to
//! `assistant.turn_end`; the one that asks for no tool is the last. While a
//! person is asked, a `permission.requested` has no `permission.completed`;
//! other questions are tools, begun and not completed.

use std::path::Path;

use serde_json::Value;

use crate::adapter::phase::WaitingFor;
use crate::sources::agents::kit::dialect::{
    Dialect, Record, Step, TokenCount, count_at, date_at, text_at, value_at,
};
use crate::sources::agents::kit::prompt::Wrapping;
use crate::sources::usage::Counting;

/// What requests of the session itself are for, where usage names that.
const CONVERSATION: &str = "conversation-agent";
/// Tools that put a question to the person.
const QUESTIONS: &[&str] = &["ask_user"];
/// Tools that ask for leave to go on.
const PLANS: &[&str] = &["exit_plan_mode"];

/// How the events of Copilot read. A change of directory may be nowhere.
pub(super) const DIALECT: Dialect = Dialect {
    wrapping: Wrapping {
        elements: &["current_datetime", "reminder", "skill-context"],
        notices: &[],
    },
    rare_bytes: 128 * 1024,
    ..Dialect::of(record_of)
};

pub(super) const COUNTING: Counting = Counting::of(
    &DIALECT,
    &[
        "\"session.usage_record\"",
        "\"session.start\"",
        "\"session.resume\"",
        "\"session.context_changed\"",
        "\"session.model_change\"",
    ],
);

fn record_of(event: &Value) -> Record<'_> {
    let text = |pointer: &str| text_at(event, pointer);
    let at_ms = date_at(event, "/timestamp");
    let mut found = Record {
        at_ms,
        born_at_ms: began_at_ms(event, at_ms),
        version: text("/data/copilotVersion"),
        ..Record::default()
    };
    let kind = text("/type").unwrap_or_default();
    let is_of_sub_agent = event.get("agentId").is_some_and(|id| !id.is_null());
    if kind == "session.usage_record" {
        found.tokens = value_at(event, "/data/usage").map(tokens_in);
        found.request = text("/data/usage/accounting/usageId").or(text("/data/usageId"));
        found.counted_model = text("/data/usage/model");
        // A sub-agent is a session of its own there.
        let user = text("/data/usage/accounting/sourceSessionId");
        found.used_by = user.filter(|_| !is_of_sub_agent);
    }
    let purpose = text("/data/usage/interactionType").or(text("/data/interactionType"));
    if let Some(tokens) = &mut found.tokens
        && (is_of_sub_agent || purpose.is_some_and(|purpose| purpose != CONVERSATION))
    {
        // Sub-agents have a context of their own, as have titles.
        tokens.context = None;
    }
    if is_of_sub_agent {
        return found;
    }
    let directory = |path: &'static str| text(path).filter(|path| Path::new(path).is_absolute());
    match kind {
        "session.start" | "session.resume" => {
            found.work_dir = directory("/data/context/cwd");
            found.git_branch = text("/data/context/branch");
            found.model = text("/data/selectedModel");
        }
        "session.context_changed" => {
            found.work_dir = directory("/data/cwd");
            found.git_branch = text("/data/branch");
        }
        "session.model_change" => found.model = text("/data/newModel"),
        "session.compaction_complete" => found.is_compaction = true,
        "user.message" => found.typed.extend(text("/data/content")),
        "assistant.message" => {
            found.reply.extend(text("/data/content"));
            found.model = text("/data/model");
        }
        "tool.execution_start" => found.calls.extend(text("/data/toolName")),
        _ => {}
    }
    found.step = step_of(kind, event);
    found
}

/// When the session began, by an event that has a time for it.
fn began_at_ms(event: &Value, at_ms: Option<i64>) -> Option<i64> {
    value_at(event, "/data/startTime")?;
    date_at(event, "/data/startTime").or(at_ms)
}

fn step_of<'a>(kind: &str, event: &'a Value) -> Step<'a> {
    let text = |pointer: &str| text_at(event, pointer);
    let asks = |name, waiting_for| Step::Asked {
        names: [name, None],
        waiting_for: Some(waiting_for),
    };
    match kind {
        "session.shutdown" => Step::SessionEnded,
        "session.start" | "session.resume" | "session.context_cleared" | "abort" => Step::Ended,
        "assistant.turn_start" | "user.message" => Step::Begun,
        "assistant.turn_end" => Step::CallEnded,
        "assistant.message" => {
            let calls = value_at(event, "/data/toolRequests");
            let calls = calls.and_then(Value::as_array);
            Step::Replied {
                calls_tools: calls.is_some_and(|calls| !calls.is_empty()),
            }
        }
        "permission.completed" | "tool.execution_complete" => {
            Step::Answered([text("/data/requestId"), text("/data/toolCallId")])
        }
        "permission.requested" => asks(text("/data/requestId"), WaitingFor::Permission),
        "tool.execution_start" => {
            let tool = text("/data/toolName").unwrap_or_default();
            if QUESTIONS.contains(&tool) {
                asks(text("/data/toolCallId"), WaitingFor::Question)
            } else if PLANS.contains(&tool) {
                asks(text("/data/toolCallId"), WaitingFor::Permission)
            } else {
                Step::Within
            }
        }
        _ => Step::Aside,
    }
}

fn tokens_in(usage: &Value) -> TokenCount {
    let count = |name: &str| count_at(usage, name);
    let all = count("/inputTokens");
    let cached_input = count("/cacheReadTokens");
    let cache_writes = count("/cacheWriteTokens");
    let cached = cached_input
        .unwrap_or(0)
        .saturating_add(cache_writes.unwrap_or(0));
    TokenCount {
        context: all,
        window: count("/maxPromptTokens"),
        input: all.and_then(|all| all.checked_sub(cached)),
        cached_input,
        cache_writes,
        output: count("/outputTokens"),
        ..TokenCount::default()
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests make their own files")]
#[path = "events_tests.rs"]
mod tests;
