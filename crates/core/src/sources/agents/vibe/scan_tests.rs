//! Scans of homes with real locks and processes.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use whosup_process::{ProcessTable, system_backend};

use super::*;
use crate::machine::command::SystemCommands;
use crate::machine::mounts::Mounts;
use crate::machine::{Environment, Machine};
use crate::sources::agents::kit::folder::names_in;
use crate::sources::recognize::find_agent_processes;

const ID: &str = "3f9ec43d-9381-cd61-ec0d-176b7c0df906";
const NOW_MS: i64 = 1_795_813_800_000;
/// How long a condition is waited for.
const PATIENCE: Duration = Duration::from_secs(20);
/// The interface: starts the server, prints its PID, and stays until its input ends.
const INTERFACE: &str = r#"exec 3<&0; "$1" "$2" "$3" <&3 & echo $!; read line"#;
/// The server: holds the lock until its input ends.
const SERVER: &str = r#"exec 9>>"$1"; flock 9; echo held; read line"#;

/// A home of Vibe on this machine, with shells that go by the names of its programs.
struct World {
    dir: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let world = Self { dir };
        fs::create_dir_all(world.home().join("logs/session/active")).unwrap();
        let shell = fs::canonicalize("/bin/sh").unwrap();
        for (name, script) in [("vibe-rs", INTERFACE), ("vibe-app-server", SERVER)] {
            crate::sources::agents::kit::program_tests::copy_program(
                &shell,
                world.dir.path().join(name),
            );
            fs::write(world.dir.path().join(name).with_extension("sh"), script).unwrap();
        }
        File::create(world.lock()).unwrap();
        world
    }

    fn home(&self) -> PathBuf {
        self.dir.path().join(".vibe")
    }

    fn lock(&self) -> PathBuf {
        self.home().join(format!("logs/session/active/{ID}.lock"))
    }

    fn scan(&self) -> AgentScan {
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
        let mut problems = Vec::new();
        let found = find_agent_processes(
            &machine,
            &[&crate::sources::agents::vibe::Vibe],
            &mut problems,
        );
        let processes = found.recognized;
        let look = Look {
            machine: &machine,
            depth: &Depth::Live,
            processes: &processes,
        };
        scan(&look, &home).found
    }

    fn only_claim(&self) -> Claim {
        let claims = self.scan().claims;
        let [claim] = claims.as_slice() else {
            panic!("not one claim: {claims:?}");
        };
        (**claim).clone()
    }
}

/// An interface and its server. Both end when the input of the first does.
struct Running {
    interface: Child,
    server: Pid,
}

impl Running {
    /// Starts them, and waits until the lock is held. `None` where there is no
    /// flock(1) to hold a lock with.
    fn start(world: &World) -> Option<Self> {
        if !std::path::Path::new("/usr/bin/flock").exists() {
            eprintln!("skipped: there is no flock(1) to hold a lock with");
            return None;
        }
        let program = |name: &str| world.dir.path().join(name);
        let mut interface = Command::new(program("vibe-rs"))
            .arg(program("vibe-rs.sh"))
            .arg(program("vibe-app-server"))
            .arg(program("vibe-app-server.sh"))
            .arg(world.lock())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(interface.stdout.take().unwrap()).lines();
        let mut printed = [
            lines.next().unwrap().unwrap(),
            lines.next().unwrap().unwrap(),
        ];
        printed.sort();
        assert_eq!(printed[1], "held");
        let server = Pid::new(printed[0].parse().unwrap()).unwrap();
        Some(Self { interface, server })
    }

    fn kill_server(&self) {
        let pid = rustix::process::Pid::from_raw(self.server.get()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.interface.stdin.take());
        let _ = self.interface.wait();
    }
}

#[track_caller]
fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < PATIENCE, "{what}: not so");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_held_lease_is_its_servers_and_shown_by_the_servers_parent() {
    let world = World::new();
    let Some(running) = Running::start(&world) else {
        return;
    };
    let interface = Pid::new(i64::from(running.interface.id())).unwrap();
    let found = world.scan();
    assert_eq!(found.claims.len(), 1);
    assert_eq!(found.claims[0].subject, Subject::Holder(running.server));
    assert_eq!(found.claims[0].serving, Serving::One);
    let client = found.sketches[0].client.as_ref().unwrap();
    assert_eq!(client.process.pid, interface);
    assert_eq!(found.sketches[0].is_headless, Some(false));

    running.kill_server();
    let free = Subject::LockFree {
        is_everyone_asked: true,
    };
    wait_until("the lock of a killed server is free", || {
        world.only_claim().subject == free
    });
    // The interface lives on, and shows nothing.
    assert!(world.scan().sketches[0].client.is_none());
}

#[test]
fn a_look_takes_no_lease_and_makes_no_file() {
    let world = World::new();
    world.only_claim();
    let lock = File::open(world.lock()).unwrap();
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::NonBlockingLockExclusive).unwrap();
    let claim = world.only_claim();
    assert_eq!(
        claim.subject,
        Subject::Holder(Pid::new(i64::from(std::process::id())).unwrap())
    );
    let names = names_in(world.lock().parent().unwrap(), 10).unwrap();
    assert_eq!(names.names.len(), 1);
}
