//! Verdicts on the process that a claim names: live, exited or unknown.
//!
//! The only place that judges. Adapters make claims, views print verdicts.

mod judge;
mod reason;
#[cfg(test)]
mod tests;

pub(crate) use judge::is_initial;
pub use judge::{Context, Elsewhere, LookFailure, Observed, Recognition, Rival, Seen, judge};
pub use reason::{Confidence, ExitedBecause, LiveBecause, Liveness, UnknownBecause, Verdict};
