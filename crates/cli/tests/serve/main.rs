//! `whosup serve`, with real processes that pose as agents, and a client that knows nothing of
//! the server but HTTP.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]
#![allow(clippy::print_stderr, reason = "what is skipped is said")]

mod actions;
#[path = "../cli/chance.rs"]
mod chance;
mod client;
mod faults;
mod life;
mod questions;
#[allow(dead_code, reason = "other tests use the rest of it")]
#[path = "../cli/shell_agent.rs"]
mod shell_agent;
mod soak;
mod stream;
mod trust;
#[allow(dead_code, reason = "other tests use the rest of it")]
#[path = "../cli/watching.rs"]
mod watching;
#[allow(unreachable_pub, reason = "tests of several crates use this module")]
#[path = "../../../core/tests/world/wire_schema.rs"]
mod wire_schema;
#[allow(dead_code, reason = "other tests use the rest of it")]
#[path = "../cli/world.rs"]
mod world;
