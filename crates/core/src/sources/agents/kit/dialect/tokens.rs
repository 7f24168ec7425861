//! The tokens in a session's context and of its last turn, from its last record backwards.

use std::collections::HashSet;

use super::{Record, Step};
use crate::adapter::{Context, Description, TurnTokens};

/// The context windows of models whose agent does not record them, by the prefix of the
/// model's name; the longest prefix that matches counts. Every use is marked as assumed.
///
/// Sources: Claude Code 2.1.197 reports 200000 for every model without the suffix `[1m]`
/// (`modelUsage` of `claude -p`, 2026-11); the others are `max_input_tokens` in
/// `model_prices_and_context_window` of litellm 1.110.2.
const WINDOWS: &[(&str, u64)] = &[
    ("claude-", 200_000),
    ("deepseek-", 131_072),
    ("gemini-", 1_048_576),
    ("glm-4", 200_000),
    ("gpt-4.1", 1_047_576),
    ("gpt-5", 272_000),
    ("kimi-k2", 262_144),
    ("mistral-vibe-cli", 262_144),
    ("qwen3-coder", 997_952),
];
/// The window of Claude's models with the suffix `[1m]`, which the transcript lacks.
const LONG_CLAUDE_WINDOW: u64 = 1_000_000;

/// What records show of tokens, from the last one backwards.
#[derive(Default)]
pub(super) struct Tokens {
    context: Option<u64>,
    window: Option<u64>,
    /// The context was replaced by a summary, and nothing counted it since.
    is_compacted: bool,
    /// The output of the turn, as far as it was read.
    output: Option<u64>,
    /// The requests that were counted: a later snapshot of one has all of it.
    requests: HashSet<String>,
    /// When the turn began, once that was read.
    begun: Option<Option<i64>>,
}

impl Tokens {
    pub(super) fn add_backwards(&mut self, record: &Record<'_>, is_prompt: bool) {
        let counted = record.tokens.unwrap_or_default();
        if !self.is_compacted {
            self.context = self.context.or(counted.context);
        }
        self.window = self.window.or(counted.window);
        self.is_compacted |= record.is_compaction && self.context.is_none();
        if self.begun.is_some() {
            return;
        }
        let is_new = |request: &str| self.requests.insert(request.to_owned());
        if let Some(output) = counted.output
            && record.request.is_none_or(is_new)
        {
            self.output = Some(self.output.unwrap_or(0).saturating_add(output));
        }
        // A prompt that is added during a turn begins no new turn.
        if is_prompt && record.step != Step::Within {
            self.begun = Some(record.at_ms);
        }
    }

    /// Older records cannot change the context.
    pub(super) const fn is_context_known(&self) -> bool {
        self.is_compacted || self.context.is_some()
    }

    /// Older records cannot change the turn.
    pub(super) const fn is_turn_known(&self) -> bool {
        self.begun.is_some()
    }

    pub(super) fn finish(self, found: &mut Description) {
        found.context = self.context.map(|tokens| {
            let model = found.model.as_deref();
            let assumed = || assumed_window(model?, tokens);
            Context {
                tokens,
                window: self.window.or_else(assumed),
                is_window_assumed: self.window.is_none(),
            }
        });
        let output_tokens = self.output;
        let turn = self.begun.map(|started_at_ms| TurnTokens {
            started_at_ms,
            output_tokens,
        });
        found.turn = turn.filter(|turn| turn.started_at_ms.is_some() || output_tokens.is_some());
    }
}

/// The window of a model in the table; `None` if the model is missing, or if the table is
/// wrong about it because more tokens were used.
fn assumed_window(model: &str, tokens: u64) -> Option<u64> {
    let name = model.rsplit('/').next().unwrap_or(model);
    let fitting = WINDOWS.iter().filter(|(start, _)| name.starts_with(start));
    let (start, window) = fitting.max_by_key(|(start, _)| start.len())?;
    let is_long = *start == "claude-" && (tokens > *window || name.ends_with("[1m]"));
    let window = if is_long { LONG_CLAUDE_WINDOW } else { *window };
    (tokens <= window).then_some(window)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_assumed_only_where_the_tokens_fit() {
        for (model, tokens, right) in [
            ("claude-opus-4-8", 1_000, Some(200_000)),
            ("claude-opus-4-8", 200_001, Some(1_000_000)),
            ("claude-opus-4-8[1m]", 5, Some(1_000_000)),
            ("claude-opus-4-8", 1_000_001, None),
            ("moonshot/kimi-k2.5", 5, Some(262_144)),
            ("gpt-5-codex", 300_000, None),
            ("mock", 5, None),
            ("", 5, None),
        ] {
            assert_eq!(assumed_window(model, tokens), right, "{model} {tokens}");
        }
    }
}
