//! Sessions in the log that all terminals share.
//!
//! `logs/cline.log`: JSON Lines with `time`, `pid`, `hostname` and, where
//! telemetry is logged (it is, also where it is not sent), `event` and
//! `properties`. Seen in Cline CLI 3.0.65, 2026-11.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;
use whosup_process::Pid;
use whosup_sidecar::SessionId;
use whosup_sidecar::file::FileFacts;

use crate::sources::agents::kit::dialect::{date_at, text_at};
use crate::sources::agents::kit::reading::open_if_there;
use crate::sources::transcript::{TailBounds, TranscriptError};

/// How far back from its end the log is read: some ten thousand prompts.
const LOG_BOUNDS: TailBounds = TailBounds {
    bytes_max: 16 * 1024 * 1024,
};
/// The text in every line that is needed.
const MARK: &str = "\"event\":\"session.";

/// The events by which a process opens and closes a session.
const OPENING: &[&str] = &["session.input_sent", "session.started"];
const CLOSING: &[&str] = &["session.ended", "session.stopped"];

/// The last log line of a process about a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Said {
    pub(super) at_ms: i64,
    /// It has the session open.
    pub(super) is_open: bool,
    pub(super) host: Option<String>,
    pub(super) model: Option<String>,
    pub(super) version: Option<String>,
}

/// The end of the log.
#[derive(Debug, Clone)]
pub(super) struct Log {
    pub(super) path: PathBuf,
    pub(super) facts: FileFacts,
    /// By process and session.
    pub(super) said: BTreeMap<(Pid, SessionId), Said>,
}

/// Reads what was logged from `since_ms` on; `None` if there is no log.
///
/// # Errors
///
/// Why it can't be read.
pub(super) fn read(path: &Path, since_ms: i64) -> Result<Option<Log>, TranscriptError> {
    let Some(file) = open_if_there(path)? else {
        return Ok(None);
    };
    let mut log = Log {
        path: path.to_owned(),
        facts: *file.facts(),
        said: BTreeMap::new(),
    };
    for line in file.backwards(LOG_BOUNDS)? {
        let line = line?;
        if !std::str::from_utf8(line.bytes()).is_ok_and(|text| text.contains(MARK)) {
            continue;
        }
        let Some((key, said)) = line.json().values.first().and_then(parse) else {
            continue;
        };
        if said.at_ms < since_ms {
            break;
        }
        // The newest line was read first; older lines only add fields that it lacks.
        let newest = log.said.entry(key).or_insert_with(|| said.clone());
        newest.model = newest.model.take().or(said.model);
        newest.version = newest.version.take().or(said.version);
    }
    Ok(Some(log))
}

fn parse(line: &Value) -> Option<((Pid, SessionId), Said)> {
    let event = line.get("event")?.as_str()?;
    let is_open = OPENING.contains(&event);
    if !is_open && !CLOSING.contains(&event) {
        return None;
    }
    let pid = Pid::new(line.get("pid")?.as_i64()?).ok()?;
    let properties = line.get("properties")?;
    let text = |key: &str| properties.get(key).and_then(Value::as_str);
    let session = SessionId::parse(text("sessionId")?).ok()?;
    let said = Said {
        at_ms: date_at(line, "/time")?,
        is_open,
        host: text_at(line, "/hostname").map(str::to_owned),
        model: text("modelId").map(str::to_owned),
        version: text("extension_version").map(str::to_owned),
    };
    Some(((pid, session), said))
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests make their own files")]
mod tests {
    use super::*;
    use crate::sources::agents::kit::dialect::date_of;

    fn line(time: &str, pid: &str, event: &str, session: &str) -> String {
        format!(
            "{{\"level\":30,\"time\":\"2026-11-27T{time}Z\",\"pid\":{pid},\"hostname\":\"devbox\",\
             \"event\":\"{event}\",\"properties\":{{\"sessionId\":\"{session}\",\
             \"extension_version\":\"3.0.65\"}},\"msg\":\"x\"}}\n"
        )
    }

    fn read_since(text: &str, since: &str) -> Log {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("cline.log");
        std::fs::write(&path, text).unwrap();
        read(&path, date_of(since).unwrap()).unwrap().unwrap()
    }

    #[test]
    fn the_last_line_of_a_process_about_a_session_counts() {
        let text = [
            line("21:00:00.000", "7", "session.started", "17_a"),
            "{\"level\":30,\"time\":\"2026-11-27T21:00:01.000Z\",\"pid\":7,\"msg\":\"x\"}\n"
                .to_owned(),
            line("21:01:00.000", "7", "session.stopped", "17_a"),
            line("21:01:01.000", "7", "session.started", "17_b"),
            line("21:02:00.000", "8", "session.started", "17_a"),
            line("21:03:00.000", "8", "session.error_recorded", "17_a"),
            line("21:03:00.000", "-8", "session.started", "17_a"),
            line("21:03:00.000", "8", "session.started", "../x"),
            "{\"event\":\"session.started\",\n".to_owned(),
        ]
        .concat();
        let log = read_since(&text, "2026-11-27T20:00:00Z");
        let said: Vec<_> = log
            .said
            .iter()
            .map(|((pid, session), said)| (pid.get(), session.as_str(), said.is_open))
            .collect();
        assert_eq!(
            said,
            [(7, "17_a", false), (7, "17_b", true), (8, "17_a", true)]
        );
        let last = log.said.values().next_back().unwrap();
        assert_eq!(last.at_ms, date_of("2026-11-27T21:02:00Z").unwrap());
        assert_eq!(last.version.as_deref(), Some("3.0.65"));
        assert_eq!(last.host.as_deref(), Some("devbox"));
        let later = read_since(&text, "2026-11-27T21:01:30Z");
        assert_eq!(later.said.len(), 1);
        assert!(
            read(Path::new("/nonexistent/cline.log"), 0)
                .unwrap()
                .is_none()
        );
    }
}
