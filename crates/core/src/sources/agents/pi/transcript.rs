//! The transcript of a session: a first line that names it, then one entry a
//! line. An entry hangs from an earlier one, and all stay.

use std::ffi::OsStr;
use std::path::Path;

use jiff::Timestamp;
use serde_json::Value;

use crate::adapter::phase::Phase;
use crate::adapter::{Description, Message, MessageRole};
use crate::sources::agents::kit::bad_lines::BadLines;
use crate::sources::agents::kit::one_per_session::Said;
use crate::sources::agents::kit::prompt::{FirstWords, Wrapping};
use crate::sources::agents::kit::title::one_line;
use crate::sources::transcript::{
    HeadBounds, Line, MissingEnd, TailBounds, TranscriptError, TranscriptFile,
};

/// How much of the beginning is read for the first line.
const HEADER_BOUNDS: HeadBounds = HeadBounds {
    bytes_max: 64 * 1024,
    lines_max: 1,
};
/// How much of the beginning is read for the first prompt.
const HEAD_BOUNDS: HeadBounds = HeadBounds {
    bytes_max: 1024 * 1024,
    lines_max: 32,
};
/// How far back from the end is read for what was last.
const LAST_BOUNDS: TailBounds = TailBounds {
    bytes_max: 1024 * 1024,
};
/// How far back a prompt is looked for where none is so near to the end: a turn may
/// have written much since.
const PROMPT_BOUNDS: TailBounds = TailBounds {
    bytes_max: 16 * 1024 * 1024,
};
/// Entries that the list of sessions in another process may have written.
const ASIDES: &[&str] = &["label", "session", "session_info"];
/// How soon after its birth a session has its first prompt when that was in the arguments:
/// 20 ms where this was seen, and 350 on a busy machine. It is asked of processes without a
/// terminal alone, in which nobody types.
const PROMPT_AT_BIRTH_MS_MAX: i64 = 2_000;

/// What pi itself puts where a prompt stands.
const WRAPPING: Wrapping = Wrapping {
    elements: &["skill"],
    notices: &[],
};

/// What the first line says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) id: String,
    pub(super) work_dir: Option<String>,
    pub(super) born_at_ms: Option<i64>,
    /// It is lost, and this is what the file's name tells.
    pub(super) is_lost: bool,
}

/// What a scan needs to know of a session that somebody may serve.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Outline {
    pub(super) last_at_ms: Option<i64>,
    /// What it tells of may be missing at its end.
    pub(super) missing_end: Option<MissingEnd>,
    /// Its first prompt came with its birth: it was in the arguments.
    pub(super) is_prompted_at_birth: bool,
}

/// What a scan needs to know of its prompts, to tell whose it may be.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Prompts {
    /// The name that a person gave the session.
    pub(super) name: Option<String>,
    /// When the last of them was typed; `None` as well if it lies too far back.
    pub(super) last_typed_at_ms: Option<i64>,
    /// There was exactly one, for all that was read.
    pub(super) may_be_one: bool,
    /// The beginning was reached, so that there is no other.
    pub(super) are_all: bool,
}

/// Reads the first line; `None` if it is not that of a session.
pub(super) fn header(file: &TranscriptFile) -> Result<Option<Header>, TranscriptError> {
    let head = file.head(HEADER_BOUNDS)?;
    let first = head.lines.iter().flat_map(|line| line.json().values).next();
    Ok(first.and_then(|record| header_of(&record)))
}

/// The header of a file that has lost it, whose first line is torn or broken, by its
/// name: `2026-11-27T20-40-00-800Z_ID.jsonl`. `None` if another line is there.
pub(super) fn header_by_name(
    file: &TranscriptFile,
    work_dir: Option<&Path>,
) -> Result<Option<Header>, TranscriptError> {
    let head = file.head(HEADER_BOUNDS)?;
    let is_broken = |line: &Line| line.is_torn || line.json().bad_count > 0;
    if !head.lines.first().is_none_or(is_broken) {
        return Ok(None);
    }
    let stem = file.path().file_stem().and_then(OsStr::to_str);
    let told = stem.and_then(|stem| stem.split_once('_'));
    Ok(told.and_then(|(date, id)| {
        Some(Header {
            id: id.to_owned(),
            work_dir: work_dir.and_then(Path::to_str).map(str::to_owned),
            born_at_ms: Some(date_in_name(date)?),
            is_lost: true,
        })
    }))
}

/// Reads what was said in a transcript.
pub(super) fn said(path: &Path) -> Said {
    let read = || -> Result<Said, TranscriptError> {
        for line in TranscriptFile::open(path)?.backwards(LAST_BOUNDS)? {
            let records = line?.json().values;
            let mut messages = records.iter().rev().filter(|its| role(its).is_some());
            if let Some(last) = messages.next() {
                return Ok(Said {
                    has_words: true,
                    last_at_ms: at_ms(last),
                });
            }
        }
        Ok(Said::default())
    };
    read().unwrap_or(Said::UNREADABLE)
}

/// Tells whether a file is called as sessions are.
pub(super) fn is_named_like_one(path: &Path) -> bool {
    let stem = path.file_stem().and_then(OsStr::to_str);
    let told = stem.and_then(|stem| stem.split_once('_'));
    told.is_some_and(|(date, _)| date_in_name(date).is_some())
}

/// `2026-11-27T20-40-00-800Z`.
fn date_in_name(date: &str) -> Option<i64> {
    let (day, time) = date.split_once('T')?;
    let mut parts = time.splitn(4, '-');
    let (hour, minute) = (parts.next()?, parts.next()?);
    let (second, fraction) = (parts.next()?, parts.next()?);
    let at: Timestamp = format!("{day}T{hour}:{minute}:{second}.{fraction}")
        .parse()
        .ok()?;
    Some(at.as_millisecond())
}

/// Reads how it began and when it went on.
pub(super) fn outline(file: &TranscriptFile, header: &Header) -> Result<Outline, TranscriptError> {
    let head = file.head(HEAD_BOUNDS)?;
    let mut records = head.lines.iter().flat_map(|line| line.json().values);
    let prompted = records
        .find(|record| role(record) == Some("user"))
        .and_then(|record| at_ms(&record));
    let took_ms = prompted
        .zip(header.born_at_ms)
        .map(|(at, born)| at.saturating_sub(born));
    let mut last_at_ms = None;
    for line in file.backwards(LAST_BOUNDS)? {
        let records = line?.json().values;
        let mut its = records.iter().rev().filter(|record| !is_aside(record));
        if let Some(at) = its.find_map(at_ms) {
            last_at_ms = Some(at);
            break;
        }
    }
    Ok(Outline {
        missing_end: file.missing_end(last_at_ms.or(header.born_at_ms), at_ms)?,
        last_at_ms,
        is_prompted_at_birth: took_ms
            .is_some_and(|took_ms| (0..=PROMPT_AT_BIRTH_MS_MAX).contains(&took_ms)),
    })
}

/// Reads its name and its prompts, as far back as is read.
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
    for line in file.backwards(bounds)? {
        for record in line?.json().values.iter().rev() {
            match kind(record) {
                Some("session_info") => name = name.or_else(|| Some(name_in(record))),
                Some("session") => are_all = true,
                _ if role(record) == Some("user") => {
                    count += 1;
                    last_typed_at_ms = last_typed_at_ms.or_else(|| typed_at_ms(record));
                }
                _ => {}
            }
        }
    }
    Ok(Prompts {
        name: name.flatten(),
        last_typed_at_ms,
        may_be_one: count == 1 || (count == 0 && !are_all),
        are_all,
    })
}

/// When a prompt was typed. It is recorded later if a turn was still going on.
fn typed_at_ms(record: &Value) -> Option<i64> {
    let typed = record.pointer("/message/timestamp").and_then(Value::as_i64);
    typed.filter(|at| *at > 0).or_else(|| at_ms(record))
}

/// Reads head and tail.
pub(super) fn read(
    file: &TranscriptFile,
) -> Result<(Description, Option<String>), TranscriptError> {
    let mut bad_lines = BadLines::default();
    let mut found = Description::default();
    let mut name = None;
    let mut last = None;
    for line in file.backwards(LAST_BOUNDS)? {
        for record in bad_lines.values(&line?).iter().rev() {
            if !is_aside(record) {
                found.last_activity_at_ms = found.last_activity_at_ms.or_else(|| at_ms(record));
            }
            if kind(record) == Some("session_info") {
                name = name.or_else(|| Some(name_in(record)));
            }
            found.model = found.model.take().or_else(|| model_of(record));
            if last.is_none() {
                last = phase_after(record);
                found.phase_at_ms = last.and_then(|_| at_ms(record));
            }
        }
    }
    found.phase = last.flatten();
    let head = file.head(HEAD_BOUNDS)?;
    let mut words = FirstWords::default();
    let mut first_model = None;
    for record in head.lines.iter().flat_map(|line| bad_lines.values(line)) {
        if let Some(header) = header_of(&record) {
            found.work_dir = found.work_dir.or(header.work_dir.map(Into::into));
            found.started_at_ms = found.started_at_ms.or(header.born_at_ms);
        }
        first_model = model_of(&record).or(first_model);
        if role(&record) == Some("user") {
            words.add(texts_of(&record), &WRAPPING);
        }
    }
    found.title = words.title();
    found.model = found.model.or(first_model);
    found.is_title_a_prompt = found.title.is_some();
    if let Some(name) = name.flatten().and_then(|name| one_line(&name)) {
        found.title = Some(name);
        found.is_title_a_prompt = false;
    }
    Ok((found, bad_lines.message()))
}

/// The messages that a record has.
pub(super) fn messages_of(record: &Value) -> Vec<Message> {
    let at_ms = at_ms(record);
    let message = |role, text: String| Message { role, at_ms, text };
    let mut found = Vec::new();
    match role(record) {
        Some("user") => {
            let typed = WRAPPING.typed_in(texts_of(record));
            found.extend(typed.map(|text| message(MessageRole::User, text)));
        }
        Some("assistant") => {
            found.extend(text_of(record).map(|text| message(MessageRole::Assistant, text)));
            let calls = parts(record)
                .iter()
                .filter(|part| is_part(part, "toolCall"));
            let names = calls.filter_map(|call| call.get("name")?.as_str());
            found.extend(names.map(|name| message(MessageRole::Tool, name.to_owned())));
        }
        _ => {}
    }
    found.retain(|message| !message.text.trim().is_empty());
    found
}

/// What the session does when this message was its last one; `None` if the
/// entry says nothing of that.
fn phase_after(record: &Value) -> Option<Option<Phase>> {
    match role(record)? {
        "user" | "toolResult" => Some(Some(Phase::Working)),
        "assistant" => Some(match record.pointer("/message/stopReason")?.as_str()? {
            "toolUse" => Some(Phase::Working),
            "stop" | "length" | "aborted" => Some(Phase::Idle),
            // It may try again by itself.
            _ => None,
        }),
        _ => None,
    }
}

fn model_of(record: &Value) -> Option<String> {
    let model = match kind(record)? {
        "model_change" => record.get("modelId")?,
        "message" if role(record) == Some("assistant") => record.pointer("/message/model")?,
        _ => return None,
    };
    model.as_str().map(str::to_owned)
}

fn header_of(record: &Value) -> Option<Header> {
    if kind(record)? != "session" {
        return None;
    }
    let cwd = record.get("cwd").and_then(Value::as_str);
    Some(Header {
        id: record.get("id")?.as_str()?.to_owned(),
        work_dir: cwd.filter(|cwd| !cwd.is_empty()).map(str::to_owned),
        born_at_ms: at_ms(record),
        is_lost: false,
    })
}

/// The name that a person gave; an empty one takes it back.
fn name_in(record: &Value) -> Option<String> {
    let name = record.get("name")?.as_str()?.trim();
    (!name.is_empty()).then(|| name.to_owned())
}

fn kind(record: &Value) -> Option<&str> {
    record.get("type")?.as_str()
}

fn role(record: &Value) -> Option<&str> {
    if kind(record)? != "message" {
        return None;
    }
    record.pointer("/message/role")?.as_str()
}

fn is_aside(record: &Value) -> bool {
    kind(record).is_none_or(|kind| ASIDES.contains(&kind))
}

fn at_ms(record: &Value) -> Option<i64> {
    let at: Timestamp = record.get("timestamp")?.as_str()?.parse().ok()?;
    Some(at.as_millisecond())
}

fn parts(record: &Value) -> &[Value] {
    let content = record.pointer("/message/content");
    content
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default()
}

fn is_part(part: &Value, kind: &str) -> bool {
    part.get("type").and_then(Value::as_str) == Some(kind)
}

/// The text of a message: a string, or parts some of which are text.
fn text_of(record: &Value) -> Option<String> {
    let texts: Vec<&str> = texts_of(record).collect();
    (!texts.is_empty()).then(|| texts.join("\n"))
}

fn texts_of(record: &Value) -> impl Iterator<Item = &str> {
    let whole = record.pointer("/message/content").and_then(Value::as_str);
    let texts = parts(record).iter().filter(|part| is_part(part, "text"));
    let texts = texts.filter_map(|part| part.get("text")?.as_str());
    whole.into_iter().chain(texts)
}

#[cfg(test)]
#[path = "transcript_tests.rs"]
mod tests;
