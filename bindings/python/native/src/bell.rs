//! Rings when the engine has something new, for who waits for a file descriptor: then a signal
//! ends the wait too, and an event loop can wait for other things at once.

use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsRawFd as _, RawFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

/// How long the first wait for the bell is, and each later one, at most. A signal that comes
/// just before a wait does not end that: its handler runs once the wait is over.
const FIRST_WAIT: Duration = Duration::from_millis(200);
const LATER_WAIT: Duration = Duration::from_secs(60);

/// A bell.
pub(crate) struct Bell {
    heard: UnixStream,
    rope: UnixStream,
}

impl Bell {
    pub(crate) fn new() -> io::Result<Self> {
        let (heard, rope) = UnixStream::pair()?;
        heard.set_nonblocking(true)?;
        rope.set_nonblocking(true)?;
        Ok(Self { heard, rope })
    }

    /// What rings it, from any thread. It never waits: a bell that rings cannot ring more.
    pub(crate) fn ringer(&self) -> io::Result<impl Fn() + Send + 'static> {
        let rope = self.rope.try_clone()?;
        Ok(move || {
            (&rope).write_all(&[1]).ok();
        })
    }

    pub(crate) fn ring(&self) {
        (&self.rope).write_all(&[1]).ok();
    }

    /// What an event loop waits for.
    pub(crate) fn descriptor(&self) -> RawFd {
        self.heard.as_raw_fd()
    }

    /// Silences it. Whoever does so looks for something new afterwards.
    pub(crate) fn silence(&self) {
        let mut bytes = [0; 256];
        while (&self.heard)
            .read(&mut bytes)
            .is_ok_and(|read| read == bytes.len())
        {}
    }

    /// Waits until it rings, while other threads of Python run. Returns whether it rang in
    /// time.
    ///
    /// # Errors
    ///
    /// What a handler of a signal raised: `KeyboardInterrupt`.
    pub(crate) fn wait(&self, py: Python<'_>, timeout: Option<Duration>) -> PyResult<bool> {
        let until = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let mut longest = FIRST_WAIT;
        loop {
            let rest = until.map(|until| until.saturating_duration_since(Instant::now()));
            let wait = rest.unwrap_or(longest).min(longest);
            let timespec = Timespec::try_from(wait).ok();
            let rung = py.detach(|| {
                let mut descriptors = [PollFd::new(&self.heard, PollFlags::IN)];
                poll(&mut descriptors, timespec.as_ref())
            });
            match rung {
                Ok(0) if rest == Some(wait) => return Ok(false),
                Ok(0) | Err(Errno::INTR) => py.check_signals()?,
                Ok(_) => return Ok(true),
                Err(errno) => return Err(io::Error::from(errno).into()),
            }
            longest = LATER_WAIT;
        }
    }
}
