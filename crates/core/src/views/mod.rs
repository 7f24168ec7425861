//! The output of sessions.
//!
//! Comes in: a snapshot. Goes out: JSON ([`wire`]), sentences ([`explain`]), and answers for
//! other programs (`reader`).

pub mod explain;
pub mod limits;
pub mod reader;
pub mod usage;
pub mod wire;
