//! One run of the program that is checked.

use std::ffi::OsString;
use std::io::{BufRead as _, BufReader, ErrorKind, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, waitid,
};

use super::arena::Arena;

/// How often to look whether a process has ended.
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// How long the last line of an ended process may take to arrive.
const LAST_LINE: Duration = Duration::from_millis(300);

/// The target of `XDG_STATE_HOME`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StateHome {
    /// A directory of the arena that is not the default.
    Elsewhere,
    /// A relative path, which is ignored.
    Relative,
    /// The variable is not set.
    Unset,
}

/// How the program is started.
pub(super) struct Launch<'a> {
    pub(super) arena: &'a Arena,
    /// The program and its arguments.
    pub(super) words: Vec<OsString>,
    pub(super) timeout: Duration,
    pub(super) state_home: StateHome,
    pub(super) work_dir: PathBuf,
    /// The path to start the program by, which gives the process its name.
    pub(super) named: Option<PathBuf>,
}

/// One run of the program; it ends with this value.
pub(super) struct Subject {
    child: Child,
    /// It was reaped, so its PID may belong to another process.
    is_reaped: bool,
    input: Option<ChildStdin>,
    answers: Receiver<String>,
    timeout: Duration,
}

/// The answer to a line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// It did what the line asks.
    Ok,
    /// It failed, and continues.
    Error(String),
    /// It does not support this line.
    Unsupported,
}

impl Launch<'_> {
    fn command(&self) -> Result<Command, String> {
        let (program, arguments) = self.words.split_first().ok_or("no program")?;
        let executed = self.named.as_deref().unwrap_or(Path::new(program));
        let mut command = Command::new(executed);
        command
            .arg0(program)
            .args(arguments)
            .env("HOME", self.arena.home())
            .env_remove("XDG_DATA_HOME")
            .env_remove("XDG_CONFIG_HOME")
            .current_dir(&self.work_dir)
            // A process group of its own: children of the program end with it.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit());
        match self.state_home {
            StateHome::Elsewhere => command.env("XDG_STATE_HOME", self.arena.state()),
            StateHome::Relative => command.env("XDG_STATE_HOME", "relative/state"),
            StateHome::Unset => command.env_remove("XDG_STATE_HOME"),
        };
        Ok(command)
    }

    pub(super) fn start(&self) -> Result<Subject, String> {
        let mut child = self.command()?.spawn().map_err(|error| {
            let program = self.words.first().cloned().unwrap_or_default();
            format!("cannot start `{}`: {error}", program.display())
        })?;
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
        Ok(Subject {
            input: child.stdin.take(),
            child,
            is_reaped: false,
            answers,
            timeout: self.timeout,
        })
    }
}

impl Subject {
    pub(super) fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).unwrap_or(i32::MAX)
    }

    pub(super) fn process(&self) -> Option<Pid> {
        Pid::from_raw(self.pid())
    }

    /// Writes a line without waiting for the answer.
    pub(super) fn send(&mut self, line: &str) -> Result<(), String> {
        let input = self.input.as_mut().ok_or("it was asked to end")?;
        let written = writeln!(input, "{line}").and_then(|()| input.flush());
        written.map_err(|error| match error.kind() {
            ErrorKind::BrokenPipe => "it ended without an answer".to_owned(),
            _ => format!("it does not take `{line}`: {error}"),
        })
    }

    /// Waits for the next answer.
    pub(super) fn answer(&mut self) -> Result<Answer, String> {
        let line = self.next_line()?;
        match line.as_str() {
            "ok" => Ok(Answer::Ok),
            "unsupported" => Ok(Answer::Unsupported),
            line if line == "error" || line.starts_with("error ") => {
                Ok(Answer::Error(line.to_owned()))
            }
            line => Err(format!(
                "it answered `{line}`, which is neither `ok`, `error …` nor `unsupported`"
            )),
        }
    }

    /// The next line, unless the process ends or is silent. The end of its output is not
    /// waited for, since a child may hold the output open.
    fn next_line(&self) -> Result<String, String> {
        let began = Instant::now();
        let mut look_after = LOOK_EVERY;
        loop {
            let has_exited = self.has_exited();
            let wait = if has_exited { LAST_LINE } else { look_after };
            match self.answers.recv_timeout(wait) {
                Ok(line) => return Ok(line),
                Err(RecvTimeoutError::Timeout) if !has_exited => {}
                Err(_) => return Err("it ended without an answer".to_owned()),
            }
            if began.elapsed() >= self.timeout {
                let seconds = self.timeout.as_secs();
                return Err(format!("it did not answer for {seconds} s"));
            }
            look_after = (look_after * 2).min(LAST_LINE);
        }
    }

    /// Writes a line and waits for the answer.
    pub(super) fn ask(&mut self, line: &str) -> Result<Answer, String> {
        self.send(line)?;
        self.answer().map_err(|error| format!("`{line}`: {error}"))
    }

    /// Writes a line that must succeed.
    pub(super) fn must(&mut self, line: &str) -> Result<(), String> {
        match self.ask(line)? {
            Answer::Ok => Ok(()),
            Answer::Error(error) => Err(format!("`{line}`: {error}")),
            Answer::Unsupported => Err(format!("`{line}` is not supported")),
        }
    }

    /// Sends it a signal.
    pub(super) fn signal(&self, signal: Signal) -> Result<(), String> {
        let process = self.process().filter(|_| !self.is_reaped);
        let process = process.ok_or("it has ended")?;
        kill_process(process, signal).map_err(|error| format!("cannot signal it: {error}"))
    }

    /// Stops it with SIGSTOP, and waits until it has stopped.
    #[cfg(target_os = "linux")]
    pub(super) fn stop(&self) -> Result<(), String> {
        self.signal(Signal::STOP)?;
        self.wait_for(WaitIdOptions::STOPPED | WaitIdOptions::EXITED, "stop")
    }

    /// Kills it with SIGKILL, and leaves it as a zombie.
    pub(super) fn kill_only(&self) -> Result<(), String> {
        self.signal(Signal::KILL)?;
        self.wait_for(WaitIdOptions::EXITED, "end")
    }

    /// Kills it with SIGKILL.
    pub(super) fn kill(&mut self) -> Result<(), String> {
        self.kill_only()?;
        self.reap().map(drop)
    }

    /// Waits until it has ended by itself.
    pub(super) fn wait(&mut self) -> Result<ExitStatus, String> {
        drop(self.input.take());
        self.wait_for(WaitIdOptions::EXITED, "end")?;
        self.reap()
    }

    fn wait_for(&self, what: WaitIdOptions, word: &str) -> Result<(), String> {
        let began = Instant::now();
        while began.elapsed() < self.timeout {
            if self.has_become(what) {
                return Ok(());
            }
            std::thread::sleep(LOOK_EVERY);
        }
        Err(format!("it does not {word}"))
    }

    fn has_exited(&self) -> bool {
        self.has_become(WaitIdOptions::EXITED)
    }

    /// Looks at its state without reaping it, which keeps its PID. True once it was reaped.
    fn has_become(&self, what: WaitIdOptions) -> bool {
        let Some(process) = self.process() else {
            return true;
        };
        let options = what | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        !matches!(waitid(WaitId::Pid(process), options), Ok(None))
    }

    /// Ends its children while its PID still names their process group, then reaps it.
    fn reap(&mut self) -> Result<ExitStatus, String> {
        if let Some(group) = self.process().filter(|_| !self.is_reaped) {
            kill_process_group(group, Signal::KILL).ok();
        }
        self.is_reaped = true;
        let reaped = self.child.wait();
        reaped.map_err(|error| format!("cannot wait for it: {error}"))
    }
}

impl Drop for Subject {
    fn drop(&mut self) {
        self.reap().ok();
    }
}
