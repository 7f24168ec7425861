//! A terminal of the program's own, shown in the user's terminal.

use std::env;
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, PipeReader, Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use anyhow::Context as _;
use rustix::fs::OFlags;
use rustix::fs::fcntl_setfl;
use rustix::io::{Errno, FdFlags, fcntl_setfd};
use rustix::process::{
    Signal, WaitId, WaitIdOptions, kill_current_process_group, kill_process_group, waitid,
};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetpgrp, tcgetwinsize,
    tcsetattr, tcsetwinsize,
};
use whosup_core::process::Pid;
use whosup_core::sidecar::Phase;

use super::words::Words;

/// Set for a copy of this program that is to become the other program: the terminal to take
/// first. Its standard input is the pipe to which it reports that it could not.
const TERMINAL: &str = "WHOSUP_RUN_IN_TERMINAL";
/// How long a program may take to prepare for a stop.
const STOPPING_TIME: Duration = Duration::from_millis(50);
/// How much is passed on at once, in bytes.
const PASSED_ON_BYTES: usize = 16 * 1024;

/// The master side of the program's terminal.
pub(super) struct Terminal {
    side: Arc<OwnedFd>,
    /// The former modes of the user's terminal; `None` if there is none.
    before: Option<Termios>,
}

/// The size of a terminal.
pub(super) struct Window {
    side: Arc<OwnedFd>,
}

impl Terminal {
    /// Makes a terminal and starts a program in it.
    pub(super) fn start(words: &[OsString]) -> anyhow::Result<(Self, Child)> {
        let name = words.first().context("no program")?;
        let failed = || "cannot make a terminal";
        let side = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).with_context(failed)?;
        // Not every system can open it so that the program does not have it.
        fcntl_setfd(&side, FdFlags::CLOEXEC).with_context(failed)?;
        grantpt(&side).with_context(failed)?;
        unlockpt(&side).with_context(failed)?;
        let path = ptsname(&side, Vec::new()).with_context(failed)?;
        let path = PathBuf::from(OsString::from_vec(path.into_bytes()));
        let side = Arc::new(side);
        Window {
            side: Arc::clone(&side),
        }
        .follow();
        let open = || OpenOptions::new().read(true).write(true).open(&path);
        // Held until the child has its own end: while no process has that side open, a read
        // reports the end at once.
        let (output, errors) = (open()?, open()?);
        let (outcome, report) = io::pipe()?;
        let mut child = Command::new(env::current_exe()?)
            .args(words)
            .env(TERMINAL, &path)
            .stdin(Stdio::from(report))
            .stdout(Stdio::from(output))
            .stderr(Stdio::from(errors))
            .spawn()
            .context("cannot run it in a terminal of its own")?;
        if let Err(error) = wait_for_program(outcome) {
            child.wait().ok();
            return Err(error).with_context(|| format!("cannot run `{}`", name.display()));
        }
        let terminal = Self {
            before: raw(),
            side,
        };
        Ok((terminal, child))
    }

    /// What is needed to give the user's terminal to the shell for a while.
    pub(super) fn suspension(&self) -> Suspension {
        Suspension {
            before: self.before.clone(),
            window: Window {
                side: Arc::clone(&self.side),
            },
        }
    }

    /// Shows what the program writes, passes on what is typed, and calls `heard` for each
    /// announced phase, until no process has the terminal open any more.
    ///
    /// # Errors
    ///
    /// The system's error if no thread can be started that reads what is typed.
    pub(super) fn show(self, heard: &dyn Fn(Phase)) -> io::Result<()> {
        let typed = Arc::clone(&self.side);
        // Ends with this process: a blocked read of a terminal can't be cancelled.
        thread::Builder::new().spawn(move || pass_on_what_is_typed(&typed))?;
        let mut words = Words::default();
        let mut buffer = vec![0; PASSED_ON_BYTES];
        let mut out = io::stdout().as_fd().try_clone_to_owned().map(File::from);
        while let Ok(count @ 1..) =
            rustix::io::retry_on_intr(|| rustix::io::read(&*self.side, &mut buffer[..]))
        {
            let bytes = buffer.get(..count).unwrap_or_default();
            if let Ok(out) = &mut out {
                // A hang-up of the terminal sends a signal.
                out.write_all(bytes).ok();
            }
            words.read(bytes, heard);
        }
        Ok(())
    }
}

/// Gives the user's terminal to the shell while the program is stopped.
pub(super) struct Suspension {
    before: Option<Termios>,
    pub(super) window: Window,
}

impl Suspension {
    /// If the program, a child of this process, was stopped, the shell gets the terminal until
    /// it continues this process, which then continues the program.
    pub(super) fn follow(&self, program: Pid) {
        let Some(child) = rustix::process::Pid::from_raw(program.get()) else {
            return;
        };
        // The exit is left to the code that reaps it.
        let options = WaitIdOptions::STOPPED | WaitIdOptions::NOHANG;
        let news = waitid(WaitId::Pid(child), options);
        if matches!(news, Ok(Some(status)) if status.stopped()) {
            self.stop_ourselves();
            kill_process_group(child, Signal::CONT).ok();
        }
    }

    /// Stops this process as Ctrl-Z does, and returns once it is continued; without a shell
    /// that does so it returns at once.
    fn stop_ourselves(&self) {
        if let Some(before) = &self.before {
            tcsetattr(io::stdin(), OptionalActions::Drain, before).ok();
        }
        kill_current_process_group(Signal::TSTP).ok();
        // Another thread may get the signal: this thread must not touch the terminal before.
        thread::sleep(STOPPING_TIME);
        if self.before.is_some() {
            raw();
        }
        self.window.follow();
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            tcsetattr(io::stdin(), OptionalActions::Flush, before).ok();
        }
    }
}

impl Window {
    /// Gives the program's terminal the size of the user's.
    pub(super) fn follow(&self) {
        if let Ok(size) = tcgetwinsize(io::stdin()) {
            tcsetwinsize(&*self.side, size).ok();
        }
    }
}

/// Sets the raw mode, and returns the former modes of the terminal.
fn raw() -> Option<Termios> {
    let before = tcgetattr(io::stdin()).ok()?;
    let mut raw = before.clone();
    raw.make_raw();
    tcsetattr(io::stdin(), OptionalActions::Flush, &raw).ok()?;
    Some(before)
}

fn pass_on_what_is_typed(side: &OwnedFd) {
    let mut buffer = vec![0; PASSED_ON_BYTES];
    let mut input = io::stdin().lock();
    let mut last = None;
    while let Ok(count @ 1..) = input.read(&mut buffer) {
        let mut rest = buffer.get(..count).unwrap_or_default();
        let is_stop = asks_to_stop(side, rest);
        last = rest.last().copied();
        while !rest.is_empty() {
            match rustix::io::write(side, rest) {
                Ok(written) => rest = rest.get(written..).unwrap_or_default(),
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => return,
            }
        }
        if is_stop {
            stop_foreground(side);
        }
    }
    // The end of input is a key at a terminal (termios(3), VEOF). After a part of a line it
    // only hands that part over, and must be pressed again.
    let is_within_line = last.is_some_and(|last| last != b'\n') && reads_lines(side);
    let keys: &[u8] = if is_within_line { b"\x04\x04" } else { b"\x04" };
    rustix::io::write(side, keys).ok();
}

/// Whether the program leaves the editing of lines to its terminal.
fn reads_lines(side: &OwnedFd) -> bool {
    tcgetattr(side).is_ok_and(|its| its.local_modes.contains(LocalModes::ICANON))
}

/// Whether a key that stops the program (Ctrl-Z) was typed while the program leaves that
/// key to its terminal. A program that reads every key itself stops itself.
fn asks_to_stop(side: &OwnedFd, typed: &[u8]) -> bool {
    let Ok(its) = tcgetattr(side) else {
        return false;
    };
    let key = its.special_codes[SpecialCodeIndex::VSUSP];
    key != 0 && its.local_modes.contains(LocalModes::ISIG) && typed.contains(&key)
}

/// Stops the foreground process group of the program's terminal. The SIGTSTP of the kernel
/// does not stop a group without a shell above it (setpgid(2), orphaned process groups). A
/// program that handles the signal gets a moment for it.
fn stop_foreground(side: &OwnedFd) {
    thread::sleep(STOPPING_TIME);
    if let Ok(group) = tcgetpgrp(side) {
        kill_process_group(group, Signal::STOP).ok();
    }
}

/// Waits until the copy of this program has become the other program: then the pipe is closed
/// and nothing was reported.
///
/// # Errors
///
/// The system's error that the copy reported.
fn wait_for_program(outcome: PipeReader) -> io::Result<()> {
    let mut report = Vec::new();
    outcome
        .take(size_of::<i32>() as u64)
        .read_to_end(&mut report)?;
    match report.try_into() {
        Ok(number) => Err(io::Error::from_raw_os_error(i32::from_ne_bytes(number))),
        Err(_) => Ok(()),
    }
}

/// See [`super::become_program_if_asked`].
pub(super) fn become_program_if_asked() -> Option<ExitCode> {
    let path = env::var_os(TERMINAL)?;
    let mut words = env::args_os().skip(1);
    let name = words.next()?;
    // Closed when it becomes the program.
    let report = io::stdin().as_fd().try_clone_to_owned();
    let error = match take(&path) {
        Ok(terminal) => Command::new(&name)
            .args(words)
            .env_remove(TERMINAL)
            .stdin(terminal)
            .exec(),
        Err(error) => error,
    };
    let number = error.raw_os_error().unwrap_or(Errno::INVAL.raw_os_error());
    // Without a report, the exit status says that it failed.
    let report = report.and_then(|report| File::from(report).write_all(&number.to_ne_bytes()));
    report.ok();
    Some(ExitCode::FAILURE)
}

/// Takes a terminal as this process's own: the first terminal that the leader of a Unix
/// session opens (tty_ioctl(4)).
fn take(path: &std::ffi::OsStr) -> io::Result<File> {
    rustix::process::setsid()?;
    let terminal = OpenOptions::new().read(true).write(true).open(path)?;
    fcntl_setfl(&terminal, OFlags::empty())?;
    Ok(terminal)
}
