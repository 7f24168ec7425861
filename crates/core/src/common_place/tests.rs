//! The common place with real files and processes.

use std::collections::BTreeSet;
use std::fs;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use whosup_process::{ProcessTable, system_backend};

use super::*;
use crate::command::NoCommands;
use crate::mounts::Mounts;
use crate::phase::{Phase, WaitingFor};
use crate::scan::{Scope, scan};
use crate::session::Session;
use crate::verdict::{Confidence, LiveBecause, Liveness, Verdict};

/// How long a condition is waited for.
const PATIENCE: Duration = Duration::from_secs(20);

/// A common place on this machine.
struct World {
    dir: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        Self { dir }
    }

    fn environment(&self) -> Environment {
        let state = self.dir.path().join("state");
        Environment::new(
            Some(self.dir.path().to_owned()),
            None,
            [("XDG_STATE_HOME".to_owned(), state.into_os_string())],
        )
    }

    fn machine(&self) -> Machine {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        Machine::new(
            self.environment(),
            i64::try_from(now.as_millis()).unwrap(),
            ProcessTable::look(system_backend()),
            Mounts::of_this_machine(),
            Arc::new(NoCommands),
        )
    }

    fn write(&self, agent: &str, name: &str, sidecar: &Value) {
        let directory = root(&self.environment()).unwrap().join(agent);
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join(name), sidecar.to_string()).unwrap();
    }

    fn sessions(&self, agent: &str) -> Vec<Session> {
        let machine = self.machine();
        let scope = Scope {
            agents: Some(BTreeSet::from([AgentId::parse(agent).unwrap()])),
            ..Scope::default()
        };
        let scanned = scan(&machine, &scope);
        assert_eq!(scanned.snapshot.problems, []);
        scanned.snapshot.sessions
    }
}

/// A process that is ended when this goes.
struct Running(Child);

impl Running {
    fn start() -> Self {
        let child = Command::new("sleep")
            .arg("600")
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        Self(child)
    }

    fn pid(&self) -> Pid {
        Pid::new(i64::from(self.0.id())).unwrap()
    }

    fn end(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}

fn seconds_now() -> f64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    now.as_secs_f64()
}

/// A sidecar that says all that can be said of a process.
fn sidecar(machine: &Machine, pid: Pid) -> Value {
    let table = machine.table();
    let process = table.probe(pid).unwrap().unwrap();
    let scope = table.scope();
    json!({
        "schema_version": 1, "pid": pid.get(), "session_id": "s-1", "work_dir": "/w/app",
        "hostname": scope.host.as_ref().unwrap().0, "started_at": seconds_now(),
        "my_agent_version": "1.2", "phase": "waiting", "waiting_for": "permission",
        "process_start": process.stamp.to_string(),
        "process_start_kind": process.stamp.kind().name(),
        "boot_id": scope.boot.as_ref().unwrap().to_string(),
        "pid_namespace": scope.pid_namespace.as_ref().unwrap().0,
        "resume": ["my-agent", "--resume", "s-1"],
    })
}

#[test]
fn a_process_that_says_so_is_live_until_it_ends() {
    let world = World::new();
    let mut running = Running::start();
    let said = sidecar(&world.machine(), running.pid());
    world.write("my-agent", "s-1.runtime.json", &said);
    let sessions = world.sessions("my-agent");
    assert_eq!(sessions.len(), 1);
    let session = &sessions[0];
    let proven = Verdict::Live(LiveBecause::StartStamp, Confidence::Proven);
    assert_eq!(session.verdict, proven);
    assert_eq!(session.owner.as_ref().unwrap().pid, running.pid());
    assert_eq!(session.phase(), Some(Phase::Waiting));
    assert_eq!(session.waiting_for(), Some(WaitingFor::Permission));
    assert!(session.is_default_home && !session.is_orphan());

    running.end();
    let began = Instant::now();
    while world.sessions("my-agent")[0].liveness() != Liveness::Exited {
        assert!(began.elapsed() < PATIENCE, "an ended process is not exited");
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(!world.sessions("my-agent")[0].is_orphan());
}

#[test]
fn a_client_must_be_there_and_older_than_what_names_it() {
    let world = World::new();
    let owner = Running::start();
    let client = Running::start();
    let machine = world.machine();
    let mut said = sidecar(&machine, owner.pid());
    said["client_pid"] = json!(client.pid().get());
    world.write("my-agent", "s-1.runtime.json", &said);
    let sessions = world.sessions("my-agent");
    assert_eq!(sessions[0].client.as_ref().unwrap().pid, client.pid());
    assert_eq!(sessions[0].owner.as_ref().unwrap().pid, owner.pid());

    said["started_at"] = json!(seconds_now() - 3_600.0);
    world.write("my-agent", "s-1.runtime.json", &said);
    let sessions = world.sessions("my-agent");
    assert_eq!(sessions[0].liveness(), Liveness::Live);
    assert!(sessions[0].client.is_none(), "a number that was reused");

    let mut client = client;
    let gone = machine.table().probe(client.pid()).unwrap().unwrap();
    client.end();
    said["started_at"] = json!(seconds_now());
    world.write("my-agent", "s-1.runtime.json", &said);
    // Another process may have the number by now.
    let left = world.sessions("my-agent").remove(0).client;
    assert!(left.is_none_or(|other| other.stamp != gone.stamp));
}

#[test]
fn agents_are_those_with_a_directory() {
    let world = World::new();
    let environment = world.environment();
    let agent = |name: &str| AgentId::parse(name).unwrap();
    assert!(other_agents(&environment).is_empty());
    assert!(!has_agent(&environment, &agent("my-agent")));
    let root = root(&environment).unwrap();
    for name in ["my-agent", "codex", "not an agent"] {
        fs::create_dir_all(root.join(name)).unwrap();
    }
    fs::write(root.join("a-file"), "").unwrap();
    assert_eq!(other_agents(&environment), [agent("my-agent")]);
    assert!(has_agent(&environment, &agent("my-agent")));
    assert!(has_agent(&environment, &agent("codex")));
    assert!(!has_agent(&environment, &agent("a-file")));
}

#[test]
fn names_are_those_of_the_session_or_of_a_sibling_claim() {
    let session = SessionId::parse("s.1").unwrap();
    for name in ["s.1", "s.1.claim-0", "s.1.claim-09afAF"] {
        assert!(is_named_after(name, &session), "{name}");
    }
    for name in [
        "",
        "s",
        "s.1x",
        "s.1.claim-",
        "s.1.claim-xyz",
        "s.1.claim-1.2",
        "S.1",
    ] {
        assert!(!is_named_after(name, &session), "{name}");
    }
}

#[test]
fn a_command_is_shown_as_it_stands() {
    let argv = vec!["a".to_owned(), "--resume".to_owned()];
    assert_eq!(invocation(&Resume::Argv(argv.clone())).argv, argv);
    let line = invocation(&Resume::Line("a && b".to_owned()));
    assert_eq!(line.argv, ["sh", "-c", "a && b"]);
}
