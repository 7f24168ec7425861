//! Disks that are full or read-only, and directories that are not ours.

use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use super::world::World;

/// The user that `without_rights` makes of root.
const UNPRIVILEGED: u32 = 65_534;

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// How to start a program without the rights of root; `None` if we have none anyway.
fn without_rights() -> Vec<&'static str> {
    if is_root() {
        vec![
            "setpriv",
            "--reuid=65534",
            "--regid=65534",
            "--clear-groups",
        ]
    } else {
        vec!["env"]
    }
}

fn open_to_all(path: &std::path::Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

fn has(program: &str) -> bool {
    let found = Command::new(program).arg("--version").output();
    if found.is_err() {
        eprintln!("skipped: there is no `{program}` here");
    }
    found.is_ok()
}

#[test]
fn a_directory_that_may_not_be_written_is_an_error_and_stays_as_it_is() {
    if !has(without_rights()[0]) {
        return;
    }
    // The test program must be reachable for the user that it becomes.
    let program = std::env::current_exe().unwrap();
    let reachable = Command::new(without_rights()[0])
        .args(&without_rights()[1..])
        .arg(&program)
        .arg("--list")
        .output();
    if !reachable.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: another user can't start `{}`", program.display());
        return;
    }
    let world = World::new();
    open_to_all(world.root(), 0o755);
    world.write("s1.runtime.json", "another's");
    open_to_all(&world.place(), 0o555);
    let above = world.root().join("agent-sessions");
    open_to_all(&above, 0o555);
    if is_root() {
        // The writer owns them.
        for directory in [&above, &world.place()] {
            std::os::unix::fs::chown(directory, Some(UNPRIVILEGED), None).unwrap();
        }
    }
    let mut driver = world.driver_below(&without_rights());
    for id in ["s1", "s2"] {
        let answer = driver.ask(&format!("start {id}"));
        let right = "error cannot write sidecar `";
        assert!(answer.starts_with(right), "{answer}");
        assert!(
            answer.ends_with("Permission denied (os error 13)"),
            "{answer}"
        );
    }
    assert_eq!(world.names(), ["s1.runtime.json"]);
    // The driver is alive, and does it once it may.
    open_to_all(&world.place(), 0o755);
    driver.must("start s2");
    open_to_all(&world.place(), 0o555);
    let answer = driver.ask("switch s3");
    assert!(
        answer.starts_with("error cannot remove sidecar `"),
        "{answer}"
    );
    assert_eq!(world.names(), ["s1.runtime.json", "s2.runtime.json"]);
    // What could not be done is made up for by the next call.
    open_to_all(&world.place(), 0o755);
    driver.must("phase idle");
    assert_eq!(world.names(), ["s1.runtime.json", "s3.runtime.json"]);
}

#[test]
fn a_full_disk_is_an_error_and_leaves_what_was_there_and_no_temporary_file() {
    if !is_root() || !has("unshare") {
        eprintln!("skipped: only root can mount a small disk for this test");
        return;
    }
    let world = World::new();
    std::fs::create_dir_all(world.place()).unwrap();
    let mount = "mount -t tmpfs -o size=64k,mode=700 none agent-sessions && \
                 mkdir agent-sessions/driver && exec \"$@\"";
    let mut driver = world.driver_below(&["unshare", "-m", "sh", "-c", mount, "sh"]);
    if driver.ask("start s1") != "ok" {
        eprintln!("skipped: a small disk can't be mounted here");
        return;
    }
    // The disk can be seen through the driver alone.
    let inside = format!("/proc/{}/cwd/agent-sessions/driver", driver.pid());
    let names = || {
        let entries = std::fs::read_dir(&inside).unwrap();
        let mut names: Vec<_> = entries.map(|e| e.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let before = std::fs::read(format!("{inside}/s1.runtime.json")).unwrap();
    let filled = std::fs::write(format!("{inside}/ballast"), vec![b'x'; 1 << 20]);
    assert!(filled.is_err());
    let answer = driver.ask("phase working");
    assert!(answer.contains("No space left on device"), "{answer}");
    assert_eq!(names(), ["ballast", "s1.runtime.json"]);
    let after = std::fs::read(format!("{inside}/s1.runtime.json")).unwrap();
    assert_eq!(after, before);
    std::fs::remove_file(format!("{inside}/ballast")).unwrap();
    driver.must("phase working");
    assert_eq!(names(), ["s1.runtime.json"]);
}

#[test]
fn a_file_in_the_place_of_the_directory_is_an_error() {
    let world = World::new();
    std::fs::write(world.root().join("agent-sessions"), "").unwrap();
    let mut driver = world.driver();
    let answer = driver.ask("start s1");
    assert!(
        answer.starts_with("error cannot make directory `"),
        "{answer}"
    );
    assert_eq!(
        std::fs::read(world.root().join("agent-sessions")).unwrap(),
        b""
    );
}
