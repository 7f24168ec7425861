//! Scans of projects with real locks and processes.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use whosup_process::{ProcessTable, system_backend};

use super::*;
use crate::adapter::Depth;
use crate::machine::command::SystemCommands;
use crate::machine::mounts::Mounts;
use crate::machine::{Environment, Machine};
use crate::sources::agents::crush::Crush;
use crate::sources::recognize::find_agent_processes;

const OLD: &str = "3f9ec43d-9381-4d61-8c0d-176b7c0df906";
const NEW: &str = "a1b2c3d4-e5f6-4a7b-8c9d-0e1f2a3b4c5d";
/// The short form of [`OLD`].
const OLD_SHORT: &str = "0cfc91f";
const SCHEMA: &str = "CREATE TABLE sessions (id TEXT PRIMARY KEY, parent_session_id TEXT,
    title TEXT NOT NULL, message_count INTEGER, updated_at INTEGER, created_at INTEGER);
    CREATE TABLE messages (id TEXT PRIMARY KEY, session_id TEXT, role TEXT, parts TEXT,
    model TEXT, created_at INTEGER, updated_at INTEGER)";

/// A project on this machine, which its home lists.
struct World {
    dir: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let world = Self { dir };
        fs::create_dir_all(world.data_dir()).unwrap();
        fs::create_dir_all(world.home()).unwrap();
        let list = serde_json::json!({"projects": [
            {"path": world.dir.path().join("app"), "data_dir": world.data_dir()},
        ]});
        fs::write(world.home().join("projects.json"), list.to_string()).unwrap();
        fs::write(world.data_dir().join("crush.lock"), "").unwrap();
        let shell = fs::canonicalize("/bin/sh").unwrap();
        crate::sources::agents::kit::program_tests::copy_program(
            shell,
            world.dir.path().join("crush"),
        );
        world.add(SCHEMA);
        world.add(&format!(
            "INSERT INTO sessions VALUES ('{OLD}', NULL, 'Old', 0, 1795800000, 1795800000)"
        ));
        world
    }

    fn home(&self) -> PathBuf {
        self.dir.path().join("global/crush")
    }

    fn data_dir(&self) -> PathBuf {
        self.dir.path().join("app/.crush")
    }

    fn add(&self, sql: &str) {
        let connection = rusqlite::Connection::open(self.data_dir().join("crush.db")).unwrap();
        connection.execute_batch(sql).unwrap();
    }

    fn scan(&self, depth: Depth) -> Found<AgentScan> {
        let home = Home {
            root: self.home().into(),
            is_default: true,
            owner_uid: None,
        };
        let environment = Environment::new(Some(self.dir.path().to_owned()), None, []);
        let table = ProcessTable::look(system_backend());
        let mounts = Mounts::of_this_machine();
        let machine = Machine::new(environment, 0, table, mounts, Arc::new(SystemCommands));
        let mut problems = Vec::new();
        let found = find_agent_processes(&machine, &[&Crush], &mut problems);
        let mut processes = found.recognized;
        // Other tests run at the same time.
        processes.retain(|process| {
            let work_dir = process.work_dir();
            work_dir.is_some_and(|dir| dir.starts_with(self.dir.path()))
        });
        for process in &mut processes {
            process.homes.clear();
        }
        let look = Look {
            machine: &machine,
            depth: &depth,
            processes: &processes,
        };
        scan(&look, &home)
    }

    /// The sessions that a process may have open, and that process.
    fn open(&self) -> Vec<(String, BTreeSet<Pid>)> {
        let sketches = self.scan(Depth::Live).found.sketches;
        let open = sketches.into_iter().map(|sketch| {
            let owners = sketch.clues.iter().map(|clue| clue.pid).collect();
            (sketch.key.session.as_str().to_owned(), owners)
        });
        open.collect()
    }
}

/// A shell by the name of Crush that holds the project's lock until its input ends.
struct Holder(Child);

impl Holder {
    fn start(world: &World, arguments: &[&str]) -> Option<Self> {
        if !std::path::Path::new("/usr/bin/flock").exists() {
            eprintln!("skipped: there is no flock(1) to hold a lock with");
            return None;
        }
        let mut child = Command::new(world.dir.path().join("crush"))
            .args(arguments)
            .current_dir(world.dir.path().join("app"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let commands = b"exec 9>>.crush/crush.lock; flock 9; echo held\n";
        child.stdin.as_mut().unwrap().write_all(commands).unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        assert_eq!(line, "held\n");
        Some(Self(child))
    }

    fn pid(&self) -> Pid {
        Pid::new(i64::from(self.0.id())).unwrap()
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn only_what_was_written_since_the_holder_began_may_be_its_own() {
    let world = World::new();
    let Some(holder) = Holder::start(&world, &[]) else {
        return;
    };
    assert_eq!(world.open(), []);
    world.add(&format!(
        "INSERT INTO sessions VALUES ('{NEW}', NULL, 'New', 0, strftime('%s','now'), strftime('%s','now'))"
    ));
    let pids = BTreeSet::from([holder.pid()]);
    assert_eq!(world.open(), [(NEW.to_owned(), pids)]);

    drop(holder);
    assert_eq!(world.open(), []);
    let all = world.scan(Depth::All).found;
    assert_eq!(all.sketches.len(), 2);
    let free = Subject::LockFree {
        is_everyone_asked: true,
    };
    assert_eq!(all.claims.len(), 2);
    assert!(all.claims.iter().all(|claim| claim.subject == free));
}

#[test]
fn the_short_form_in_the_arguments_means_a_session() {
    let world = World::new();
    let Some(holder) = Holder::start(&world, &["-s", OLD_SHORT]) else {
        return;
    };
    let pids = BTreeSet::from([holder.pid()]);
    assert_eq!(world.open(), [(OLD.to_owned(), pids)]);
}

#[test]
fn a_look_changes_no_file_and_tells_of_a_database_that_is_none() {
    let world = World::new();
    let names = || {
        let mut names: Vec<_> = fs::read_dir(world.data_dir())
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        names.sort();
        names
    };
    let before = names();
    assert!(world.scan(Depth::All).problems.is_empty());
    assert_eq!(names(), before);
    fs::write(world.data_dir().join("crush.db"), "no database").unwrap();
    let found = world.scan(Depth::All);
    assert!(found.found.sketches.is_empty());
    assert_eq!(found.problems.len(), 1);
    assert_eq!(found.problems[0].message, "it is no SQLite database");
}
