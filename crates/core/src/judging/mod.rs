//! What is true of the claims, and who serves what.
//!
//! Comes in: claims and clues. Goes out: a verdict for each claim, and for each session
//! the process that serves it, or its candidates, or the proof that no process does.
//!
//! [`observe`] looks at the processes that claims name, [`verdict`] judges what was seen,
//! [`attribution`] combines claims, clues and processes. Only [`observe`] looks at the
//! machine; the others are pure.

pub mod attribution;
pub mod observe;
pub(crate) mod unseen;
pub mod verdict;
