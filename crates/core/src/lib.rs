//! Finds out from real files and processes which coding-agent session is live, in which
//! process and terminal pane, and what became of the others.
//!
//! Data moves one way, and the folders are its stations:
//!
//! | Folder | What comes out of it |
//! |---|---|
//! | [`machine`] | the one way to look at the world: files, mounts, processes, commands |
//! | [`adapter`] | the words that all sources share: sketches, claims, clues, phases |
//! | [`sources`] | what agents, records, panes and the common place say |
//! | [`judging`] | verdicts on claims, and which process serves which session |
//! | [`sessions`] | one pass along the line, and the sessions that come of it |
//! | [`views`] | JSON, sentences, and the reader for other programs |
//!
//! Nothing here writes.
//!
//! Programs use [`reader`]. The folders are public for `whosup-track` and the command
//! line, which are built from the same sources; they change with any release.
//!
//! ```
//! use whosup_core::machine::Machine;
//! use whosup_core::sessions::scan::{Scope, scan};
//!
//! let machine = Machine::here();
//! let mut scanned = scan(&machine, &Scope::default());
//! scanned.describe(|session| session.owner.is_some());
//! let wire = whosup_core::views::wire::snapshot(&machine, &scanned.snapshot);
//! assert_eq!(wire.schema_version, 1);
//! ```

pub mod adapter;
pub mod judging;
pub mod machine;
pub mod sessions;
pub mod sources;
pub mod views;

pub use views::reader;
pub use whosup_process as process;
pub use whosup_sidecar as sidecar;
