//! The output of the kit.

use std::io::{self, Write};

use serde::Serialize;

use super::check::{Check, Outcome};
use crate::text::visible;

/// The width of the names of checks.
const NAME_WIDTH: usize = 52;
/// The version of the JSON.
const SCHEMA_VERSION: u32 = 1;

/// How a check ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Result {
    Passed,
    Failed,
    Skipped,
}

/// The result of one check.
#[derive(Debug, Serialize)]
pub(super) struct Checked {
    id: &'static str,
    name: &'static str,
    result: Result,
    /// Why it failed or was skipped, or a remark.
    message: Option<String>,
}

/// The whole run, as `--json` prints it.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    schema_version: u32,
    command: Vec<String>,
    checks: Vec<Checked>,
    passed: usize,
    failed: usize,
    skipped: usize,
}

impl Checked {
    pub(super) fn new(check: &Check, outcome: std::result::Result<Outcome, String>) -> Self {
        let (result, message) = match outcome {
            Ok(Outcome::Passed) => (Result::Passed, None),
            Ok(Outcome::Noted(note)) => (Result::Passed, Some(note)),
            Ok(Outcome::Skipped(why)) => (Result::Skipped, Some(why)),
            Err(why) => (Result::Failed, Some(why)),
        };
        Self {
            id: check.id,
            name: check.name,
            result,
            message,
        }
    }

    /// Writes the line of the table.
    pub(super) fn write_line(&self, out: &mut dyn Write) -> io::Result<()> {
        let word = match self.result {
            Result::Passed => "passed",
            Result::Failed => "FAILED",
            Result::Skipped => "skipped",
        };
        let name = self.name;
        write!(out, "{name:NAME_WIDTH$}  {word}")?;
        match &self.message {
            Some(message) => writeln!(out, ": {}", visible(message))?,
            None => writeln!(out)?,
        }
        out.flush()
    }
}

impl Report {
    pub(super) fn new(command: Vec<String>, checks: Vec<Checked>) -> Self {
        let count = |result| checks.iter().filter(|it| it.result == result).count();
        Self {
            schema_version: SCHEMA_VERSION,
            command,
            passed: count(Result::Passed),
            failed: count(Result::Failed),
            skipped: count(Result::Skipped),
            checks,
        }
    }

    pub(super) const fn has_failures(&self) -> bool {
        self.failed > 0
    }

    /// The counts, for a person.
    pub(super) fn summary(&self) -> String {
        let Self {
            passed,
            failed,
            skipped,
            ..
        } = self;
        format!("{passed} passed, {failed} failed, {skipped} skipped")
    }
}
