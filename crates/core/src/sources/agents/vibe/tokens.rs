//! What the state of a conversation counts.
//!
//! | Seen in mistral-vibe 3.0.2, 2026-11 | |
//! |---|---|
//! | `session.tokenUsage` | the sums of the session: `inputTokens` with `cachedInputTokens`; they go on when it is resumed, and have no date |
//! | `session.contextUsage` | the last request: its input and output are the context that the terminal shows; zeros after a summary |
//! | `latestTurn.startedAt` | when the turn began |
//! | a fork | may begin at the sums of the session it was made of, which was not seen: it counts nothing |
//!
//! The requests themselves are in the journal only until the next generation. Releases before
//! 3 are not counted.

use serde_json::{Value, json};

use crate::adapter::{Context, TurnTokens};
use crate::sources::agents::kit::dialect::{Dialect, Record, TokenCount, count_at, text_at};
use crate::sources::usage::Counting;

/// How a state reads.
const DIALECT: Dialect = Dialect {
    has_turns: false,
    ..Dialect::of(record_of)
};

pub(super) static COUNTING: Counting = Counting::of(&DIALECT, &[]);

/// What a state counts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Counts(Value);

impl Counts {
    pub(super) fn of(envelope: &Value) -> Self {
        let field = |place: &str| envelope.pointer(place).unwrap_or(&Value::Null);
        Self(json!({
            "total": field("/session/tokenUsage"),
            "last": field("/session/contextUsage"),
            "turn": field("/latestTurn/startedAt"),
        }))
    }

    /// The record that counts, of a session that used this model; `None` if there is none.
    pub(super) fn record(mut self, model: Option<String>) -> Option<Value> {
        self.0.get("total").filter(|total| total.is_object())?;
        self.0["model"] = model.into();
        Some(self.0)
    }

    pub(super) fn context(&self, model: Option<&str>) -> Option<Context> {
        let record = self.clone().record(model.map(str::to_owned))?;
        DIALECT.tail_of(&[record]).context
    }

    pub(super) fn turn(&self) -> Option<TurnTokens> {
        let started_at_ms = Some(self.0.get("turn")?.as_i64()?);
        Some(TurnTokens {
            started_at_ms,
            output_tokens: None,
        })
    }
}

fn record_of(record: &Value) -> Record<'_> {
    let count = |name: &str| count_at(record, name);
    let (input, cached_input) = (
        count("/total/inputTokens"),
        count("/total/cachedInputTokens"),
    );
    let context = count("/last/inputTokens").zip(count("/last/outputTokens"));
    let context = context.map(|(input, output)| input.saturating_add(output));
    let model = text_at(record, "/model");
    Record {
        model,
        counted_model: model,
        tokens: Some(TokenCount {
            context: context.filter(|tokens| *tokens > 0),
            input: input.map(|input| input.saturating_sub(cached_input.unwrap_or(0))),
            cached_input,
            output: count("/total/outputTokens"),
            ..TokenCount::default()
        }),
        ..Record::default()
    }
}
