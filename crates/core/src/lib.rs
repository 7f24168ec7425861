//! From real files and processes to a true answer: which coding-agent session
//! is live, in which process and terminal pane, and what became of the others.
//!
//! Data moves one way: *sources* ([`agents`]) make [claims](claim); [`observe`]
//! looks at the processes that they name; [`verdict`] judges; [`merge`] makes
//! [sessions](session) of them; views ([`wire`], [`explain`]) print. A
//! [`scan`](scan::scan) is one pass along that line. It writes nothing.
//!
//! ```
//! use whosup_core::machine::Machine;
//! use whosup_core::scan::{Scope, scan};
//!
//! let machine = Machine::here();
//! let mut scanned = scan(&machine, &Scope::default());
//! scanned.describe(|session| session.owner.is_some());
//! let wire = whosup_core::wire::snapshot(&machine, &scanned.snapshot);
//! assert_eq!(wire.schema_version, 1);
//! ```

pub mod agents;
pub mod attribution;
pub mod claim;
pub mod command;
pub mod common_place;
#[cfg(feature = "reader")]
mod composed;
pub mod config;
pub mod dismissal;
pub mod explain;
mod future_dates;
pub mod hook_event;
pub mod machine;
pub mod merge;
pub mod mounts;
mod names;
pub mod observe;
pub mod panes;
pub mod phase;
pub mod problem;
pub mod reachable;
#[cfg(feature = "reader")]
pub mod reader;
pub mod recognize;
pub mod record;
pub mod scan;
pub mod session;
#[cfg(feature = "sqlite")]
mod sqlite;
mod terminal_title;
pub mod transcript;
pub mod trust;
mod unseen;
pub mod verdict;
pub mod wire;

pub use whosup_process as process;
pub use whosup_sidecar as sidecar;
