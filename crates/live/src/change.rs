//! One change of the view, and its JSON.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use whosup_core::adapter::claim::SessionKey;

use crate::diff::{is_compared, is_shown_as};
use crate::rows::Row;

/// Why a session is no longer shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// Its process has exited, and left nothing that a person needs to know.
    Exited,
    /// It no longer matches the filter.
    Filtered,
    /// A person dismissed it, its day as an orphan is over, or no source names it any more.
    Hidden,
}

impl Why {
    /// The word in the JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Exited => "exited",
            Self::Filtered => "filtered",
            Self::Hidden => "hidden",
        }
    }
}

/// One change of the view.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// A session is shown.
    Added {
        /// Its name.
        key: SessionKey,
        /// The session.
        row: Arc<Row>,
    },
    /// A session has changed.
    Changed {
        /// Its name.
        key: SessionKey,
        /// The session before.
        before: Arc<Row>,
        /// The session now.
        after: Arc<Row>,
    },
    /// A session is no longer shown.
    Removed {
        /// Its name.
        key: SessionKey,
        /// The session before.
        before: Arc<Row>,
        /// Why it is no longer shown.
        why: Why,
        /// The session now.
        row: Arc<Row>,
    },
    /// The processes without a known session have changed.
    Unattributed {
        /// The processes before.
        before: Arc<Vec<Value>>,
        /// The processes now.
        after: Arc<Vec<Value>>,
    },
    /// The problems have changed.
    Problems {
        /// The problems before.
        before: Arc<Vec<Value>>,
        /// The problems now.
        after: Arc<Vec<Value>>,
    },
}

impl Change {
    /// The kind of the change.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Added { .. } => "added",
            Self::Changed { .. } => "changed",
            Self::Removed { .. } => "removed",
            Self::Unattributed { .. } => "unattributed",
            Self::Problems { .. } => "problems",
        }
    }

    /// The session; `None` if the change is about no session.
    #[must_use]
    pub const fn key(&self) -> Option<&SessionKey> {
        match self {
            Self::Added { key, .. } | Self::Changed { key, .. } | Self::Removed { key, .. } => {
                Some(key)
            }
            Self::Unattributed { .. } | Self::Problems { .. } => None,
        }
    }

    /// Whether it changes nothing that is shown: the directory of the session is the same by name,
    /// and a link leads elsewhere.
    pub(crate) fn is_hidden(&self) -> bool {
        match self {
            Self::Changed { before, after, .. } => {
                before.directory != after.directory && is_shown_as(before, after)
            }
            _ => false,
        }
    }

    /// The change as JSON, without kind and cursor.
    #[must_use]
    pub fn fields(&self) -> Map<String, Value> {
        let fields = match self {
            Self::Added { row, .. } => json!({ "session": row.session }),
            Self::Removed { why, row, .. } => json!({ "why": why.name(), "session": row.session }),
            Self::Changed { before, after, .. } => {
                let mut fields = name_of(after);
                fields.insert("changes".to_owned(), changes(before, after).into());
                return fields;
            }
            Self::Unattributed { after, .. } => json!({ "unattributed": **after }),
            Self::Problems { after, .. } => json!({ "problems": **after }),
        };
        match fields {
            Value::Object(fields) => fields,
            _ => Map::new(),
        }
    }
}

fn name_of(row: &Row) -> Map<String, Value> {
    let field = |name: &str| {
        let value = row.session.get(name).cloned().unwrap_or_default();
        (name.to_owned(), value)
    };
    NAME.map(field).into_iter().collect()
}

/// The fields that identify a session.
const NAME: [&str; 3] = ["agent", "session_id", "home"];

/// Field by field, the old and the new value; null for an absent field.
fn changes(before: &Row, after: &Row) -> Map<String, Value> {
    let (before, after) = (&before.session, &after.session);
    let only_before = before.keys().filter(|name| !after.contains_key(*name));
    let names = after.keys().chain(only_before);
    let names = names.filter(|name| is_compared(name));
    let of = |fields: &Map<String, Value>, name: &str| fields.get(name).cloned();
    names
        .filter_map(|name| {
            let old = of(before, name).unwrap_or_default();
            let new = of(after, name).unwrap_or_default();
            (old != new).then(|| (name.clone(), json!({ "old": old, "new": new })))
        })
        .collect()
}

/// Applies a change to the snapshot before it, both as JSON, like a reader of the changes. An
/// unknown change has no effect.
pub fn replay(snapshot: &mut Value, change: &Value) {
    let kind = change["kind"].as_str().unwrap_or_default();
    match kind {
        "snapshot" => *snapshot = change.clone(),
        "unattributed" | "problems" => snapshot[kind] = change[kind].clone(),
        _ => replay_session(snapshot, kind, change),
    }
}

fn replay_session(snapshot: &mut Value, kind: &str, change: &Value) {
    let Some(sessions) = snapshot["sessions"].as_array_mut() else {
        return;
    };
    let named = if kind == "changed" {
        change
    } else {
        &change["session"]
    };
    let is_named = |session: &Value| NAME.iter().all(|name| session[*name] == named[*name]);
    match (kind, sessions.iter().position(is_named)) {
        ("added", None) => sessions.push(change["session"].clone()),
        ("added", Some(at)) => sessions[at] = change["session"].clone(),
        ("removed", Some(at)) => {
            sessions.remove(at);
        }
        ("changed", Some(at)) => {
            for (field, values) in change["changes"].as_object().into_iter().flatten() {
                sessions[at][field.as_str()] = values["new"].clone();
            }
        }
        _ => {}
    }
}
