//! Several processes on one session.

use std::collections::BTreeSet;

use whosup_process::{Pid, system_backend};
use whosup_sidecar::{Owner, SidecarPid};

use super::world::{Driver, World};

fn pids(world: &World) -> BTreeSet<i32> {
    let sidecars = world.sidecars().into_values();
    sidecars
        .map(|sidecar| match sidecar.pid {
            SidecarPid::Process(pid) => pid.get(),
            SidecarPid::Released => 0,
        })
        .collect()
}

#[test]
fn a_second_process_on_a_session_claims_it_beside_the_first() {
    let world = World::new();
    let (mut first, mut second) = (world.driver(), world.driver());
    first.must("start s1");
    let before = std::fs::read(world.path("s1.runtime.json")).unwrap();
    second.must("start s1");
    assert_eq!(
        std::fs::read(world.path("s1.runtime.json")).unwrap(),
        before
    );
    assert_eq!(pids(&world), BTreeSet::from([first.pid(), second.pid()]));
    assert_eq!(world.names().len(), 2);
    // Each removes only the file that it wrote.
    second.must("switch s2");
    assert_eq!(world.names(), ["s1.runtime.json", "s2.runtime.json"]);
    assert_eq!(
        std::fs::read(world.path("s1.runtime.json")).unwrap(),
        before
    );
    first.must("switch s2");
    assert_eq!(world.names().len(), 2);
    first.must("release");
    assert_eq!(world.names(), ["s2.runtime.json"]);
    assert_eq!(pids(&world), BTreeSet::from([second.pid()]));
}

#[test]
fn a_session_of_a_dead_process_is_taken_over_in_its_own_file() {
    let world = World::new();
    for how in ["kill", "crash", "exit"] {
        let mut first = world.driver();
        first.must("start s1");
        match how {
            "kill" => first.kill(),
            "crash" => {
                first.send_line("crash");
                assert_eq!(first.answer(), "");
                first.kill();
            }
            _ => first.end(),
        }
        assert_eq!(world.names(), ["s1.runtime.json"], "left by {how}");
        let mut second = world.driver();
        second.must("start s1");
        assert_eq!(world.names(), ["s1.runtime.json"], "taken over after {how}");
        assert_eq!(pids(&world), BTreeSet::from([second.pid()]));
    }
}

#[test]
fn of_many_that_take_a_dead_claim_over_at_once_each_has_its_own() {
    let world = World::in_memory();
    for round in 0..6 {
        let id = format!("s{round}");
        let mut dead = world.driver();
        dead.must(&format!("start {id}"));
        dead.kill();
        let mut drivers: Vec<Driver> = (0..8).map(|_| world.driver()).collect();
        // They are up and wait for a line.
        for driver in &mut drivers {
            assert_eq!(driver.ask("ready?"), "unsupported");
        }
        drivers
            .iter_mut()
            .for_each(|driver| driver.send_line(&format!("start {id}")));
        for driver in &mut drivers {
            assert_eq!(driver.answer(), "ok");
        }
        let theirs: BTreeSet<i32> = drivers.iter().map(Driver::pid).collect();
        assert_eq!(pids(&world), theirs);
        assert_eq!(world.names().len(), 8, "{:?}", world.names());
        for driver in &mut drivers {
            driver.must("release");
        }
        assert!(world.names().is_empty(), "{:?}", world.names());
    }
}

#[test]
fn sibling_claims_of_the_dead_are_removed_when_the_session_is_resumed() {
    let world = World::new();
    let (mut first, mut second) = (world.driver(), world.driver());
    first.must("start s1");
    second.must("start s1");
    second.kill();
    assert_eq!(world.names().len(), 2);
    let mut third = world.driver();
    third.must("start s1");
    assert_eq!(pids(&world), BTreeSet::from([first.pid(), third.pid()]));
    assert_eq!(world.names().len(), 2);
}

/// A sidecar that another process wrote about session `s1`.
fn foreign(pid: i32, more: &str) -> String {
    let scope = system_backend().scope();
    format!(
        "{{\"schema_version\": 1, \"pid\": {pid}, \"session_id\": \"s1\", \
         \"work_dir\": \"/w\", \"hostname\": \"{}\", \"started_at\": 1795812879.5, \
         \"qwen_version\": null{more}}}",
        scope.host.unwrap()
    )
}

#[track_caller]
fn check_left_alone(name: &str, text: &str) {
    let world = World::new();
    world.write(name, text);
    let owner = world.establish("s1");
    assert_eq!(std::fs::read_to_string(world.path(name)).unwrap(), text);
    let own = owner.path().unwrap();
    let own = own.file_name().unwrap().to_str().unwrap();
    assert!(own.starts_with("s1.claim-"), "{own}");
    owner.release().unwrap();
    assert_eq!(world.names(), [name]);
}

#[test]
fn a_file_whose_owner_may_live_is_left_alone() {
    let name = "s1.runtime.json";
    let own = Pid::own().get();
    // No stamp: the PID may be another process's by now, or may not.
    check_left_alone(name, &foreign(own, ""));
    check_left_alone(name, &foreign(own, ", \"pid_namespace\": 77"));
    let elsewhere = foreign(1, "").replace("\"hostname\": \"", "\"hostname\": \"not-");
    check_left_alone(name, &elsewhere);
    check_left_alone(name, "");
    check_left_alone(name, "{\"schema_version\": 2}");
    // Where letters of both cases are one, it may be another session's.
    check_left_alone(name, &foreign(0, "").replace("\"s1\"", "\"S1\""));
}

#[test]
fn a_released_claim_is_taken_over() {
    let world = World::new();
    world.write("s1.runtime.json", &foreign(0, ""));
    let owner = world.establish("s1");
    assert_eq!(owner.path(), Some(world.path("s1.runtime.json")));
    assert_eq!(world.names(), ["s1.runtime.json"]);
}

#[test]
fn what_lies_there_and_is_no_file_is_left_alone() {
    let world = World::new();
    std::fs::create_dir_all(world.path("s1.runtime.json")).unwrap();
    let owner = world.establish("s1");
    owner.release().unwrap();
    assert!(world.path("s1.runtime.json").is_dir());
    let other = World::new();
    other.write("target", "precious");
    std::os::unix::fs::symlink(other.path("target"), other.path("s1.runtime.json")).unwrap();
    let owner = other.establish("s1");
    owner.release().unwrap();
    assert_eq!(std::fs::read(other.path("target")).unwrap(), b"precious");
    assert_eq!(other.names(), ["s1.runtime.json", "target"]);
}

#[test]
fn a_file_that_another_process_put_in_the_place_of_ours_is_theirs() {
    let world = World::new();
    let owner = world.establish("s1");
    let theirs = foreign(1, "");
    world.write("s1.runtime.json", &theirs);
    owner.update(whosup_sidecar::Phase::Working).unwrap();
    assert_eq!(world.names().len(), 2);
    owner.release().unwrap();
    assert_eq!(world.names(), ["s1.runtime.json"]);
    let there = std::fs::read_to_string(world.path("s1.runtime.json")).unwrap();
    assert_eq!(there, theirs);
}

#[test]
fn a_removed_file_is_written_again() {
    let world = World::new();
    let owner: Owner = world.establish("s1");
    std::fs::remove_dir_all(world.place()).unwrap();
    owner.update(whosup_sidecar::Phase::Working).unwrap();
    assert_eq!(world.names(), ["s1.runtime.json"]);
    std::fs::remove_dir_all(world.place()).unwrap();
    owner.switch_session(world.session("s2")).unwrap();
    assert_eq!(world.names(), ["s2.runtime.json"]);
    std::fs::remove_dir_all(world.place()).unwrap();
    owner.release().unwrap();
}

/// Names were longer than a file system allows (claude-code#59726, pi#9836):
/// 143 bytes on eCryptfs.
#[test]
fn names_of_the_longest_session_are_short_enough_for_every_file_system() {
    const NAME_BYTES_MAX: usize = 143;
    let world = World::new();
    for id in ["x".repeat(128), "\u{e9}".repeat(64)] {
        let (mut first, mut second) = (world.driver(), world.driver());
        first.must(&format!("start {id}"));
        second.must(&format!("start {id}"));
        let names = world.names();
        assert_eq!(names.len(), 2, "{names:?}");
        assert!(
            names.iter().all(|name| name.len() <= NAME_BYTES_MAX),
            "{names:?}"
        );
        second.must("release");
        first.must("release");
        assert!(world.names().is_empty());
        first.end();
        second.end();
    }
}
