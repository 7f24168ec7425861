//! What becomes of what hooks tell, with processes that are made up: whatever
//! order events come in, and whoever dies.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

mod live_or_dead;
mod model;
mod oddities;
mod scene;
