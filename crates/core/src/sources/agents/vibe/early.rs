//! Sessions of releases before 3. Only such a release resumes them.
//!
//! | Release | Where | What |
//! |---|---|---|
//! | 1.x | `session_DATE_TIME_ID8.json` | `{"metadata": {…}, "messages": […]}`, written anew after each turn |
//! | 2.x | `session_DATE_TIME_ID8/meta.json` | what `metadata` was, and a title |
//! | 2.x | `session_DATE_TIME_ID8/messages.jsonl` | one message a line |
//! | 2.x | `session_DATE_TIME_ID8/agents/NAME_DATE_TIME_ID8/` | the same of a sub-agent |
//!
//! The word before the date may be configured. Messages have no date; those of the session
//! are local times without a zone until 2.3. No file identifies a process. Taken from the
//! sources of mistral-vibe 1.0.0 to 2.18.4, 2026-11.

use std::path::{Path, PathBuf};

use serde_json::Value;
use whosup_sidecar::file::{Links, read_regular};
use whosup_sidecar::{StrictObject, parse_json};

use super::AGENT;
use super::store::Meta;
use crate::adapter::{Description, Message, MessageRole};
use crate::machine::problem::Problem;
use crate::sources::agents::kit::dialect::{message, text_at, value_at, values_at};
use crate::sources::agents::kit::folder::list_or_report;
use crate::sources::agents::kit::one_per_session::Said;
use crate::sources::agents::kit::prompt::{FirstWords, Wrapping};
use crate::sources::agents::kit::reading::found_or_problem;
use crate::sources::transcript::{HeadBounds, TailBounds, TranscriptFile};

/// How many names in one directory are looked at.
const NAMES_MAX: usize = 100_000;
/// How long a file may be that is read as a whole, in bytes.
const FILE_BYTES_MAX: u64 = 16 << 20;
/// How much of the beginning is read for the first prompt.
const HEAD_BOUNDS: HeadBounds = HeadBounds {
    bytes_max: 1 << 20,
    lines_max: 64,
};
/// How far back messages are looked for.
const MESSAGES_BOUNDS: TailBounds = TailBounds {
    bytes_max: 16 << 20,
};
/// The messages of a session of 2.x.
const MESSAGES: &str = "messages.jsonl";
/// The title of a session of 2.x without a prompt.
const NO_TITLE: &str = "Untitled session";

/// A session of such a release, as named by its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Named {
    /// The beginning of its id.
    pub(super) id_begins: String,
    /// The file that its messages are in.
    pub(super) transcript: PathBuf,
}

impl Named {
    /// Where its sub-agents are.
    pub(super) fn agents(&self) -> PathBuf {
        self.transcript.with_file_name("agents")
    }

    /// Returns whether the session may have sub-agents.
    pub(super) fn is_directory(&self) -> bool {
        self.transcript.ends_with(MESSAGES)
    }
}

/// The sessions of such releases in a directory, the newest name first.
pub(super) fn named_in(directory: &Path, report: impl FnMut(String)) -> Vec<Named> {
    let names = list_or_report(directory, NAMES_MAX, report);
    let named = |name: &str| {
        let stem = name.strip_suffix(".json");
        let path = directory.join(name);
        Some(Named {
            id_begins: id_begins(stem.unwrap_or(name))?.to_owned(),
            transcript: match stem {
                Some(_) => path,
                None => path.join(MESSAGES),
            },
        })
    };
    let mut found: Vec<Named> = names.texts().filter_map(named).collect();
    found.reverse();
    found
}

/// The beginning of the id in `PREFIX_YYYYMMDD_HHMMSS_ID8`.
fn id_begins(stem: &str) -> Option<&str> {
    let (rest, id) = stem.rsplit_once('_')?;
    let (rest, time) = rest.rsplit_once('_')?;
    let (_, date) = rest.rsplit_once('_')?;
    let is_number = |text: &str, digits: usize| {
        text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit())
    };
    let is_id = id.len() == 8 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    (is_id && is_number(time, 6) && is_number(date, 8)).then_some(id)
}

/// Returns whether a transcript comes from such a release. The current release has a
/// directory named by the session's id instead.
pub(super) fn is_early(transcript: &Path) -> bool {
    is_file_of_1(transcript) || transcript.ends_with(MESSAGES)
}

fn is_file_of_1(transcript: &Path) -> bool {
    transcript
        .extension()
        .is_some_and(|ending| ending == "json")
}

/// Reads the facts of a session except for the messages.
///
/// # Errors
///
/// The file, and why it can't be read.
pub(super) fn read_meta(transcript: &Path) -> Result<Meta, Problem> {
    let is_of_1 = is_file_of_1(transcript);
    let path = match is_of_1 {
        true => transcript.to_owned(),
        false => transcript.with_file_name("meta.json"),
    };
    let read = || -> Result<Meta, String> {
        let file =
            read_regular(&path, FILE_BYTES_MAX, Links::Follow).map_err(|error| error.reason())?;
        let whole = StrictObject::parse(&file.bytes).map_err(|error| error.to_string())?;
        let nested = is_of_1.then(|| whole.opt_object("metadata")).transpose();
        let nested = nested.map_err(|error| error.to_string())?.flatten();
        let mut meta = Meta::of(nested.as_ref().unwrap_or(&whole), file.facts.modified_ms)?;
        meta.title = meta.title.filter(|title| title != NO_TITLE);
        Ok(meta)
    };
    read().map_err(|message| Problem::at(&AGENT, &path, message))
}

/// Describes a session and reports what cannot be read.
pub(super) fn describe(transcript: &Path, problems: &mut Vec<Problem>) -> Description {
    let meta = found_or_problem(read_meta(transcript)).take(problems);
    let prompt = found_or_problem(first_prompt(transcript)).take(problems);
    // A session without a name shows the first words of its prompt as the title.
    let is_prompt = match (&meta.title, &prompt) {
        (Some(title), Some(prompt)) => prompt.starts_with(title.trim_end_matches('…')),
        (title, _) => title.is_none(),
    };
    let described = meta.into_description();
    Description {
        is_title_a_prompt: is_prompt && prompt.is_some(),
        title: prompt.filter(|_| is_prompt).or(described.title),
        transcript: Some(transcript.to_owned()),
        ..described
    }
}

fn first_prompt(transcript: &Path) -> Result<Option<String>, Problem> {
    let read = || -> Result<Vec<Value>, String> {
        if is_file_of_1(transcript) {
            return messages_of_1(transcript);
        }
        let head = TranscriptFile::open(transcript).and_then(|file| file.head(HEAD_BOUNDS));
        let lines = head.map_err(|error| error.reason())?.lines;
        Ok(lines.iter().flat_map(|line| line.json().values).collect())
    };
    let records = read().map_err(|message| Problem::at(&AGENT, transcript, message))?;
    let mut words = FirstWords::default();
    for message in records.iter().flat_map(messages_in) {
        if message.role == MessageRole::User {
            words.add([message.text.as_str()], &Wrapping::NONE);
        }
    }
    Ok(words.title())
}

/// Returns whether a session has messages. Dates are left out: a zone may be missing, and
/// the current form of a session is newer than its early form.
pub(super) fn said(transcript: &Path) -> Said {
    messages(transcript, 1).map_or(Said::UNREADABLE, |last| Said {
        has_words: !last.is_empty(),
        last_at_ms: None,
    })
}

/// Reads the last messages of a session, oldest first.
///
/// # Errors
///
/// The file, and why it can't be read.
pub(super) fn messages(transcript: &Path, messages_max: usize) -> Result<Vec<Message>, Problem> {
    let mut newest_first = Vec::new();
    let mut add = |record: &Value| {
        newest_first.extend(messages_in(record).into_iter().rev());
        newest_first.len() >= messages_max
    };
    let mut read = || -> Result<(), String> {
        if is_file_of_1(transcript) {
            messages_of_1(transcript)?.iter().rev().any(&mut add);
            return Ok(());
        }
        let file = TranscriptFile::open(transcript).map_err(|error| error.reason())?;
        let lines = file.backwards(MESSAGES_BOUNDS);
        for line in lines.map_err(|error| error.reason())? {
            let line = line.map_err(|error| error.reason())?;
            if line.json().values.iter().rev().any(&mut add) {
                break;
            }
        }
        Ok(())
    };
    read().map_err(|message| Problem::at(&AGENT, transcript, message))?;
    newest_first.truncate(messages_max);
    newest_first.reverse();
    Ok(newest_first)
}

fn messages_of_1(path: &Path) -> Result<Vec<Value>, String> {
    let file = read_regular(path, FILE_BYTES_MAX, Links::Follow).map_err(|error| error.reason())?;
    let mut whole: Value = parse_json(&file.bytes).map_err(|error| error.to_string())?;
    match whole.get_mut("messages").map(Value::take) {
        Some(Value::Array(messages)) => Ok(messages),
        _ => Err("it has no array `messages`".to_owned()),
    }
}

/// The messages of one record: a text, and the tools that are called after it.
fn messages_in(record: &Value) -> Vec<Message> {
    let role = match text_at(record, "/role") {
        // Texts that Vibe adds in the person's name are marked.
        Some("user") if record.get("injected") != Some(&Value::Bool(true)) => MessageRole::User,
        Some("assistant") => MessageRole::Assistant,
        _ => return Vec::new(),
    };
    let text = text_at(record, "/content").filter(|text| !text.trim().is_empty());
    let tools = values_at(record, "/tool_calls");
    let tools = tools.filter_map(|call| value_at(call, "/function/name")?.as_str());
    let tools = tools.map(|name| message(MessageRole::Tool, None, name));
    let text = text.map(|text| message(role, None, text));
    text.into_iter().chain(tools).collect()
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests make their own files")]
#[path = "early_tests.rs"]
mod tests;
