//! Reads what was appended to a transcript since the last look.

use std::ops::Range;

use whosup_sidecar::file::FileFacts;

use super::split::Splitter;
use super::{LINE_BYTES_MAX, LINE_HEAD_BYTES, Line, TranscriptError, TranscriptFile, step_within};

/// How many bytes before its offset a cursor remembers, as a hash. Records
/// have ids and dates within that distance.
pub const FINGERPRINT_BYTES: usize = 256;

/// How far a transcript has been read. A plain value: it holds no file open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Cursor {
    /// The device of the file.
    pub device: u64,
    /// The inode of the file.
    pub inode: u64,
    /// Where to read on, in bytes.
    pub offset: u64,
    /// A hash of the bytes before the offset, to notice that they were rewritten.
    pub fingerprint: u64,
    /// Where the line begins, if the offset lies within a line that is too long.
    pub long_line_start: Option<u64>,
}

/// Whether the file is still the cursor's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CursorAnswer {
    /// It is: the lines follow those read before.
    Continued,
    /// It is not, and reading restarted: discard the lines read before.
    Restarted(Restart),
}

/// Why reading restarted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Restart {
    /// Another file has the path now.
    Replaced,
    /// The file is shorter than what was read.
    Truncated,
    /// The bytes before the offset have changed.
    Rewritten,
}

/// The lines that were appended, in order, up to the length that the file had at first.
///
/// One line is held at a time. A last line without an end is not among them: it comes
/// when it has one.
#[derive(Debug)]
pub struct Appended<'a> {
    file: &'a TranscriptFile,
    answer: CursorAnswer,
    splitter: Splitter,
    /// The line that was handed out last.
    line: Option<Line>,
    buffer: Vec<u8>,
    /// What of the buffer has not been split.
    unread: Range<usize>,
    /// Where the buffer ends in the file.
    offset: u64,
    /// Where reading stops.
    end: u64,
}

impl Appended<'_> {
    /// Whether these lines follow the lines of the previous read.
    #[must_use]
    pub const fn answer(&self) -> CursorAnswer {
        self.answer
    }

    /// Reads the next line.
    ///
    /// # Errors
    ///
    /// [`TranscriptError::File`] if the file can't be read.
    pub fn next_line(&mut self) -> Result<Option<&Line>, TranscriptError> {
        if let Some(line) = self.line.take() {
            self.splitter.reuse(line);
        }
        loop {
            let mut rest = &self.buffer[self.unread.clone()];
            let found = self.splitter.next_line(&mut rest);
            self.unread.start = self.unread.end - rest.len();
            if let Some(line) = found {
                return Ok(Some(self.line.insert(line)));
            }
            let wanted = step_within(self.end.saturating_sub(self.offset));
            self.buffer.resize(wanted, 0);
            self.unread = 0..0;
            let open = &self.file.open;
            let count = open.read_at(&mut self.buffer, self.offset)?;
            if count == 0 {
                return Ok(None);
            }
            self.offset += count as u64;
            self.unread = 0..count;
        }
    }

    /// The cursor after the last line that was handed out, for the next look.
    ///
    /// # Errors
    ///
    /// [`TranscriptError::File`] if the file can't be read.
    pub fn cursor(&self) -> Result<Cursor, TranscriptError> {
        self.file.cursor_after(&self.splitter, self.offset)
    }
}

impl TranscriptFile {
    /// A cursor at the beginning of the file.
    #[must_use]
    pub fn cursor_at_start(&self) -> Cursor {
        start_of(self.facts())
    }

    /// Reads the lines that were appended since `cursor`. A file that was truncated,
    /// replaced or rewritten is read from the start, and the answer reports that.
    ///
    /// # Errors
    ///
    /// [`TranscriptError::File`] if the file can't be read.
    pub fn appended(&self, cursor: &Cursor) -> Result<Appended<'_>, TranscriptError> {
        let facts = self.open.facts()?;
        let answer = self.answer(&facts, cursor)?;
        let start = match answer {
            CursorAnswer::Continued => *cursor,
            CursorAnswer::Restarted(_) => self.cursor_at_start(),
        };
        Ok(Appended {
            file: self,
            answer,
            splitter: self.splitter_at(&start)?,
            line: None,
            buffer: Vec::new(),
            unread: 0..0,
            offset: start.offset,
            end: facts.len,
        })
    }

    /// Compares the file with the one that the cursor came from.
    fn answer(&self, facts: &FileFacts, cursor: &Cursor) -> Result<CursorAnswer, TranscriptError> {
        let restart = if (facts.device, facts.inode) != (cursor.device, cursor.inode) {
            Restart::Replaced
        } else if facts.len < cursor.offset {
            Restart::Truncated
        } else if cursor.is_malformed()
            || hash(&self.bytes_before(cursor.offset)?) != cursor.fingerprint
        {
            Restart::Rewritten
        } else {
            return Ok(CursorAnswer::Continued);
        };
        Ok(CursorAnswer::Restarted(restart))
    }

    fn splitter_at(&self, cursor: &Cursor) -> Result<Splitter, TranscriptError> {
        let Some(line_start) = cursor.long_line_start else {
            return Ok(Splitter::at(cursor.offset));
        };
        let mut head = vec![0; LINE_HEAD_BYTES];
        let count = self.open.read_at(&mut head, line_start)?;
        head.truncate(count);
        let len = cursor.offset.saturating_sub(line_start);
        Ok(Splitter::within(line_start, len, head))
    }

    /// The cursor for the next read: at the start of the incomplete line or, if that is too long to
    /// be read again each time, within it.
    fn cursor_after(&self, splitter: &Splitter, offset: u64) -> Result<Cursor, TranscriptError> {
        let (offset, long_line_start) = if splitter.is_too_long() {
            (offset, Some(splitter.line_start()))
        } else {
            (splitter.line_start(), None)
        };
        Ok(Cursor {
            offset,
            fingerprint: hash(&self.bytes_before(offset)?),
            long_line_start,
            ..self.cursor_at_start()
        })
    }

    fn bytes_before(&self, offset: u64) -> Result<Vec<u8>, TranscriptError> {
        let count = offset.min(FINGERPRINT_BYTES as u64);
        let mut bytes = vec![0; usize::try_from(count).unwrap_or(0)];
        let read = self.open.read_at(&mut bytes, offset - count)?;
        bytes.truncate(read);
        Ok(bytes)
    }
}

impl Cursor {
    /// Returns whether no reading can have made this value, which may come from a file: a
    /// line that is too long begins far before the offset.
    fn is_malformed(&self) -> bool {
        self.long_line_start.is_some_and(|start| {
            let within = self.offset.checked_sub(start);
            within.is_none_or(|bytes| bytes <= LINE_BYTES_MAX as u64)
        })
    }
}

fn start_of(facts: &FileFacts) -> Cursor {
    Cursor {
        device: facts.device,
        inode: facts.inode,
        offset: 0,
        fingerprint: hash(&[]),
        long_line_start: None,
    }
}

/// FNV-1a of 64 bits: a hash that is the same in every run and on every machine.
pub(crate) fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xCBF2_9CE4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01B3)
    })
}
