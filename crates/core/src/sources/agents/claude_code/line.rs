//! How the records of a transcript read, as Claude Code writes them.

use serde_json::Value;

use super::hooks::QUESTION_TOOLS;
use super::record::is_headless_entrypoint;
use crate::adapter::phase::{Phase, WaitingFor};
use crate::sources::agents::kit::dialect::{
    Dialect, Record, Step, TokenCount, count_at, date_at, nano_at, text_at, texts_in, value_at,
};
use crate::sources::agents::kit::prompt::Wrapping;
use crate::sources::transcript::{HeadBounds, STEP_BYTES};
use crate::sources::usage::Counting;

/// How many lines are read to classify a transcript. A fork begins with one line for each of
/// its parent's snapshots.
pub(super) const OPENING_LINES_MAX: usize = 256;

/// Texts that only Claude Code puts in place of a prompt.
pub(super) const WRAPPING: Wrapping = Wrapping {
    elements: &[
        "agent-message",
        "channel",
        "cross-session-message",
        "fork-boilerplate",
    ],
    notices: &["Stop hook feedback:"],
};

/// The text in place of a prompt after a person has interrupted a turn.
const INTERRUPTED: &str = "[Request interrupted";

/// The model's name in records that Claude Code itself wrote.
const SYNTHETIC_MODEL: &str = "<synthetic>";

/// How the records read, by what each of them reports of a person at a terminal.
pub(super) const DIALECT: Dialect = dialect_of(None);

/// How they read where it may be known whether a person is at a terminal.
pub(super) const fn dialect_of(is_headless: Option<bool>) -> Dialect {
    let record: fn(&Value) -> Record<'_> = match is_headless {
        None => |record| record_of(record, None),
        Some(true) => |record| record_of(record, Some(true)),
        Some(false) => |record| record_of(record, Some(false)),
    };
    Dialect {
        wrapping: WRAPPING,
        head_bounds: HeadBounds {
            bytes_max: 1024 * 1024,
            lines_max: OPENING_LINES_MAX,
        },
        // The title is repeated at the end now and then, so that one step contains it.
        rare_bytes: STEP_BYTES as u64,
        ..Dialect::of(record)
    }
}

/// Replies alone count, and have all that counts are of.
pub(super) const COUNTING: Counting = Counting {
    keys: &[
        "cache_creation",
        "cache_creation_input_tokens",
        "cache_read_input_tokens",
        "costUSD",
        "cwd",
        "ephemeral_1h_input_tokens",
        "forkedFrom",
        "gitBranch",
        "id",
        "input_tokens",
        "message",
        "model",
        "output_tokens",
        "sessionId",
        "session_id",
        "timestamp",
        "type",
        "usage",
    ],
    ..Counting::of(&DIALECT, &["\"usage\""])
};

fn record_of(record: &Value, is_headless: Option<bool>) -> Record<'_> {
    let text = |pointer: &str| text_at(record, pointer);
    let is = |key: &str| record.get(key).and_then(Value::as_bool) == Some(true);
    let at_ms = date_at(record, "/timestamp");
    let texts = || texts_in(value_at(record, "/message/content"));
    let mut found = Record {
        at_ms,
        born_at_ms: at_ms,
        version: text("/version"),
        work_dir: text("/cwd"),
        git_branch: text("/gitBranch"),
        is_headless: is_headless.or_else(|| text("/entrypoint").and_then(is_headless_entrypoint)),
        ..Record::default()
    };
    match text("/type") {
        Some("system") => {
            let subtype = text("/subtype");
            found.is_compaction = subtype == Some("compact_boundary");
            if matches!(subtype, Some("turn_duration" | "stop_hook_summary")) {
                found.step = Step::Shows(Some(Phase::Idle));
            }
        }
        Some("assistant") => {
            let calls = parts(record).filter(|(kind, _)| kind.ends_with("tool_use"));
            let names = calls.map(|(_, call)| text_at(call, "/name").unwrap_or_default());
            found.calls = names.collect();
            found.reply = texts().collect();
            found.model = text("/message/model").filter(|model| *model != SYNTHETIC_MODEL);
            found.step = step_of_reply(record, &found);
            let usage = value_at(record, "/message/usage");
            // Records that Claude Code itself wrote count zero tokens.
            let usage = usage.filter(|_| found.model.is_some());
            found.tokens = usage.map(|usage| tokens_in(usage, nano_at(record, "/costUSD")));
            found.request = text("/message/id");
            found.is_copied = is_copied(record);
        }
        Some("user") => {
            if !is("isMeta") && !is("isCompactSummary") {
                found.typed = texts().collect();
            }
            let mut typed = found.typed.iter();
            let has_result = parts(record).any(|(kind, _)| kind == "tool_result");
            let is_interrupted = texts().any(|text| text.starts_with(INTERRUPTED));
            if is_interrupted && !has_result {
                found.step = Step::Shows(Some(Phase::Idle));
            } else if has_result || typed.any(|text| WRAPPING.typed(text).is_some()) {
                found.step = Step::Shows(Some(Phase::Working));
            }
        }
        _ => {}
    }
    found
}

/// A tool call without a result is running, or waits for a person's permission. It is
/// certainly running only if no person can be asked.
fn step_of_reply<'a>(record: &Value, reply: &Record<'_>) -> Step<'a> {
    let is_headless = reply.is_headless == Some(true);
    let mut calls = reply.calls.iter();
    if !is_headless && calls.any(|tool| QUESTION_TOOLS.contains(tool)) {
        return Step::Asked {
            names: [None; 2],
            waiting_for: Some(WaitingFor::Question),
        };
    }
    if !reply.calls.is_empty() {
        return Step::Shows(is_headless.then_some(Phase::Working));
    }
    let stop = text_at(record, "/message/stop_reason");
    let is_end = matches!(stop, Some("end_turn" | "stop_sequence"));
    Step::Shows(is_end.then_some(Phase::Idle))
}

/// A fork copies lines of another session, and gives them its own `sessionId`. In 2.1.332
/// their `session_id` still names the other session.
fn is_copied(record: &Value) -> bool {
    let first = record.get("session_id").and_then(Value::as_str);
    let here = record.get("sessionId").and_then(Value::as_str);
    first.zip(here).is_some_and(|(first, here)| first != here)
        || record.get("forkedFrom").is_some_and(|from| !from.is_null())
}

fn tokens_in(usage: &Value, cost_nano: Option<u64>) -> TokenCount {
    let count = |name: &str| count_at(usage, name);
    let input = count("/input_tokens");
    let cached_input = count("/cache_read_input_tokens");
    let cache_writes = count("/cache_creation_input_tokens");
    let all = [input, cached_input, cache_writes].into_iter().flatten();
    TokenCount {
        context: input.map(|_| all.fold(0, u64::saturating_add)),
        input,
        cached_input,
        cache_writes,
        output: count("/output_tokens"),
        long_cache_writes: count("/cache_creation/ephemeral_1h_input_tokens"),
        cost_nano,
        ..TokenCount::default()
    }
}

/// The parts of a message that are objects, with their types.
fn parts(record: &Value) -> impl Iterator<Item = (&str, &Value)> {
    let parts = value_at(record, "/message/content").and_then(Value::as_array);
    let typed = |part| Some((text_at(part, "/type")?, part));
    parts.into_iter().flatten().filter_map(typed)
}

/// The record belongs to a sub-agent's conversation; `None` if it does not show it.
pub(super) fn is_sidechain(record: &Value) -> Option<bool> {
    record.get("isSidechain")?.as_bool()
}
