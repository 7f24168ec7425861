//! Panes: what pane hosts list, and which process lives in which pane.

#![allow(
    clippy::disallowed_methods,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "a test waits by the real clock, skips aloud, and fails by panicking"
)]

mod answers;
mod graphical;
mod hosts;
mod join;
mod live;
mod live_join;
mod recognized;
mod recorded;
mod server;
mod wezterm;
