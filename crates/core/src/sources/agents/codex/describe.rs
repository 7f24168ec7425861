//! What a thread's rollout tells when somebody wants to see it.

use std::path::Path;

use whosup_sidecar::AgentId;

use super::header::{Header, Origin, Part};
use super::record::{Kind, Record};
use super::tail::Tail;
use crate::adapter::phase::Phase;
use crate::adapter::{Description, Message, MessageRole, Sketch};
use crate::machine::problem::{Found, Problem};
use crate::sources::agents::kit::bad_lines::BadLines;
use crate::sources::agents::kit::prompt::{FirstWords, Wrapping};
use crate::sources::agents::kit::title::one_line;
use crate::sources::transcript::{HeadBounds, TailBounds, TranscriptError, TranscriptFile};

/// How much of a rollout's beginning is read for the first prompt, in bytes.
/// Instructions of hundreds of kilobytes come before it.
const HEAD_BYTES_MAX: u64 = 1 << 20;
/// How many lines of it.
const HEAD_LINES_MAX: usize = 128;
/// How far back a rollout is read for messages, in bytes.
const MESSAGES_BYTES_MAX: u64 = 32 << 20;
/// How much of a message is kept, in characters.
const MESSAGE_CHARS_MAX: usize = 20_000;

/// Reads the rollout of a session. A compressed one is not read: its name has
/// told what the sketch has.
pub(super) fn describe(agent: &AgentId, sketch: &Sketch) -> Found<Description> {
    let mut description = Description {
        title: sketch.title.clone(),
        started_at_ms: sketch.born_at_ms,
        is_headless: sketch.is_headless,
        transcript: sketch.transcript.clone(),
        ..Description::default()
    };
    if sketch.transcript.is_none() && sketch.is_headless != Some(true) {
        // It waits for its first prompt.
        description.phase = Some(Phase::Idle);
    }
    let mut problems = Vec::new();
    if let Some(path) = sketch.transcript.as_deref().filter(|path| is_plain(path)) {
        let mut problem = |reason: String| problems.push(Problem::at(agent, path, reason));
        match Header::read(path, Part::Whole) {
            Ok(header) => add_header(&mut description, header),
            Err(error) => problem(error.reason()),
        }
        let mut bad_lines = BadLines::default();
        match Tail::read(path, &mut bad_lines) {
            Ok(tail) => add_tail(&mut description, tail),
            Err(error) => problem(error.reason()),
        }
        if let Some(message) = bad_lines.message() {
            problem(message);
        }
        match read_head(path) {
            Ok((words, model)) => {
                add_prompt(&mut description, words);
                description.model = description.model.take().or(model);
            }
            Err(error) => problem(error.reason()),
        }
    }
    problems.dedup();
    Found {
        found: description,
        problems,
    }
}

fn is_plain(path: &Path) -> bool {
    path.extension().is_none_or(|extension| extension != "zst")
}

fn add_header(description: &mut Description, header: Header) {
    if header.origin == Some(Origin::Headless) && description.is_headless.is_none() {
        description.is_headless = Some(true);
    }
    description.agent_version = header.version;
    description.git_branch = header.git_branch;
    description.work_dir = header.work_dir;
    // The id's own date first: a later segment has a later header.
    description.started_at_ms = description.started_at_ms.or(header.born_at_ms);
    // Until the first prompt nothing else has happened.
    description.last_activity_at_ms = description.started_at_ms;
}

fn add_tail(description: &mut Description, tail: Tail) {
    description.model = tail.model;
    description.work_dir = tail.work_dir.or(description.work_dir.take());
    description.last_activity_at_ms = tail.last_record_at_ms.or(description.last_activity_at_ms);
    // Nothing but bookkeeping: it waits for its first prompt.
    let is_unprompted = !tail.has_records;
    description.phase = tail.phase.or(is_unprompted.then_some(Phase::Idle));
    description.waiting_for = tail.waiting_for;
    description.phase_at_ms = tail.phase_at_ms;
    description.phase_since_ms = tail.phase_since_ms;
}

/// A thread that nobody named goes by its first prompt, and so does one that
/// named itself after it.
fn add_prompt(description: &mut Description, words: FirstWords) {
    let Some(prompt) = words.title() else {
        return;
    };
    match description.title.as_deref().and_then(one_line) {
        Some(title) => {
            let title = title.trim_end_matches(['…', '.']).trim_end();
            description.is_title_a_prompt = prompt.starts_with(title);
        }
        None => {
            description.title = Some(prompt);
            description.is_title_a_prompt = true;
        }
    }
}

/// The first thing that a person said in the rollout at `path`, and the last
/// model near it: a turn's end may be far from what tells its model.
fn read_head(path: &Path) -> Result<(FirstWords, Option<String>), TranscriptError> {
    let mut words = FirstWords::default();
    let mut last_model = None;
    let file = TranscriptFile::open(path)?;
    let bounds = HeadBounds {
        bytes_max: HEAD_BYTES_MAX,
        lines_max: HEAD_LINES_MAX,
    };
    for line in file.head(bounds)?.lines {
        for value in &line.json().values {
            let Some(record) = Record::of(value) else {
                continue;
            };
            match record.kind {
                Kind::TurnContext { model, .. } => last_model = model.or(last_model),
                Kind::Prompt { text }
                | Kind::Message {
                    role: MessageRole::User,
                    text,
                } => words.add([text.as_str()], &Wrapping::NONE),
                _ => {}
            }
        }
    }
    Ok((words, last_model))
}

/// Reads the last messages of a session, oldest first.
pub(super) fn messages(
    agent: &AgentId,
    sketch: &Sketch,
    messages_max: usize,
) -> Found<Vec<Message>> {
    let Some(path) = sketch.transcript.as_deref() else {
        return Found::default();
    };
    let problem = |reason: String| Found {
        found: Vec::new(),
        problems: vec![Problem::at(agent, path, reason)],
    };
    if !is_plain(path) {
        return problem("it is compressed, and its messages are not read".to_owned());
    }
    match last_messages(path, messages_max) {
        Ok(messages) => Found::clean(messages),
        Err(error) => problem(error.reason()),
    }
}

fn last_messages(path: &Path, messages_max: usize) -> Result<Vec<Message>, TranscriptError> {
    let file = TranscriptFile::open(path)?;
    let bounds = TailBounds {
        bytes_max: MESSAGES_BYTES_MAX,
    };
    let mut messages = Vec::new();
    for line in file.backwards(bounds)? {
        if messages.len() >= messages_max {
            break;
        }
        let values = line?.json().values;
        messages.extend(values.iter().rev().filter_map(message_in));
    }
    messages.truncate(messages_max);
    messages.reverse();
    Ok(messages)
}

fn message_in(value: &serde_json::Value) -> Option<Message> {
    let record = Record::of(value)?;
    let (role, text) = match record.kind {
        Kind::Message { role, text } => (role, text),
        // What the tools are asked by; questions asked by events come twice.
        Kind::Call { name, .. } if !name.ends_with("_request") => (MessageRole::Tool, name),
        _ => return None,
    };
    Some(Message {
        role,
        at_ms: record.at_ms,
        text: text.chars().take(MESSAGE_CHARS_MAX).collect(),
    })
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests make their own files")]
#[path = "describe_tests.rs"]
mod tests;
