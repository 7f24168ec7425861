//! Crush whose `CRUSH_GLOBAL_DATA` or `XDG_DATA_HOME` is set in one process
//! alone.

use std::path::PathBuf;

use rusqlite::Connection;
use serde_json::json;

use super::{Moved, Served, time};
use crate::world::now_ms;

const TABLES: &str = "
CREATE TABLE sessions(id text PRIMARY KEY, parent_session_id text, title text NOT NULL,
  message_count integer NOT NULL, prompt_tokens integer NOT NULL, completion_tokens integer NOT NULL,
  cost real NOT NULL, updated_at integer NOT NULL, created_at integer NOT NULL);
CREATE TABLE messages(id text PRIMARY KEY, session_id text NOT NULL, role text NOT NULL,
  parts text NOT NULL, model text, provider text, created_at integer NOT NULL,
  updated_at integer NOT NULL, finished_at integer);
";

/// Starts a process of Crush whose project is in the list of its home, and checks that its session
/// is found in `home`.
#[track_caller]
fn check_crush(variable: &str, below: &str) {
    let moved = Moved::new();
    let home: PathBuf = moved.root.join(below).components().collect();
    let session = moved.world.s1.as_str();
    let lock = moved.lock("shop-data/crush.lock");
    let posing = moved.pose_as_shell("bin/crush", session, |command| {
        command.env(variable, &moved.root).stdout(lock);
    });
    let record = json!({ "pid": posing.pid(), "version": "0.96.1", "started_at": time(now_ms()) });
    let path = moved.root.join("shop-data/crush.lock");
    // Not replaced: the lock is on this file.
    std::fs::write(path, record.to_string()).unwrap();
    let project = json!({
        "path": moved.work_dir(), "data_dir": moved.root.join("shop-data"),
        "last_accessed": time(now_ms()),
    });
    let list = format!("{below}projects.json");
    moved.write(&list, json!({ "projects": [project] }).to_string());
    let database = Connection::open(moved.write("shop-data/crush.db", "")).unwrap();
    database.execute_batch(TABLES).unwrap();
    let now = i64::try_from(now_ms() / 1000).unwrap();
    database
        .execute(
            "INSERT INTO sessions VALUES (?1, NULL, 'Look', 0, 0, 0, 0, ?2, ?2)",
            (session, now),
        )
        .unwrap();
    let data = moved.root.join("shop-data");
    let argv = [
        "crush",
        "--data-dir",
        data.to_str().unwrap(),
        "--session",
        session,
    ];
    moved.check(Served {
        agent: "crush",
        session,
        posing,
        home: Some(&home),
        variable: (variable, &moved.root),
        argv: &argv,
        env: ("CRUSH_GLOBAL_DATA", &home),
    });
}

#[test]
fn crush_global_data_of_the_process_alone_is_found() {
    check_crush("CRUSH_GLOBAL_DATA", "");
}

#[test]
fn crushs_xdg_data_home_of_the_process_alone_is_found() {
    check_crush("XDG_DATA_HOME", "crush/");
}
