//! opencode whose `XDG_DATA_HOME` or `OPENCODE_DB` is set in one process alone.

use std::os::unix::process::CommandExt as _;

use rusqlite::Connection;

use super::{Moved, Served};
use crate::world::{Posing, now_ms};

const TABLES: &str = "
CREATE TABLE session(id text PRIMARY KEY, project_id text NOT NULL, parent_id text,
  directory text NOT NULL, title text NOT NULL, version text NOT NULL, model text,
  time_created integer NOT NULL, time_updated integer NOT NULL, time_archived integer);
CREATE TABLE message(id text PRIMARY KEY, session_id text NOT NULL,
  time_created integer NOT NULL, time_updated integer NOT NULL, data text NOT NULL);
CREATE TABLE part(id text PRIMARY KEY, message_id text NOT NULL, session_id text NOT NULL,
  time_created integer NOT NULL, time_updated integer NOT NULL, data text NOT NULL);
";

/// Starts a process of opencode, and makes it a session in the database `below`.
fn pose_as_opencode(moved: &Moved, variable: &str, below: &str) -> (String, Posing) {
    let session = format!("ses_de12dc7e6ffe0MJ{:08}", std::process::id());
    let program = "lib/node_modules/opencode-ai/bin/opencode.exe";
    let value = match variable {
        "OPENCODE_DB" => moved.root.join(below),
        _ => moved.root.clone(),
    };
    let posing = moved.pose_as_shell(program, &session, |command| {
        command.arg0("opencode").env(variable, value);
    });
    let path = moved.write(below, "");
    let database = Connection::open(path).unwrap();
    database.execute_batch(TABLES).unwrap();
    let now = i64::try_from(now_ms()).unwrap();
    database
        .execute(
            "INSERT INTO session VALUES (?1, 'global', NULL, ?2, 'Look', '1.18.33', NULL, ?3, ?3, NULL)",
            (&session, moved.work_dir(), now),
        )
        .unwrap();
    (session, posing)
}

#[test]
fn opencodes_xdg_data_home_of_the_process_alone_is_found() {
    let moved = Moved::new();
    let (session, posing) = pose_as_opencode(&moved, "XDG_DATA_HOME", "opencode/opencode.db");
    let home = moved.root.join("opencode");
    moved.check(Served {
        agent: "opencode",
        session: &session,
        posing,
        home: Some(&home),
        variable: ("XDG_DATA_HOME", &moved.root),
        argv: &["opencode", "--session", &session],
        env: ("XDG_DATA_HOME", &moved.root),
    });
}

#[test]
fn opencode_db_of_the_process_alone_is_found() {
    let moved = Moved::new();
    let (session, posing) = pose_as_opencode(&moved, "OPENCODE_DB", "alone.db");
    let home = moved.root.join("alone.db");
    moved.check(Served {
        agent: "opencode",
        session: &session,
        posing,
        home: Some(&home),
        variable: ("OPENCODE_DB", &home),
        argv: &["opencode", "--session", &session],
        env: ("OPENCODE_DB", &home),
    });
}
