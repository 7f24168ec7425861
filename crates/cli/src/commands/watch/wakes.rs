//! What a command waits for beside changes: signals, and a reader that goes away.

use std::io;
use std::os::fd::AsFd;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::Builder;
use std::time::Duration;

use anyhow::Context as _;
use rustix::event::{PollFd, PollFlags, poll};
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGWINCH};
use signal_hook::iterator::Signals;

/// Why it goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::commands) enum Wake {
    /// Something changed.
    Change,
    /// The terminal has another size.
    Resized,
    /// It was stopped and runs again: the terminal may have another mode.
    Continued,
    /// Something was typed. No more is waited for until [`Wakes::read_on`].
    Input,
    /// The output has no reader any more.
    NobodyReads,
    /// A signal wants it to end.
    Signal(i32),
    /// Nothing happened in time.
    TimedOut,
}

/// Waits for several things at once.
#[derive(Debug)]
pub(in crate::commands) struct Wakes {
    sender: Sender<Wake>,
    receiver: Receiver<Wake>,
    reads_on: Option<Sender<()>>,
}

impl Wakes {
    /// Waits for signals, `more` among them, and for the end of standard output's reader.
    pub(in crate::commands) fn begin(more: &[i32]) -> anyhow::Result<Self> {
        let (sender, receiver) = channel();
        let failed = || "cannot prepare for the end of watching";
        let wanted = [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGWINCH, SIGCONT];
        let mut signals = Signals::new(wanted.iter().chain(more)).with_context(failed)?;
        let of_signals = sender.clone();
        let wait_for_signals = move || {
            for signal in signals.forever() {
                let wake = match signal {
                    SIGWINCH => Wake::Resized,
                    SIGCONT => Wake::Continued,
                    signal => Wake::Signal(signal),
                };
                if of_signals.send(wake).is_err() {
                    break;
                }
            }
        };
        let of_reader = sender.clone();
        let wait_for_reader = move || {
            // A pipe whose reader has gone is in error, also while nothing is written: poll(2).
            if wait_for(&io::stdout(), PollFlags::empty()).is_ok() {
                of_reader.send(Wake::NobodyReads).ok();
            }
        };
        let start = |name: &str| Builder::new().name(name.to_owned());
        start("signals")
            .spawn(wait_for_signals)
            .with_context(failed)?;
        start("reader")
            .spawn(wait_for_reader)
            .with_context(failed)?;
        Ok(Self {
            sender,
            receiver,
            reads_on: None,
        })
    }

    /// Waits for what is typed, too.
    pub(in crate::commands) fn read_input(&mut self) -> anyhow::Result<()> {
        let (reads_on, may_read) = channel();
        let sender = self.sender.clone();
        let wait = move || {
            while wait_for(&io::stdin(), PollFlags::IN).is_ok() && sender.send(Wake::Input).is_ok()
            {
                // Meanwhile the input belongs to another reader.
                if may_read.recv().is_err() {
                    break;
                }
            }
        };
        Builder::new()
            .name("input".to_owned())
            .spawn(wait)
            .context("cannot wait for keys")?;
        self.reads_on = Some(reads_on);
        Ok(())
    }

    /// What was typed has been read.
    pub(in crate::commands) fn read_on(&self) {
        if let Some(reads_on) = &self.reads_on {
            // A thread that has ended reads no more.
            reads_on.send(()).ok();
        }
    }

    /// What an engine calls when something has changed.
    pub(in crate::commands) fn call(&self) -> impl Fn() + Send + 'static {
        let sender = self.sender.clone();
        move || {
            // The receiver may have ended already.
            sender.send(Wake::Change).ok();
        }
    }

    /// Waits. Changes that have come meanwhile are one.
    pub(in crate::commands) fn next(&self, timeout: Option<Duration>) -> Wake {
        let first = match timeout {
            None => self
                .receiver
                .recv()
                .map_err(|_| RecvTimeoutError::Disconnected),
            Some(timeout) => self.receiver.recv_timeout(timeout),
        };
        let mut wake = first.unwrap_or(Wake::TimedOut);
        while matches!(wake, Wake::Change | Wake::Resized) {
            match self.receiver.try_recv() {
                Ok(next) => wake = next,
                Err(_) => break,
            }
        }
        wake
    }
}

/// Waits for one of these, or for an error or a hang-up.
fn wait_for(file: &impl AsFd, what: PollFlags) -> io::Result<()> {
    loop {
        let mut waited = [PollFd::new(file, what)];
        match poll(&mut waited, None) {
            Ok(_) if waited[0].revents().is_empty() => {}
            Ok(_) => return Ok(()),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}
