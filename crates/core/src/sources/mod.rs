//! Where claims and clues come from.
//!
//! Comes in: a [`Machine`](crate::machine::Machine), and what to look for. Goes out:
//! [sketches](crate::adapter::Sketch) of sessions with their claims and clues, the panes
//! of terminals, and a [problem](crate::machine::problem) for what could not be read.
//!
//! [`agents`] has a folder for each agent, [`record`] reads what our hooks wrote,
//! [`common_place`] the sidecars of agents that have no adapter, [`panes`] asks the pane
//! hosts. [`transcript`] and `sqlite` are how they read; [`usage`] counts tokens where that
//! is asked for. Nothing here decides who is live.

pub mod agents;
pub mod common_place;
pub mod config;
pub mod dismissal;
pub(crate) mod future_dates;
pub mod panes;
pub mod recognize;
pub mod record;
#[cfg(feature = "sqlite")]
pub(crate) mod sqlite;
pub mod transcript;
pub mod trust;
pub mod usage;
