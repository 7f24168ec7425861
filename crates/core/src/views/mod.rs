//! The output of sessions.
//!
//! Comes in: a snapshot. Goes out: JSON ([`wire`]), sentences ([`explain`]), and answers for
//! other programs (`reader`).

pub mod explain;
#[cfg(feature = "reader")]
pub mod limits;
#[cfg(feature = "reader")]
pub mod reader;
#[cfg(feature = "reader")]
pub mod usage;
pub mod wire;
