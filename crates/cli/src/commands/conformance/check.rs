//! A check, and what all checks use.

use std::ffi::OsString;
use std::time::Duration;

use super::arena::Arena;
use super::subject::{Answer, Launch, StateHome, Subject};

/// How a program is started without the rights of root (setpriv(1)).
pub(super) const WITHOUT_RIGHTS: [&str; 4] = [
    "setpriv",
    "--reuid=65534",
    "--regid=65534",
    "--clear-groups",
];

/// A rule for every writer.
pub(super) struct Check {
    /// The name for `--only`.
    pub(super) id: &'static str,
    /// The rule, as a sentence.
    pub(super) name: &'static str,
    /// Runs the check. The error describes the violation.
    pub(super) run: fn(&Kit) -> Result<Outcome, String>,
}

/// The result of a check that did not fail.
#[derive(Debug)]
pub(super) enum Outcome {
    /// The rule holds.
    Passed,
    /// The rule holds, with a remark.
    Noted(String),
    /// The check is not possible, with the reason.
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

    /// A launch of the program by a wrapper that changes its rights or environment.
    pub(super) fn launch<'a>(&self, wrapper: &[&str], arena: &'a Arena) -> Launch<'a> {
        let wrapper = wrapper.iter().map(OsString::from);
        Launch {
            arena,
            words: wrapper.chain(self.command.iter().cloned()).collect(),
            timeout: self.timeout,
            state_home: StateHome::Elsewhere,
            work_dir: arena.work_dir(),
            named: None,
        }
    }

    /// Starts the program.
    pub(super) fn start(&self, arena: &Arena) -> Result<Subject, String> {
        self.launch(&[], arena).start()
    }

    /// Starts the program and one session.
    pub(super) fn start_session(&self, arena: &Arena, id: &str) -> Result<Subject, String> {
        let mut subject = self.start(arena)?;
        subject.must(&format!("start {id}"))?;
        Ok(subject)
    }

    /// Checks that the program exists and answers: otherwise no check has a meaning.
    pub(super) fn greet(&self) -> Result<(), String> {
        let arena = self.arena()?;
        match self.start(&arena)?.ask("start s-greeted")? {
            Answer::Ok | Answer::Error(_) => Ok(()),
            Answer::Unsupported => Err("it does not know `start`".to_owned()),
        }
    }
}
