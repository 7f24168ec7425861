//! Counts a transcript, from its beginning or from where counting stopped.

use std::path::Path;

use memchr::memmem::Finder;
use serde_json::Value;

use super::Tally;
use crate::sources::agents::kit::dialect::Dialect;
use crate::sources::transcript::{Cursor, CursorAnswer, Line, TranscriptError, TranscriptFile};

/// How the transcripts of one agent are counted.
pub struct Counting {
    pub(crate) dialect: &'static Dialect,
    /// A line that counts, or shows what counts are of, has one of these texts. Others
    /// are not parsed.
    pub(crate) marks: &'static [&'static str],
    /// The keys that counting reads, wherever they stand in a record; empty for all.
    /// Texts and the like are stepped over, which is most of a large record.
    pub(crate) keys: &'static [&'static str],
    /// The messages in a record that has several.
    pub(crate) messages: Option<fn(&Value) -> &[Value]>,
    /// What a fork copied has the dates that it had, before the birth of the fork.
    pub(crate) copies_keep_dates: bool,
}

impl std::fmt::Debug for Counting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Counting")
            .field("marks", &self.marks)
            .finish_non_exhaustive()
    }
}

/// What was counted of a transcript, and where to count on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counted {
    /// Where to read on.
    pub cursor: Cursor,
    /// What was counted.
    pub tally: Tally,
}

impl Counting {
    /// The usual: lines with one of `marks` are read, one message each.
    pub(crate) const fn of(dialect: &'static Dialect, marks: &'static [&'static str]) -> Self {
        Self {
            dialect,
            marks,
            keys: &[],
            messages: None,
            copies_keep_dates: false,
        }
    }

    /// Counts what was appended to a transcript since `before`; all of it if it is not the
    /// same file any more, or was never counted. A last line that has no end yet counts
    /// when it has one.
    ///
    /// # Errors
    ///
    /// [`TranscriptError`] if the file can't be read.
    pub fn count(
        &self,
        file: &TranscriptFile,
        before: Option<Counted>,
    ) -> Result<Counted, TranscriptError> {
        let finders: Vec<Finder<'_>> = self.marks.iter().map(|mark| Finder::new(*mark)).collect();
        let mut counted = before.unwrap_or_else(|| Counted {
            cursor: file.cursor_at_start(),
            tally: Tally::default(),
        });
        let mut appended = file.appended(&counted.cursor)?;
        if appended.answer() != CursorAnswer::Continued {
            counted.tally = Tally::default();
        }
        let mut record = Value::Null;
        while let Some(line) = appended.next_line()? {
            self.add(file, line, (&finders, &mut record), &mut counted.tally)?;
        }
        counted.cursor = appended.cursor()?;
        Ok(counted)
    }

    /// Counts records that were read as a whole, of a session that was born then.
    #[must_use]
    pub fn count_records(&self, records: &[Value], born_at_ms: Option<i64>) -> Tally {
        let mut tally = Tally {
            born_at_ms,
            ..Tally::default()
        };
        for record in records {
            self.add_record(record, None, &mut tally);
        }
        tally
    }

    fn add(
        &self,
        file: &TranscriptFile,
        line: &Line,
        (finders, record): (&[Finder<'_>], &mut Value),
        tally: &mut Tally,
    ) -> Result<(), TranscriptError> {
        let shortened;
        let line = if line.is_too_long() {
            shortened = file.shortened(line.clone())?;
            if shortened.is_too_long() {
                tally.lost_lines = tally.lost_lines.saturating_add(1);
                return Ok(());
            }
            &shortened
        } else {
            line
        };
        let bytes = line.bytes();
        let mut finders = finders.iter();
        if !finders.any(|finder| finder.find(bytes).is_some()) {
            return Ok(());
        }
        if line.sparse_value_into(self.keys, record).is_some() {
            self.add_record(record, Some(file.path()), tally);
            return Ok(());
        }
        let json = line.json();
        if json.bad_count > 0 {
            tally.lost_lines = tally.lost_lines.saturating_add(1);
        }
        for record in &json.values {
            self.add_record(record, Some(file.path()), tally);
        }
        Ok(())
    }

    fn add_record(&self, record: &Value, transcript: Option<&Path>, tally: &mut Tally) {
        let messages = self.messages.map(|messages| messages(record));
        for record in std::iter::once(record).chain(messages.unwrap_or_default()) {
            let mut record = (self.dialect.record)(record);
            let user = record.used_by.zip(transcript);
            record.is_copied |= user.is_some_and(|(session, path)| !is_named_after(path, session));
            tally.add(&record, self.copies_keep_dates);
        }
    }
}

/// A transcript, or a folder above it, has the session's id as its name.
fn is_named_after(transcript: &Path, session: &str) -> bool {
    let path = transcript.with_extension("");
    path.iter().any(|name| name == session)
}
