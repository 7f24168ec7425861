//! A check, and what all checks use.

use std::ffi::OsString;
use std::time::Duration;

use super::arena::Arena;
use super::subject::Subject;

/// One thing that must hold of every writer.
pub(super) struct Check {
    /// What holds, as a sentence.
    pub(super) name: &'static str,
    /// Finds out. The error says what does not hold.
    pub(super) run: fn(&Kit) -> Result<Outcome, String>,
}

/// How a check that did not fail went.
#[derive(Debug)]
pub(super) enum Outcome {
    /// It holds.
    Passed,
    /// It holds, and there is something to say.
    Noted(String),
    /// It could not be found out, and why.
    Skipped(String),
}

/// The program that is checked.
pub(super) struct Kit {
    command: Vec<OsString>,
    timeout: Duration,
}

impl Kit {
    pub(super) const fn new(command: Vec<OsString>, timeout: Duration) -> Self {
        Self { command, timeout }
    }

    /// An empty home for one check.
    pub(super) fn arena(&self) -> Result<Arena, String> {
        Arena::new().map_err(|error| format!("cannot make a temporary home: {error}"))
    }

    /// Starts the program.
    pub(super) fn start(&self, arena: &Arena) -> Result<Subject, String> {
        self.start_below(&[], arena)
    }

    /// Starts the program by another one that changes what it may do.
    pub(super) fn start_below(&self, wrapper: &[&str], arena: &Arena) -> Result<Subject, String> {
        let wrapper = wrapper.iter().map(OsString::from);
        let words: Vec<OsString> = wrapper.chain(self.command.iter().cloned()).collect();
        Subject::start(&words, arena, self.timeout)
    }

    /// Starts the program and one session.
    pub(super) fn start_session(&self, arena: &Arena, id: &str) -> Result<Subject, String> {
        let mut subject = self.start(arena)?;
        subject.must(&format!("start {id}"))?;
        Ok(subject)
    }
}
