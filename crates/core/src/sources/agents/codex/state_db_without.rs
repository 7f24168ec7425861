//! In the place of the state database, in a build that can't read one.

use std::collections::HashMap;
use std::path::Path;

use super::hints::{Failure, Hint};

/// There is none.
#[derive(Debug)]
pub(super) enum StateDb {}

impl StateDb {
    /// Finds none.
    #[expect(
        clippy::unnecessary_wraps,
        reason = "the other build may fail to read one"
    )]
    pub(super) fn newest(_home: &Path) -> Result<Option<Self>, Failure> {
        Ok(None)
    }

    /// Returns no hints: this build reads no databases.
    pub(super) fn hints(&self, _threads: &[&str]) -> Result<HashMap<String, Hint>, Failure> {
        match *self {}
    }
}
