//! Counts the lines of a transcript that are no records.

use std::collections::BTreeSet;

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

/// How many places of lines are remembered: more lines than a beginning has that is read after
/// the end.
const PLACES_MAX: usize = 1024;

/// Lines that are no records: their count, and the error of the first. Both ends of a short
/// file are the same lines, and each counts once.
#[derive(Debug, Default)]
pub(crate) struct BadLines {
    count: usize,
    /// Where they begin in the file: of many, the foremost.
    places: BTreeSet<u64>,
    first: Option<LineProblem>,
}

impl BadLines {
    /// Counts an unsound line, and returns the sound values. A last line that is still being
    /// written is no problem.
    pub(crate) fn values(&mut self, line: &Line) -> Vec<Value> {
        let json = line.json();
        match json.problem {
            None | Some(LineProblem::Torn) => {}
            Some(problem) => self.add(line.offset, problem),
        }
        json.values
    }

    fn add(&mut self, offset: u64, problem: LineProblem) {
        if !self.places.insert(offset) {
            return;
        }
        self.count += 1;
        if self.places.first() == Some(&offset) {
            self.first = Some(problem);
        }
        if self.places.len() > PLACES_MAX {
            self.places.pop_last();
        }
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
