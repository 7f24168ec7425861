//! Scans of homes with a real process.

use std::fs::{self, File};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use whosup_process::{ProcessTable, system_backend};

use super::*;
use crate::adapter::{Depth, Unclaimed};
use crate::machine::command::SystemCommands;
use crate::machine::mounts::Mounts;
use crate::machine::{Environment, Machine};
use crate::sources::agents::droid::Droid;
use crate::sources::recognize::find_agent_processes;

const YOUNG: &str = "3f9ec43d-9381-4d61-8c0d-176b7c0df906";
const OLD: &str = "a1b2c3d4-e5f6-4a7b-8c9d-0e1f2a3b4c5d";

/// A home of Droid on this machine, a project, and a program by its name.
struct World {
    dir: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("my app.v1")).unwrap();
        let cat = fs::canonicalize("/bin/cat").unwrap();
        crate::sources::agents::kit::program_tests::copy_program(cat, dir.path().join("droid"));
        Self { dir }
    }

    fn project(&self) -> PathBuf {
        self.dir.path().join("my app.v1").canonicalize().unwrap()
    }

    /// A transcript of the project, in the folder that Droid keeps it in.
    fn write(&self, id: &str) -> PathBuf {
        let folder = self.project().to_str().unwrap().replace('/', "-");
        let directory = self.home().join("sessions").join(folder);
        fs::create_dir_all(&directory).unwrap();
        let start = serde_json::json!({
            "type": "session_start", "id": id, "title": "New Session", "cwd": self.project(),
        });
        let path = directory.join(format!("{id}.jsonl"));
        fs::write(&path, format!("{start}\n")).unwrap();
        path
    }

    fn home(&self) -> PathBuf {
        self.dir.path().join(".factory")
    }

    fn scan(&self, depth: Depth) -> Vec<Sketch> {
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
        let found = find_agent_processes(&machine, &[&Droid], &mut problems);
        let mut processes = found.recognized;
        // Others of this machine are no part of this world.
        processes.retain(|process| process.work_dir() == Some(&self.project()));
        for process in &mut processes {
            process.homes.clear();
        }
        let look = Look {
            machine: &machine,
            depth: &depth,
            processes: &processes,
        };
        let found = scan(&look, &home);
        assert_eq!(found.problems, []);
        let sketches = found.found.sketches.into_iter();
        sketches.map(|sketch| *sketch).collect()
    }
}

/// A process that waits for the end of its input.
struct Waiting(Child);

impl Waiting {
    /// Starts it, and waits until it runs the requested program.
    fn start(world: &World) -> Self {
        let child = Command::new(world.dir.path().join("droid"))
            .current_dir(world.project())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        Self(child)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

#[test]
fn a_process_leads_to_what_was_written_in_its_folder_since_it_began() {
    let world = World::new();
    let old = world.write(OLD);
    let an_hour_ago = SystemTime::now() - Duration::from_secs(3_600);
    let file = File::options().write(true).open(old).unwrap();
    file.set_modified(an_hour_ago).unwrap();
    assert!(world.scan(Depth::Live).is_empty());

    let _waiting = Waiting::start(&world);
    let elsewhere = world.home().join("sessions").join("-elsewhere");
    fs::create_dir_all(&elsewhere).unwrap();
    let young = world.write(YOUNG);
    fs::copy(&young, elsewhere.join(format!("{YOUNG}x.jsonl"))).unwrap();
    let found = world.scan(Depth::Live);
    let ids: Vec<&str> = found.iter().map(|one| one.key.session.as_str()).collect();
    assert_eq!(ids, [YOUNG]);
    assert_eq!(found[0].unclaimed, Unclaimed::Owner);
    assert_eq!(found[0].work_dir, Some(world.project()));
}

#[test]
fn the_full_walk_finds_all_and_pairs_the_same() {
    let world = World::new();
    let old = world.write(OLD);
    let an_hour_ago = SystemTime::now() - Duration::from_secs(3_600);
    let file = File::options().write(true).open(old).unwrap();
    file.set_modified(an_hour_ago).unwrap();
    let _waiting = Waiting::start(&world);
    world.write(YOUNG);
    let found = world.scan(Depth::All);
    let rules: Vec<_> = found
        .iter()
        .map(|one| (one.key.session.as_str(), one.unclaimed))
        .collect();
    assert_eq!(
        rules,
        [(YOUNG, Unclaimed::Owner), (OLD, Unclaimed::NoProcess)]
    );
}
