//! Names processes so that a reused PID cannot fake them, and reports what is
//! known of each one.
//!
//! A PID names nothing by itself: the kernel hands it out again, containers
//! have PIDs of their own, and a reboot starts over. A process is named by its
//! [`ProcessIdentity`]: the scope in which the PID means something
//! ([`PidScope`]), the PID, and the raw start stamp ([`StartStamp`]).
//!
//! Everything read from the system is a [`Field`]: the value, or the reason
//! why it is absent. "No such process" (`Ok(None)`) and "could not look"
//! (`Err`) never collapse into each other.
//!
//! One look at the table, for questions about many processes:
//!
//! ```
//! use whosup_process::{Pid, ProcessTable, system_backend};
//!
//! let table = ProcessTable::look(system_backend());
//! if let Some(own) = table.seen(Pid::own()) {
//!     for parent in table.ancestors(own) {
//!         let details = table.details(parent);
//!         println!("{} {:?} {:?}", parent.pid, details.argv, details.cwd);
//!     }
//! }
//! ```
//!
//! One process over time, as a lock file or a registry may name it:
//!
//! ```
//! use std::time::Duration;
//! use whosup_process::{Pid, ProbeError, StartStamp, Still, system_backend};
//!
//! fn is_owner_there(pid: Pid, stamp: &StartStamp) -> Result<bool, ProbeError> {
//!     Ok(system_backend().is_still(pid, stamp)? == Still::Running)
//! }
//!
//! let backend = system_backend();
//! if let Ok(Some(own)) = backend.probe(Pid::own()) {
//!     assert!(is_owner_there(own.pid, &own.stamp)?);
//!     if let Some(watch) = backend.watch_exit(own.pid, &own.stamp)? {
//!         assert!(!watch.wait(Some(Duration::ZERO))?);
//!     }
//! }
//! # Ok::<(), ProbeError>(())
//! ```

mod backend;
mod exit_status;
mod exit_watch;
mod field;
pub mod file_system;
mod holder;
mod identity;
mod named;
mod pid;
mod platform;
mod process;
mod recorded;
mod recorded_process;
mod scope;
mod table;
mod view;

pub use backend::{AtPid, AtPids, Backend, Listing, ProbeError};
pub use exit_status::ExitStatus;
pub use exit_watch::ExitWatch;
pub use field::{Absent, Field};
pub use holder::{Access, Among, FileId, Holder, Holders, LockKind, OpenFile};
pub use identity::{ParseStampError, Platform, ProcessIdentity, StampKind, StartStamp, Still};
pub use named::{NamedProcess, Presence};
pub use pid::{Pid, PidError};
#[cfg(target_os = "linux")]
pub use platform::linux;
pub use platform::{is_signal_ignored, system_backend, unsupported};
pub use process::{Details, Process, RunState, StorageBytes, TerminalUse, Tty};
pub use recorded::Recorded;
pub use recorded_process::RecordedProcess;
pub use scope::{BootId, HostName, PidNamespace, PidScope};
pub use table::ProcessTable;
pub use view::{HidePid, View};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
