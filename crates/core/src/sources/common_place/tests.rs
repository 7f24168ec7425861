//! The common place with real files and processes.

use std::collections::BTreeSet;
use std::fs;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use whosup_process::{ProcessTable, system_backend};
use whosup_sidecar as owner;

use super::*;
use crate::adapter::phase::{Phase, WaitingFor};
use crate::judging::verdict::{Confidence, LiveBecause, Liveness, Verdict};
use crate::machine::command::NoCommands;
use crate::machine::mounts::Mounts;
use crate::sessions::scan::{Scope, scan};
use crate::sessions::session::Session;

/// How long to wait for a condition.
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

/// A process that is killed when this is dropped.
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

/// A sidecar with every field about a process.
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

fn establish(id: &str, place: &Path, pid: Pid) -> owner::Owner {
    let session = owner::Session::new(id, "/w/app").unwrap();
    let session = session.place(owner::Place::Directory(place.to_owned()));
    let agent = owner::Agent::new("my-agent").unwrap();
    owner::Owner::establish_for(pid, agent, session.unwrap()).unwrap()
}

#[test]
fn two_owners_of_one_process_are_both_live_until_it_ends() {
    let world = World::new();
    let mut running = Running::start();
    let place = root(&world.environment()).unwrap().join("my-agent");
    let owners = ["s-1", "s-2"].map(|id| establish(id, &place, running.pid()));
    for session in world.sessions("my-agent") {
        let proven = Verdict::Live(LiveBecause::StartStamp, Confidence::Proven);
        assert_eq!(session.verdict, proven, "{}", session.key.session);
        assert_eq!(session.owner.as_ref().unwrap().pid, running.pid());
        assert_eq!(session.superseded_by, None);
    }
    owners[0].release().unwrap();
    let left: Vec<_> = world.sessions("my-agent");
    assert_eq!(left.len(), 1);
    assert_eq!(left[0].liveness(), Liveness::Live);
    running.end();
    wait_until_none_is_live(&world);
}

/// Waits until no session of `my-agent` is live any more.
fn wait_until_none_is_live(world: &World) {
    let began = Instant::now();
    let is_live = |session: &Session| session.liveness() == Liveness::Live;
    while world.sessions("my-agent").iter().any(is_live) {
        assert!(began.elapsed() < PATIENCE, "an ended process is still live");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn of_files_that_say_one_the_newest_is_current_and_no_other_file_changes() {
    // The words of the files, oldest first, and which sessions are then live.
    let worlds: &[(&[Option<&str>], &[bool])] = &[
        (&[None, None], &[true, true]),
        (&[Some("one"), Some("one")], &[false, true]),
        (
            &[Some("one"), Some("one"), Some("one")],
            &[false, false, true],
        ),
        (&[Some("many"), Some("many")], &[true, true]),
        (&[Some("one"), None], &[true, true]),
        (&[None, Some("one")], &[true, true]),
        (&[Some("many"), Some("one")], &[true, true]),
        (&[Some("one"), None, Some("one")], &[false, true, true]),
        (
            &[Some("one"), Some("many"), Some("one")],
            &[false, true, true],
        ),
        // An unknown word counts as no word.
        (&[Some("few"), Some("few")], &[true, true]),
    ];
    for (words, live) in worlds {
        let world = World::new();
        let running = Running::start();
        let mut said = sidecar(&world.machine(), running.pid());
        let newest = said["started_at"].as_f64().unwrap();
        for (age, word) in words.iter().rev().enumerate() {
            let id = format!("s-{}", words.len() - age);
            let age = f64::from(u32::try_from(age).unwrap());
            said["session_id"] = json!(id);
            said["started_at"] = json!(newest - age / 10.0);
            said["serves"] = json!(word);
            world.write("my-agent", &format!("{id}.runtime.json"), &said);
        }
        let sessions = world.sessions("my-agent");
        let found: Vec<bool> = sessions
            .iter()
            .map(|session| session.liveness() == Liveness::Live)
            .collect();
        assert_eq!(found, *live, "{words:?}");
        let current = format!("s-{}", words.len());
        for session in sessions
            .iter()
            .filter(|one| one.liveness() != Liveness::Live)
        {
            let by = session.superseded_by.as_ref().unwrap();
            assert_eq!(by.as_str(), current, "{words:?}");
        }
    }
}

/// The sessions that are live.
fn live(world: &World, agent: &str) -> Vec<String> {
    let sessions = world.sessions(agent).into_iter();
    let live = sessions.filter(|session| session.liveness() == Liveness::Live);
    live.map(|session| session.key.session.to_string())
        .collect()
}

#[test]
fn files_without_the_word_neither_supersede_nor_are_superseded() {
    const AS_IT_IS: (&str, &str) = ("my_agent_version", "1.2");
    const RENAMED: (&str, &str) = ("hostname", "laptop-before");
    const WORD: (&str, &str) = ("serves", "one");
    let changes = [
        [AS_IT_IS, AS_IT_IS],
        [RENAMED, AS_IT_IS],
        [AS_IT_IS, RENAMED],
        [RENAMED, WORD],
        [WORD, RENAMED],
    ];
    for fields in changes {
        let world = World::new();
        let running = Running::start();
        for ((field, value), id) in fields.into_iter().zip(["s-1", "s-2"]) {
            let mut said = sidecar(&world.machine(), running.pid());
            said["session_id"] = json!(id);
            said[field] = json!(value);
            world.write("my-agent", &format!("{id}.runtime.json"), &said);
        }
        assert_eq!(live(&world, "my-agent"), ["s-1", "s-2"], "{fields:?}");
    }
}

#[test]
fn a_world_writable_file_changes_no_other() {
    let world = World::new();
    let running = Running::start();
    let mut said = sidecar(&world.machine(), running.pid());
    said["serves"] = json!("one");
    world.write("my-agent", "s-1.runtime.json", &said);
    said["session_id"] = json!("s-2");
    said["started_at"] = json!(seconds_now());
    world.write("my-agent", "s-2.runtime.json", &said);
    assert_eq!(live(&world, "my-agent"), ["s-2"]);
    let planted = root(&world.environment())
        .unwrap()
        .join("my-agent/s-2.runtime.json");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o666);
    fs::set_permissions(planted, mode).unwrap();
    let scope = Scope {
        agents: Some(BTreeSet::from([AgentId::parse("my-agent").unwrap()])),
        ..Scope::default()
    };
    let found = scan(&world.machine(), &scope).snapshot.sessions;
    let found = found.iter().map(|session| session.liveness());
    assert_eq!(
        found.collect::<Vec<_>>(),
        [Liveness::Live, Liveness::Unknown]
    );
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
    // Another process may have the PID by now.
    let left = world.sessions("my-agent").remove(0).client;
    assert!(left.is_none_or(|other| other.stamp != gone.stamp));
}

#[test]
fn agents_are_those_with_a_directory() {
    let world = World::new();
    let environment = world.environment();
    let agent = |name: &str| AgentId::parse(name).unwrap();
    assert!(!has_agent(&environment, &agent("my-agent")));
    let root = root(&environment).unwrap();
    for name in ["my-agent", "codex"] {
        fs::create_dir_all(root.join(name)).unwrap();
    }
    fs::write(root.join("a-file"), "").unwrap();
    assert!(has_agent(&environment, &agent("my-agent")));
    assert!(has_agent(&environment, &agent("codex")));
    assert!(!has_agent(&environment, &agent("a-file")));
}

#[test]
fn names_are_those_of_the_session_or_of_a_sibling_claim() {
    let is_name = |stem: &str, session: &str| {
        let session = SessionId::parse(session).unwrap();
        is_sidecar_name(&format!("{stem}{SUFFIX}"), &session)
    };
    for stem in ["s.1", "s.1.claim-0", "s.1.claim-09afAF"] {
        assert!(is_name(stem, "s.1"), "{stem}");
    }
    let others = [
        "",
        "s",
        "s.1x",
        "s.1.claim-",
        "s.1.claim-xyz",
        "s.1.claim-1.2",
        "S.1",
    ];
    for stem in others {
        assert!(!is_name(stem, "s.1"), "{stem}");
    }
    assert!(!is_sidecar_name(
        "s.1.claim-0",
        &SessionId::parse("s.1").unwrap()
    ));
    // A sibling claim may have the first 107 bytes of the ID, cut at a whole character.
    for (id, cut) in [
        ("s".repeat(108), "s".repeat(107)),
        ("é".repeat(54), "é".repeat(53)),
    ] {
        assert!(is_name(&format!("{cut}.claim-0"), &id), "{id}");
        assert!(is_name(&format!("{id}.claim-0"), &id), "{id}");
        assert!(!is_name(&cut, &id), "{id}");
    }
}

#[test]
fn a_sibling_claim_to_a_session_with_a_long_id_is_read() {
    for id in ["s".repeat(128), "é".repeat(64)] {
        let world = World::new();
        let mut processes = [Running::start(), Running::start()];
        let place = root(&world.environment()).unwrap().join("my-agent");
        let _owners = processes
            .each_ref()
            .map(|running| establish(&id, &place, running.pid()));
        processes[0].end();
        let found = world.sessions("my-agent").remove(0);
        assert_eq!(found.liveness(), Liveness::Live);
        assert_eq!(found.owner.unwrap().pid, processes[1].pid());
    }
}

#[test]
fn a_command_is_shown_as_it_stands() {
    let argv = vec!["a".to_owned(), "--resume".to_owned()];
    assert_eq!(invocation(&Resume::Argv(argv.clone())).argv, argv);
    let line = invocation(&Resume::Line("a && b".to_owned()));
    assert_eq!(line.argv, ["sh", "-c", "a && b"]);
}
