//! What one look shows, as views have it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Map, Value};
use whosup_core::adapter::claim::SessionKey;

use crate::change::Why;

/// Everything that one look shows.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rows {
    /// When the look was taken, in milliseconds since 1970.
    pub as_of_ms: i64,
    /// `schema_version` and `host`, as in the wire format.
    pub frame: Arc<Map<String, Value>>,
    /// The sessions.
    pub sessions: BTreeMap<SessionKey, Arc<Row>>,
    /// The agents' processes that no session is known of.
    pub unattributed: Arc<Vec<Value>>,
    /// What could not be read.
    pub problems: Arc<Vec<Value>>,
}

/// One session.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Row {
    /// The session in its wire form.
    pub session: Map<String, Value>,
    /// The directory that it works in, links followed.
    pub directory: Option<PathBuf>,
}

/// A session that is no longer shown.
#[derive(Debug, Clone, PartialEq)]
pub struct Gone {
    /// Why it is not.
    pub why: Why,
    /// What is known of it now.
    pub row: Arc<Row>,
}

impl Row {
    /// A field that is a text.
    #[must_use]
    pub fn text(&self, field: &str) -> Option<&str> {
        self.session.get(field)?.as_str()
    }
}
