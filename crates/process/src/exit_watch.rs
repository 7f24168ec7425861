//! A watch on the exit of one process.

use std::time::Duration;
#[cfg(unix)]
use std::{
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    time::Instant,
};

#[cfg(unix)]
use rustix::event::{PollFd, PollFlags, Timespec, poll};

#[cfg(unix)]
use crate::Absent;
use crate::{Pid, ProbeError};

/// A watch on the exit of one process, which a reused PID cannot fool.
///
/// On Unix it is a descriptor ([`AsFd`]) for `poll`, `epoll` or an event loop:
/// readable once the process has exited with all of its threads, reaped or
/// not, and never before.
#[derive(Debug)]
pub struct ExitWatch {
    pid: Pid,
    #[cfg(unix)]
    descriptor: OwnedFd,
}

impl ExitWatch {
    /// Makes a watch of a descriptor that becomes readable when `pid` exits.
    #[cfg(target_os = "linux")]
    pub(crate) const fn new(pid: Pid, descriptor: OwnedFd) -> Self {
        Self { pid, descriptor }
    }

    /// The process that is watched.
    #[must_use]
    pub const fn pid(&self) -> Pid {
        self.pid
    }

    /// Waits until the process has exited: `Ok(true)`, or `Ok(false)` when
    /// `timeout` is over before. `None` waits for ever; a timeout of zero only looks.
    ///
    /// # Errors
    ///
    /// [`ProbeError`] if the system refuses to wait; that is no fact about the process.
    #[cfg(unix)]
    pub fn wait(&self, timeout: Option<Duration>) -> Result<bool, ProbeError> {
        // A deadline beyond the clock's range counts as no timeout.
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        loop {
            let rest = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            let timespec = rest.and_then(|rest| Timespec::try_from(rest).ok());
            let mut polled = [PollFd::new(&self.descriptor, PollFlags::IN)];
            match poll(&mut polled, timespec.as_ref()) {
                Ok(0) if rest.is_none_or(|rest| rest.is_zero()) => return Ok(false),
                Ok(0) | Err(rustix::io::Errno::INTR) => {}
                Ok(_) if polled[0].revents().contains(PollFlags::IN) => return Ok(true),
                Ok(_) => return Err(self.failed("the descriptor of the watch is unusable")),
                Err(errno) => return Err(self.failed(&errno.to_string())),
            }
        }
    }

    /// Waits until the process has exited; there is no such watch here.
    ///
    /// # Errors
    ///
    /// [`ProbeError::Unsupported`], always.
    #[cfg(not(unix))]
    pub fn wait(&self, _timeout: Option<Duration>) -> Result<bool, ProbeError> {
        Err(ProbeError::Unsupported)
    }

    #[cfg(unix)]
    fn failed(&self, reason: &str) -> ProbeError {
        ProbeError::Process {
            pid: self.pid,
            reason: Absent::Io(reason.to_owned()),
        }
    }
}

#[cfg(unix)]
impl AsFd for ExitWatch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}
