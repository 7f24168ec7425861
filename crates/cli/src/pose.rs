//! A process of `whosup demo`: holds the files that it is given, and waits until the demo
//! ends.
//!
//! The demo starts this program once more, under an agent's name and with
//! variables that say what to do. Only the demo sets them.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use rustix::fs::{FlockOperation, flock};

/// Set for a posing process: the PID of the demo.
const DEMO: &str = "WHOSUP_POSE_FOR";
/// The terminal that it takes as its own.
const TERMINAL: &str = "WHOSUP_POSE_TERMINAL";
/// The files that it locks, as a list of paths.
const LOCKS: &str = "WHOSUP_POSE_LOCKS";
/// The files that it keeps open for writing, as a list of paths.
const OPEN: &str = "WHOSUP_POSE_OPEN";

/// What a posing process prints once it is in place.
pub(crate) const READY: &[u8] = b"ready\n";

/// What a posing process does.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pose {
    /// The terminal that it takes as its own, if any.
    pub(crate) terminal: Option<PathBuf>,
    /// The files that it locks, in this order; missing files are made.
    pub(crate) locks: Vec<PathBuf>,
    /// The files that it keeps open for writing; missing files are made.
    pub(crate) open: Vec<PathBuf>,
}

impl Pose {
    /// The environment variables that make a process pose.
    ///
    /// # Errors
    ///
    /// If a path has a character that separates paths in a list.
    pub(crate) fn variables(&self) -> Result<Vec<(&'static str, OsString)>, env::JoinPathsError> {
        let mut variables = vec![
            (DEMO, OsString::from(std::process::id().to_string())),
            (LOCKS, env::join_paths(&self.locks)?),
            (OPEN, env::join_paths(&self.open)?),
        ];
        let terminal = self.terminal.iter();
        variables.extend(terminal.map(|path| (TERMINAL, path.clone().into_os_string())));
        Ok(variables)
    }

    fn from_environment() -> Self {
        let paths = |name| {
            let list = env::var_os(name).unwrap_or_default();
            let paths = env::split_paths(&list);
            paths.filter(|path| path != Path::new("")).collect()
        };
        Self {
            terminal: env::var_os(TERMINAL).map(PathBuf::from),
            locks: paths(LOCKS),
            open: paths(OPEN),
        }
    }

    /// Holds the files until standard input or the demo ends.
    fn hold(&self, demo: &OsStr) -> io::Result<()> {
        end_with(demo)?;
        // A Unix session of its own: Ctrl-C for the demo does not reach it, and only a session
        // leader can take a terminal.
        rustix::process::setsid()?;
        let terminal = self.terminal.as_deref().map(take_terminal);
        let _terminal = terminal.transpose()?;
        let mut held = Vec::new();
        for path in &self.locks {
            let file = open(path)?;
            flock(&file, FlockOperation::NonBlockingLockExclusive)?;
            held.push(file);
        }
        for path in &self.open {
            held.push(open(path)?);
        }
        let mut stdout = io::stdout();
        stdout.write_all(READY)?;
        stdout.flush()?;
        // Nothing is ever written to it.
        io::stdin().read_to_end(&mut Vec::new())?;
        Ok(())
    }
}

/// Poses if the variables say so, and returns the exit code.
pub(crate) fn run_if_posing() -> Option<ExitCode> {
    let demo = env::var_os(DEMO)?;
    Some(match Pose::from_environment().hold(&demo) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // The demo reports it further. If the demo is gone, no process reads this.
            writeln!(io::stdout(), "{error}").ok();
            ExitCode::FAILURE
        }
    })
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).open(path)
}

/// Opens a terminal. The first terminal that the leader of a Unix session opens becomes
/// its own if it may read from it (tty_ioctl(4)).
fn take_terminal(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).open(path)
}

/// Makes this process end with the demo, however the demo ends.
fn end_with(demo: &OsStr) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
    let parent = rustix::process::getppid().map(|pid| pid.as_raw_nonzero().to_string());
    if parent.as_deref().map(OsStr::new) == Some(demo) {
        Ok(())
    } else {
        Err(io::Error::other("its demo has ended"))
    }
}
