//! Reads transcripts: files of JSON Lines that agents append to, up to gigabytes long, with
//! lines of up to many megabytes.
//!
//! A whole file or a line of unlimited length is never in memory. There are three ways to
//! read: [`TranscriptFile::head`] (the first lines), [`TranscriptFile::backwards`] (from the
//! last line towards the first), and [`TranscriptFile::appended`] (what was appended since a
//! [`Cursor`]).
//!
//! Damage by a crash or a full disk is tolerated: a torn last line, several values on one
//! line, runs of NUL bytes.

mod backwards;
mod cursor;
mod line;
mod missing_end;
mod shorten;
mod sparse;
mod split;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use whosup_sidecar::file::{FileFacts, Links, OpenFile, ReadFileError};

pub use backwards::Backwards;
pub(crate) use cursor::hash;
pub use cursor::{Appended, Cursor, CursorAnswer, FINGERPRINT_BYTES, Restart};
pub use line::{LINE_VALUES_MAX, Line, LineContent, LineJson, LineProblem};
pub use missing_end::MissingEnd;
use split::Splitter;

/// The size of one read, in bytes. It holds some dozens of usual lines, which is enough for
/// the tail of most transcripts.
pub const STEP_BYTES: usize = 64 * 1024;

/// The maximum length of a line that is kept whole, in bytes. Records with a session's title,
/// model or directory are far shorter; longer lines have images or the output of tools.
pub const LINE_BYTES_MAX: usize = 1024 * 1024;

/// How much is read at most to get behind lines that are longer than that, in bytes: a prompt
/// or a result with images.
pub(crate) const LONG_LINES_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// How much of a longer line is kept, in bytes: enough to recognize it.
pub const LINE_HEAD_BYTES: usize = 4 * 1024;

/// How much of the start of a transcript to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeadBounds {
    /// At most so many bytes. A line that does not end within them is left out.
    pub bytes_max: u64,
    /// At most so many lines.
    pub lines_max: usize,
}

impl Default for HeadBounds {
    /// 1 MiB, which a first line with long instructions fits in, and 64 lines.
    fn default() -> Self {
        Self {
            bytes_max: LINE_BYTES_MAX as u64,
            lines_max: 64,
        }
    }
}

/// How far back from a transcript's end to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TailBounds {
    /// At most so many bytes, whatever they hold.
    pub bytes_max: u64,
}

impl Default for TailBounds {
    /// 1 MiB: sixteen steps. A caller that has seen enough stops earlier.
    fn default() -> Self {
        Self {
            bytes_max: LINE_BYTES_MAX as u64,
        }
    }
}

/// Why reading stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stopped {
    /// There is nothing more to read in that direction.
    NothingLeft,
    /// The bound on lines was reached.
    LinesMax,
    /// The bound on bytes was reached.
    BytesMax,
    /// The rest of the file could not be read.
    Failed,
}

/// The first lines of a transcript.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lines {
    /// The lines, in order.
    pub lines: Vec<Line>,
    /// Why there are no more.
    pub stopped: Stopped,
}

/// Why a transcript could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TranscriptError {
    /// The file can't be opened or read.
    #[error(transparent)]
    File(#[from] ReadFileError),
    /// The file became shorter while it was read.
    #[error("cannot read `{}`: it became shorter while it was read", path.display())]
    Shrunk {
        /// The file.
        path: PathBuf,
    },
}

impl TranscriptError {
    /// The error without the path, for messages that name it already.
    #[must_use]
    pub fn reason(&self) -> String {
        match self {
            Self::File(error) => error.reason(),
            Self::Shrunk { .. } => "it became shorter while it was read".to_owned(),
        }
    }
}

/// A transcript that is open for reading.
///
/// It stays the opened file: if another file takes the path, this file is read further. A
/// [`Cursor`] notices that; open the path again to read the other file.
///
/// ```
/// use whosup_core::sources::transcript::{TailBounds, TranscriptFile};
///
/// let directory = tempfile::tempdir()?;
/// let path = directory.path().join("transcript.jsonl");
/// std::fs::write(&path, "{\"model\":\"a\"}\n{\"model\":\"b\"}\n{\"mod")?;
///
/// let file = TranscriptFile::open(&path)?;
/// let mut newest_first = file.backwards(TailBounds::default())?;
/// let torn = newest_first.next().unwrap()?;
/// assert!(torn.is_torn && torn.json().values.is_empty());
/// let last = newest_first.next().unwrap()?;
/// assert_eq!(last.json().values[0]["model"], "b");
///
/// // Later: only what was appended.
/// let mut whole = file.appended(&file.cursor_at_start())?;
/// while whole.next_line()?.is_some() {}
/// let cursor = whole.cursor()?;
/// std::fs::write(&path, "{\"model\":\"a\"}\n{\"model\":\"b\"}\n{\"model\":\"c\"}\n")?;
/// let mut appended = file.appended(&cursor)?;
/// let line = appended.next_line()?.unwrap();
/// assert_eq!(line.json().values[0]["model"], "c");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct TranscriptFile {
    open: OpenFile,
    facts: FileFacts,
}

impl TranscriptFile {
    /// Opens a transcript: a regular file, also through a symbolic link. Never blocks.
    ///
    /// # Errors
    ///
    /// [`TranscriptError::File`] if it is not there, is no regular file or
    /// can't be opened.
    pub fn open(path: &Path) -> Result<Self, TranscriptError> {
        let (open, facts) = OpenFile::open_and_look(path, Links::Follow)?;
        Ok(Self { open, facts })
    }

    /// The metadata of the file when it was opened.
    #[must_use]
    pub fn facts(&self) -> &FileFacts {
        &self.facts
    }

    /// The path that it was opened by.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.open.path()
    }

    /// Reads the first lines, with a last line without an end as torn.
    ///
    /// # Errors
    ///
    /// [`TranscriptError::File`] if the file can't be read.
    pub fn head(&self, bounds: HeadBounds) -> Result<Lines, TranscriptError> {
        let mut splitter = Splitter::at(0);
        let mut lines = Vec::new();
        // One more byte than before, to see in the same step that the file ends there.
        let step = step_within(bounds.bytes_max.min(self.facts.len.saturating_add(1)));
        let mut buffer = vec![0; step];
        let mut offset = 0;
        let stopped = loop {
            if lines.len() >= bounds.lines_max {
                break Stopped::LinesMax;
            }
            let wanted = step_within(bounds.bytes_max.saturating_sub(offset)).min(step);
            if wanted == 0 {
                break self.bytes_max_or_end(offset)?;
            }
            let count = self.open.read_at(&mut buffer[..wanted], offset)?;
            offset += count as u64;
            let mut rest = &buffer[..count];
            while lines.len() < bounds.lines_max
                && let Some(line) = splitter.next_line(&mut rest)
            {
                lines.push(line);
            }
            if count < wanted && lines.len() < bounds.lines_max {
                break Stopped::NothingLeft;
            }
        };
        if stopped == Stopped::NothingLeft {
            lines.extend(splitter.into_torn_line());
        }
        Ok(Lines { lines, stopped })
    }

    /// Returns whether the bound on bytes happens to lie at the end of the file.
    fn bytes_max_or_end(&self, offset: u64) -> Result<Stopped, TranscriptError> {
        if offset < self.open.facts()?.len {
            Ok(Stopped::BytesMax)
        } else {
            Ok(Stopped::NothingLeft)
        }
    }

    /// Reads lines from the last one towards the first.
    ///
    /// What is appended meanwhile is not among them.
    ///
    /// # Errors
    ///
    /// [`TranscriptError::File`] if the file system does not report the length.
    pub fn backwards(&self, bounds: TailBounds) -> Result<Backwards<'_>, TranscriptError> {
        let len = self.open.facts()?.len;
        Ok(Backwards::new(
            &self.open,
            len,
            bounds.bytes_max,
            STEP_BYTES,
        ))
    }
}

/// A step, or less if a bound leaves less.
fn step_within(bytes_left: u64) -> usize {
    usize::try_from(bytes_left).map_or(STEP_BYTES, |left| left.min(STEP_BYTES))
}
