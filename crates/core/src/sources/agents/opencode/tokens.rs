//! What the messages of a session count.
//!
//! | Seen in opencode 1.18.33 and Kilo CLI 7.7.7, 2026-11 | |
//! |---|---|
//! | what counts | `tokens` and `cost` in the `message.data` of each reply: zeros when the reply begins, the counts of the last request when a step ends |
//! | `tokens.output` | without `reasoning`; `tokens.input` without what a cache gave or took (read in the bundle: `total` is the sum of all) |
//! | a fork | copies the messages with their dates and counts, under new ids, and the sums in `session` with them: what is older than the session was copied |
//! | a sub-agent | is a session of its own |
//! | a title | is asked for beside the conversation, and counted nowhere |
//! | a summary | is a reply with `summary: true`, whose counts are of what it replaced (read) |
//! | `cost` | by the price of the model in the configuration; 0 where none is known |

use serde_json::Value;

use crate::sources::agents::kit::dialect::{
    Dialect, Record, TokenCount, count_at, nano_at, text_at, value_at,
};
use crate::sources::usage::Counting;

/// How the rows of [`RECORDS`] read.
pub(super) const DIALECT: Dialect = Dialect {
    has_turns: false,
    ..Dialect::of(record_of)
};

pub(super) static COUNTING: Counting = Counting {
    copies_keep_dates: true,
    ..Counting::of(&DIALECT, &[])
};

fn record_of(row: &Value) -> Record<'_> {
    let text = |pointer: &str| text_at(row, pointer);
    let is_reply = text("/message/role") == Some("assistant");
    let created = value_at(row, "/message/time/created");
    let typed = text("/typed/text").filter(|_| !is_reply);
    let model = text("/message/modelID").filter(|_| is_reply);
    Record {
        at_ms: created.and_then(Value::as_i64),
        typed: typed.into_iter().collect(),
        work_dir: text("/message/path/cwd"),
        model,
        counted_model: model,
        tokens: is_reply.then(|| tokens_of(row)),
        is_compaction: is_reply && is_summary(row),
        ..Record::default()
    }
}

fn is_summary(row: &Value) -> bool {
    value_at(row, "/message/summary").and_then(Value::as_bool) == Some(true)
}

fn tokens_of(row: &Value) -> TokenCount {
    let count = |name: &str| count_at(row, &format!("/message/tokens/{name}"));
    let (input, visible, reasoning) = (count("input"), count("output"), count("reasoning"));
    let (cached_input, cache_writes) = (count("cache/read"), count("cache/write"));
    let output = visible.map(|visible| visible.saturating_add(reasoning.unwrap_or(0)));
    // As the terminal shows it: of the last reply that has an output.
    let parts = [input, output, cached_input, cache_writes].into_iter();
    let all = parts.flatten().fold(0, u64::saturating_add);
    TokenCount {
        context: (visible > Some(0) && !is_summary(row)).then_some(all),
        input,
        cached_input,
        cache_writes,
        output,
        reasoning,
        cost_nano: nano_at(row, "/message/cost"),
        ..TokenCount::default()
    }
}
