//! What Copilot CLI leaves on disk, as small as it can be read.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::disk::{Session, date, write};

/// The folder of a session.
pub(crate) fn folder(home: &Path, id: &str) -> PathBuf {
    home.join("session-state").join(id)
}

/// The log of a process, `{pid}` being its PID.
pub(crate) fn log(home: &Path, began_at_ms: i64) -> PathBuf {
    home.join(format!("logs/process-{began_at_ms}-{{pid}}.log"))
}

/// Writes a session's folder, with its transcript.
pub(crate) fn write_session(session: &Session<'_>) {
    let folder = folder(session.home, session.id);
    let work_dir = session.work_dir.display();
    let (born, last) = (date(session.born_at_ms), date(session.last_at_ms));
    let workspace = format!(
        "id: {}\ncwd: {work_dir}\nbranch: main\nclient_name: github/cli\nname: hello\n\
         user_named: false\ncreated_at: {born}\nupdated_at: {born}\n",
        session.id
    );
    write(&folder.join("workspace.yaml"), &workspace);
    let event = |kind: &str, at: &str, data: Value| {
        let event = json!({ "type": kind, "id": kind, "timestamp": at, "data": data });
        format!("{event}\n")
    };
    let start = json!({
        "sessionId": session.id, "version": 1, "copilotVersion": "1.0.102", "startTime": born,
        "selectedModel": "m", "context": { "cwd": work_dir.to_string(), "branch": "main" },
    });
    let reply = json!({ "messageId": "r", "model": "m", "content": "hi", "toolRequests": [] });
    let events = [
        event("session.start", &born, start),
        event("user.message", &born, json!({ "content": "hello" })),
        event("assistant.turn_start", &born, json!({ "turnId": "0" })),
        event("assistant.message", &last, reply),
        event("assistant.turn_end", &last, json!({ "turnId": "0" })),
    ];
    write(&folder.join("events.jsonl"), &events.concat());
}

/// Writes what a running process has written: the lock beside what it holds,
/// and its log.
pub(crate) fn claim(session: &Session<'_>, pid: i32, began_at_ms: i64) {
    let folder = folder(session.home, session.id);
    write(&folder.join(format!("inuse.{pid}.lock")), &pid.to_string());
    let at = date(began_at_ms);
    let id = session.id;
    let log = log(session.home, began_at_ms);
    let log = log.to_string_lossy().replace("{pid}", &pid.to_string());
    write(
        Path::new(&log),
        &format!(
            "{at} [INFO] Workspace initialized: {id} (checkpoints: 0)\n\
             {at} [INFO] Starting Copilot CLI: 1.0.102\n\
             {at} [INFO] Registering foreground session: {id}\n"
        ),
    );
}

/// Writes the list of the sessions that are open in terminals.
pub(crate) fn write_open(home: &Path, ids: &[String], at_ms: i64) {
    let at = date(at_ms);
    let entries = ids.iter().map(|id| {
        let entry =
            json!({ "schemaVersion": 1, "openedAt": at, "refreshedAt": at, "working": false });
        (id.clone(), entry)
    });
    let entries: serde_json::Map<String, Value> = entries.collect();
    let path = home.join("open-sessions-state.json");
    write(&path, &Value::Object(entries).to_string());
}
