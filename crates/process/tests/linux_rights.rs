//! Processes of other users, processes that do not let themselves be looked
//! at, and every way in which `/proc` hides processes.
#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
#![cfg(target_os = "linux")]

mod world;

use std::process::Command;

use whosup_process::linux::Proc;
use whosup_process::{Absent, Backend, Details, HidePid, Pid, ProbeError, Process, Still, View};
use world::{
    AS_UNPRIVILEGED, Program, Running, UNPRIVILEGED, can_or_skip, is_root, pid, skip, variable,
};

/// Mounts a `/proc` with the options `$0`, seen by the command only.
const MOUNT_PROC: &str = "mount -t proc -o \"$0\" proc /proc && exec \"$@\"";

/// A sleeping process of root, for another user to look at; elsewhere PID 1 may do.
#[track_caller]
fn check_as_another_user(test: &str, looks: fn(Pid)) {
    if world::part().is_some() {
        return looks(pid(variable("OTHER").parse().unwrap()));
    }
    if !is_root() {
        return looks(pid(1));
    }
    let sleeper = Running::sleeper();
    let program = Program::public();
    let mut part = program.again_unprivileged(test, "unprivileged");
    world::require_pass(part.env("OTHER", sleeper.pid().to_string()));
}

#[track_caller]
fn check_refused(table: &Proc, process: &Process) -> Details {
    let details = table.details(process);
    assert_eq!(details.exe, Err(Absent::PermissionDenied));
    assert_eq!(details.cwd, Err(Absent::PermissionDenied));
    assert_eq!(details.pid_namespace, Err(Absent::PermissionDenied));
    assert!(!details.is_exe_deleted);
    let environment = table.environment(process, &["PATH"]);
    assert_eq!(environment, Err(Absent::PermissionDenied));
    details
}

/// `EPERM` was read as a death (claude-code#74566, agent-browser#564, onctl#1082, ggcode#799).
#[test]
fn a_process_of_another_user_exists_and_refused_fields_are_reported_as_refused() {
    const TEST: &str =
        "a_process_of_another_user_exists_and_refused_fields_are_reported_as_refused";
    check_as_another_user(TEST, |other| {
        let table = Proc::system();
        let process = table.probe(other).unwrap().expect("EPERM is no absence");
        let (listed, unreadable) = table.processes().unwrap();
        assert!(listed.iter().any(|listed| listed.pid == other));
        assert_eq!(unreadable, []);
        let details = check_refused(&table, &process);
        assert!(!details.argv.unwrap().is_empty());
        assert_eq!(details.uid, Ok(0));
        assert_eq!(details.inner_pids, Ok(vec![other]));
        let still = table.is_still(other, &process.stamp);
        assert_eq!(still, Ok(Still::Running));
        let watch = table.watch_exit(other, &process.stamp).unwrap();
        let watch = watch.expect("it runs");
        assert_eq!(watch.wait(Some(std::time::Duration::ZERO)), Ok(false));
    });
}

#[test]
fn a_process_of_ours_that_is_not_dumpable_exists_and_refuses_to_be_looked_at() {
    const TEST: &str = "a_process_of_ours_that_is_not_dumpable_exists_and_refuses_to_be_looked_at";
    match world::part().as_deref() {
        // A user who may execute a program but not read it gets a process that is
        // not dumpable (prctl(2), PR_SET_DUMPABLE).
        Some("unprivileged") => check_not_dumpable(&variable("PROGRAM")),
        _ if !is_root() => skip("it takes root to own a program that we may not read"),
        _ => {
            let folder = world::public_folder();
            let path = folder.path().join("unreadable");
            let sleep = world::find_program("sleep").unwrap();
            let sleep = sleep.canonicalize().unwrap();
            world::copy_program(&sleep, &path, 0o711);
            let program = Program::public();
            let mut part = program.again_unprivileged(TEST, "unprivileged");
            world::require_pass(part.env("PROGRAM", &path));
        }
    }
}

fn check_not_dumpable(program: &str) {
    let running = Running::spawn(Command::new(program).arg("1000"));
    let table = Proc::system();
    world::wait_until("it executes its program", || {
        let process = running.process();
        process.comm == b"unreadable" && table.details(&process).argv.is_ok()
    });
    let process = running.process();
    let details = check_refused(&table, &process);
    assert_eq!(details.argv.unwrap(), [program, "1000"]);
    assert_eq!(details.uid, Ok(UNPRIVILEGED.parse().unwrap()));
    let still = table.is_still(process.pid, &process.stamp);
    assert_eq!(still, Ok(Still::Running));
}

/// Runs the part `part` of a test below a `/proc` with `options`, by the words of `wrapper`.
#[track_caller]
fn below_proc(options: &str, wrapper: &[&str], test: &str, part: &str) {
    if !is_root() || !can_or_skip(&["unshare", "-m", "sh", "-c", MOUNT_PROC, options, "true"]) {
        return skip("it takes root to mount /proc");
    }
    let sleeper = Running::sleeper();
    let mut words = vec!["unshare", "-m", "sh", "-c", MOUNT_PROC, options];
    words.extend_from_slice(wrapper);
    let program = Program::public();
    let mut part = program.again(&words, test, part);
    world::require_pass(part.env("OTHER", sleeper.pid().to_string()));
}

#[track_caller]
fn check_view(hide_pid: HidePid, is_everything_shown: bool) -> View {
    let view = Proc::system().view();
    assert_eq!(view.is_proc_ours, Ok(true));
    assert_eq!(view.hide_pid, Ok(hide_pid));
    assert_eq!(view.is_everything_shown, Ok(is_everything_shown));
    view
}

/// What a hidden process looks like: it exists, is no thread, and can't be judged.
#[track_caller]
fn check_not_seen(expected: fn(Pid) -> ProbeError) {
    let other = pid(variable("OTHER").parse().unwrap());
    let table = Proc::system();
    assert_eq!(table.probe(other), Err(expected(other)));
    assert_eq!(table.is_thread(other), Err(expected(other)));
    let stamp = world::process(Pid::own()).stamp;
    assert_eq!(table.is_still(other, &stamp), Err(expected(other)));
    let watch = table.watch_exit(other, &stamp);
    assert!(watch.is_err());
    let mut forged = world::process(Pid::own());
    forged.pid = other;
    let details = table.details(&forged);
    assert_eq!(details.argv, Err(Absent::PermissionDenied));
    let gone = pid(i64::from(i32::MAX));
    assert_eq!(table.probe(gone), Ok(None));
    check_own_processes_are_seen(&table);
}

#[track_caller]
fn check_own_processes_are_seen(table: &Proc) {
    let sleeper = Running::sleeper();
    let process = sleeper.process();
    assert_eq!(table.details(&process).exe.map(|_| ()), Ok(()));
    let (listed, _) = table.processes().unwrap();
    assert!(listed.iter().any(|listed| listed.pid == sleeper.pid()));
}

fn hidden(pid: Pid) -> ProbeError {
    ProbeError::Hidden { pid }
}

#[test]
fn hidepid_1_lists_processes_of_others_as_unreadable() {
    const TEST: &str = "hidepid_1_lists_processes_of_others_as_unreadable";
    if world::part().is_none() {
        return below_proc("hidepid=1", &AS_UNPRIVILEGED, TEST, "unprivileged");
    }
    let view = check_view(HidePid::NoAccess, false);
    assert!(!view.is_root);
    assert_eq!(view.uid, Ok(UNPRIVILEGED.parse().unwrap()));
    let (listed, unreadable) = Proc::system().processes().unwrap();
    let other = pid(variable("OTHER").parse().unwrap());
    assert!(unreadable.contains(&(other, Absent::PermissionDenied)));
    assert!(listed.iter().all(|process| process.pid != other));
    check_not_seen(|pid| ProbeError::Process {
        pid,
        reason: Absent::PermissionDenied,
    });
}

#[test]
fn hidepid_2_hides_processes_that_exist_all_the_same() {
    const TEST: &str = "hidepid_2_hides_processes_that_exist_all_the_same";
    if world::part().is_none() {
        return below_proc("hidepid=2", &AS_UNPRIVILEGED, TEST, "unprivileged");
    }
    check_view(HidePid::Invisible, false);
    let (listed, unreadable) = Proc::system().processes().unwrap();
    let other = pid(variable("OTHER").parse().unwrap());
    assert_eq!(unreadable, []);
    assert!(listed.iter().all(|process| process.pid != other));
    check_not_seen(hidden);
}

#[test]
fn hidepid_4_hides_processes_that_may_not_be_traced() {
    const TEST: &str = "hidepid_4_hides_processes_that_may_not_be_traced";
    if world::part().is_none() {
        // The group that is exempt from 1 and 2 is not exempt from this.
        let options = format!("hidepid=4,gid={UNPRIVILEGED}");
        return below_proc(&options, &AS_UNPRIVILEGED, TEST, "unprivileged");
    }
    check_view(HidePid::PtraceableOnly, false);
    check_not_seen(hidden);
}

#[test]
fn hidepid_hides_nothing_from_the_group_that_is_exempt() {
    const TEST: &str = "hidepid_hides_nothing_from_the_group_that_is_exempt";
    if world::part().is_none() {
        let options = format!("hidepid=2,gid={UNPRIVILEGED}");
        return below_proc(&options, &AS_UNPRIVILEGED, TEST, "unprivileged");
    }
    check_view(HidePid::Invisible, true);
    let other = pid(variable("OTHER").parse().unwrap());
    assert!(Proc::system().probe(other).unwrap().is_some());
}

#[test]
fn without_a_group_named_the_group_0_is_exempt() {
    const TEST: &str = "without_a_group_named_the_group_0_is_exempt";
    if world::part().is_none() {
        let in_group_0 = [
            "setpriv",
            "--reuid",
            UNPRIVILEGED,
            "--regid",
            UNPRIVILEGED,
            "--groups",
            "0",
        ];
        return below_proc("hidepid=2", &in_group_0, TEST, "unprivileged");
    }
    check_view(HidePid::Invisible, true);
    let other = pid(variable("OTHER").parse().unwrap());
    assert!(Proc::system().probe(other).unwrap().is_some());
}

#[test]
fn hidepid_hides_nothing_from_root_who_may_trace_everybody() {
    const TEST: &str = "hidepid_hides_nothing_from_root_who_may_trace_everybody";
    if world::part().is_none() {
        return below_proc("hidepid=4", &[], TEST, "root");
    }
    let view = check_view(HidePid::PtraceableOnly, true);
    assert!(view.is_root);
    let other = pid(variable("OTHER").parse().unwrap());
    assert!(Proc::system().probe(other).unwrap().is_some());
}

#[test]
fn hidepid_may_hide_processes_from_a_root_without_that_right() {
    const TEST: &str = "hidepid_may_hide_processes_from_a_root_without_that_right";
    if world::part().is_none() {
        // As in a container that dropped the capability: root, outside of group 0.
        let tame = [
            "setpriv",
            "--regid",
            UNPRIVILEGED,
            "--clear-groups",
            "--bounding-set",
            "-sys_ptrace",
        ];
        return below_proc("hidepid=2", &tame, TEST, "root");
    }
    let view = check_view(HidePid::Invisible, false);
    assert!(view.is_root);
}

#[test]
fn without_hidepid_everything_is_shown() {
    let view = Proc::system().view();
    if view.hide_pid != Ok(HidePid::Off) {
        return skip("/proc hides processes here");
    }
    assert_eq!(view.is_everything_shown, Ok(true));
    assert_eq!(view.is_proc_ours, Ok(true));
    assert_eq!(view.is_root, is_root());
    let began = world::process(Pid::own()).began_at_ms.unwrap();
    assert!(view.booted_at_ms.unwrap() < began);
}

#[test]
fn from_another_user_namespace_it_is_not_known_that_everything_is_shown() {
    const TEST: &str = "from_another_user_namespace_it_is_not_known_that_everything_is_shown";
    if world::part().is_none() {
        let nested = ["unshare", "-U", "-r"];
        return below_proc("hidepid=2,gid=0", &nested, TEST, "nested");
    }
    check_view(HidePid::Invisible, false);
}
