//! From one look at the machine to its sessions.
//!
//! Comes in: a [`Machine`](crate::machine::Machine) and a
//! [scope](crate::sessions::scan::Scope). Goes out: a snapshot of [sessions](session),
//! processes without a session, and problems. [`scan`] runs all stations once; [`merge`]
//! makes one session of all that was found under one key; [`watch`](mod@watch) lists what can
//! change the answer, and [`resources`] measures the processes of sessions.

pub mod merge;
pub mod resources;
pub mod scan;
pub mod session;
pub(crate) mod terminal_title;
pub mod watch;
