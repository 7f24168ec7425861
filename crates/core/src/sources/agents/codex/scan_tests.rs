//! Scans of homes with real locks, databases and processes.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use whosup_process::{ProcessTable, system_backend};

use super::*;
use crate::adapter::claim::Subject;
use crate::adapter::{Adapter as _, Sketch};
use crate::machine::command::SystemCommands;
use crate::machine::mounts::Mounts;
use crate::machine::{Environment, Machine};
use crate::sources::recognize::find_agent_processes;

const NOW_MS: i64 = 1_795_813_800_000;
const ID: &str = "01a21ecc-2bd5-7f30-b93d-89bcac6028bb";
/// How long a condition is waited for.
const PATIENCE: Duration = Duration::from_secs(20);

/// A home of Codex, on this machine.
struct World {
    dir: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join(".codex/thread-writer-locks")).unwrap();
        Self { dir }
    }

    fn home(&self) -> PathBuf {
        self.dir.path().join(".codex")
    }

    fn lock(&self) -> PathBuf {
        let path = locks_in(&self.home()).join(format!("{ID}.lock"));
        File::create(&path).unwrap();
        path
    }

    /// A rollout on the day of the ids of these tests.
    fn rollout(&self, id: &str, fields: &str) -> PathBuf {
        let directory = self.home().join("sessions/2026/11/27");
        fs::create_dir_all(&directory).unwrap();
        let path = directory.join(format!("rollout-2026-11-27T20-57-06-{id}.jsonl"));
        let line =
            format!(r#"{{"type":"session_meta","payload":{{"id":"{id}","cwd":"/w",{fields}}}}}"#);
        fs::write(&path, line + "\n").unwrap();
        path
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
        let commands = Arc::new(SystemCommands);
        let machine = Machine::new(environment, NOW_MS, table, mounts, commands);
        let adapters: &[&'static dyn crate::adapter::Adapter] =
            &[&crate::sources::agents::codex::Codex];
        let mut problems = Vec::new();
        let found = find_agent_processes(&machine, adapters, &mut problems);
        let processes = found.recognized;
        let look = Look {
            machine: &machine,
            depth: &depth,
            processes: &processes,
        };
        crate::sources::agents::codex::Codex.scan(&look, &home)
    }

    fn files(&self) -> BTreeMap<PathBuf, (Vec<u8>, std::time::SystemTime)> {
        let mut files = BTreeMap::new();
        let mut directories = vec![self.home()];
        while let Some(directory) = directories.pop() {
            for entry in fs::read_dir(directory).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    directories.push(path);
                } else {
                    let changed = path.metadata().unwrap().modified().unwrap();
                    files.insert(path.clone(), (fs::read(&path).unwrap(), changed));
                }
            }
        }
        files
    }
}

/// Ends the process that it was given, whatever happens.
struct Ended(Child);

impl Ended {
    fn end(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Ended {
    fn drop(&mut self) {
        self.end();
    }
}

fn pid_of(child: &Child) -> Pid {
    Pid::new(i64::from(child.id())).unwrap()
}

#[track_caller]
fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < PATIENCE, "{what}: not so");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A program called `codex` that takes a lock and runs another program meanwhile: flock(1)
/// under that name. Its child inherits the descriptor, as the tools of an agent may.
fn start_holder(world: &World, lock: &std::path::Path) -> Option<Ended> {
    let Ok(flock) = fs::canonicalize("/usr/bin/flock") else {
        eprintln!("skipped: there is no flock(1) to hold a lock with");
        return None;
    };
    let program = world.dir.path().join("codex");
    crate::sources::agents::kit::program_tests::copy_program(flock, &program);
    let child = Command::new(program)
        .arg(lock)
        .args(["sleep", "60"])
        .env("HOME", world.dir.path())
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    Some(Ended(child))
}

fn subjects(found: &Found<AgentScan>) -> Vec<Subject> {
    let claims = found.found.claims.iter();
    claims.map(|claim| claim.subject.clone()).collect()
}

#[test]
fn a_real_lock_is_claimed_by_its_holder_until_it_is_released() {
    let world = World::new();
    let lock = world.lock();
    let Some(mut holder) = start_holder(&world, &lock) else {
        return;
    };
    let pid = pid_of(&holder.0);
    wait_until("the lock is held by the program, not by its child", || {
        subjects(&world.scan(Depth::Live)) == [Subject::Holder(pid)]
    });
    let mut child = None;
    wait_until("flock has started its command", || {
        let table = ProcessTable::look(system_backend());
        let mut processes = table.processes().unwrap().iter();
        let started = processes.find(|child| child.ppid == Some(pid) && child.comm == b"sleep");
        child = started.map(|child| child.pid);
        child.is_some()
    });
    let child = child.unwrap();

    holder.end();
    let found = world.scan(Depth::Live);
    assert_eq!(subjects(&found), [Subject::Holder(child)], "it holds on");
    assert_eq!(found.problems, []);

    let raw = rustix::process::Pid::from_raw(child.get()).unwrap();
    rustix::process::kill_process(raw, rustix::process::Signal::KILL).unwrap();
    wait_until("no process holds the lock", || {
        let found = world.scan(Depth::Live);
        matches!(subjects(&found)[..], [Subject::LockFree { .. }])
    });
    assert!(lock.exists());
}

/// A home that was restored from a copy has other files than those that a process holds.
#[test]
fn a_lock_that_was_replaced_while_it_was_held_is_no_proof_of_an_end() {
    let ways: [fn(&std::path::Path); 2] = [
        |lock| fs::remove_file(lock).unwrap(),
        |lock| {
            let folder = lock.parent().unwrap();
            fs::rename(folder, folder.with_extension("bak")).unwrap();
            fs::create_dir(folder).unwrap();
        },
    ];
    for take_away in ways {
        let world = World::new();
        let lock = world.lock();
        let Some(holder) = start_holder(&world, &lock) else {
            return;
        };
        let held = [Subject::Holder(pid_of(&holder.0))];
        wait_until("the lock is held", || {
            subjects(&world.scan(Depth::Live)) == held
        });
        take_away(&lock);
        fs::write(&lock, "").unwrap();
        let free = Subject::LockFree {
            is_everyone_asked: false,
        };
        assert_eq!(subjects(&world.scan(Depth::Live)), [free]);
    }
}

/// Codex locks a thread some time after it was started to resume it.
#[test]
fn a_thread_that_arguments_name_is_found_before_it_is_locked() {
    let world = World::new();
    world.rollout(ID, r#""source":"cli""#);
    let program = world.dir.path().join("codex");
    crate::sources::agents::kit::program_tests::copy_program("/bin/sh", &program);
    // The script of a shell: it waits for input that never comes.
    fs::write(world.dir.path().join("resume"), "read line\n").unwrap();
    let found = || world.scan(Depth::Live).found.sketches;
    assert!(found().is_empty());
    let child = Command::new(program)
        .args(["resume", "--", &ID.to_ascii_uppercase()])
        .current_dir(world.dir.path())
        .env("HOME", world.dir.path())
        .stdin(Stdio::piped())
        .spawn();
    let _running = Ended(child.unwrap());
    wait_until("the thread is found", || {
        found()
            .iter()
            .any(|sketch| sketch.key.session.as_str() == ID)
    });
}

/// Sub-agents filled the list (deja-vu#635, Irrlicht#1050, codex#32035).
#[test]
fn one_root_and_forty_sub_agents_are_one_root_and_forty_sub_agents() {
    let world = World::new();
    world.rollout(ID, r#""source":"cli""#);
    for child in 0..40 {
        let id = format!("01a21ecd-2bd5-7f30-b93d-89bcac60{child:04}");
        let spawn = format!(
            r#""session_id":"{ID}","source":{{"subagent":{{"thread_spawn":{{"parent_thread_id":"{ID}"}}}}}}"#
        );
        world.rollout(&id, &spawn);
    }
    let found = world.scan(Depth::All);
    assert_eq!(found.problems, []);
    let (children, roots): (Vec<&Sketch>, Vec<&Sketch>) = found
        .found
        .sketches
        .iter()
        .map(|sketch| &**sketch)
        .partition(|sketch| sketch.parent.is_some());
    assert_eq!((roots.len(), children.len()), (1, 40));
    assert!(
        children
            .iter()
            .all(|child| child.parent.as_ref() == Some(&roots[0].key.session))
    );
    assert_eq!(world.scan(Depth::Live).found.sketches, []);
}

/// resume-skills#196, cctop#225, codex#20165, codex#21619.
mod with_a_database {
    use rusqlite::Connection;

    use super::*;

    fn database(world: &World) -> Connection {
        let database = Connection::open(world.home().join("state_5.sqlite")).unwrap();
        database
            .pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(()))
            .unwrap();
        let rows = format!(
            "CREATE TABLE threads(id TEXT, title TEXT, name TEXT, first_user_message TEXT);
             INSERT INTO threads VALUES ('{ID}', 'x', 'A name', 'hello')"
        );
        database.execute_batch(&rows).unwrap();
        database
    }

    #[track_caller]
    fn check(world: &World, title: Option<&str>, problems: usize) {
        let before = world.files();
        for depth in [Depth::Live, Depth::All] {
            let found = world.scan(depth);
            let sketches = found.found.sketches;
            let ids: Vec<&str> = sketches
                .iter()
                .map(|one| one.key.session.as_str())
                .collect();
            assert_eq!(ids, [ID]);
            assert_eq!(sketches[0].title.as_deref(), title);
            assert_eq!(sketches[0].work_dir, Some(PathBuf::from("/w")));
            assert_eq!(found.problems.len(), problems, "{:?}", found.problems);
        }
        assert!(before == world.files(), "a look changed a file");
    }

    #[test]
    fn a_locked_database_in_use_tells_names_and_stays_as_it_is() {
        let world = World::new();
        world.lock();
        world.rollout(ID, r#""source":"vscode""#);
        let database = database(&world);
        check(&world, Some("A name"), 0);
        database.execute_batch("BEGIN EXCLUSIVE").unwrap();
        check(&world, Some("A name"), 0);
        database.execute_batch("DELETE FROM threads").unwrap();
        check(&world, Some("A name"), 0);
        database.execute_batch("COMMIT").unwrap();
        check(&world, None, 0);
    }

    #[test]
    fn a_broken_database_is_a_problem_and_hides_nothing() {
        let world = World::new();
        world.lock();
        world.rollout(ID, r#""source":"vscode""#);
        drop(database(&world));
        check(&world, Some("A name"), 0);
        let path = world.home().join("state_5.sqlite");
        let mut bytes = fs::read(&path).unwrap();
        bytes[100..].fill(7);
        fs::write(&path, bytes).unwrap();
        check(&world, None, 1);
        File::create(&path).unwrap().set_len(1 << 40).unwrap();
        let found = world.scan(Depth::All);
        assert_eq!(found.found.sketches.len(), 1);
        assert_eq!(found.problems[0].path, Some(path));
    }
}
