//! Signals from the system that something on the machine has changed.
//!
//! A signal says which processes have exited, and otherwise only that something changed: a
//! look finds out what.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(any(not(target_os = "linux"), test))]
#[cfg_attr(
    target_os = "linux",
    expect(unreachable_pub, reason = "only its tests are built here")
)]
mod polled;

use std::time::Duration;

use whosup_core::process::{Pid, StartStamp};

#[cfg(target_os = "linux")]
pub use linux::Signals;
#[cfg(target_os = "linux")]
pub(crate) use linux::{Waker, thread_time};
#[cfg(not(target_os = "linux"))]
pub use polled::Signals;
#[cfg(not(target_os = "linux"))]
pub(crate) use polled::{Waker, thread_time};

/// The signals of one wait.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Happened {
    /// Something that may change the answer, other than the exit of a process.
    pub is_anything: bool,
    /// A file that was open for writing was closed. A lock on it is gone, and nothing else
    /// has changed: a process that exits closes its files just before.
    pub is_closed: bool,
    /// A file was renamed into place: what was written before it is whole.
    pub is_in_place: bool,
    /// An agent was launched, or is about to be.
    pub is_launch: bool,
    /// Processes that have exited.
    pub exited: Vec<(Pid, StartStamp)>,
    /// The engine is to stop.
    pub is_stopped: bool,
}

impl Happened {
    /// Something may have changed the answer, other than the exit of a process.
    #[must_use]
    pub const fn is_change(&self) -> bool {
        self.is_anything || self.is_closed
    }
}

/// The result of an order to watch.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Watched {
    /// A path or process is watched that was not watched before.
    pub(crate) is_more: bool,
    /// A path gives no events, and has to be polled.
    pub(crate) is_polling: bool,
    /// What can't be watched, and why.
    pub(crate) problems: Vec<String>,
}

/// The longest single wait.
pub(crate) const WAIT_MAX: Duration = Duration::from_secs(60);
