//! PID and time namespaces, and a `/proc` that is not ours.
#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
#![cfg(target_os = "linux")]

mod world;

use std::process::Command;

use whosup_process::linux::Proc;
use whosup_process::{
    Absent, Among, Backend, FileId, Pid, PidNamespace, ProbeError, Process, ProcessTable,
    StartStamp, Still,
};
use world::{Running, can_start_or_skip, in_new, pid, process, skip, variable, wait_until};

const SOME_FILE: FileId = FileId {
    device: 1,
    inode: 1,
};

#[test]
fn the_inner_pid_of_a_process_in_a_nested_namespace_is_read() {
    let wrapper = in_new(&["-fp", "--mount-proc", "--kill-child"]);
    if !can_start_or_skip(&wrapper) {
        return;
    }
    let mut command = Command::new(wrapper[0]);
    command.args(&wrapper[1..]);
    command.args(["sh", "-c", "echo ready; read line"]);
    let nested = Running::ready(&mut command);
    let table = ProcessTable::look(whosup_process::system_backend());
    let listed = table.processes().unwrap().iter();
    let mut children = listed.filter(|process| process.ppid == Some(nested.pid()));
    let inner = children.next().expect("unshare has a child");
    let details = table.details(inner);
    assert_eq!(details.inner_pids, Ok(vec![inner.pid, pid(1)]));
    assert_eq!(details.innermost_pid(), Some(pid(1)));
    assert_eq!(table.backend().inner_pids(inner), details.inner_pids);
    assert_ne!(details.pid_namespace, table.scope().pid_namespace);
    let outer = table.details(&nested.process());
    assert_eq!(outer.pid_namespace, table.scope().pid_namespace);
    assert!(table.has_nested_namespaces());
}

#[test]
fn a_process_with_mounts_of_its_own_does_not_share_ours() {
    let wrapper = in_new(&["-m"]);
    if !can_start_or_skip(&wrapper) {
        return;
    }
    let mut command = Command::new(wrapper[0]);
    command.args(&wrapper[1..]);
    command.args(["sh", "-c", "echo ready; read line"]);
    let other = Running::ready(&mut command);
    let beside = Running::sleeper();
    let table = Proc::system();
    assert_eq!(table.details(&other.process()).shares_mounts, Ok(false));
    assert_eq!(table.details(&beside.process()).shares_mounts, Ok(true));
}

#[test]
fn from_inside_a_nested_namespace_only_its_own_processes_are_there() {
    const TEST: &str = "from_inside_a_nested_namespace_only_its_own_processes_are_there";
    let scope = Proc::system().scope();
    if world::part().is_none() {
        let wrapper = in_new(&["-fp", "--mount-proc"]);
        if !can_start_or_skip(&wrapper) {
            return;
        }
        let mut part = world::again_here(&wrapper, TEST, "inside");
        let outer = scope.pid_namespace.unwrap();
        part.env("OUTER_NAMESPACE", outer.to_string());
        return world::require_pass(part.env("OUTER_BOOT", scope.boot.unwrap().as_str()));
    }
    let inner = scope.pid_namespace.unwrap();
    assert_ne!(inner.to_string(), variable("OUTER_NAMESPACE"));
    assert_eq!(scope.boot.unwrap().as_str(), variable("OUTER_BOOT"));
    let view = Proc::system().view();
    assert_eq!(view.is_proc_ours, Ok(true));
    assert_eq!(view.is_initial_pid_namespace, Ok(false));
    let (listed, unreadable) = Proc::system().processes().unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0].pid, Pid::own());
    assert_eq!(listed[0].ppid, None, "its parent is outside");
    assert_eq!(unreadable, []);
    let table = ProcessTable::look(whosup_process::system_backend());
    assert!(!table.has_nested_namespaces());
    let details = table.details(&listed[0]);
    assert_eq!(details.inner_pids, Ok(vec![Pid::own()]));
}

#[test]
fn the_first_namespace_is_recognized_by_its_number() {
    let scope = Proc::system().scope();
    let is_initial = scope.pid_namespace == Ok(PidNamespace::INITIAL);
    let view = Proc::system().view();
    assert_eq!(view.is_initial_pid_namespace, Ok(is_initial));
    let host = scope.host.unwrap();
    let name = rustix::system::uname();
    assert_eq!(host.0, name.nodename().to_str().unwrap());
    let boot_id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    assert_eq!(scope.boot.unwrap().as_str(), boot_id.trim());
}

#[track_caller]
fn check_not_ours(table: &Proc) {
    let root = table.root().to_path_buf();
    let not_ours = ProbeError::NotOurs { root };
    assert_eq!(table.view().is_proc_ours, Ok(false));
    assert_eq!(table.processes(), Err(not_ours.clone()));
    assert_eq!(table.probe(pid(1)), Err(not_ours.clone()));
    assert_eq!(table.is_thread(pid(1)), Err(not_ours.clone()));
    let holders = table.holders(&[SOME_FILE], Among::All);
    assert_eq!(holders, Err(not_ours.clone()));
    let stamp = StartStamp::LinuxTicks(1);
    assert_eq!(table.is_still(pid(1), &stamp), Err(not_ours.clone()));
    let look = ProcessTable::look(std::sync::Arc::new(Proc::at(table.root().to_path_buf())));
    assert_eq!(look.processes(), Err(not_ours.clone()));
    assert_eq!(look.probe(pid(1)), Err(not_ours));
}

#[test]
fn a_new_namespace_over_the_old_proc_has_no_process_table() {
    const TEST: &str = "a_new_namespace_over_the_old_proc_has_no_process_table";
    if world::part().is_some() {
        check_not_ours(&Proc::system());
        return check_not_ours(&Proc::at("/proc/../proc".into()));
    }
    let wrapper = in_new(&["-fp"]);
    if can_start_or_skip(&wrapper) {
        world::require_pass(&mut world::again_here(&wrapper, TEST, "inside"));
    }
}

#[test]
fn the_old_proc_is_not_ours_though_it_numbers_us_by_chance_as_we_do() {
    const TEST: &str = "the_old_proc_is_not_ours_though_it_numbers_us_by_chance_as_we_do";
    match world::part().as_deref() {
        None => {
            let wrapper = in_new(&["-fp"]);
            if can_start_or_skip(&wrapper) {
                world::require_pass(&mut world::again_here(&wrapper, TEST, "inside"));
            }
        }
        Some("twin") => {
            let by_proc = std::fs::read_link("/proc/self").unwrap();
            if by_proc.to_str() == Some(&Pid::own().to_string()) {
                check_not_ours(&Proc::system());
                println!("they are equal");
            }
        }
        Some(_) => look_for_twin(TEST),
    }
}

/// Sets our next PID to the next one outside until both meet. Other processes
/// may begin in between, so it takes a few attempts.
fn look_for_twin(test: &str) {
    for _ in 0..50 {
        let last = Command::new("readlink").arg("/proc/self").output().unwrap();
        let last = String::from_utf8(last.stdout).unwrap();
        if std::fs::write("/proc/sys/kernel/ns_last_pid", last.trim()).is_err() {
            return skip("PIDs can't be chosen here");
        }
        let twin = world::again_here(&[], test, "twin").output().unwrap();
        let output = String::from_utf8_lossy(&twin.stdout).into_owned();
        assert!(twin.status.success(), "{output}");
        if output.contains("they are equal") {
            return;
        }
    }
    skip("the numbers never met: too many processes begin here");
}

#[test]
fn without_a_self_there_is_no_process_table() {
    const TEST: &str = "without_a_self_there_is_no_process_table";
    let empty = tempfile::tempdir().unwrap();
    check_not_ours(&Proc::at(empty.path().to_path_buf()));
    check_not_ours(&Proc::at(empty.path().join("missing")));
    let hide = "mount -t tmpfs tmpfs /proc && exec \"$@\"";
    if world::part().is_some() {
        check_not_ours(&Proc::system());
        let scope = Proc::system().scope();
        assert_eq!(scope.boot, Err(Absent::Unsupported));
        assert!(scope.pid_namespace.is_err());
        assert!(scope.host.is_ok());
        return;
    }
    let wrapper = in_new(&["-m", "sh", "-c", hide, "sh"]);
    if can_start_or_skip(&wrapper) {
        world::require_pass(&mut world::again_here(&wrapper, TEST, "without"));
    }
}

#[test]
fn another_time_namespace_is_detected_and_dates_stay_right_in_it() {
    const TEST: &str = "another_time_namespace_is_detected_and_dates_stay_right_in_it";
    let view = Proc::system().view();
    if world::part().is_none() {
        assert_eq!(view.is_initial_time_namespace, Ok(true));
        let wrapper = in_new(&["-T", "--boottime", "100000", "-f"]);
        if can_start_or_skip(&wrapper) {
            let sleeper = Running::sleeper();
            let process = sleeper.process();
            let mut part = world::again_here(&wrapper, TEST, "shifted");
            part.env("OTHER", sleeper.pid().to_string());
            part.env("BEGAN_AT_MS", process.began_at_ms.unwrap().to_string());
            world::require_pass(part.env("STAMP", process.stamp.to_string()));
        }
        return;
    }
    assert_eq!(view.is_initial_time_namespace, Ok(false));
    let process = process(pid(variable("OTHER").parse().unwrap()));
    assert_ne!(process.stamp.to_string(), variable("STAMP"));
    let began_at_ms: i64 = variable("BEGAN_AT_MS").parse().unwrap();
    let apart_ms = began_at_ms.abs_diff(process.began_at_ms.unwrap());
    assert!(apart_ms <= 30, "{apart_ms} ms apart");
}

/// The entry of a gone process stayed for the one that reused its PID (sysinfo#1323).
#[test]
fn a_reused_pid_is_another_process_to_every_question() {
    const TEST: &str = "a_reused_pid_is_another_process_to_every_question";
    if world::part().is_some() {
        return check_reused_pid();
    }
    let wrapper = in_new(&["-fp", "--mount-proc"]);
    if can_start_or_skip(&wrapper) {
        world::require_pass(&mut world::again_here(&wrapper, TEST, "inside"));
    }
}

/// Starts a process with the PID `wanted`, in a namespace of our own.
fn start_with_pid(wanted: Pid) -> Option<Running> {
    for _ in 0..50 {
        let before = (wanted.get() - 1).to_string();
        std::fs::write("/proc/sys/kernel/ns_last_pid", before).ok()?;
        let started = Running::sleeper();
        if started.pid() == wanted {
            return Some(started);
        }
    }
    None
}

fn check_reused_pid() {
    let table = Proc::system();
    let Some(mut first) = start_with_pid(pid(4711)) else {
        return skip("PIDs can't be chosen here");
    };
    let old: Process = first.process();
    let watch = table.watch_exit(old.pid, &old.stamp).unwrap().unwrap();
    first.end();
    // A stamp counts ticks; the next process has to begin in a later one.
    let tick_is_over = || Running::sleeper().process().stamp != old.stamp;
    wait_until("the tick is over", tick_is_over);
    let Some(second) = start_with_pid(pid(4711)) else {
        return skip("the PID did not come back");
    };
    let new = second.process();
    assert_eq!(new.pid, old.pid);
    assert_ne!(new.stamp, old.stamp);
    for table in [Proc::system(), Proc::at("/proc/../proc".into())] {
        assert_eq!(table.is_still(old.pid, &old.stamp), Ok(Still::Exited));
        assert_eq!(table.is_still(new.pid, &new.stamp), Ok(Still::Running));
        let details = table.details(&old);
        assert_eq!(details.argv, Err(Absent::Vanished));
        assert_eq!(details.exe, Err(Absent::Vanished));
        assert_eq!(details.inner_pids, Err(Absent::Vanished));
        assert_eq!(table.inner_pids(&old), Err(Absent::Vanished));
        let environment = table.environment(&old, &["PATH"]);
        assert_eq!(environment, Err(Absent::Vanished));
        assert_eq!(table.read_again(&old), None);
        assert_eq!(
            table.read_again(&new).map(|again| again.stamp),
            Some(new.stamp.clone())
        );
        assert!(table.details(&new).argv.is_ok());
    }
    assert_eq!(watch.wait(Some(std::time::Duration::ZERO)), Ok(true));
    assert!(matches!(table.watch_exit(old.pid, &old.stamp), Ok(None)));
    let fresh = table.watch_exit(new.pid, &new.stamp).unwrap().unwrap();
    assert_eq!(fresh.wait(Some(std::time::Duration::ZERO)), Ok(false));
}
