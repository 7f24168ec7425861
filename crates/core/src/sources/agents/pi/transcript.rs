//! The transcript of a session: a first line that names it, then one entry a
//! line. An entry hangs from an earlier one, and all stay.

use std::path::Path;

use jiff::Timestamp;
use serde_json::Value;

use crate::adapter::phase::Phase;
use crate::sources::agents::kit::dialect::{
    Dialect, HEAD_BOUNDS, LAST_BOUNDS, Record, Step, TokenCount, count_at, date_at, find_first,
    find_last, nano_at, text_at, texts_in, value_at,
};
use crate::sources::agents::kit::prompt::Wrapping;
use crate::sources::transcript::{HeadBounds, Line, TailBounds, TranscriptError, TranscriptFile};
use crate::sources::usage::Counting;

/// How much of the beginning is read for the header. There may be blank lines before it, or
/// NUL bytes that a crash has left.
const HEADER_BOUNDS: HeadBounds = HeadBounds {
    bytes_max: 64 * 1024,
    lines_max: 64,
};
/// How far back a prompt is looked for if there is none near the end: a turn may have
/// written much since.
const PROMPT_BOUNDS: TailBounds = TailBounds {
    bytes_max: 16 * 1024 * 1024,
};
/// How soon after its birth a session gets the first prompt if that was in the arguments: 20
/// ms were seen, and 350 on a busy machine. Only used for processes without a terminal, in
/// which no person types.
const PROMPT_AT_BIRTH_MS_MAX: i64 = 2_000;

/// How the entries of pi read. A name may be anywhere.
pub(super) const DIALECT: Dialect = Dialect {
    wrapping: Wrapping {
        elements: &["skill"],
        notices: &[],
    },
    rare_bytes: LAST_BOUNDS.bytes_max,
    ..Dialect::of(record_of)
};

/// A fork copies entries as they were.
pub(super) const COUNTING: Counting = Counting {
    copies_keep_dates: true,
    keys: &[
        "cacheRead",
        "cacheWrite",
        "cost",
        "cwd",
        "id",
        "input",
        "message",
        "model",
        "modelId",
        "output",
        "role",
        "timestamp",
        "total",
        "type",
        "usage",
    ],
    ..Counting::of(&DIALECT, &["\"usage\"", "\"session\"", "\"model_change\""])
};

fn record_of(entry: &Value) -> Record<'_> {
    let dated = Record {
        at_ms: date_at(entry, "/timestamp"),
        ..Record::default()
    };
    // The list of sessions in another process may have written some of them.
    let aside = || Record {
        is_aside: true,
        at_ms: dated.at_ms,
        ..Record::default()
    };
    match text_at(entry, "/type") {
        Some("session") => Record {
            born_at_ms: dated.at_ms,
            work_dir: text_at(entry, "/cwd"),
            ..aside()
        },
        Some("session_info") => Record {
            title: Some(name_in(entry).unwrap_or_default()),
            ..aside()
        },
        Some("label") | None => aside(),
        Some("model_change") => Record {
            model: text_at(entry, "/modelId"),
            ..dated
        },
        Some("message") => message_of(entry, dated),
        Some("compaction") => Record {
            is_compaction: true,
            ..dated
        },
        Some(_) => dated,
    }
}

fn message_of<'a>(entry: &'a Value, dated: Record<'a>) -> Record<'a> {
    let content = value_at(entry, "/message/content");
    let working = Step::Shows(Some(Phase::Working));
    match text_at(entry, "/message/role") {
        Some("user") => Record {
            typed: texts_in(content).collect(),
            step: working,
            ..dated
        },
        Some("toolResult") => Record {
            step: working,
            ..dated
        },
        Some("assistant") => {
            let parts = content.and_then(Value::as_array).into_iter().flatten();
            let calls = parts.filter(|part| text_at(part, "/type") == Some("toolCall"));
            Record {
                reply: texts_in(content).collect(),
                calls: calls.filter_map(|call| text_at(call, "/name")).collect(),
                model: text_at(entry, "/message/model"),
                step: match text_at(entry, "/message/stopReason") {
                    None => Step::Aside,
                    Some("toolUse") => working,
                    Some("stop" | "length" | "aborted") => Step::Shows(Some(Phase::Idle)),
                    // It may try again by itself.
                    Some(_) => Step::Shows(None),
                },
                tokens: value_at(entry, "/message/usage").map(tokens_in),
                request: text_at(entry, "/id"),
                ..dated
            }
        }
        _ => dated,
    }
}

fn tokens_in(usage: &Value) -> TokenCount {
    TokenCount {
        context: count_at(usage, "/totalTokens"),
        input: count_at(usage, "/input"),
        cached_input: count_at(usage, "/cacheRead"),
        cache_writes: count_at(usage, "/cacheWrite"),
        output: count_at(usage, "/output"),
        cost_nano: nano_at(usage, "/cost/total"),
        ..TokenCount::default()
    }
}

/// Facts in the first line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) id: String,
    pub(super) work_dir: Option<String>,
    pub(super) born_at_ms: Option<i64>,
    /// The header line is lost, and a process may have written the file whose directory is
    /// not known: where it works shows nothing.
    pub(super) is_anywhere: bool,
}

/// Facts that a scan needs about a session that a process may serve.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Outline {
    pub(super) last_at_ms: Option<i64>,
    /// The latest possible date of a record, if the end of the file is missing.
    pub(super) perhaps_until_ms: Option<i64>,
    /// Its first prompt came with its birth: it was in the arguments.
    pub(super) is_prompted_at_birth: bool,
}

/// Facts about prompts that a scan needs to find the owner process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Prompts {
    /// The name that a person gave the session.
    pub(super) name: Option<String>,
    /// When the last prompt was typed; `None` also if it lies too far back.
    pub(super) last_typed_at_ms: Option<i64>,
    /// There was exactly one, for all that was read.
    pub(super) may_be_one: bool,
    /// The start of the file was reached: there are no other prompts.
    pub(super) are_all: bool,
}

/// Reads the first record; `None` if it is no session header.
pub(super) fn header(file: &TranscriptFile) -> Result<Option<Header>, TranscriptError> {
    let first = find_first(file, HEADER_BOUNDS, |entry| Some(header_of(entry)))?;
    Ok(first.flatten())
}

/// The header from the file name, for a file whose first line is torn or broken. `None` if the
/// first line is intact, or if nothing follows and no process may have written it.
pub(super) fn header_by_name(
    file: &TranscriptFile,
    work_dir: Option<&Path>,
    may_be_written: bool,
) -> Result<Option<Header>, TranscriptError> {
    let head = file.head(HEADER_BOUNDS)?;
    let is_broken = |line: &Line| line.is_torn || line.json().bad_count > 0;
    let has_more = || head.lines.iter().any(|line| !line.json().values.is_empty());
    if !head.lines.first().is_none_or(is_broken) || !(may_be_written || has_more()) {
        return Ok(None);
    }
    let work_dir = work_dir.and_then(Path::to_str).map(str::to_owned);
    Ok(date_and_id_in(file.path()).map(|(born_at_ms, id)| Header {
        id: id.to_owned(),
        is_anywhere: may_be_written && work_dir.is_none(),
        work_dir,
        born_at_ms: Some(born_at_ms),
    }))
}

/// Returns whether a file name has the form of session files.
pub(super) fn has_session_name(path: &Path) -> bool {
    date_and_id_in(path).is_some()
}

/// The date and the id in the name of a session file: `2026-11-27T20-40-00-800Z_ID.jsonl`.
fn date_and_id_in(path: &Path) -> Option<(i64, &str)> {
    let (date, id) = path.file_stem()?.to_str()?.split_once('_')?;
    let (day, time) = date.split_once('T')?;
    let mut parts = time.splitn(4, '-');
    let (hour, minute) = (parts.next()?, parts.next()?);
    let (second, fraction) = (parts.next()?, parts.next()?);
    let date = format!("{day}T{hour}:{minute}:{second}.{fraction}");
    let at: Timestamp = date.parse().ok()?;
    Some((at.as_millisecond(), id))
}

/// Reads the last date, a missing end, and whether the first prompt came at the birth.
pub(super) fn outline(file: &TranscriptFile, header: &Header) -> Result<Outline, TranscriptError> {
    let prompted = find_first(file, HEAD_BOUNDS, |entry| {
        (role(entry) == Some("user")).then(|| date_at(entry, "/timestamp"))
    })?;
    let took_ms = prompted
        .flatten()
        .zip(header.born_at_ms)
        .map(|(at, born)| at.saturating_sub(born));
    let last_at_ms = DIALECT.last_at_ms(file)?;
    let missing = DIALECT.missing_end(file, last_at_ms.or(header.born_at_ms))?;
    Ok(Outline {
        last_at_ms,
        perhaps_until_ms: missing.map(|end| end.until_ms),
        is_prompted_at_birth: took_ms
            .is_some_and(|took_ms| (0..=PROMPT_AT_BIRTH_MS_MAX).contains(&took_ms)),
    })
}

/// Reads the session's name and the prompts, as far back as the bounds allow.
pub(super) fn prompts(file: &TranscriptFile) -> Result<Prompts, TranscriptError> {
    let near = prompts_within(file, LAST_BOUNDS)?;
    if near.are_all || !near.may_be_one || near.last_typed_at_ms.is_some() {
        return Ok(near);
    }
    let far = prompts_within(file, PROMPT_BOUNDS)?;
    Ok(Prompts {
        name: near.name,
        ..far
    })
}

fn prompts_within(file: &TranscriptFile, bounds: TailBounds) -> Result<Prompts, TranscriptError> {
    let mut name = None;
    let mut last_typed_at_ms = None;
    let mut count = 0_usize;
    let mut are_all = false;
    find_last(file, bounds, |entry| {
        match text_at(entry, "/type") {
            Some("session_info") if name.is_none() => {
                name = Some(name_in(entry).map(str::to_owned));
            }
            Some("session") => are_all = true,
            _ if role(entry) == Some("user") => {
                count += 1;
                last_typed_at_ms = last_typed_at_ms.or_else(|| typed_at_ms(entry));
            }
            _ => {}
        }
        None::<()>
    })?;
    Ok(Prompts {
        name: name.flatten(),
        last_typed_at_ms,
        may_be_one: count == 1 || (count == 0 && !are_all),
        are_all,
    })
}

/// When a prompt was typed. It is recorded later if a turn was still going on.
fn typed_at_ms(record: &Value) -> Option<i64> {
    let typed = value_at(record, "/message/timestamp").and_then(Value::as_i64);
    let typed = typed.filter(|at| *at > 0);
    typed.or_else(|| date_at(record, "/timestamp"))
}

fn header_of(entry: &Value) -> Option<Header> {
    if text_at(entry, "/type")? != "session" {
        return None;
    }
    Some(Header {
        id: entry.get("id")?.as_str()?.to_owned(),
        work_dir: text_at(entry, "/cwd").map(str::to_owned),
        born_at_ms: date_at(entry, "/timestamp"),
        is_anywhere: false,
    })
}

/// The name that a person gave; an empty one takes it back.
fn name_in(entry: &Value) -> Option<&str> {
    let name = text_at(entry, "/name")?.trim();
    (!name.is_empty()).then_some(name)
}

fn role(entry: &Value) -> Option<&str> {
    if text_at(entry, "/type")? != "message" {
        return None;
    }
    text_at(entry, "/message/role")
}

#[cfg(test)]
#[path = "transcript_tests.rs"]
mod tests;
