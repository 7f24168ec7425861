//! Records what agents' hooks report, and ends the sessions whose process is gone.
//!
//! The only part of whosup that writes. It writes only whosup's own files, and agents'
//! settings when a person installs hooks. The files of a session, below
//! `$XDG_STATE_HOME/whosup/sessions/AGENT`:
//!
//! | File | What it is |
//! |---|---|
//! | `ID.jsonl` | the event log, the truth: one line for each event, each written at once |
//! | `ID.json` | the record: the log's fold, rewritten by each holder of the lock |
//! | `ID.lock` | held while writing the record, shortening the log or ending the session |
//!
//! An event needs no lock: it is appended, and then looked for at the log's path, because
//! the log may have been shortened meanwhile. So any number of hooks lose nothing and
//! never wait long, and the next reader repairs what a killed hook leaves.
//!
//! A session ends through [`end_session`] alone: because its agent reported it
//! ([`receive`](fn@receive)), or because the [`sweep`](fn@sweep) found its process gone.

mod append;
mod closed_terminal;
mod disk;
mod dismiss;
mod end;
mod error;
mod exit_evidence;
mod git;
mod history;
mod hook_log;
mod install;
mod lock;
mod owner;
mod receive;
mod refresh;
mod service_file;
mod session_meant;
mod settings;
mod shorten;
mod store;
mod sweep;
mod usage;

pub use dismiss::{bring_back, dismiss};
pub use end::{Ended, end_by_hand, end_session};
pub use error::TrackError;
pub use exit_evidence::Supervised;
pub use hook_log::note_problem;
pub use install::{Change, HookSite, Installed, installed, make, plan_install, plan_uninstall};
pub use lock::SessionLock;
pub use owner::{FoundOwner, HookOf, find_owner};
pub use receive::{HookWorld, Prompts, receive};
pub use refresh::refresh;
pub use service_file::ServiceFile;
pub use store::{SessionFiles, Store};
pub use sweep::{KEEP_ENDED, Kept, SweepOptions, SweepReport, Swept, sweep};
pub use usage::{CountJob, JobResult, UsageCache, WholeSession};
