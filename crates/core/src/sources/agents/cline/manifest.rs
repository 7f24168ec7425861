//! `sessions/ID/ID.json`: the session's row in a file of its own. Read if the database
//! cannot be read or is not there.

use std::borrow::Cow;
use std::path::Path;

use serde_json::Value;
use whosup_sidecar::file::Links;
use whosup_sidecar::{SessionId, StrictObject};

use super::AGENT;
use super::row::Row;
use crate::machine::problem::Problem;
use crate::sources::agents::kit::dialect::date_of;
use crate::sources::agents::kit::folder::list_or_report;
use crate::sources::agents::kit::reading::read_if_there;

/// How many sessions are looked at.
const SESSIONS_MAX: usize = 100_000;
/// How long such a file may be. It holds the system prompt.
const MANIFEST_BYTES_MAX: u64 = 4 << 20;

/// Reads all sessions of a home by their files.
pub(super) fn read_all(home: &Path, problems: &mut Vec<Problem>) -> Vec<Row> {
    let directory = home.join("sessions");
    let names = list_or_report(&directory, SESSIONS_MAX, |message| {
        problems.push(Problem::at(&AGENT, &directory, message));
    });
    let mut rows = Vec::new();
    for name in names.texts() {
        let path = directory.join(name).join(format!("{name}.json"));
        match read(&path, name) {
            Ok(row) => rows.extend(row),
            Err(message) => problems.push(Problem::at(&AGENT, &path, message)),
        }
    }
    rows
}

/// Reads one file; `None` if it is not there.
fn read(path: &Path, name: &str) -> Result<Option<Row>, String> {
    let Some(file) = read_if_there(path, MANIFEST_BYTES_MAX, Links::Follow)? else {
        return Ok(None);
    };
    let row = parse(&file.bytes)?;
    let id = row.id.as_str();
    if id != name {
        let message = format!("`session_id` is `{id}`, and its directory is another one's");
        return Err(message);
    }
    Ok(Some(row))
}

fn parse(bytes: &[u8]) -> Result<Row, String> {
    let object = StrictObject::parse(bytes).map_err(|error| error.to_string())?;
    let failed = |error: whosup_sidecar::FieldError| error.to_string();
    let text = |key: &str| -> Result<Option<String>, String> {
        let text = object.opt_string(key).map_err(failed)?;
        Ok(text.filter(|text| !text.is_empty()).map(str::to_owned))
    };
    let id = object.string("session_id").map_err(failed)?;
    let id = SessionId::parse(id).map_err(|error| error.to_string())?;
    let parent = text("parent_session_id")?.and_then(|parent| SessionId::parse(&parent).ok());
    Ok(Row {
        pid: object.opt_pid("pid").map_err(failed)?,
        started_at_ms: text("started_at")?.as_deref().and_then(date_of),
        ended_at_ms: text("ended_at")?.as_deref().and_then(date_of),
        status: text("status")?.unwrap_or_default(),
        is_interactive: object.opt_bool("interactive").map_err(failed)?,
        model: text("model")?,
        work_dir: text("cwd")?.map(Into::into),
        parent: parent.filter(|parent| *parent != id),
        prompt: text("prompt")?,
        metadata: object
            .opt_value("metadata")
            .map_err(failed)?
            .map_or(Value::Null, Cow::into_owned),
        messages: text("messages_path")?.map(Into::into),
        updated_at_ms: None,
        id,
    })
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests make their own files")]
mod tests {
    use super::*;

    const SOUND: &str = r#"{"version": 1, "session_id": "1795813652966_5ypul", "source": "cli",
        "pid": 15253, "started_at": "2026-11-27T21:07:32.967Z", "exit_code": null,
        "status": "idle", "interactive": true, "model": "mock-model", "cwd": "/home/dev/app",
        "prompt": "hi", "metadata": {"title": "hi"}, "messages_path": "/x.messages.json"}"#;

    #[test]
    fn a_file_tells_what_a_row_does() {
        let row = parse(SOUND.as_bytes()).unwrap();
        assert_eq!(row.pid.map(whosup_process::Pid::get), Some(15_253));
        assert_eq!(row.started_at_ms, Some(1_795_813_652_967));
        assert_eq!(row.status, "idle");
        assert_eq!(row.description().title.as_deref(), Some("hi"));
        assert!(parse(br#"{"session_id": "../x"}"#).is_err());
        assert!(parse(br#"{"session_id": "a", "pid": true}"#).is_err());
        assert!(parse(b"{").is_err());
    }

    #[test]
    fn files_of_others_and_broken_ones_are_problems_and_hide_none() {
        let home = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let directory = home.path().join("sessions").join(name);
            std::fs::create_dir_all(&directory).unwrap();
            std::fs::write(directory.join(format!("{name}.json")), text).unwrap();
        };
        write("1795813652966_5ypul", SOUND);
        write("1795813652967_other", SOUND);
        write("1795813652968_torn", "{\"session_id\":");
        std::fs::create_dir_all(home.path().join("sessions/1795813652969_empty")).unwrap();
        let mut problems = Vec::new();
        let rows = read_all(home.path(), &mut problems);
        assert_eq!(rows.len(), 1);
        assert_eq!(problems.len(), 2, "{problems:?}");
    }
}
