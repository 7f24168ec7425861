//! What happens on the machine, as far as the system tells of it.
//!
//! It says which processes have exited, and of all else only that something happened: a look
//! finds out what.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
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

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Happened {
    /// Something that may change the answer, other than the exit of a process.
    pub is_anything: bool,
    /// An agent was launched, or is about to be.
    pub is_launch: bool,
    /// Processes that have exited.
    pub exited: Vec<(Pid, StartStamp)>,
    /// The engine is to stop.
    pub is_stopped: bool,
}

/// What came of an order to watch.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Watched {
    /// Something is watched that was not watched before.
    pub(crate) is_more: bool,
    /// Something gives no events, and has to be looked at all the time.
    pub(crate) is_polling: bool,
    /// What can't be watched, and why.
    pub(crate) problems: Vec<String>,
}

/// The longest that one wait takes.
pub(crate) const WAIT_MAX: Duration = Duration::from_secs(60);
