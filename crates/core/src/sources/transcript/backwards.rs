//! Reads lines from the last towards the first.

use whosup_sidecar::file::OpenFile;

use super::split::without_carriage_return;
use super::{LINE_BYTES_MAX, LINE_HEAD_BYTES, Line, LineContent, Stopped, TranscriptError};

/// Reads lines from the last towards the first, in steps from the end.
///
/// Its buffers stay small: a line longer than [`LINE_BYTES_MAX`] is measured, not kept.
#[derive(Debug)]
pub struct Backwards<'a> {
    file: &'a OpenFile,
    step_bytes: usize,
    bytes_max: u64,
    bytes_left: u64,
    /// How much more may be read because of lines that are too long.
    extra_bytes_left: u64,
    /// A part of the file, and its offset.
    chunk: Vec<u8>,
    chunk_start: u64,
    /// How much of the chunk was not returned yet.
    unread: usize,
    /// The part after that which belongs to the same line.
    rest: LineRest,
    is_torn: bool,
    is_begun: bool,
    stopped: Option<Stopped>,
    buffer_bytes_peak: usize,
}

/// The end of a line whose start has not been read yet.
#[derive(Debug, Default)]
struct LineRest {
    /// The pieces held so far, the last piece first.
    pieces: Vec<Vec<u8>>,
    /// Its length, which is more than is held once the line is too long.
    len: u64,
}

impl<'a> Backwards<'a> {
    /// Starts at the end of a file of `len` bytes.
    pub(super) fn new(file: &'a OpenFile, len: u64, bytes_max: u64, step_bytes: usize) -> Self {
        Self {
            file,
            step_bytes,
            bytes_max,
            bytes_left: bytes_max,
            extra_bytes_left: 0,
            chunk: Vec::new(),
            chunk_start: len,
            unread: 0,
            rest: LineRest::default(),
            is_torn: false,
            is_begun: false,
            stopped: (len == 0).then_some(Stopped::NothingLeft),
            buffer_bytes_peak: 0,
        }
    }

    /// Reads on where a line takes up most of the bound, which then begins anew before that
    /// line; at most `bytes_max` in all.
    #[must_use]
    pub(crate) const fn through_long_lines(mut self, bytes_max: u64) -> Self {
        self.extra_bytes_left = bytes_max.saturating_sub(self.bytes_max);
        self
    }

    /// Why there are no more lines; `None` while there may be some.
    #[must_use]
    pub const fn stopped(&self) -> Option<Stopped> {
        self.stopped
    }

    /// The most memory that the buffers had at once, in bytes.
    #[must_use]
    pub const fn buffer_bytes_peak(&self) -> usize {
        self.buffer_bytes_peak
    }

    fn next_line(&mut self) -> Result<Option<Line>, TranscriptError> {
        while self.stopped.is_none() {
            let unread = &self.chunk[..self.unread];
            if let Some(newline) = memchr::memrchr(b'\n', unread) {
                let line = self.take_line(newline + 1)?;
                self.unread = newline;
                return Ok(Some(line));
            }
            if self.chunk_start == 0 {
                self.stopped = Some(Stopped::NothingLeft);
                return self.take_line(0).map(Some);
            }
            self.rest.keep(unread);
            self.unread = 0;
            self.read_step()?;
        }
        Ok(None)
    }

    /// Reads the part of the file before the chunk, if the bound allows it.
    fn read_step(&mut self) -> Result<(), TranscriptError> {
        if self.bytes_left == 0 && self.rest.len > self.bytes_max / 2 {
            self.add_extra(self.step_bytes as u64);
        }
        let wanted = self.chunk_start.min(self.bytes_left);
        let wanted = usize::try_from(wanted).map_or(self.step_bytes, |w| w.min(self.step_bytes));
        if wanted == 0 {
            self.stopped = Some(Stopped::BytesMax);
            return Ok(());
        }
        self.bytes_left -= wanted as u64;
        self.chunk_start -= wanted as u64;
        self.chunk.resize(wanted, 0);
        self.note_buffers(0);
        if self.file.read_at(&mut self.chunk, self.chunk_start)? < wanted {
            let path = self.file.path().to_owned();
            return Err(TranscriptError::Shrunk { path });
        }
        self.unread = wanted;
        if !self.is_begun {
            self.is_begun = true;
            // The newline at the end of the file begins no further line.
            self.is_torn = self.chunk.last() != Some(&b'\n');
            self.unread -= usize::from(!self.is_torn);
        }
        Ok(())
    }

    fn add_extra(&mut self, bytes: u64) {
        let bytes = bytes.min(self.extra_bytes_left);
        self.extra_bytes_left -= bytes;
        self.bytes_left += bytes;
    }

    /// Takes the line that begins at `from` in the chunk.
    fn take_line(&mut self, from: usize) -> Result<Line, TranscriptError> {
        let rest = std::mem::take(&mut self.rest);
        let len = (self.unread - from) as u64 + rest.len;
        let offset = self.chunk_start + from as u64;
        let is_torn = std::mem::take(&mut self.is_torn);
        if len > self.bytes_max {
            self.add_extra(self.bytes_max.saturating_sub(self.bytes_left));
        }
        let content = if len > LINE_BYTES_MAX as u64 {
            let head = self.read_head(from, offset)?;
            LineContent::TooLong { bytes: len, head }
        } else {
            let mut line = Vec::with_capacity(usize::try_from(len).unwrap_or(0));
            line.extend_from_slice(&self.chunk[from..self.unread]);
            for piece in rest.pieces.iter().rev() {
                line.extend_from_slice(piece);
            }
            if !is_torn {
                line.truncate(without_carriage_return(&line).len());
            }
            self.note_buffers(rest.held_bytes() + line.capacity());
            LineContent::Whole(line)
        };
        Ok(Line {
            offset,
            end: offset + len + u64::from(!is_torn),
            is_torn,
            content,
        })
    }

    /// Reads the first bytes of a line that is too long: from the chunk, or
    /// else from the file, as far as the bound allows.
    fn read_head(&mut self, from: usize, offset: u64) -> Result<Vec<u8>, TranscriptError> {
        let in_chunk = &self.chunk[from..self.unread];
        if let Some(head) = in_chunk.get(..LINE_HEAD_BYTES) {
            return Ok(head.to_vec());
        }
        let wanted = usize::try_from(self.bytes_left)
            .map_or(LINE_HEAD_BYTES, |left| left.min(LINE_HEAD_BYTES));
        self.bytes_left -= wanted as u64;
        let mut head = vec![0; wanted];
        let count = self.file.read_at(&mut head, offset)?;
        head.truncate(count);
        Ok(head)
    }

    fn note_buffers(&mut self, line_bytes: usize) {
        let bytes = self.chunk.capacity() + self.rest.held_bytes() + line_bytes;
        self.buffer_bytes_peak = self.buffer_bytes_peak.max(bytes);
    }
}

impl LineRest {
    /// Puts `bytes` before what is there.
    fn keep(&mut self, bytes: &[u8]) {
        self.len += bytes.len() as u64;
        if self.len > LINE_BYTES_MAX as u64 {
            self.pieces = Vec::new();
        } else if !bytes.is_empty() {
            self.pieces.push(bytes.to_vec());
        }
    }

    fn held_bytes(&self) -> usize {
        self.pieces.iter().map(Vec::capacity).sum()
    }
}

impl Iterator for Backwards<'_> {
    type Item = Result<Line, TranscriptError>;

    fn next(&mut self) -> Option<Self::Item> {
        let line = self.next_line();
        if line.is_err() {
            self.stopped = Some(Stopped::Failed);
        }
        line.transpose()
    }
}

impl std::iter::FusedIterator for Backwards<'_> {}
