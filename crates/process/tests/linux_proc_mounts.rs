//! A `/proc` that shows only a part of what it could, one that hides nothing
//! by its options, and that of another PID namespace.
#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
#![cfg(target_os = "linux")]

mod world;

use std::path::PathBuf;
use std::process::Command;

use whosup_process::linux::Proc;
use whosup_process::{
    Absent, Among, Backend, FileId, HidePid, Pid, ProbeError, ProcessTable, Still,
};
use world::{
    AS_UNPRIVILEGED, Program, Running, UNPRIVILEGED, can_or_skip, can_start_or_skip, in_new,
    is_root, pid, skip, variable,
};

/// Mounts a `/proc` with the options `$0`, seen by the command only.
const MOUNT_PROC: &str = "mount -t proc -o \"$0\" proc /proc && exec \"$@\"";

/// Runs a part of a test below a `/proc` with `options`; `OTHER` is a process of root.
#[track_caller]
fn below_proc(options: &str, wrapper: &[&str], test: &str) {
    if !is_root() || !can_or_skip(&["unshare", "-m", "sh", "-c", MOUNT_PROC, options, "true"]) {
        return skip("it takes root to mount /proc");
    }
    let sleeper = Running::sleeper();
    let mut words = vec!["unshare", "-m", "sh", "-c", MOUNT_PROC, options];
    words.extend_from_slice(wrapper);
    let program = Program::public();
    let mut part = program.again(&words, test, "below");
    world::require_pass(part.env("OTHER", sleeper.pid().to_string()));
}

#[test]
fn hidepid_0_hides_nothing_from_anybody() {
    const TEST: &str = "hidepid_0_hides_nothing_from_anybody";
    if world::part().is_none() {
        return below_proc("hidepid=0", &AS_UNPRIVILEGED, TEST);
    }
    let table = Proc::system();
    let view = table.view();
    assert_eq!(view.hide_pid, Ok(HidePid::Off));
    assert_eq!(view.is_everything_shown, Ok(true));
    assert_eq!(view.uid, Ok(UNPRIVILEGED.parse().unwrap()));
    let other = pid(variable("OTHER").parse().unwrap());
    let process = table.probe(other).unwrap().expect("it exists");
    assert_eq!(table.is_still(other, &process.stamp), Ok(Still::Running));
    assert_eq!(table.details(&process).exe, Err(Absent::PermissionDenied));
}

/// `subset=pid` (Linux 5.8) leaves the processes and removes all files about
/// the system: no `stat`, no `sys`, no `locks`.
#[test]
fn a_proc_without_the_files_of_the_system_shows_processes_and_says_what_it_lacks() {
    const TEST: &str =
        "a_proc_without_the_files_of_the_system_shows_processes_and_says_what_it_lacks";
    if world::part().is_none() {
        below_proc("subset=pid", &[], TEST);
        return below_proc("subset=pid", &AS_UNPRIVILEGED, TEST);
    }
    assert!(!std::fs::exists("/proc/locks").unwrap());
    let table = Proc::system();
    let scope = table.scope();
    assert_eq!(scope.boot, Err(Absent::Unsupported), "never another boot");
    assert!(scope.host.is_ok());
    assert!(scope.pid_namespace.is_ok());
    let view = table.view();
    assert_eq!(view.is_proc_ours, Ok(true));
    assert_eq!(view.hide_pid, Ok(HidePid::Off));
    assert_eq!(view.is_everything_shown, Ok(true));
    assert!(view.booted_at_ms.is_ok());
    let other = pid(variable("OTHER").parse().unwrap());
    let (listed, unreadable) = table.processes().unwrap();
    assert_eq!(unreadable, []);
    assert!(listed.iter().any(|process| process.pid == other));
    let process = table.probe(other).unwrap().expect("it exists");
    assert!(process.began_at_ms.is_ok());
    assert_eq!(table.is_still(other, &process.stamp), Ok(Still::Running));
    // Locks are those of the descriptors; the list that is missing is not asked.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("locked");
    let file = std::fs::File::create(&path).unwrap();
    rustix::fs::flock(&file, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let held = file.metadata().unwrap();
    let held = FileId {
        device: std::os::unix::fs::MetadataExt::dev(&held),
        inode: std::os::unix::fs::MetadataExt::ino(&held),
    };
    let own = [Pid::own()];
    let holders = table.holders(&[held], Among::These(&own)).unwrap();
    assert_eq!(holders.found[0].locks.len(), 1);
}

/// Starts a shell as the first process of a PID namespace below `depth` new ones.
fn nested(depth: usize) -> Option<Running> {
    let one = in_new(&["-fp", "--mount-proc", "--kill-child"]);
    let wrapper: Vec<&str> = one
        .iter()
        .copied()
        .cycle()
        .take(one.len() * depth)
        .collect();
    if !can_start_or_skip(&wrapper) {
        return None;
    }
    let mut command = Command::new(wrapper[0]);
    command.args(&wrapper[1..]);
    command.args(["sh", "-c", "echo ready; read line"]);
    Some(Running::ready(&mut command))
}

/// The youngest of the chain of only children below a process.
fn last_below(table: &ProcessTable, top: Pid) -> whosup_process::Process {
    let listed = table.processes().unwrap();
    let child_of = |parent: Pid| listed.iter().find(|process| process.ppid == Some(parent));
    let mut last = child_of(top).expect("unshare has a child");
    while let Some(child) = child_of(last.pid) {
        last = child;
    }
    last.clone()
}

#[test]
fn a_process_two_namespaces_below_has_a_pid_in_each() {
    let Some(outer) = nested(2) else {
        return;
    };
    let table = ProcessTable::look(whosup_process::system_backend());
    let inner = last_below(&table, outer.pid());
    assert_eq!(inner.comm, b"sh");
    let details = table.details(&inner);
    let pids = details.inner_pids.clone().unwrap();
    assert_eq!(pids.len(), 3, "{pids:?}");
    assert_eq!(pids[0], inner.pid);
    assert_eq!(details.innermost_pid(), Some(pid(1)));
}

#[test]
fn the_proc_of_a_namespace_below_is_not_ours_seen_from_above() {
    let Some(outer) = nested(1) else {
        return;
    };
    let table = ProcessTable::look(whosup_process::system_backend());
    let inner = last_below(&table, outer.pid());
    let root = PathBuf::from(format!("/proc/{}/root/proc", inner.pid));
    if std::fs::read_dir(&root).is_err() {
        return skip("the mounts of another process can't be seen here");
    }
    // Its PID 1 is not ours, and that a PID is missing in it means nothing.
    let theirs = Proc::at(root.clone());
    assert_eq!(theirs.view().is_proc_ours, Ok(false));
    let not_ours = ProbeError::NotOurs { root };
    assert_eq!(theirs.processes(), Err(not_ours.clone()));
    assert_eq!(theirs.probe(pid(1)), Err(not_ours.clone()));
    assert_eq!(theirs.probe(inner.pid), Err(not_ours));
}
