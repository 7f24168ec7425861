//! What kimi-cli and its successor Kimi Code have in common: a wire file, in which the
//! engine records what it reports to the interface. The two name their records
//! differently.

use std::path::Path;

use serde_json::Value;
use whosup_sidecar::AgentId;

use crate::adapter::Description;
use crate::adapter::phase::Phase;
use crate::machine::problem::Found;
use crate::sources::agents::kit::dialect::{Dialect, TokenCount, count_at};
use crate::sources::agents::kit::prompt::Wrapping;

/// Texts that both agents put in place of a prompt.
pub(crate) const WRAPPING: Wrapping = Wrapping {
    elements: &["kimi-", "notification", "system"],
    notices: &[],
};

/// The description of a session without a transcript: it waits for its first prompt.
pub(crate) fn of_untouched() -> Description {
    Description {
        phase: Some(Phase::Idle),
        ..Description::default()
    }
}

/// Describes a session from the wire file at `path`.
pub(crate) fn describe(dialect: &Dialect, agent: &AgentId, path: &Path) -> Found<Description> {
    let described = dialect.describe(agent, path);
    described.unwrap_or_else(|| Found::clean(of_untouched()))
}

/// The tokens of a request, by the names of their counts.
pub(crate) fn tokens_in(usage: &Value, names: [&str; 4]) -> TokenCount {
    let [input, cached_input, cache_writes, output] = names.map(|name| count_at(usage, name));
    TokenCount {
        input,
        cached_input,
        cache_writes,
        output,
        ..TokenCount::default()
    }
}
