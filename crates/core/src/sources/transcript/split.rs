//! Splits consecutive chunks of bytes into lines.

use super::{LINE_BYTES_MAX, LINE_HEAD_BYTES, Line, LineContent};

/// Collects one line at a time, and holds only what is kept of it.
#[derive(Debug)]
pub(super) struct Splitter {
    /// The start of the current line.
    offset: u64,
    /// Its length so far.
    len: u64,
    /// The bytes read so far, or only the head once the line is too long.
    held: Vec<u8>,
}

impl Splitter {
    /// Begins at the first byte of a line.
    pub(super) const fn at(offset: u64) -> Self {
        Self {
            offset,
            len: 0,
            held: Vec::new(),
        }
    }

    /// Continues within a line that is too long, `len` bytes after the line's start.
    pub(super) const fn within(offset: u64, len: u64, head: Vec<u8>) -> Self {
        Self {
            offset,
            len,
            held: head,
        }
    }

    /// The start of the current line.
    pub(super) const fn line_start(&self) -> u64 {
        self.offset
    }

    /// Returns whether the line that is collected is too long to be held.
    pub(super) const fn is_too_long(&self) -> bool {
        self.len > LINE_BYTES_MAX as u64
    }

    /// Takes bytes up to the end of the line that is collected, and hands out that line;
    /// all bytes and `None` if it does not end in them.
    pub(super) fn next_line(&mut self, bytes: &mut &[u8]) -> Option<Line> {
        let Some(newline) = memchr::memchr(b'\n', bytes) else {
            self.collect(bytes);
            *bytes = &[];
            return None;
        };
        self.collect(&bytes[..newline]);
        *bytes = &bytes[newline + 1..];
        let line = self.take_line(false);
        self.offset = line.end;
        self.len = 0;
        Some(line)
    }

    /// Takes back the memory of a line that was handed out, for the next line.
    pub(super) fn reuse(&mut self, line: Line) {
        if let LineContent::Whole(mut bytes) = line.content
            && self.len == 0
        {
            bytes.clear();
            self.held = bytes;
        }
    }

    fn collect(&mut self, bytes: &[u8]) {
        self.len += bytes.len() as u64;
        if self.is_too_long() {
            self.held.truncate(LINE_HEAD_BYTES);
            self.held.shrink_to(LINE_HEAD_BYTES);
        }
        let room = if self.is_too_long() {
            LINE_HEAD_BYTES.saturating_sub(self.held.len())
        } else {
            bytes.len()
        };
        self.held.extend_from_slice(&bytes[..room.min(bytes.len())]);
    }

    /// The bytes read so far of a line without a newline.
    pub(super) fn into_torn_line(mut self) -> Option<Line> {
        (self.len > 0).then(|| self.take_line(true))
    }

    fn take_line(&mut self, is_torn: bool) -> Line {
        let mut held = std::mem::take(&mut self.held);
        let content = if self.is_too_long() {
            LineContent::TooLong {
                bytes: self.len,
                head: held,
            }
        } else {
            if !is_torn {
                held.truncate(without_carriage_return(&held).len());
            }
            LineContent::Whole(held)
        };
        Line {
            offset: self.offset,
            end: self.offset + self.len + u64::from(!is_torn),
            is_torn,
            content,
        }
    }
}

/// A line that ends with a newline, without the carriage return before it.
pub(super) fn without_carriage_return(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}
