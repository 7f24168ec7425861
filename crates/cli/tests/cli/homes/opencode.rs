//! opencode and Kilo CLI, with `XDG_DATA_HOME` or the variable for the database set in only one
//! process.

use std::os::unix::process::CommandExt as _;
use std::path::Path;

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

/// An agent, its executable, and the variable that names its database.
type Relative = (&'static str, &'static str, &'static str);

const OPENCODE: Relative = (
    "opencode",
    "lib/node_modules/opencode-ai/bin/opencode.exe",
    "OPENCODE_DB",
);
const KILO: Relative = (
    "kilo",
    "lib/node_modules/@kilocode/cli/bin/.kilo",
    "KILO_DB",
);

/// Starts a process of an agent, and makes it a session in the database `below`.
fn pose_as(
    (agent, program, _): Relative,
    moved: &Moved,
    (variable, value): (&str, &Path),
    below: &str,
) -> (String, Posing) {
    let session = format!("ses_de12dc7e6ffe0MJ{:08}", std::process::id());
    let posing = moved.pose_as_shell(program, &session, |command| {
        command.arg0(agent).env(variable, value);
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

#[track_caller]
fn check_data_directory(relative: Relative) {
    let (agent, _, _) = relative;
    let moved = Moved::new();
    let variable = ("XDG_DATA_HOME", moved.root.as_path());
    let below = format!("{agent}/{agent}.db");
    let (session, posing) = pose_as(relative, &moved, variable, &below);
    let home = moved.root.join(agent);
    moved.check(Served {
        agent,
        session: &session,
        posing,
        home: Some(&home),
        variable,
        argv: &[agent, "--session", &session],
        env: variable,
    });
}

#[track_caller]
fn check_database(relative: Relative) {
    let (agent, _, variable) = relative;
    let moved = Moved::new();
    let home = moved.root.join("alone.db");
    let variable = (variable, home.as_path());
    let (session, posing) = pose_as(relative, &moved, variable, "alone.db");
    moved.check(Served {
        agent,
        session: &session,
        posing,
        home: Some(&home),
        variable,
        argv: &[agent, "--session", &session],
        env: variable,
    });
}

#[test]
fn xdg_data_home_of_the_process_alone_is_found() {
    check_data_directory(OPENCODE);
    check_data_directory(KILO);
}

#[test]
fn the_database_variable_of_the_process_alone_is_found() {
    check_database(OPENCODE);
    check_database(KILO);
}
