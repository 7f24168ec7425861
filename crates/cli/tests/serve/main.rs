//! `whosup serve`, with real processes that pose as agents, and a client that knows nothing of
//! the server but HTTP.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]
#![allow(clippy::print_stderr, reason = "what is skipped is said")]

mod actions;
mod client;
mod faults;
mod life;
mod questions;
mod stream;
mod trust;
#[allow(unreachable_pub, reason = "tests of several crates use this module")]
#[path = "../../../core/tests/world/wire_schema.rs"]
mod wire_schema;
#[allow(dead_code, reason = "other tests use the rest of it")]
#[path = "../cli/world.rs"]
mod world;
