//! Counts the lines of a transcript that are no records.

use serde_json::Value;

use crate::sources::transcript::{Line, LineProblem};

/// Takes the values from the lines of a transcript that is read from both ends.
pub(crate) trait LineReader {
    /// The sound values on a line.
    fn values(&mut self, line: &Line) -> Vec<Value>;

    /// Something that lies further back is still looked for.
    fn wants_more(&self) -> bool {
        false
    }
}

impl LineReader for BadLines {
    fn values(&mut self, line: &Line) -> Vec<Value> {
        self.values(line)
    }
}

/// Lines that are no records: their count, and the error of the first.
#[derive(Debug, Default)]
pub(crate) struct BadLines {
    count: usize,
    first: Option<LineProblem>,
}

impl BadLines {
    /// Counts the unsound values on a line, and returns the sound values. A last line that
    /// is still being written is no problem.
    pub(crate) fn values(&mut self, line: &Line) -> Vec<Value> {
        let json = line.json();
        let is_normal = json
            .problem
            .as_ref()
            .is_none_or(|problem| *problem == LineProblem::Torn);
        if !is_normal {
            self.count += json.bad_count;
            self.first = self.first.take().or(json.problem);
        }
        json.values
    }

    /// The problem message, if there are bad lines.
    pub(crate) fn message(&self) -> Option<String> {
        let first = self.first.as_ref()?;
        let count = self.count;
        Some(match count {
            1 => format!("one of its lines can't be read: {first}"),
            _ => format!("{count} of its lines can't be read, the first because {first}"),
        })
    }
}
