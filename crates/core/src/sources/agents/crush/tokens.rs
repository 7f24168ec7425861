//! What a session counts.
//!
//! | Read in the sources of 2026-08 | |
//! |---|---|
//! | `sessions.cost` | the sum of all requests, those of sub-agents added when these end; 0 where the price is flat or not known |
//! | `sessions.prompt_tokens`, `completion_tokens` | of the last request alone, as Crush compares them with the window: the context, and no sum. After a summary 0 and the length of that |
//! | the tokens that were used in all | are recorded nowhere |

use serde_json::Value;

use crate::sources::agents::kit::dialect::{Dialect, Record, TokenCount, count_at, nano_at};
use crate::sources::usage::Counting;

/// The row of a session that counts, without the cost of the sub-agents, which are
/// sessions of their own.
pub(super) const ROW: &str = "SELECT prompt_tokens, completion_tokens, cost - coalesce(
    (SELECT sum(cost) FROM sessions AS below WHERE below.parent_session_id = sessions.id), 0
    ) AS cost FROM sessions WHERE id = ?1";

/// How that row reads.
pub(super) const DIALECT: Dialect = Dialect::of(record_of);

pub(super) static COUNTING: Counting = Counting::of(&DIALECT, &[]);

fn record_of(row: &Value) -> Record<'_> {
    let count = |name: &str| count_at(row, name);
    let context = count("/prompt_tokens").zip(count("/completion_tokens"));
    let context = context.map(|(prompt, completion)| prompt.saturating_add(completion));
    Record {
        tokens: Some(TokenCount {
            context: context.filter(|tokens| *tokens > 0),
            cost_nano: nano_at(row, "/cost"),
            ..TokenCount::default()
        }),
        ..Record::default()
    }
}
