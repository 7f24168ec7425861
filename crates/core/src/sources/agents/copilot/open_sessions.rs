//! `open-sessions-state.json`: the sessions that were open in a terminal.
//!
//! An entry comes when a session is opened and goes when it is closed by
//! `/exit`; it stays when its process was ended or killed, `working` as it
//! was. It names no process. Seen in Copilot CLI 1.0.102, 2026-11.

use std::path::Path;

use serde_json::Value;
use whosup_sidecar::SessionId;
use whosup_sidecar::file::{FileFacts, Links};

use crate::sources::agents::kit::dialect::date_at;
use crate::sources::agents::kit::document::parse_document;
use crate::sources::agents::kit::reading::read_if_there;

/// How long the file may be.
const BYTES_MAX: u64 = 16 << 20;
/// How many sessions of it are looked at.
const SESSIONS_MAX: usize = 20_000;

/// The file's name.
pub(super) const NAME: &str = "open-sessions-state.json";

/// One session that was open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OpenSession {
    pub(super) id: SessionId,
    /// When it was opened.
    pub(super) opened_at_ms: Option<i64>,
    /// When the entry was last brought up to date.
    pub(super) refreshed_at_ms: Option<i64>,
    /// It was in a turn then.
    pub(super) is_working: Option<bool>,
}

/// The file, read.
#[derive(Debug, Default)]
pub(super) struct OpenSessions {
    /// By id.
    pub(super) sessions: Vec<OpenSession>,
    pub(super) facts: Option<FileFacts>,
    /// What could not be read.
    pub(super) problems: Vec<String>,
}

impl OpenSessions {
    /// Reads the file at `path`; none is the same as an empty one.
    pub(super) fn read(path: &Path) -> Self {
        let file = match read_if_there(path, BYTES_MAX, Links::Follow) {
            Ok(Some(file)) => file,
            Ok(None) => return Self::default(),
            Err(message) => return Self::failed(message),
        };
        // It is written in place: a reader may come in between.
        if file.bytes.iter().all(u8::is_ascii_whitespace) {
            return Self::default();
        }
        Self {
            facts: Some(file.facts),
            ..Self::parse(&file.bytes)
        }
    }

    fn failed(problem: String) -> Self {
        Self {
            problems: vec![problem],
            ..Self::default()
        }
    }

    fn parse(bytes: &[u8]) -> Self {
        let entries = match parse_document(bytes) {
            Ok(Value::Object(entries)) => entries,
            Ok(_) => return Self::failed("it is no JSON object".to_owned()),
            Err(message) => return Self::failed(message),
        };
        let mut found = Self::default();
        if entries.len() > SESSIONS_MAX {
            let problem = format!("it has more than {SESSIONS_MAX} entries: the rest is left out");
            found.problems.push(problem);
        }
        for (id, entry) in entries.into_iter().take(SESSIONS_MAX) {
            match SessionId::parse(&id) {
                Ok(id) => found.sessions.push(OpenSession {
                    id,
                    opened_at_ms: date_at(&entry, "/openedAt"),
                    refreshed_at_ms: date_at(&entry, "/refreshedAt"),
                    is_working: entry.get("working").and_then(Value::as_bool),
                }),
                Err(error) => found.problems.push(error.to_string()),
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_read_and_bad_ones_told() {
        let found = OpenSessions::parse(
            br#"{"s-1":{"schemaVersion":1,"openedAt":"2026-11-27T21:00:00.000Z","refreshedAt":"2026-11-27T21:00:01.000Z","working":true},
                 "../x":{},"s-2":7}"#,
        );
        let ids: Vec<&str> = found.sessions.iter().map(|one| one.id.as_str()).collect();
        assert_eq!(ids, ["s-1", "s-2"]);
        assert_eq!(found.sessions[0].opened_at_ms, Some(1_795_813_200_000));
        assert_eq!(found.sessions[0].refreshed_at_ms, Some(1_795_813_201_000));
        assert_eq!(found.sessions[0].is_working, Some(true));
        assert_eq!(found.sessions[1].opened_at_ms, None);
        assert_eq!(found.problems.len(), 1);
    }

    #[test]
    fn anything_else_is_a_problem() {
        for text in ["[]", "{", "7"] {
            let found = OpenSessions::parse(text.as_bytes());
            assert!(found.sessions.is_empty());
            assert_eq!(found.problems.len(), 1, "{text}");
        }
    }
}
