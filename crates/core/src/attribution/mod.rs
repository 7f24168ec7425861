//! Which process serves which session, where what sources say does not settle it by
//! itself.

pub(crate) mod current;
