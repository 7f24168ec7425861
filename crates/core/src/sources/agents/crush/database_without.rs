//! In the place of the database, in a build that can't read one.

use std::path::Path;

use serde_json::Value;

use super::record::{MessageRow, SessionRow};

/// There is none.
#[derive(Debug)]
pub(super) enum ProjectDb {}

impl ProjectDb {
    /// Finds none.
    #[expect(
        clippy::unnecessary_wraps,
        reason = "the other build may fail to read one"
    )]
    pub(super) fn read(_path: &Path) -> Result<Option<Self>, String> {
        Ok(None)
    }

    /// Tells nothing.
    pub(super) fn sessions(&self) -> Result<Vec<SessionRow>, String> {
        match *self {}
    }

    /// Tells nothing.
    pub(super) fn counted(&self, _session: &str) -> Result<Vec<Value>, String> {
        match *self {}
    }

    /// Tells nothing.
    pub(super) fn newest_messages(
        &self,
        _session: &str,
        _messages_max: usize,
    ) -> Result<Vec<MessageRow>, String> {
        match *self {}
    }
}
