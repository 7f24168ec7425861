//! Verdicts: what became of the process that a claim names.
//!
//! The only place that judges. Adapters make claims, views print verdicts.

mod judge;
mod reason;
#[cfg(test)]
mod tests;

pub use judge::{Context, Elsewhere, LookFailure, Observed, Recognition, Rival, Seen, judge};
pub use reason::{Confidence, ExitedBecause, LiveBecause, Liveness, UnknownBecause, Verdict};
