//! Sessions of agents in real PID namespaces, where numbers are small and the same.

#![cfg(target_os = "linux")]
#![allow(clippy::disallowed_methods, reason = "tests make their own worlds")]
#![allow(clippy::print_stderr, reason = "what is skipped is said")]

use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::json;
use tempfile::TempDir;
use whosup_core::adapter::Depth;
use whosup_core::machine::command::NoCommands;
use whosup_core::machine::mounts::Mounts;
use whosup_core::machine::{Environment, Machine};
use whosup_core::sessions::scan::{Scope, scan};
use whosup_process::{ProcessTable, system_backend};

/// The number that each agent has in its namespace.
const NUMBER: i32 = 2;
/// How long a condition is waited for.
const PATIENCE: Duration = Duration::from_secs(60);

/// A home, and a Node that is a shell, which runs the script `qwen`.
struct World {
    directory: TempDir,
}

impl World {
    fn new() -> Self {
        let world = Self {
            directory: tempfile::tempdir().unwrap(),
        };
        let bin = world.path().join("bin");
        std::fs::create_dir(&bin).unwrap();
        let copied = Command::new("cp")
            .arg("/bin/sh")
            .arg(bin.join("node"))
            .status();
        assert!(copied.unwrap().success());
        let script = "echo ready\nread line\n";
        std::fs::write(bin.join("qwen"), script).unwrap();
        world
    }

    fn path(&self) -> PathBuf {
        self.directory.path().canonicalize().unwrap()
    }

    fn work_dir(&self, name: &str) -> PathBuf {
        let path = self.path().join(name);
        std::fs::create_dir_all(&path).unwrap();
        path
    }

    /// Starts qwen as PID 2 of a PID namespace of its own; `None` if that can't be done.
    fn start(&self, work_dir: &str) -> Option<Running> {
        let bin = self.path().join("bin");
        let mut command = Command::new("unshare");
        if !rustix::process::geteuid().is_root() {
            command.args(["-U", "-r"]);
        }
        let child = command
            .args([
                "-fp",
                "--kill-child",
                "sh",
                "-c",
                "exec 3<&0; \"$@\" <&3 & wait",
                "sh",
            ])
            .arg(bin.join("node"))
            .arg(bin.join("qwen"))
            .current_dir(self.work_dir(work_dir))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        let mut running = Running(child.ok()?);
        let output = running.0.stdout.take()?;
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line).ok()?;
        (line == "ready\n").then_some(running)
    }

    /// Writes the sidecar of a process that has that number wherever it lives.
    fn write_sidecar(&self, session: &str, work_dir: &str) {
        let folder = self.path().join(".qwen/projects/-w/chats");
        std::fs::create_dir_all(&folder).unwrap();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let sidecar = json!({
            "schema_version": 1, "pid": NUMBER, "session_id": session,
            "work_dir": self.work_dir(work_dir), "hostname": host(),
            "started_at": now.as_secs_f64(), "qwen_version": "0.24.4",
        });
        let path = folder.join(format!("{session}.runtime.json"));
        std::fs::write(&path, sidecar.to_string()).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    }

    /// What is said of a session: the answer, its reason, and the owner if it is live.
    fn said_of(&self, session: &str) -> (String, Option<i32>) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let machine = Machine::new(
            Environment::new(Some(self.path()), None, []),
            i64::try_from(now.as_millis()).unwrap(),
            ProcessTable::look(system_backend()),
            Mounts::of_this_machine(),
            Arc::new(NoCommands),
        );
        let scope = Scope {
            depth: Depth::All,
            ..Scope::default()
        };
        let scanned = scan(&machine, &scope);
        let mut sessions = scanned.snapshot.sessions.iter();
        let session = sessions
            .find(|one| one.key.session.as_str() == session)
            .expect("the session is listed");
        let answer = format!("{} {}", session.liveness().name(), session.verdict.reason());
        let owner = session.owner.as_ref().map(|owner| owner.pid.get());
        (answer, owner)
    }
}

fn host() -> String {
    let scope = ProcessTable::look(system_backend()).scope().clone();
    scope.host.unwrap().0
}

/// A process that is ended when this goes: the one in the namespace ends with it.
struct Running(Child);

impl Running {
    /// The process in the namespace, by the number that it has here.
    fn inner(&self) -> i32 {
        let first_child = |parent: i32| -> i32 {
            let path = format!("/proc/{parent}/task/{parent}/children");
            let children = std::fs::read_to_string(path).unwrap();
            children.split_whitespace().next().unwrap().parse().unwrap()
        };
        first_child(first_child(i32::try_from(self.0.id()).unwrap()))
    }

    fn end(&mut self) {
        let inner = self.inner();
        let _ = self.0.kill();
        let _ = self.0.wait();
        // It goes a moment later than the process that started it.
        let stat = PathBuf::from(format!("/proc/{inner}/cwd"));
        wait_until(|| !matches!(stat.read_link(), Ok(cwd) if cwd.ends_with("gone")));
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[track_caller]
fn wait_until(mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < PATIENCE, "waited in vain");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn skip(why: &str) {
    eprintln!("skipped: {why}");
}

/// Every process of the namespaces shows here, and whose they are.
fn can_see_into_namespaces(running: &Running) -> bool {
    let children = format!("/proc/{0}/task/{0}/children", running.0.id());
    Path::new(&children).exists()
}

/// Nobody is hidden, and the process with that number out here is seen to be another program.
fn can_tell_who_has_the_number_here() -> bool {
    let table = ProcessTable::look(system_backend());
    let here = table.probe(whosup_process::Pid::new(i64::from(NUMBER)).unwrap());
    let is_told = |process: whosup_process::Process| {
        process.is_kernel_thread || table.details(&process).exe.is_ok()
    };
    table.view().is_everything_shown == Ok(true) && here.is_ok_and(|here| here.is_none_or(is_told))
}

#[test]
fn of_two_agents_with_one_number_the_one_that_is_left_is_live_and_the_other_has_exited() {
    let world = World::new();
    let Some(living) = world.start("left") else {
        return skip("no PID namespace can be made here");
    };
    if !can_see_into_namespaces(&living) {
        return skip("the kernel does not list the children of a process");
    }
    world.write_sidecar("of-living", "left");
    let Some(mut dead) = world.start("gone") else {
        return skip("no second PID namespace can be made here");
    };
    world.write_sidecar("of-dead", "gone");
    let live = "live started-before-claim".to_owned();
    assert_eq!(
        world.said_of("of-living"),
        (live.clone(), Some(living.inner()))
    );
    assert_eq!(world.said_of("of-dead"), (live.clone(), Some(dead.inner())));

    dead.end();
    assert_eq!(world.said_of("of-living"), (live, Some(living.inner())));
    let (answer, owner) = world.said_of("of-dead");
    if can_tell_who_has_the_number_here() {
        // Another program may have the number here.
        let right = ["exited no-such-process", "exited pid-reused"];
        assert!(
            right.contains(&answer.as_str()) && owner.is_none(),
            "{answer}"
        );
    } else {
        skip("that it has exited: not everybody who may be meant can be looked at");
        assert!(answer.starts_with("unknown"), "{answer}");
    }
}
