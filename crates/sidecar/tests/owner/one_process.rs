//! What one process writes.

use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::Command;

use whosup_process::{Pid, system_backend};
use whosup_sidecar::{
    Agent, Owner, Phase, Place, Resume, Serves, Session, SidecarPid, WaitingFor, WriteError,
    read_sidecar,
};

use super::world::{World, agent};

#[test]
fn a_sidecar_says_all_that_names_its_process() {
    let world = World::new();
    let owner = world.establish("s1");
    let (sidecar, _) = read_sidecar(&owner.path().unwrap()).unwrap();
    let backend = system_backend();
    let (own, scope) = (backend.probe(Pid::own()).unwrap().unwrap(), backend.scope());
    assert_eq!(sidecar.pid, SidecarPid::Process(Pid::own()));
    assert_eq!(sidecar.process_start, Some(own.stamp.clone()));
    assert_eq!(sidecar.boot_id, scope.boot.ok());
    assert_eq!(sidecar.pid_namespace, scope.pid_namespace.ok());
    assert_eq!(sidecar.hostname, scope.host.unwrap().0);
    assert_eq!(sidecar.executable, backend.details(&own).exe.ok());
    assert_eq!(sidecar.agent_name.as_deref(), Some("test-agent"));
    assert_eq!(sidecar.agent_version.as_deref(), Some("1.2.0"));
    assert_eq!(sidecar.work_dir, PathBuf::from("/home/dev/app"));
    // It began before it was announced.
    assert!(own.began_at_ms.unwrap() <= sidecar.started_at_ms + 2_000);
}

#[test]
fn everything_that_can_be_said_of_a_session_is_read_back() {
    let world = World::new();
    let session = world
        .session("séance-会話 1")
        .transcript("/w/log.jsonl")
        .client_pid(Pid::new(77).unwrap())
        .resume(Resume::Argv(vec!["agent".into(), "--resume".into()]))
        .endpoint("/run/agent.sock");
    let owner = Owner::establish(Agent::new("my-agent").unwrap(), session).unwrap();
    owner.update(Phase::Waiting(WaitingFor::Question)).unwrap();
    let (sidecar, _) = read_sidecar(&world.path("séance-会話 1.runtime.json")).unwrap();
    assert_eq!(sidecar.phase.as_deref(), Some("waiting"));
    assert_eq!(sidecar.waiting_for.as_deref(), Some("question"));
    assert_eq!(sidecar.transcript, Some(PathBuf::from("/w/log.jsonl")));
    assert_eq!(sidecar.client_pid.unwrap().get(), 77);
    let resume = Resume::Argv(vec!["agent".into(), "--resume".into()]);
    assert_eq!(sidecar.resume, Some(resume));
    assert_eq!(sidecar.endpoint.as_deref(), Some("/run/agent.sock"));
    assert_eq!(sidecar.agent_name.as_deref(), Some("my-agent"));
    assert_eq!(sidecar.agent_version, None);
    owner.update(Phase::Idle).unwrap();
    let (sidecar, _) = read_sidecar(&owner.path().unwrap()).unwrap();
    assert_eq!(sidecar.phase.as_deref(), Some("idle"));
    assert_eq!(sidecar.waiting_for, None);
}

#[test]
fn only_its_owner_may_read_it_whatever_the_umask_is() {
    for umask in ["000", "022", "177", "377"] {
        let world = World::new();
        let script = format!("umask {umask}; exec \"$@\"");
        std::fs::create_dir_all(world.place()).unwrap();
        let mut driver = world.driver_below(&["sh", "-c", &script, "sh"]);
        driver.must("start s1");
        driver.must("phase working");
        let mode = |path: PathBuf| path.metadata().unwrap().mode() & 0o7777;
        assert_eq!(mode(world.path("s1.runtime.json")), 0o600, "umask {umask}");
    }
    let world = World::new();
    let _owner = world.establish("s1");
    let mode = world.place().metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o700);
}

#[test]
fn a_switch_moves_the_claim_and_says_when() {
    let world = World::new();
    let owner = world.establish("s1");
    let (first, _) = read_sidecar(&owner.path().unwrap()).unwrap();
    owner.update(Phase::Working).unwrap();
    owner.switch_session(world.session("s2")).unwrap();
    assert_eq!(world.names(), ["s2.runtime.json"]);
    let (second, _) = read_sidecar(&owner.path().unwrap()).unwrap();
    assert!(second.started_at_ms >= first.started_at_ms);
    assert_eq!(second.phase, None, "the phase was the other session's");
    // To the same session again: the file stays.
    owner.switch_session(world.session("s2")).unwrap();
    assert_eq!(world.names(), ["s2.runtime.json"]);
}

#[test]
fn a_session_may_have_a_directory_of_its_own() {
    let world = World::new();
    let in_own = |id: &str| {
        let place = Place::SessionDirectory(world.root().join("sessions").join(id));
        Session::new(id, "/w").unwrap().place(place).unwrap()
    };
    let owner = Owner::establish(agent(), in_own("s1")).unwrap();
    let first = world.root().join("sessions/s1/runtime.json");
    assert_eq!(owner.path(), Some(first.clone()));
    owner.switch_session(in_own("s2")).unwrap();
    assert!(!first.exists());
    assert!(world.root().join("sessions/s2/runtime.json").is_file());
}

#[test]
fn the_same_phase_again_writes_nothing() {
    let world = World::new();
    let owner = world.establish("s1");
    owner.update(Phase::Working).unwrap();
    let inode = || owner.path().unwrap().metadata().unwrap().ino();
    let before = inode();
    owner.update(Phase::Working).unwrap();
    assert_eq!(inode(), before);
    owner.update(Phase::Idle).unwrap();
    assert_ne!(inode(), before);
}

#[test]
fn what_cannot_be_a_session_or_an_agent_is_refused_before_anything_is_written() {
    let world = World::new();
    for id in ["", "../x", "a/b", "..", "a\nb", "con", &"x".repeat(129)] {
        let refused = Session::new(id, "/w");
        assert!(matches!(refused, Err(WriteError::SessionId(_))), "{id:?}");
    }
    for name in ["", "A", "a_b", "../a"] {
        assert!(matches!(Agent::new(name), Err(WriteError::AgentId(_))));
    }
    assert!(matches!(
        Agent::new("schema"),
        Err(WriteError::ReservedName)
    ));
    for work_dir in ["", "w", "./w"] {
        let refused = Session::new("s1", work_dir);
        assert!(matches!(refused, Err(WriteError::Path { .. })));
    }
    let odd = std::ffi::OsString::from_vec(b"/w/\xff".to_vec());
    let session = Session::new("s1", PathBuf::from(odd)).unwrap();
    let session = session.place(Place::Directory(world.place())).unwrap();
    let refused = Owner::establish(agent(), session);
    assert!(matches!(refused, Err(WriteError::Path { .. })));
    let large = world.session("s1").endpoint("x".repeat(70_000));
    let refused = Owner::establish(agent(), large);
    assert!(matches!(refused, Err(WriteError::TooLarge { .. })));
    assert!(world.names().is_empty());
}

#[test]
fn a_forked_child_is_not_the_owner() {
    let world = World::new();
    let owner = std::sync::Arc::new(world.establish("s1"));
    let (theirs, next) = (std::sync::Arc::clone(&owner), world.session("s2"));
    let mut command = Command::new("true");
    let in_the_child = move || {
        let is_refused =
            |result: Result<(), WriteError>| matches!(result, Err(WriteError::Forked { .. }));
        let all = is_refused(theirs.update(Phase::Working))
            && is_refused(theirs.switch_session(next.clone()))
            && is_refused(theirs.release())
            && theirs.path().is_none();
        let failed = || std::io::Error::other("the child acted as the owner");
        all.then_some(()).ok_or_else(failed)
    };
    // SAFETY: what runs between fork and exec only compares numbers and makes
    // small allocations, which glibc allows in the child.
    #[allow(unsafe_code)]
    unsafe {
        command.pre_exec(in_the_child);
    }
    assert!(command.status().unwrap().success());
    assert_eq!(world.names(), ["s1.runtime.json"]);
    owner.update(Phase::Idle).unwrap();
}

#[test]
fn a_forked_child_announces_a_session_of_its_own() {
    let world = World::new();
    let owner = world.establish("s1");
    let mine = world.session("s2");
    let mut command = Command::new("true");
    let in_the_child = move || {
        let made = Owner::establish(agent(), mine.clone());
        made.map(std::mem::forget).map_err(std::io::Error::other)
    };
    // SAFETY: no other thread of this test holds what the child needs; locks of
    // other tests' threads are waited for a bounded time.
    #[allow(unsafe_code)]
    unsafe {
        command.pre_exec(in_the_child);
    }
    let mut child = command.spawn().unwrap();
    let sidecars = world.sidecars();
    let pid = |name: &str| match sidecars[name].pid {
        SidecarPid::Process(pid) => pid.get(),
        SidecarPid::Released => 0,
    };
    assert_eq!(pid("s1.runtime.json"), Pid::own().get());
    assert_eq!(pid("s2.runtime.json"), i32::try_from(child.id()).unwrap());
    child.wait().unwrap();
    drop(owner);
}

#[test]
fn a_process_may_have_a_handle_for_each_of_its_sessions() {
    let world = World::new();
    let owners = ["s1", "s2"].map(|id| world.establish(id));
    let sidecars = world.sidecars();
    assert_eq!(sidecars.len(), 2);
    for (name, sidecar) in &sidecars {
        assert_eq!(sidecar.pid, SidecarPid::Process(Pid::own()), "{name}");
        assert_eq!(sidecar.serves, None, "{name}: nothing was announced");
    }
    owners[0].release().unwrap();
    assert_eq!(world.names(), ["s2.runtime.json"]);
}

#[test]
fn how_many_sessions_a_process_serves_is_in_every_file_that_it_writes() {
    let world = World::new();
    for serves in [Serves::One, Serves::Many] {
        let owner = Owner::establish(agent().serves(serves), world.session("s1")).unwrap();
        let check = |when: &str| {
            let (sidecar, _) = read_sidecar(&owner.path().unwrap()).unwrap();
            assert_eq!(sidecar.serves, Some(serves), "{when}");
        };
        check("established");
        owner.update(Phase::Working).unwrap();
        check("updated");
        owner.switch_session(world.session("s2")).unwrap();
        check("switched");
        owner.release().unwrap();
    }
}

#[test]
fn a_dropped_handle_leaves_the_file_and_the_next_one_takes_it_up() {
    let world = World::new();
    drop(world.establish("s1"));
    assert_eq!(world.names(), ["s1.runtime.json"]);
    let owner = world.establish("s1");
    assert_eq!(owner.path(), Some(world.path("s1.runtime.json")));
    assert_eq!(world.names(), ["s1.runtime.json"]);
    // A second handle counts as another process while the first handle exists.
    let second = world.establish("s1");
    assert_eq!(world.names().len(), 2);
    second.release().unwrap();
    assert_eq!(world.names(), ["s1.runtime.json"]);
}

#[test]
fn another_process_may_be_announced_and_must_be_there() {
    let world = World::new();
    let mut child = Command::new("sleep").arg("60").spawn().unwrap();
    let pid = Pid::new(i64::from(child.id())).unwrap();
    let owner = Owner::establish_for(pid, agent(), world.session("s1")).unwrap();
    let (sidecar, _) = read_sidecar(&owner.path().unwrap()).unwrap();
    let process = system_backend().probe(pid).unwrap().unwrap();
    assert_eq!(sidecar.pid, SidecarPid::Process(pid));
    assert_eq!(sidecar.process_start, Some(process.stamp));
    child.kill().unwrap();
    child.wait().unwrap();
    let gone = Owner::establish_for(pid, agent(), world.session("s2"));
    assert!(matches!(gone, Err(WriteError::NoSuchProcess { .. })));
}
