//! From one look at the machine to its sessions.
//!
//! Comes in: a [`Machine`](crate::machine::Machine) and a
//! [scope](crate::sessions::scan::Scope). Goes out: a snapshot of [sessions](session),
//! processes without a session, and problems. [`scan`] goes along the line once; [`merge`]
//! makes one session of all that was found under one name; [`watch`](mod@watch) says what can
//! change the answer, and [`resources`] what the processes of sessions use.

pub mod merge;
pub mod resources;
pub mod scan;
pub mod session;
pub(crate) mod terminal_title;
pub mod watch;
