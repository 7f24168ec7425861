//! Describes a thread from its rollout, when a user asks for details.

use std::path::Path;

use super::AGENT;
use super::header::{Header, Origin, Part};
use super::record::DIALECT;
use super::tail::Tail;
use crate::adapter::phase::Phase;
use crate::adapter::{Description, Message, Sketch};
use crate::machine::problem::{Found, Problem};
use crate::sources::agents::kit::bad_lines::BadLines;
use crate::sources::agents::kit::reading::found_at;
use crate::sources::agents::kit::title::{is_cut_from, one_line};
use crate::sources::transcript::TranscriptFile;

/// Reads the rollout of a session. A compressed rollout is not read: the sketch already has
/// the facts from the file name.
pub(super) fn describe(sketch: &Sketch) -> Found<Description> {
    let mut description = Description {
        title: sketch.title.clone(),
        started_at_ms: sketch.born_at_ms,
        is_headless: sketch.is_headless,
        transcript: sketch.transcript.clone(),
        ..Description::default()
    };
    if sketch.is_unprompted() && sketch.is_headless != Some(true) {
        description.phase = Some(Phase::Idle);
    }
    let mut problems = Vec::new();
    if let Some(path) = sketch.transcript.as_deref().filter(|path| is_plain(path)) {
        let mut problem = |reason: String| problems.push(Problem::at(&AGENT, path, reason));
        match Header::read(path, Part::Whole) {
            Ok(header) => add_header(&mut description, header),
            Err(reason) => problem(reason),
        }
        let mut bad_lines = BadLines::default();
        match Tail::read(path, &mut bad_lines) {
            Ok(tail) => add_tail(&mut description, tail),
            Err(error) => problem(error.reason()),
        }
        if let Some(message) = bad_lines.message() {
            problem(message);
        }
        let head = TranscriptFile::open(path)
            .and_then(|file| DIALECT.head(&file, &mut BadLines::default()));
        match head {
            Ok(head) => {
                add_prompt(&mut description, head.title);
                // A turn's end may be far from what shows its model.
                description.model = description.model.take().or(head.model);
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
    let found = tail.found;
    description.model = found.model;
    description.context = found.context;
    description.turn = found.turn;
    description.work_dir = found.work_dir.or(description.work_dir.take());
    description.last_activity_at_ms = found
        .last_activity_at_ms
        .or(description.last_activity_at_ms);
    // Nothing but bookkeeping: it waits for its first prompt.
    let is_unprompted = !tail.has_records;
    description.phase = found.phase.or(is_unprompted.then_some(Phase::Idle));
    description.waiting_for = found.waiting_for;
    description.phase_at_ms = found.phase_at_ms;
    description.phase_since_ms = found.phase_since_ms;
}

/// The first prompt is the title of a thread without a name, and of a thread that Codex
/// named after the prompt.
fn add_prompt(description: &mut Description, prompt: Option<String>) {
    let Some(prompt) = prompt else {
        return;
    };
    match description.title.as_deref().and_then(one_line) {
        Some(title) => description.is_title_a_prompt = is_cut_from(&title, &prompt),
        None => {
            description.title = Some(prompt);
            description.is_title_a_prompt = true;
        }
    }
}

/// Reads the last messages of a session, oldest first.
pub(super) fn messages(sketch: &Sketch, messages_max: usize) -> Found<Vec<Message>> {
    match sketch.transcript.as_deref() {
        Some(path) if !is_plain(path) => {
            let message = "it is compressed, and its messages are not read";
            found_at(&AGENT, path, Vec::new(), Some(message))
        }
        path => DIALECT.messages(&AGENT, path, messages_max),
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests make their own files")]
#[path = "describe_tests.rs"]
mod tests;
