//! Counts the tokens in whole transcripts, once each.
//!
//! In: a transcript, how its agent counts ([`Counting`]), and what was counted before.
//! Out: sums by model, branch, directory and quarter of an hour ([`Slot`]), and where to
//! count on ([`Counted`]). Nothing is written here: a cache hands in what it kept.

mod cost;
mod counter;
mod kept;
mod prices;
mod sums;
mod tally;
#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests make their own files")]
mod tests;

pub use self::cost::{Cost, NO_MODEL, Usage};
pub use self::counter::{Counted, Counting};
pub use self::kept::{Kept, KeptSession, Shelf};
pub use self::prices::Prices;
pub use self::sums::{QUARTER_MS, Slot, Sums};
pub use self::tally::Tally;
