//! Where claims and clues come from.
//!
//! Comes in: a [`Machine`](crate::machine::Machine), and what to look for. Goes out:
//! [sketches](crate::adapter::Sketch) of sessions with their claims and clues, the panes
//! of terminals, and a [problem](crate::machine::problem) for what could not be read.
//!
//! [`agents`] has a folder for each agent, [`record`] reads the records of our hooks,
//! [`common_place`] the sidecars of agents without an adapter, and [`panes`] asks the pane
//! hosts. [`transcript`] and `sqlite` read files; [`usage`] counts tokens on request. No
//! source decides which session is live.

pub mod agents;
pub mod common_place;
pub mod config;
pub mod dismissal;
pub(crate) mod future_dates;
pub mod panes;
pub mod recognize;
pub mod record;
pub(crate) mod sqlite;
pub mod transcript;
pub mod trust;
pub mod usage;
