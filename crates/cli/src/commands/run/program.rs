//! The program as a child of this process.

use std::ffi::OsString;
use std::process::{Child, Command, ExitStatus};
use std::thread;

use anyhow::{Context as _, anyhow};
use rustix::io::retry_on_intr;
use rustix::process::{Signal, WaitId, WaitIdOptions, kill_process, waitid};
use signal_hook::consts::{
    SIGCHLD, SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH,
};
use signal_hook::iterator::exfiltrator::origin::WithOrigin;
use signal_hook::iterator::{Handle, SignalsInfo};
use signal_hook::low_level::siginfo::{Cause, Origin};
use whosup_core::process::{Pid, is_signal_ignored};
use whosup_core::sidecar::Phase;

use super::terminal::Terminal;

/// The handled signals; all except `SIGCHLD` are passed on.
const HEARD: [i32; 9] = [
    SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGCONT, SIGWINCH, SIGCHLD,
];

/// A program that runs as a child of this process.
pub(super) struct Program {
    child: Child,
    pid: Pid,
    signals: Handle,
    passing_on: thread::JoinHandle<()>,
    terminal: Option<Terminal>,
}

impl Program {
    /// Starts it in this terminal, with our standard streams.
    pub(super) fn start(words: &[OsString]) -> anyhow::Result<Self> {
        let (name, arguments) = words.split_first().context("no program")?;
        let signals = listen()?;
        let mut command = Command::new(name);
        command.args(arguments);
        let child = command
            .spawn()
            .with_context(|| format!("cannot run `{}`", name.display()))?;
        Self::of(child, signals, None)
    }

    /// Starts it in a terminal of its own, which is shown in this one.
    pub(super) fn start_in_terminal(words: &[OsString]) -> anyhow::Result<Self> {
        let signals = listen()?;
        let (terminal, child) = Terminal::start(words)?;
        Self::of(child, signals, Some(terminal))
    }

    fn of(
        mut child: Child,
        signals: SignalsInfo<WithOrigin>,
        terminal: Option<Terminal>,
    ) -> anyhow::Result<Self> {
        let watched = Pid::new(i64::from(child.id()))
            .map_err(anyhow::Error::from)
            .and_then(|pid| Ok((pid, raw(pid)?)));
        let (pid, raw) = match watched {
            Ok(watched) => watched,
            Err(error) => {
                // Signals could not be passed on to it.
                child.kill().ok();
                child.wait().ok();
                return Err(error);
            }
        };
        let suspension = terminal.as_ref().map(Terminal::suspension);
        let handle = signals.handle();
        let pass_signals_on = move || {
            let mut signals = signals;
            for origin in signals.forever() {
                match (&suspension, origin.signal) {
                    (Some(suspension), SIGWINCH) => suspension.window.follow(),
                    (Some(suspension), SIGCHLD) => suspension.follow(pid),
                    (None, SIGCHLD) => {}
                    _ => pass_on(&origin, suspension.is_some(), raw),
                }
            }
        };
        let passing_on = match thread::Builder::new().spawn(pass_signals_on) {
            Ok(passing_on) => passing_on,
            Err(error) => {
                child.kill().ok();
                child.wait().ok();
                return Err(error).context("cannot pass signals on: no thread can be started");
            }
        };
        Ok(Self {
            child,
            pid,
            signals: handle,
            passing_on,
            terminal,
        })
    }

    pub(super) const fn pid(&self) -> Pid {
        self.pid
    }

    /// Waits until it has ended, and reaps it. Calls `heard` for each phase that it announces
    /// in a terminal of its own.
    pub(super) fn wait(mut self, heard: impl Fn(Phase)) -> anyhow::Result<ExitStatus> {
        if let Some(terminal) = self.terminal.take()
            && let Err(error) = terminal.show(&heard)
        {
            self.child.kill().ok();
            self.child.wait().ok();
            return Err(error).context("cannot read what is typed: no thread can be started");
        }
        // No other process can have the PID before it is reaped, when no signal is passed on
        // any more.
        let ended = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        let raw = raw(self.pid)?;
        retry_on_intr(|| waitid(WaitId::Pid(raw), ended)).context("cannot wait for it")?;
        self.signals.close();
        self.passing_on
            .join()
            .map_err(|_| anyhow!("the thread that passes signals on has failed"))?;
        Ok(self.child.wait()?)
    }
}

/// Handles signals from now on, so that no signal ends this process before its child.
fn listen() -> anyhow::Result<SignalsInfo<WithOrigin>> {
    // What is ignored stays ignored, by the child too, which would not inherit a handler.
    let heard = HEARD
        .iter()
        .filter(|signal| **signal == SIGCHLD || !is_signal_ignored(**signal));
    SignalsInfo::new(heard).context("cannot listen for signals")
}

fn raw(pid: Pid) -> anyhow::Result<rustix::process::Pid> {
    rustix::process::Pid::from_raw(pid.get()).context("no PID")
}

/// Passes on a signal that was sent to this process alone. A terminal signals the whole
/// foreground process group, with the child unless it has a terminal of its own.
fn pass_on(origin: &Origin, has_own_terminal: bool, child: rustix::process::Pid) {
    if origin.cause == Cause::Kernel && !has_own_terminal {
        return;
    }
    if let Some(signal) = Signal::from_named_raw(origin.signal) {
        // It may have ended already.
        kill_process(child, signal).ok();
    }
}
