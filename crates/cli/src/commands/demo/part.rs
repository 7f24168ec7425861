//! The parts that processes play in a demo.

use std::path::PathBuf;

use whosup_core::process::{Pid, StartStamp};

/// What one process of the demo poses as.
#[derive(Debug, Clone)]
pub(super) struct Part {
    /// Its name within the demo.
    pub(super) name: &'static str,
    /// The path of its program, below the home.
    pub(super) program: &'static str,
    /// Its arguments, the program's name first.
    pub(super) argv: Vec<String>,
    /// Its working directory, below the home.
    pub(super) work_dir: &'static str,
    /// Whether a person is at its terminal.
    pub(super) terminal: Terminal,
    /// What becomes of it before the scan.
    pub(super) fate: Fate,
    /// The files that it locks.
    pub(super) locks: Vec<PathBuf>,
    /// The files that it keeps open for writing.
    pub(super) open: Vec<PathBuf>,
}

/// Whether a person is at the terminal of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Terminal {
    /// It has a terminal.
    Own,
    /// It has none.
    None,
}

/// What becomes of a process before the scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// It keeps running.
    Stays,
    /// It is killed, and its files stay.
    Crashes,
}

impl Part {
    /// A process with a terminal that keeps running.
    pub(super) fn new(
        name: &'static str,
        program: &'static str,
        argv: &[&str],
        work_dir: &'static str,
    ) -> Self {
        Self {
            name,
            program,
            argv: argv.iter().map(|arg| (*arg).to_owned()).collect(),
            work_dir,
            terminal: Terminal::Own,
            fate: Fate::Stays,
            locks: Vec::new(),
            open: Vec::new(),
        }
    }

    /// The same without a terminal.
    pub(super) const fn without_terminal(mut self) -> Self {
        self.terminal = Terminal::None;
        self
    }

    /// The same, killed before the scan.
    pub(super) const fn crashing(mut self) -> Self {
        self.fate = Fate::Crashes;
        self
    }
}

/// A process that plays a part.
#[derive(Debug, Clone)]
pub(super) struct Actor {
    /// Its PID.
    pub(super) pid: Pid,
    /// When it began, raw.
    pub(super) stamp: StartStamp,
    /// When it began, in milliseconds since 1970.
    pub(super) began_at_ms: i64,
    /// What becomes of it.
    pub(super) fate: Fate,
}
