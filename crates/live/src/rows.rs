//! The result of one look, in the form of views.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Map, Value};
use whosup_core::adapter::claim::SessionKey;
use whosup_core::process::{Pid, StampKind, StartStamp};
use whosup_core::sessions::resources::Metered;

use crate::change::Why;

/// Everything that one look shows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rows {
    /// When the look was taken, in milliseconds since 1970.
    pub as_of_ms: i64,
    /// `schema_version` and `host`, as in the wire format.
    pub frame: Arc<Map<String, Value>>,
    /// The sessions.
    pub sessions: BTreeMap<SessionKey, Arc<Row>>,
    /// Sessions as they were last shown, of which only the last process is left: nothing names
    /// them any more, and its exit is their end.
    pub leaving: BTreeMap<SessionKey, Arc<Row>>,
    /// Agent processes without a known session.
    pub unattributed: Arc<Vec<Value>>,
    /// What could not be read.
    pub problems: Arc<Vec<Value>>,
}

/// One session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Row {
    /// The session in its wire form.
    pub session: Map<String, Value>,
    /// Its directory, links followed.
    pub directory: Option<PathBuf>,
}

/// A session that is no longer shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gone {
    /// Why it is no longer shown.
    pub why: Why,
    /// Its current state.
    pub row: Arc<Row>,
}

impl Rows {
    /// The live sessions with the processes that run them, for a
    /// [`Meter`](whosup_core::sessions::resources::Meter).
    #[must_use]
    pub fn metered(&self) -> Vec<Metered> {
        let sessions = self.sessions.iter();
        let metered = sessions.filter_map(|(key, row)| {
            let is_measured =
                row.text("liveness") == Some("live") && row.text("parent_session_id").is_none();
            let (pid, stamp) = row.owner().filter(|_| is_measured)?;
            Some(Metered {
                key: key.clone(),
                pid,
                stamp,
                is_shared: row.session.get("owner_shared") == Some(&Value::Bool(true)),
            })
        });
        metered.collect()
    }
}

impl Row {
    /// A text field.
    #[must_use]
    pub fn text(&self, field: &str) -> Option<&str> {
        self.session.get(field)?.as_str()
    }

    /// The process that runs it, if it is known.
    #[must_use]
    pub fn owner(&self) -> Option<(Pid, StartStamp)> {
        let owner = self.session.get("owner")?;
        let kind = StampKind::from_name(owner["start_stamp_kind"].as_str()?)?;
        let stamp = StartStamp::parse(kind, owner["start_stamp"].as_str()?).ok()?;
        Some((Pid::new(owner["pid"].as_i64()?).ok()?, stamp))
    }
}
