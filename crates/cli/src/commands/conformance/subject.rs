//! One run of the program that is checked.

use std::ffi::OsString;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use super::arena::Arena;

/// How often it is looked whether a process has ended, while that is waited for.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// One run of the program; it ends with this value.
pub(super) struct Subject {
    child: Child,
    input: Option<ChildStdin>,
    answers: Receiver<String>,
    timeout: Duration,
}

/// What it answered to a line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// It did it.
    Ok,
    /// It could not, and goes on.
    Error(String),
    /// It does not know this line.
    Unsupported,
}

impl Subject {
    pub(super) fn start(
        words: &[OsString],
        arena: &Arena,
        timeout: Duration,
    ) -> Result<Self, String> {
        let (program, arguments) = words.split_first().ok_or("no program")?;
        let mut child = Command::new(program)
            .args(arguments)
            .env("HOME", arena.home())
            .env("XDG_STATE_HOME", arena.state())
            .env_remove("XDG_DATA_HOME")
            .env_remove("XDG_CONFIG_HOME")
            .current_dir(arena.work_dir())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .map_err(|error| format!("cannot start `{}`: {error}", program.display()))?;
        let (said, answers) = channel();
        let output = child.stdout.take().ok_or("no standard output")?;
        let read = move || {
            for line in BufReader::new(output).lines() {
                let Ok(line) = line else { return };
                if said.send(line).is_err() {
                    return;
                }
            }
        };
        if let Err(error) = std::thread::Builder::new().spawn(read) {
            child.kill().ok();
            child.wait().ok();
            return Err(format!("no thread can be started: {error}"));
        }
        Ok(Self {
            input: child.stdin.take(),
            child,
            answers,
            timeout,
        })
    }

    pub(super) fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).unwrap_or(i32::MAX)
    }

    /// Writes a line, and does not wait for the answer.
    pub(super) fn tell(&mut self, line: &str) -> Result<(), String> {
        let input = self.input.as_mut().ok_or("it was told to end")?;
        writeln!(input, "{line}")
            .and_then(|()| input.flush())
            .map_err(|error| format!("it does not take `{line}`: {error}"))
    }

    /// Waits for the next answer.
    pub(super) fn answer(&mut self) -> Result<Answer, String> {
        let line = self.answers.recv_timeout(self.timeout);
        match line.as_deref() {
            Ok("ok") => Ok(Answer::Ok),
            Ok("unsupported") => Ok(Answer::Unsupported),
            Ok(line) if line == "error" || line.starts_with("error ") => {
                Ok(Answer::Error(line.to_owned()))
            }
            Ok(line) => Err(format!(
                "it answered `{line}`, which is neither `ok`, `error …` nor `unsupported`"
            )),
            Err(RecvTimeoutError::Timeout) => {
                let seconds = self.timeout.as_secs();
                Err(format!("it did not answer for {seconds} s"))
            }
            Err(RecvTimeoutError::Disconnected) => Err("it ended without an answer".to_owned()),
        }
    }

    /// Writes a line and waits for the answer.
    pub(super) fn ask(&mut self, line: &str) -> Result<Answer, String> {
        self.tell(line)?;
        self.answer().map_err(|error| format!("`{line}`: {error}"))
    }

    /// Writes a line that must be done.
    pub(super) fn must(&mut self, line: &str) -> Result<(), String> {
        match self.ask(line)? {
            Answer::Ok => Ok(()),
            Answer::Error(error) => Err(format!("`{line}`: {error}")),
            Answer::Unsupported => Err(format!("`{line}` is not supported")),
        }
    }

    /// Kills it with SIGKILL.
    pub(super) fn kill(&mut self) -> Result<(), String> {
        let killed = self.child.kill().and_then(|()| self.child.wait());
        killed
            .map(drop)
            .map_err(|error| format!("cannot kill it: {error}"))
    }

    /// Waits until it has ended by itself.
    pub(super) fn wait(&mut self) -> Result<ExitStatus, String> {
        drop(self.input.take());
        let began = Instant::now();
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return Ok(status),
                Ok(None) if began.elapsed() < self.timeout => std::thread::sleep(LOOK_EVERY),
                Ok(None) => return Err("it does not end".to_owned()),
                Err(error) => return Err(format!("cannot wait for it: {error}")),
            }
        }
    }
}

impl Drop for Subject {
    fn drop(&mut self) {
        // It may have ended already.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
