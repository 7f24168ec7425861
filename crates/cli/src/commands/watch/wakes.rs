//! What a watching command waits for besides changes: signals, and the end of its reader.

use std::io;
use std::os::fd::AsFd;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::Builder;
use std::time::Duration;

use anyhow::Context as _;
use rustix::event::{PollFd, PollFlags, poll};
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGWINCH};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;
use whosup_core::process::is_signal_ignored;

/// How long a command has to end after a signal. A write to a reader that does not read never
/// returns.
const ENDS_WITHIN: Duration = Duration::from_secs(1);

/// Why the wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::commands) enum Wake {
    /// Something changed.
    Change,
    /// The terminal has another size.
    Resized,
    /// It was stopped and continued: the terminal may have another mode.
    Continued,
    /// There is input. The input is not polled again before [`Wakes::read_on`].
    Input,
    /// The output has no reader any more.
    OutputClosed,
    /// A signal asks it to end.
    Signal(i32),
    /// The time limit was reached.
    TimedOut,
}

/// Waits for several events at once.
#[derive(Debug)]
pub(in crate::commands) struct Wakes {
    sender: Sender<Wake>,
    receiver: Receiver<Wake>,
    reads_on: Option<Sender<()>>,
}

impl Wakes {
    /// Waits for signals and for the end of standard output's reader. A signal to end also ends
    /// this process while it writes.
    pub(in crate::commands) fn begin() -> anyhow::Result<Self> {
        Self::start(&[], |signal| {
            std::thread::sleep(ENDS_WITHIN);
            emulate_default_handler(signal).ok();
        })
    }

    /// The same for a command that also handles `more` signals, and gives back its terminal before
    /// it ends.
    pub(in crate::commands) fn begin_on_terminal(more: &[i32]) -> anyhow::Result<Self> {
        Self::start(more, |_| {})
    }

    fn start(more: &[i32], after_signal: fn(i32)) -> anyhow::Result<Self> {
        let (sender, receiver) = channel();
        let failed = || "cannot prepare for the end of watching";
        let wanted = [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGWINCH, SIGCONT];
        let wanted = wanted.iter().chain(more);
        let wanted = wanted.filter(|signal| !is_signal_ignored(**signal));
        let mut signals = Signals::new(wanted).with_context(failed)?;
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
                if let Wake::Signal(signal) = wake {
                    after_signal(signal);
                }
            }
        };
        let of_reader = sender.clone();
        let wait_for_reader = move || {
            // Without a reader a pipe reports an error, also while nothing is written: poll(2).
            if wait_for(&io::stdout(), PollFlags::empty()).is_ok() {
                of_reader.send(Wake::OutputClosed).ok();
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

    /// Waits for input, too.
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

    /// The input has been read.
    pub(in crate::commands) fn read_on(&self) {
        if let Some(reads_on) = &self.reads_on {
            // If the thread has ended, it reads no more.
            reads_on.send(()).ok();
        }
    }

    /// A callback for an engine to report a change.
    pub(in crate::commands) fn call(&self) -> impl Fn() + Send + 'static {
        let sender = self.sender.clone();
        move || {
            // The receiver may have ended already.
            sender.send(Wake::Change).ok();
        }
    }

    /// Waits. Changes that came meanwhile count as one.
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

/// Waits for one of these events, or for an error or a hang-up.
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
