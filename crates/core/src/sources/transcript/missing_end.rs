//! Transcripts whose end is missing, after a full disk, a torn write or a copy.

use serde_json::Value;

use super::{LONG_LINES_BYTES_MAX, Line, TailBounds, TranscriptError, TranscriptFile};

/// How much later than its last intact record a transcript with a torn last line may have
/// been modified, in milliseconds: that record may be the one before.
const TORN_SLACK_MS: i64 = 2_000;
/// The same where the last line is whole: the event in it began before it was written.
const WHOLE_SLACK_MS: i64 = 10_000;

/// The end of a transcript that is missing, or may be.
///
/// The process that served the session when the file was modified may have recorded something
/// that can't be read. This makes the attribution uncertain and proves nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MissingEnd {
    /// Until when something may have been recorded, in milliseconds since 1970: the
    /// file's date of modification (`st_mtime`).
    pub until_ms: i64,
    /// The file ends within a record. Otherwise only the modification date shows that
    /// something may be missing, and other programs may have changed that date.
    pub is_torn: bool,
}

impl TranscriptFile {
    /// Returns the missing end of the transcript; `None` if nothing later than the last
    /// whole record can be missing.
    ///
    /// `last_at_ms` is the date of a record that has been read, and `date_of` reads the date
    /// of any record, whatever the kind. The file is read again only if it was modified
    /// later.
    ///
    /// # Errors
    ///
    /// [`TranscriptError`] if the file can't be read.
    pub fn missing_end(
        &self,
        last_at_ms: Option<i64>,
        date_of: impl Fn(&Value) -> Option<i64>,
    ) -> Result<Option<MissingEnd>, TranscriptError> {
        let facts = self.facts();
        let is_later = |slack_ms: i64, last_at_ms: Option<i64>| {
            let ends = facts.modified_ms.zip(last_at_ms);
            ends.is_none_or(|(modified, last)| modified > last.saturating_add(slack_ms))
        };
        if !is_later(TORN_SLACK_MS, last_at_ms) {
            return Ok(None);
        }
        // The whole content of an empty file is missing.
        let mut is_torn = (facts.len == 0).then_some(true);
        let mut newest = None;
        let lines = self.backwards(TailBounds::default())?;
        for line in lines.through_long_lines(LONG_LINES_BYTES_MAX) {
            let line = self.shortened(line?)?;
            is_torn = is_torn.or_else(|| Some(is_broken(&line)));
            newest = line.json().values.iter().filter_map(&date_of).max();
            if newest.is_some() {
                break;
            }
        }
        let last_at_ms = last_at_ms.max(newest);
        let is_torn = is_torn.unwrap_or(false);
        let is_missing = if is_torn {
            is_later(TORN_SLACK_MS, last_at_ms)
        } else {
            facts.modified_ms.is_some()
                && is_later(WHOLE_SLACK_MS, last_at_ms)
                && !self.is_as_made()
        };
        Ok(is_missing.then(|| MissingEnd {
            until_ms: facts.modified_ms.unwrap_or(i64::MAX),
            is_torn,
        }))
    }

    /// The file was not modified since the agent created it, or since it was copied.
    fn is_as_made(&self) -> bool {
        let facts = self.facts();
        let dates = facts.born_ms.zip(facts.modified_ms);
        dates
            .is_some_and(|(born, modified)| modified.abs_diff(born) <= TORN_SLACK_MS.unsigned_abs())
    }
}

/// The line has no newline and is no whole record. (A line that lacks only the newline is
/// whole.)
fn is_broken(line: &Line) -> bool {
    line.is_torn && line.json().bad_count > 0
}
