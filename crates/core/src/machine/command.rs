//! External commands: pane hosts only, each bounded in time and output.

#[cfg(not(unix))]
#[path = "command/other.rs"]
mod output;
#[cfg(unix)]
#[path = "command/unix.rs"]
mod output;

use std::ffi::OsString;
use std::fmt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use output::{Outputs, Pipe};

/// How long all commands of one scan may take together.
pub const COMMANDS_TIME_MAX: Duration = Duration::from_secs(2);

/// How much output of a command is read, in bytes.
pub const COMMAND_OUTPUT_BYTES_MAX: usize = 4 << 20;

/// The time between two looks at whether a command has ended.
const POLL_STEP: Duration = Duration::from_millis(2);

/// How often a command that was killed is asked whether it has ended.
const REAPS_MAX: usize = 25;

/// Why a command gave no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CommandError {
    /// The program was not found.
    #[error("cannot run `{program}`: not installed")]
    NotFound {
        /// The program.
        program: String,
    },
    /// It could not be started or read.
    #[error("cannot run `{program}`: {reason}")]
    Failed {
        /// The program.
        program: String,
        /// Why.
        reason: String,
    },
    /// It did not end in time and was stopped.
    #[error("cannot wait for `{program}`: no answer within {} ms", time_max.as_millis())]
    TimedOut {
        /// The program.
        program: String,
        /// The bound.
        time_max: Duration,
    },
}

/// What a command printed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CommandOutput {
    /// It ended with status 0.
    pub is_success: bool,
    /// Its standard output, cut at [`COMMAND_OUTPUT_BYTES_MAX`].
    pub stdout: Vec<u8>,
    /// Its standard error, cut likewise.
    pub stderr: Vec<u8>,
}

/// Runs external commands.
pub trait Commands: fmt::Debug + Send + Sync {
    /// Runs one command without standard input and waits for it until `deadline`.
    ///
    /// # Errors
    ///
    /// [`CommandError`] if it could not be run or did not end in time.
    fn run(
        &self,
        program: &str,
        args: &[OsString],
        deadline: Instant,
    ) -> Result<CommandOutput, CommandError>;

    /// The instant by which commands started now must have answered.
    fn deadline(&self) -> Instant;
}

/// The real commands of this computer.
#[derive(Debug, Clone, Copy)]
pub struct SystemCommands;

impl Commands for SystemCommands {
    fn run(
        &self,
        program: &str,
        args: &[OsString],
        deadline: Instant,
    ) -> Result<CommandOutput, CommandError> {
        let failed = |reason: std::io::Error| match reason.kind() {
            std::io::ErrorKind::NotFound => CommandError::NotFound {
                program: program.to_owned(),
            },
            _ => CommandError::Failed {
                program: program.to_owned(),
                reason: reason.to_string(),
            },
        };
        #[expect(
            clippy::disallowed_methods,
            reason = "this is what Machine::commands leads to"
        )]
        let mut child = Command::new(program)
            .args(args)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(failed)?;
        let pipes = [
            child.stdout.take().map(Pipe::from),
            child.stderr.take().map(Pipe::from),
        ];
        let mut outputs = Outputs::new(pipes).map_err(failed)?;
        let started = now();
        let status = loop {
            // A process that still holds a pipe of the exited command is not waited for: what
            // the command wrote is in the pipe when it has ended.
            let ended = child.try_wait().map_err(failed)?;
            outputs.read();
            if let Some(status) = ended {
                break status;
            }
            if now() >= deadline {
                stop(&mut child);
                return Err(CommandError::TimedOut {
                    program: program.to_owned(),
                    time_max: deadline.saturating_duration_since(started),
                });
            }
            outputs.wait(POLL_STEP);
        };
        let [stdout, stderr] = outputs.into_bytes();
        Ok(CommandOutput {
            is_success: status.success(),
            stdout,
            stderr,
        })
    }

    fn deadline(&self) -> Instant {
        now() + COMMANDS_TIME_MAX
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "commands are bounded by real time"
)]
fn now() -> Instant {
    Instant::now()
}

/// Kills the child, by its handle, but not its own children.
fn stop(child: &mut Child) {
    child.kill().ok();
    for _ in 0..REAPS_MAX {
        // A child that waits for a file system that does not answer exits later, or never.
        if !matches!(child.try_wait(), Ok(None)) {
            break;
        }
        std::thread::sleep(POLL_STEP);
    }
}

/// A machine without commands: each is "not installed".
#[derive(Debug, Clone, Copy)]
pub struct NoCommands;

impl Commands for NoCommands {
    fn run(
        &self,
        program: &str,
        _args: &[OsString],
        _deadline: Instant,
    ) -> Result<CommandOutput, CommandError> {
        Err(CommandError::NotFound {
            program: program.to_owned(),
        })
    }

    fn deadline(&self) -> Instant {
        now()
    }
}

#[cfg(all(test, unix))]
#[path = "command/tests.rs"]
#[allow(
    clippy::disallowed_methods,
    reason = "commands are bounded by real time"
)]
mod tests;
