//! What both ends of a transcript show, record by record.

use std::collections::HashSet;

use super::tokens::Tokens;
use super::turn::Turn;
use super::{CONTEXT_BYTES, Dialect, Record, TURN_BYTES};
use crate::adapter::{Description, Message};
use crate::sources::agents::kit::bad_lines::LineReader;
use crate::sources::agents::kit::prompt::{FirstWords, Wrapping};
use crate::sources::agents::kit::title::one_line;
use crate::sources::transcript::Line;

/// The records of a transcript, from the last one backwards.
#[derive(Default)]
pub(super) struct Tail {
    found: Description,
    /// A record gave the session a title, or took it back.
    is_title_known: bool,
    pub(super) turn: Turn,
    tokens: Tokens,
}

impl Tail {
    pub(super) fn add(&mut self, dialect: &Dialect, record: Record<'_>) {
        let found = &mut self.found;
        found.last_activity_at_ms = found.last_activity_at_ms.or(record.active_at_ms());
        keep(&mut found.model, record.model);
        keep(&mut found.agent_version, record.version);
        if found.work_dir.is_none() && record.work_dir.is_some() {
            found.work_dir = record.work_dir.map(Into::into);
            found.git_branch = record.git_branch.map(str::to_owned);
        }
        found.is_headless = found.is_headless.or(record.is_headless);
        if let Some(title) = record.title.filter(|_| !self.is_title_known) {
            self.is_title_known = true;
            found.title = one_line(title);
        }
        self.turn.add_backwards(&record);
        let mut typed = record.typed.iter();
        let is_prompt = typed.any(|text| dialect.wrapping.typed(text).is_some());
        self.tokens.add_backwards(&record, is_prompt);
    }

    /// Nothing that is further back than the `read` bytes is needed.
    pub(super) fn is_enough(&self, dialect: &Dialect, read: u64) -> bool {
        let is_counted = !dialect.has_tokens
            || ((self.tokens.is_context_known() || read >= CONTEXT_BYTES)
                && (self.tokens.is_turn_known() || read >= TURN_BYTES));
        self.found.last_activity_at_ms.is_some()
            && (self.found.model.is_some() || !dialect.has_models)
            && (self.turn.is_decided() || !dialect.has_turns)
            && is_counted
    }

    pub(super) fn finish(self, dialect: &Dialect) -> Description {
        let mut found = self.found;
        self.turn.finish(dialect.phase_without_turn, &mut found);
        self.tokens.finish(&mut found);
        found
    }
}

/// The records of a transcript, from the first one on.
#[derive(Default)]
pub(super) struct Head {
    found: Description,
    pub(super) words: FirstWords,
}

impl Head {
    pub(super) fn add_line(
        &mut self,
        dialect: &Dialect,
        reader: &mut impl LineReader,
        line: &Line,
    ) {
        for record in &reader.values(line) {
            self.add(&(dialect.record)(record), &dialect.wrapping);
        }
    }

    pub(super) fn add(&mut self, record: &Record<'_>, wrapping: &Wrapping) {
        let found = &mut self.found;
        let births = found.started_at_ms.into_iter().chain(record.born_at_ms);
        found.started_at_ms = births.min();
        if let Some(model) = record.model {
            found.model = Some(model.to_owned());
        }
        if found.work_dir.is_none() {
            found.work_dir = record.work_dir.map(Into::into);
        }
        keep(&mut found.agent_version, record.version);
        let typed = record.typed.iter().chain(&record.repeated);
        self.words.add(typed.copied(), wrapping);
    }

    pub(super) fn finish(self) -> Description {
        let title = self.words.title();
        Description {
            is_title_a_prompt: title.is_some(),
            title,
            ..self.found
        }
    }
}

/// The messages of a transcript, from the last one backwards.
#[derive(Default)]
pub(super) struct LastMessages {
    newest_first: Vec<Message>,
    seen: HashSet<String>,
}

impl LastMessages {
    pub(super) fn len(&self) -> usize {
        self.newest_first.len()
    }

    pub(super) fn add(&mut self, dialect: &Dialect, record: &Record<'_>) {
        if record.id.is_none_or(|id| self.seen.insert(id.to_owned())) {
            let messages = dialect.messages_of(record);
            self.newest_first.extend(messages.into_iter().rev());
        }
    }

    pub(super) fn finish(mut self, messages_max: usize) -> Vec<Message> {
        self.newest_first.truncate(messages_max);
        self.newest_first.reverse();
        self.newest_first
    }
}

fn keep(kept: &mut Option<String>, found: Option<&str>) {
    if kept.is_none() {
        *kept = found.map(str::to_owned);
    }
}
