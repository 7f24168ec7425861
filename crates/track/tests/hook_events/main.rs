//! Hook events in any order, with recorded processes that may die at any time.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

mod live_or_dead;
mod model;
mod oddities;
mod scene;
