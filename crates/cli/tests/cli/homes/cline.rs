//! Cline whose `CLINE_DATA_DIR` or `CLINE_DIR` is set in one process alone.

use rusqlite::Connection;
use serde_json::json;

use super::{Moved, Served, time};
use crate::world::{Posing, now_ms};

const TABLES: &str = "
CREATE TABLE sessions(session_id TEXT PRIMARY KEY, source TEXT NOT NULL, pid INTEGER NOT NULL,
  started_at TEXT NOT NULL, ended_at TEXT, exit_code INTEGER, status TEXT NOT NULL,
  interactive INTEGER NOT NULL, provider TEXT NOT NULL, model TEXT NOT NULL, cwd TEXT NOT NULL,
  workspace_root TEXT NOT NULL, parent_session_id TEXT, is_subagent INTEGER NOT NULL DEFAULT 0,
  prompt TEXT, metadata_json TEXT, messages_path TEXT, updated_at TEXT NOT NULL);
";

/// Starts a process of Cline that writes its session into its log.
fn pose_as_cline(moved: &Moved, variable: &str, below: &str) -> (String, Posing) {
    let session = format!("{}_5ypul", now_ms());
    let program = "lib/node_modules/cline/node_modules/@cline/cli-linux-x64/bin/cline";
    let posing = moved.world.pose(program, |command| {
        command.env(variable, &moved.root);
    });
    let line = json!({
        "level": 30, "time": time(now_ms()), "pid": posing.pid(), "name": "cline.cli",
        "hostname": rustix::system::uname().nodename().to_str().unwrap(),
        "component": "main", "telemetrySink": "TelemetryLoggerSink", "event": "session.started",
        "properties": { "extension_version": "3.0.65", "cline_type": "cli", "sessionId": session, "source": "cli" },
        "msg": "session.started",
    });
    moved.write(&format!("{below}logs/cline.log"), format!("{line}\n"));
    let path = moved.write(&format!("{below}db/sessions.db"), "");
    let database = Connection::open(path).unwrap();
    database.execute_batch(TABLES).unwrap();
    database
        .execute(
            "INSERT INTO sessions VALUES (?1, 'cli', ?2, ?3, NULL, NULL, 'idle', 1, 'mock', 'mock', ?4, ?4, \
             NULL, 0, 'hello', NULL, NULL, ?3)",
            (&session, posing.pid(), time(now_ms()), moved.work_dir()),
        )
        .unwrap();
    (session, posing)
}

#[test]
fn cline_data_dir_of_the_process_alone_is_found() {
    let moved = Moved::new();
    let (session, posing) = pose_as_cline(&moved, "CLINE_DATA_DIR", "");
    moved.check(Served {
        agent: "cline",
        session: &session,
        posing,
        home: Some(&moved.root),
        variable: ("CLINE_DATA_DIR", &moved.root),
        argv: &["cline", "--id", &session],
        env: ("CLINE_DATA_DIR", &moved.root),
    });
}

#[test]
fn cline_dir_of_the_process_alone_is_found() {
    let moved = Moved::new();
    let (session, posing) = pose_as_cline(&moved, "CLINE_DIR", "data/");
    let home = moved.root.join("data");
    moved.check(Served {
        agent: "cline",
        session: &session,
        posing,
        home: Some(&home),
        variable: ("CLINE_DIR", &moved.root),
        argv: &["cline", "--id", &session],
        env: ("CLINE_DATA_DIR", &home),
    });
}
