//! The made-up worlds of the core's tests, as readers of other languages see
//! them: what [`whosup_core::reader`] answers there, as JSON.
//!
//! For tests alone: a world that is malformed panics.

#![allow(
    clippy::unwrap_used,
    reason = "a test makes its own world, and fails where that fails"
)]

#[path = "../../../crates/core/tests/vector/mod.rs"]
mod vector;
#[path = "../../../crates/core/tests/world/mod.rs"]
mod world;

use std::path::Path;

use serde_json::Value;
use whosup_core::reader::{ListQuery, Reader, Wish};
use whosup_core::sources::config::Config;
use whosup_core::sources::recognize::Users;

/// The list of all sessions in the world of a conformance vector, as JSON;
/// `None` if its file can't be made here.
#[must_use]
pub fn answer_to_vector(vector: &str) -> Option<String> {
    let vector: Value = serde_json::from_str(vector).unwrap();
    let world = vector::World::of(&vector)?;
    Some(vector::list(&world.machine()).to_string())
}

/// The list of sessions in the world of a fixture's folder, as JSON: as deep as
/// the fixture says, with the mark in place of the temporary home.
#[must_use]
pub fn answer_to_fixture(folder: &Path) -> String {
    let world = world::World::of_fixture(folder);
    let machine = world.machine();
    let query = ListQuery {
        wish: Wish {
            is_all: world.file().depth == world::DepthName::All,
            ..Wish::default()
        },
        users: Users::Own,
        ..ListQuery::default()
    };
    let config = Config::default();
    let answer = Reader::new(&machine, &config)
        .list_sessions(&query)
        .unwrap();
    let answer = serde_json::to_value(answer).unwrap();
    world::with_mark(answer, world.home()).to_string()
}
