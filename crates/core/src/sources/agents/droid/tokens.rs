//! What the settings beside a transcript count.
//!
//! | Read in the executable of 0.225.2, 2026-11, and not seen written | |
//! |---|---|
//! | `tokenUsage` | the sums of the session, without those of sub-agents (`inclusiveTokenUsage`): `inputTokens` without what a cache gave (`cacheReadTokens`) or took (`cacheCreationTokens`), `outputTokens` with `thinkingTokens`; no date |
//! | `lastCallTokenUsage` | the last request: its input, cached input and output are the context |
//! | a fork | begins at nothing |
//! | a session that goes on after a summary | has the transcript begin with `compaction_state`, names the session before as `parent`, and begins at the sums of that one |

use std::path::Path;

use serde_json::{Value, json};
use whosup_sidecar::SessionId;

use super::AGENT;
use super::transcript::{SETTINGS_BYTES_MAX, settings_path};
use crate::adapter::Context;
use crate::machine::problem::Problem;
use crate::sources::agents::kit::dialect::{
    Dialect, HEAD_BOUNDS, Record, TokenCount, count_at, find_first, text_at,
};
use crate::sources::agents::kit::document::read_document;
use crate::sources::transcript::TranscriptFile;
use crate::sources::usage::Counting;

/// How the settings read, and those of the session before (`{"before": …}`).
const DIALECT: Dialect = Dialect {
    has_turns: false,
    ..Dialect::of(record_of)
};

pub(super) static COUNTING: Counting = Counting::of(&DIALECT, &[]);

fn record_of(settings: &Value) -> Record<'_> {
    if let Some(before) = settings.get("before") {
        return Record {
            tokens: Some(TokenCount::default()),
            total: Some(tokens_of(before, "/tokenUsage")),
            ..Record::default()
        };
    }
    let total = tokens_of(settings, "/tokenUsage");
    let context = context_in(settings);
    let model = text_at(settings, "/model");
    Record {
        model,
        counted_model: model,
        tokens: Some(TokenCount { context, ..total }),
        total: Some(total),
        ..Record::default()
    }
}

fn tokens_of(settings: &Value, place: &str) -> TokenCount {
    let count = |name: &str| count_at(settings, &format!("{place}/{name}"));
    TokenCount {
        input: count("inputTokens"),
        cached_input: count("cacheReadTokens"),
        cache_writes: count("cacheCreationTokens"),
        output: count("outputTokens"),
        reasoning: count("thinkingTokens"),
        ..TokenCount::default()
    }
}

fn context_in(settings: &Value) -> Option<u64> {
    let last = tokens_of(settings, "/lastCallTokenUsage");
    let others = [last.cached_input, last.output].into_iter().flatten();
    let all = others.fold(last.input?, u64::saturating_add);
    (all > 0).then_some(all)
}

/// What the settings beside a transcript count: theirs, and before them those of the session
/// that this one goes on from, as far as these are there.
///
/// # Errors
///
/// Why they can't be read.
pub(super) fn counted(transcript: &Path) -> Result<Vec<Value>, Problem> {
    let path = settings_path(transcript);
    let failed = |why| Problem::at(&AGENT, &path, why);
    let settings = read_document(&path, SETTINGS_BYTES_MAX).map_err(failed)?;
    let Some(settings) = settings.filter(|settings| settings.get("tokenUsage").is_some()) else {
        return Ok(Vec::new());
    };
    let mut counted = Vec::new();
    if let Some(parent) = goes_on_from(transcript) {
        let before = settings_path(&transcript.with_file_name(parent + ".jsonl"));
        let before = read_document(&before, SETTINGS_BYTES_MAX).map_err(failed)?;
        counted.extend(before.map(|before| json!({ "before": before })));
    }
    counted.push(settings);
    Ok(counted)
}

/// The session that was summarized for this one to go on.
fn goes_on_from(transcript: &Path) -> Option<String> {
    let file = TranscriptFile::open(transcript).ok()?;
    let mut parent = None;
    let first = find_first(&file, HEAD_BOUNDS, |record| {
        match text_at(record, "/type")? {
            "session_start" => {
                parent = text_at(record, "/parent").map(str::to_owned);
                None
            }
            kind => Some(kind == "compaction_state"),
        }
    });
    let parent = parent.filter(|_| matches!(first, Ok(Some(true))))?;
    // It is part of a path.
    SessionId::parse(&parent).ok()?;
    Some(parent)
}

/// How full the context is, by the settings.
pub(super) fn context(settings: &Value) -> Option<Context> {
    DIALECT.tail_of(std::slice::from_ref(settings)).context
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests make their own files")]
mod tests {
    use std::fs;

    use super::*;

    fn settings(output: u64) -> String {
        let usage = json!({ "inputTokens": 10, "cacheReadTokens": 100, "cacheCreationTokens": 5,
            "outputTokens": output, "thinkingTokens": 2, "factoryCredits": 9 });
        let last = json!({ "inputTokens": 3, "cacheReadTokens": 40, "outputTokens": 7 });
        json!({ "model": "m-1", "tokenUsage": usage, "lastCallTokenUsage": last }).to_string()
    }

    #[test]
    fn what_went_on_after_a_summary_counts_from_the_sums_of_the_session_before() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        let start = r#"{"type":"session_start","id":"s-2","parent":"s-1"}"#;
        let message = r#"{"type":"message","message":{"role":"user","content":"x"}}"#;
        let summary = r#"{"type":"compaction_state","id":"c"}"#;
        fs::write(path("s-2.settings.json"), settings(30)).unwrap();
        let output = |second: &str| {
            fs::write(path("s-2.jsonl"), format!("{start}\n{second}\n{message}\n")).unwrap();
            let records = counted(&path("s-2.jsonl")).unwrap();
            COUNTING.count_records(&records, None).total().output
        };
        // Nothing is there of the session before.
        assert_eq!(output(summary), 30);
        fs::write(path("s-1.settings.json"), settings(20)).unwrap();
        assert_eq!(output(summary), 10);
        // A fork.
        assert_eq!(output(message), 30);
    }

    #[test]
    fn settings_count_the_session_and_its_context() {
        let settings: Value = serde_json::from_str(&settings(30)).unwrap();
        assert_eq!(context(&settings).map(|context| context.tokens), Some(50));
        let total = COUNTING.count_records(&[settings], None).total();
        assert_eq!((total.input, total.cached_input), (10, 100));
        assert_eq!((total.cache_writes, total.output), (5, 30));
        assert_eq!(context(&json!({ "model": "m" })), None);
    }
}
