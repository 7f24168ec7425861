//! Which process serves which session.

#[cfg_attr(not(test), allow(dead_code, reason = "for the solver of attributions"))]
pub(crate) mod directory;
