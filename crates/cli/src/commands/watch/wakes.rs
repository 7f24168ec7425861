//! What a command waits for beside changes: signals, and a reader that goes away.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::Builder;
use std::time::Duration;

use anyhow::Context as _;
use rustix::event::{PollFd, PollFlags, poll};
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGWINCH};
use signal_hook::iterator::Signals;

/// Why it goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wake {
    /// Something changed.
    Change,
    /// The terminal has another size, or is ours again.
    Resized,
    /// Nobody reads what is printed.
    NobodyReads,
    /// A signal wants it to end.
    Signal(i32),
    /// Nothing happened in time.
    TimedOut,
}

/// Waits for several things at once.
#[derive(Debug)]
pub(super) struct Wakes {
    sender: Sender<Wake>,
    receiver: Receiver<Wake>,
}

impl Wakes {
    /// Waits for signals and for the end of whoever reads standard output.
    pub(super) fn begin() -> anyhow::Result<Self> {
        let (sender, receiver) = channel();
        let failed = || "cannot prepare for the end of watching";
        let wanted = [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGWINCH, SIGCONT];
        let mut signals = Signals::new(wanted).with_context(failed)?;
        let of_signals = sender.clone();
        let wait_for_signals = move || {
            for signal in signals.forever() {
                let wake = match signal {
                    SIGWINCH | SIGCONT => Wake::Resized,
                    signal => Wake::Signal(signal),
                };
                if of_signals.send(wake).is_err() {
                    break;
                }
            }
        };
        let of_reader = sender.clone();
        let wait_for_reader = move || {
            if wait_until_nobody_reads().is_ok() {
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
        Ok(Self { sender, receiver })
    }

    /// What an engine calls when something has changed.
    pub(super) fn call(&self) -> impl Fn() + Send + 'static {
        let sender = self.sender.clone();
        move || {
            // Whoever has ended wants to know of nothing.
            sender.send(Wake::Change).ok();
        }
    }

    /// Waits. Changes that have come meanwhile are one.
    pub(super) fn next(&self, timeout: Option<Duration>) -> Wake {
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

/// A pipe whose reader has gone is in error, also while nothing is written: poll(2).
fn wait_until_nobody_reads() -> io::Result<()> {
    let stdout = io::stdout();
    loop {
        let mut waited = [PollFd::new(&stdout, PollFlags::empty())];
        match poll(&mut waited, None) {
            Ok(_) if waited[0].revents().is_empty() => {}
            Ok(_) => return Ok(()),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}
