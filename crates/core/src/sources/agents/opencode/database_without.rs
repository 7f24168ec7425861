//! In the place of the database, in a build that can't read one.

use std::collections::HashMap;
use std::path::Path;

use serde_json::Value;

use super::session::{Row, Turn};
use crate::adapter::Message;
use crate::sources::agents::kit::database::SessionRows;

/// There is none.
#[derive(Debug)]
pub(super) enum SessionDb {}

impl SessionDb {
    /// Can't read it.
    pub(super) fn read(_path: &Path) -> Result<Self, String> {
        Err("this build can't read databases".to_owned())
    }

    pub(super) fn sessions(&self) -> Result<SessionRows<Row>, String> {
        match *self {}
    }

    pub(super) fn last_messages(&self, _ids: &[&str]) -> Result<HashMap<String, i64>, String> {
        match *self {}
    }

    pub(super) fn turn(&self, _id: &str) -> Result<Option<Turn>, String> {
        match *self {}
    }

    pub(super) fn records(&self, _id: &str, _last: Option<usize>) -> Result<Vec<Value>, String> {
        match *self {}
    }

    pub(super) fn first_prompt(&self, _id: &str) -> Result<Option<String>, String> {
        match *self {}
    }

    pub(super) fn messages(&self, _id: &str, _messages_max: usize) -> Result<Vec<Message>, String> {
        match *self {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn that_it_cannot_be_read_is_told() {
        let read = SessionDb::read(Path::new("/nonexistent/opencode.db"));
        assert_eq!(read.unwrap_err(), "this build can't read databases");
    }
}
