//! One line of a transcript, and the JSON on it.

use serde_json::Value;
use whosup_sidecar::without_lone_surrogates;

/// How many values on one line are kept. A sound line has one; two or three come from torn or
/// racing writes.
pub const LINE_VALUES_MAX: usize = 64;

/// One line of a transcript.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Where it begins in the file, in bytes.
    pub offset: u64,
    /// Where the next line begins.
    pub end: u64,
    /// It has no newline at its end: the line is the last of the file, still being written
    /// or cut off by a crash.
    pub is_torn: bool,
    /// Its content.
    pub content: LineContent,
}

/// The content of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LineContent {
    /// All of it, without the newline and a carriage return before it.
    Whole(Vec<u8>),
    /// It is longer than [`LINE_BYTES_MAX`](super::LINE_BYTES_MAX) and was not held.
    TooLong {
        /// How long it is without its newline, in bytes.
        bytes: u64,
        /// Its first bytes, at most [`LINE_HEAD_BYTES`](super::LINE_HEAD_BYTES); empty if the bound on
        /// reading did not allow them.
        head: Vec<u8>,
    },
}

/// The JSON on one line: every valid value on it, and the reasons for the rest.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LineJson {
    /// The values: one on a sound line, none on an empty one.
    pub values: Vec<Value>,
    /// The first part that is no valid value.
    pub problem: Option<LineProblem>,
    /// The number of parts that are no valid values.
    pub bad_count: usize,
}

/// Why a line, or a part of it, is no JSON value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LineProblem {
    /// The line is torn and its last value incomplete: normal during a write.
    #[error("the last line is not complete")]
    Torn,
    /// There are NUL bytes, which a crash of the machine leaves in place of unwritten blocks.
    #[error("there are NUL bytes")]
    NulBytes,
    /// It is no UTF-8.
    #[error("it is not valid UTF-8")]
    NotUtf8,
    /// It is nested deeper than the parser follows (128 levels).
    #[error("its JSON is nested too deep")]
    TooDeep,
    /// It is no JSON.
    #[error("it is not valid JSON: {reason}")]
    Invalid {
        /// The parser's error.
        reason: String,
    },
    /// There are more than [`LINE_VALUES_MAX`] values.
    #[error("there are more than {LINE_VALUES_MAX} values on one line")]
    TooManyValues,
    /// The line is too long to be kept.
    #[error("the line has {bytes} bytes")]
    TooLong {
        /// How many it has.
        bytes: u64,
    },
}

impl Line {
    /// The bytes that were kept: all, or only the first bytes of a line that is too long.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        match &self.content {
            LineContent::Whole(bytes) => bytes,
            LineContent::TooLong { head, .. } => head,
        }
    }

    /// Returns whether the line was too long to be held.
    #[must_use]
    pub fn is_too_long(&self) -> bool {
        matches!(self.content, LineContent::TooLong { .. })
    }

    /// Parses the JSON on the line.
    ///
    /// Several values without a separator are all read. After an invalid part the rest of the line
    /// is skipped, since a value there may be part of another; only after a run of NUL bytes is the
    /// rest read, if it is sound to the end. Half a surrogate pair in an escape (JavaScript writes
    /// such text when it cuts a string) is read as U+FFFD.
    #[must_use]
    pub fn json(&self) -> LineJson {
        let mut json = LineJson::default();
        let bytes = match &self.content {
            LineContent::Whole(bytes) => bytes.as_slice(),
            LineContent::TooLong { bytes, .. } => {
                json.add_problem(LineProblem::TooLong { bytes: *bytes });
                return json;
            }
        };
        let bytes = match bytes.strip_prefix(BYTE_ORDER_MARK) {
            Some(rest) if self.offset == 0 => rest,
            _ => bytes,
        };
        if memchr::memchr(0, bytes).is_none() {
            json.add(bytes, After::Nothing, self.is_torn);
            return json;
        }
        let mut parts = bytes.split(|byte| *byte == 0);
        json.add(
            parts.next().unwrap_or_default(),
            After::Nothing,
            self.is_torn,
        );
        for (at, part) in parts.filter(|part| !part.is_empty()).enumerate() {
            if at == LINE_VALUES_MAX {
                json.add_problem(LineProblem::TooManyValues);
                break;
            }
            json.add(part, After::NulBytes, self.is_torn);
        }
        json.add_problem(LineProblem::NulBytes);
        json
    }
}

/// Some programs put this at the start of a file; it is no part of the text.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// What precedes a part of a line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum After {
    /// The line begins there, and so does a value.
    Nothing,
    /// The part may begin within a value.
    NulBytes,
}

impl LineJson {
    fn add_problem(&mut self, problem: LineProblem) {
        self.problem.get_or_insert(problem);
        self.bad_count += 1;
    }

    /// Adds the values of a part up to the first invalid one. If the part may begin within a value,
    /// it adds all or none.
    fn add(&mut self, part: &[u8], after: After, is_torn: bool) {
        let (values, problem) = parse_values(part, is_torn);
        if after == After::Nothing || problem.is_none() {
            self.values.extend(values);
        }
        if let Some(problem) = problem {
            self.add_problem(problem);
        }
        if self.values.len() > LINE_VALUES_MAX {
            self.values.truncate(LINE_VALUES_MAX);
            self.add_problem(LineProblem::TooManyValues);
        }
    }
}

/// Parses values up to the first invalid one, and at most one more than are kept.
fn parse_values(bytes: &[u8], is_torn: bool) -> (Vec<Value>, Option<LineProblem>) {
    let (values, error) = parse_prefix(bytes);
    let Some(error) = error else {
        return (values, None);
    };
    if let Some(repaired) = without_lone_surrogates(bytes) {
        let (values, error) = parse_prefix(&repaired);
        let problem = error.map(|error| problem_of(&error, &repaired, is_torn));
        return (values, problem);
    }
    (values, Some(problem_of(&error, bytes, is_torn)))
}

fn parse_prefix(bytes: &[u8]) -> (Vec<Value>, Option<serde_json::Error>) {
    let mut values = Vec::new();
    let stream = serde_json::Deserializer::from_slice(bytes).into_iter::<Value>();
    for value in stream.take(LINE_VALUES_MAX + 1) {
        match value {
            Ok(value) => values.push(value),
            Err(error) => return (values, Some(error)),
        }
    }
    (values, None)
}

fn problem_of(error: &serde_json::Error, bytes: &[u8], is_torn: bool) -> LineProblem {
    if is_torn && error.is_eof() {
        return LineProblem::Torn;
    }
    if std::str::from_utf8(bytes).is_err() {
        return LineProblem::NotUtf8;
    }
    let reason = error.to_string();
    // The parser has no code for this error, only its text, which a test checks.
    if reason.starts_with("recursion limit exceeded") {
        LineProblem::TooDeep
    } else {
        LineProblem::Invalid { reason }
    }
}
