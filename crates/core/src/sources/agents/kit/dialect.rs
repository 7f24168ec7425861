//! Reads transcripts that have one record a line.
//!
//! An agent declares how one record of its transcript reads: a function from JSON to a
//! [`Record`]. What follows from the records is the same for every agent and is written
//! here once: the first prompt, the last messages, the last date, the phase, and the
//! bounds on what is read from both ends of a file.

mod ends;
mod json;
mod record;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod tokens;
mod turn;

use std::path::Path;

use serde_json::Value;
use whosup_sidecar::AgentId;
use whosup_sidecar::file::ReadFileError;

pub(crate) use json::{
    count_at, date_at, date_of, nano_at, text_at, texts_in, value_at, values_at,
};
pub(crate) use record::{Record, Step, TokenCount};

use self::ends::{Head, LastMessages, Tail};
use crate::adapter::phase::Phase;
use crate::adapter::{Description, Message, MessageRole};
use crate::machine::problem::Found;
use crate::sources::agents::kit::bad_lines::{BadLines, LineReader};
use crate::sources::agents::kit::one_per_session::Said;
use crate::sources::agents::kit::prompt::Wrapping;
use crate::sources::agents::kit::reading::found_at;
use crate::sources::transcript::{
    HeadBounds, LONG_LINES_BYTES_MAX, MissingEnd, Stopped, TailBounds, TranscriptError,
    TranscriptFile,
};

/// How much of the start is read for the birth of a session and its first prompt. The system
/// prompt may be in one of these lines.
pub(crate) const HEAD_BOUNDS: HeadBounds = HeadBounds {
    bytes_max: 1024 * 1024,
    lines_max: 64,
};
/// How far back from the end is read for the last records. Lines that are too long to be held
/// count only by the part that is kept.
pub(crate) const LAST_BOUNDS: TailBounds = TailBounds {
    bytes_max: 1024 * 1024,
};
/// How far back messages are looked for.
const MESSAGES_BOUNDS: TailBounds = TailBounds {
    bytes_max: LONG_LINES_BYTES_MAX,
};
/// How far back the context's size is looked for, in bytes.
const CONTEXT_BYTES: u64 = LAST_BOUNDS.bytes_max;
/// How far back the beginning of the last turn is looked for, in bytes. The facts of a
/// longer turn are not known from the end of the transcript alone.
const TURN_BYTES: u64 = 256 * 1024;
/// How long the text of a message is at most, in characters.
const TEXT_CHARS_MAX: usize = 20_000;

/// How the transcripts of one agent read.
#[derive(Debug)]
pub(crate) struct Dialect {
    /// Reads one record.
    pub(crate) record: fn(&Value) -> Record<'_>,
    /// Texts that the agent puts in place of prompts.
    pub(crate) wrapping: Wrapping,
    /// How much of the beginning is read.
    pub(crate) head_bounds: HeadBounds,
    /// Replies name their model.
    pub(crate) has_models: bool,
    /// The steps show the turns. Otherwise the reader of the lines derives the phase.
    pub(crate) has_turns: bool,
    /// How far back from the end a title or a directory is looked for, in bytes, once
    /// the rest is known: there may be none.
    pub(crate) rare_bytes: u64,
    /// Its records count tokens.
    pub(crate) has_tokens: bool,
    /// The phase of a session whose transcript shows no turn.
    pub(crate) phase_without_turn: Option<Phase>,
}

impl Dialect {
    /// The usual: replies name their model, and nothing else needs a look far back.
    pub(crate) const fn of(record: fn(&Value) -> Record<'_>) -> Self {
        Self {
            record,
            wrapping: Wrapping::NONE,
            head_bounds: HEAD_BOUNDS,
            has_models: true,
            has_turns: true,
            rare_bytes: 0,
            has_tokens: true,
            phase_without_turn: None,
        }
    }

    /// Reads both ends of the transcript at `path`; `None` if the file does not exist.
    pub(crate) fn describe(&self, agent: &AgentId, path: &Path) -> Option<Found<Description>> {
        let mut bad_lines = BadLines::default();
        let read = TranscriptFile::open(path).and_then(|file| self.read(&file, &mut bad_lines));
        let (found, problem) = match read {
            Ok(found) => (found, bad_lines.message()),
            Err(error) if is_missing(&error) => return None,
            Err(error) => (Description::default(), Some(error.reason())),
        };
        Some(found_at(agent, path, found, problem))
    }

    /// Reads both ends of a transcript.
    ///
    /// # Errors
    ///
    /// Why the file can't be read.
    pub(crate) fn read(
        &self,
        file: &TranscriptFile,
        reader: &mut impl LineReader,
    ) -> Result<Description, TranscriptError> {
        let tail = self.tail(file, reader)?;
        Ok(joined(tail, self.head(file, reader)?))
    }

    /// Reads the end of a transcript: the last date, model, directory and title, and what
    /// the session was doing.
    ///
    /// # Errors
    ///
    /// Why the file can't be read.
    pub(crate) fn tail(
        &self,
        file: &TranscriptFile,
        reader: &mut impl LineReader,
    ) -> Result<Description, TranscriptError> {
        let mut fold = Tail::default();
        let mut read = 0_u64;
        let lines = file.backwards(LAST_BOUNDS)?;
        let mut lines = lines.through_long_lines(LONG_LINES_BYTES_MAX);
        for line in lines.by_ref() {
            let line = file.shortened(line?)?;
            if line.is_too_long() {
                fold.turn.skip_one();
            }
            for record in reader.values(&line).iter().rev() {
                fold.add(self, (self.record)(record));
            }
            read = read.saturating_add(line.bytes().len() as u64 + 1);
            if read >= self.rare_bytes && fold.is_enough(self, read) && !reader.wants_more() {
                break;
            }
        }
        if lines.stopped() == Some(Stopped::BytesMax) {
            fold.turn.skip_one();
        }
        let mut found = fold.finish(self);
        found.transcript = Some(file.path().to_owned());
        Ok(found)
    }

    /// Reads the beginning of a transcript: the birth, the first prompt, and the last
    /// model near it, for an end that names none.
    ///
    /// # Errors
    ///
    /// Why the file can't be read.
    pub(crate) fn head(
        &self,
        file: &TranscriptFile,
        reader: &mut impl LineReader,
    ) -> Result<Description, TranscriptError> {
        let mut fold = Head::default();
        let mut head = file.head(self.head_bounds)?;
        for line in &head.lines {
            fold.add_line(self, reader, line);
        }
        if head.stopped == Stopped::BytesMax && !fold.words.has_prompt() {
            let from = head.lines.pop().map_or(0, |line| line.end);
            let long = file.shortened_at(from, LONG_LINES_BYTES_MAX)?;
            long.iter()
                .for_each(|line| fold.add_line(self, reader, line));
        }
        Ok(fold.finish())
    }

    /// The facts at the end of records that were read as a whole.
    pub(crate) fn tail_of(&self, records: &[Value]) -> Description {
        let mut fold = Tail::default();
        for record in records.iter().rev() {
            fold.add(self, (self.record)(record));
        }
        fold.finish(self)
    }

    /// The facts at the start of records that were read as a whole.
    pub(crate) fn head_of(&self, records: &[Value]) -> Description {
        let mut fold = Head::default();
        for record in records {
            fold.add(&(self.record)(record), &self.wrapping);
        }
        fold.finish()
    }

    /// Reads at most `messages_max` of the last messages, oldest first. A session without
    /// a transcript has none.
    pub(crate) fn messages(
        &self,
        agent: &AgentId,
        transcript: Option<&Path>,
        messages_max: usize,
    ) -> Found<Vec<Message>> {
        let Some(path) = transcript else {
            return Found::default();
        };
        let mut bad_lines = BadLines::default();
        let read = TranscriptFile::open(path)
            .and_then(|file| self.last_messages(&file, messages_max, &mut bad_lines));
        let (found, problem) = match read {
            Ok(found) => (found, bad_lines.message()),
            Err(error) if is_missing(&error) => (Vec::new(), None),
            Err(error) => (Vec::new(), Some(error.reason())),
        };
        found_at(agent, path, found, problem)
    }

    fn last_messages(
        &self,
        file: &TranscriptFile,
        messages_max: usize,
        bad_lines: &mut BadLines,
    ) -> Result<Vec<Message>, TranscriptError> {
        let mut last = LastMessages::default();
        for line in file.backwards(MESSAGES_BOUNDS)? {
            if last.len() >= messages_max {
                break;
            }
            // A prompt with an image may be too long to be held.
            let line = file.shortened(line?)?;
            if line.is_too_long() {
                continue;
            }
            for record in bad_lines.values(&line).iter().rev() {
                last.add(self, &(self.record)(record));
            }
        }
        Ok(last.finish(messages_max))
    }

    /// The last messages in records that were read as a whole, oldest first.
    pub(crate) fn messages_in(&self, records: &[Value], messages_max: usize) -> Vec<Message> {
        let mut last = LastMessages::default();
        for record in records.iter().rev() {
            last.add(self, &(self.record)(record));
        }
        last.finish(messages_max)
    }

    /// The prompt in one record.
    pub(crate) fn prompt_of(&self, record: &Value) -> Option<String> {
        self.wrapping.typed_in((self.record)(record).typed)
    }

    /// The messages of one record: the prompt, the reply, and the names of the tools that
    /// the model called.
    fn messages_of(&self, record: &Record<'_>) -> Vec<Message> {
        let typed = self.wrapping.typed_in(record.typed.iter().copied());
        let reply = (!record.reply.is_empty()).then(|| record.reply.join("\n"));
        let calls = record.calls.iter().map(|name| (*name).to_owned());
        let typed = typed.map(|text| (MessageRole::User, text)).into_iter();
        let messages = typed
            .chain(reply.map(|text| (MessageRole::Assistant, text)))
            .chain(calls.map(|text| (MessageRole::Tool, text)));
        messages
            .filter(|(_, text)| !text.trim().is_empty())
            .map(|(role, text)| message(role, record.at_ms, &text))
            .collect()
    }

    /// Returns whether the transcript at `path` has messages, and the date of the last
    /// message.
    pub(crate) fn said(&self, path: &Path) -> Said {
        let last = |record: &Value| {
            let record = (self.record)(record);
            (record.step != Step::Aside).then_some(record.at_ms)
        };
        let read = TranscriptFile::open(path).and_then(|file| find_last(&file, LAST_BOUNDS, last));
        read.map_or(Said::UNREADABLE, |last| Said {
            has_words: last.is_some(),
            last_at_ms: last.flatten(),
        })
    }

    /// Reads the date of the last record that shows activity.
    ///
    /// # Errors
    ///
    /// Why the file can't be read.
    pub(crate) fn last_at_ms(&self, file: &TranscriptFile) -> Result<Option<i64>, TranscriptError> {
        find_last(file, LAST_BOUNDS, |record| {
            (self.record)(record).active_at_ms()
        })
    }

    /// Reports whether the transcript lacks its end. `last_at_ms` is the last date that
    /// was read.
    ///
    /// # Errors
    ///
    /// Why the file can't be read.
    pub(crate) fn missing_end(
        &self,
        file: &TranscriptFile,
        last_at_ms: Option<i64>,
    ) -> Result<Option<MissingEnd>, TranscriptError> {
        file.missing_end(last_at_ms, |record| (self.record)(record).at_ms)
    }

    /// Reads the tokens that were counted last: in the context, and for a request.
    #[cfg(test)]
    pub(crate) fn last_tokens(&self, file: &TranscriptFile) -> Result<TokenCount, TranscriptError> {
        let mut last = TokenCount::default();
        find_last(file, LAST_BOUNDS, |record| {
            let counted = (self.record)(record).tokens?;
            last = last.or(counted);
            (last.context.is_some() && last.output.is_some()).then_some(())
        })?;
        Ok(last)
    }
}

/// A message whose text may have to be cut.
pub(crate) fn message(role: MessageRole, at_ms: Option<i64>, text: &str) -> Message {
    Message {
        role,
        at_ms,
        text: text.chars().take(TEXT_CHARS_MAX).collect(),
    }
}

/// Looks for the first record near the beginning in which `find` finds something.
///
/// # Errors
///
/// Why the file can't be read.
pub(crate) fn find_first<T>(
    file: &TranscriptFile,
    bounds: HeadBounds,
    find: impl FnMut(&Value) -> Option<T>,
) -> Result<Option<T>, TranscriptError> {
    let mut find = find;
    let head = file.head(bounds)?;
    let mut records = head.lines.iter().flat_map(|line| line.json().values);
    Ok(records.find_map(|record| find(&record)))
}

/// Looks for the last record near the end in which `find` finds something.
///
/// # Errors
///
/// Why the file can't be read.
pub(crate) fn find_last<T>(
    file: &TranscriptFile,
    bounds: TailBounds,
    find: impl FnMut(&Value) -> Option<T>,
) -> Result<Option<T>, TranscriptError> {
    let mut find = find;
    let lines = file.backwards(bounds)?;
    for line in lines.through_long_lines(LONG_LINES_BYTES_MAX) {
        let records = file.shortened(line?)?.json().values;
        if let Some(found) = records.iter().rev().find_map(&mut find) {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// There is no such file.
pub(crate) fn is_missing(error: &TranscriptError) -> bool {
    matches!(error, TranscriptError::File(ReadFileError::NotFound { .. }))
}

/// Joins the facts at both ends of one transcript. The end wins.
pub(crate) fn joined(tail: Description, head: Description) -> Description {
    Description {
        is_title_a_prompt: tail.title.is_none() && head.is_title_a_prompt,
        title: tail.title.or(head.title),
        model: tail.model.or(head.model),
        agent_version: tail.agent_version.or(head.agent_version),
        work_dir: tail.work_dir.or(head.work_dir),
        started_at_ms: head.started_at_ms,
        ..tail
    }
}
