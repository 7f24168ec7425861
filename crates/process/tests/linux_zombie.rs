//! Processes that are listed although they, or their leaders, have exited.
#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
#![cfg(target_os = "linux")]

mod world;

use std::ffi::OsStr;
use std::os::unix::fs::MetadataExt;
use std::process::Command;
use std::time::Duration;

use whosup_process::linux::Proc;
use whosup_process::{
    Absent, Access, Among, Backend, ExitStatus, ExitWatch, FileId, LockKind, Process, RunState,
    Still,
};
use world::{Program, Running, find_program, is_root, skip, wait_until};

/// Ends its first thread while a second one runs on, holding a lock on the
/// file that is named, until the standard input ends.
const LEADERLESS: &str = "
import ctypes, fcntl, sys, threading
def run():
    held = open(sys.argv[1], 'r+')
    fcntl.flock(held, fcntl.LOCK_EX)
    print('ready', flush=True)
    sys.stdin.read()
threading.Thread(target=run).start()
ctypes.CDLL(None).pthread_exit(None)
";

/// Runs a test as the user that it is, and as another one if it is root.
#[track_caller]
fn as_every_user(test: &str, body: fn()) {
    body();
    if is_root() && world::part().is_none() {
        world::require_pass(&mut Program::public().again_unprivileged(test, "unprivileged"));
    }
}

fn zombie() -> (Running, Process) {
    let mut running = Running::spawn(&mut Command::new("true"));
    wait_until("it is a zombie", || {
        running.process().run_state == RunState::Zombie
    });
    running.close_stdin();
    let process = running.process();
    (running, process)
}

/// A zombie was counted as running (local-operator#1025, procfs#2).
#[test]
fn a_zombie_has_exited_which_is_the_reason_for_absent_arguments() {
    const TEST: &str = "a_zombie_has_exited_which_is_the_reason_for_absent_arguments";
    as_every_user(TEST, || {
        let (_zombie, process) = zombie();
        assert!(process.is_exited);
        assert!(process.run_state.is_exited());
        assert_eq!(process.rss_bytes, Err(Absent::Exited));
        for table in [Proc::system(), Proc::at("/proc/../proc".into())] {
            assert!(table.probe(process.pid).unwrap().unwrap().is_exited);
            let still = table.is_still(process.pid, &process.stamp);
            assert_eq!(still, Ok(Still::Exited));
            let details = table.details(&process);
            assert_eq!(details.argv, Err(Absent::Exited));
            assert_eq!(details.title, Err(Absent::Exited));
            assert_eq!(details.exe, Err(Absent::Exited));
            assert_eq!(details.cwd, Err(Absent::Exited));
            let own_uid = rustix::process::geteuid().as_raw();
            assert_eq!(details.uid, Ok(own_uid));
            assert_eq!(details.inner_pids, Ok(vec![process.pid]));
            let environment = table.environment(&process, &["PATH"]);
            assert_eq!(environment, Err(Absent::Exited));
        }
        let watch = Proc::system().watch_exit(process.pid, &process.stamp);
        assert!(matches!(watch, Ok(None)));
    });
}

#[test]
fn a_zombie_holds_nothing_and_hides_nothing() {
    const TEST: &str = "a_zombie_holds_nothing_and_hides_nothing";
    as_every_user(TEST, || {
        let (_zombie, process) = zombie();
        let some_file = FileId {
            device: 1,
            inode: 1,
        };
        let among = [process.pid];
        let holders = Proc::system().holders(&[some_file], Among::These(&among));
        let holders = holders.unwrap();
        assert_eq!(holders.found, []);
        assert_eq!(holders.unreadable, []);
    });
}

#[test]
fn a_zombie_leader_whose_threads_run_on_has_not_exited() {
    const TEST: &str = "a_zombie_leader_whose_threads_run_on_has_not_exited";
    let Some(python) = find_program("python3") else {
        return skip("there is no python3 to end the first thread only");
    };
    assert!(python.is_absolute());
    as_every_user(TEST, check_zombie_leader);
}

fn check_zombie_leader() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lock");
    std::fs::write(&path, "").unwrap();
    let python = find_program("python3").unwrap();
    let mut running = Running::ready(
        Command::new(&python)
            .args(["-c", LEADERLESS])
            .arg(&path)
            .env("MARK", "by a thread")
            .current_dir(folder.path()),
    );
    wait_until("the leader is a zombie", || {
        running.process().run_state == RunState::Zombie
    });
    let process = running.process();
    assert!(!process.is_exited);
    assert_eq!(process.threads, 2);
    for table in [Proc::system(), Proc::at("/proc/../proc".into())] {
        let still = table.is_still(process.pid, &process.stamp);
        assert_eq!(still, Ok(Still::Running));
        check_body_of_thread(&table, &process, &path);
    }
    let watch = Proc::system().watch_exit(process.pid, &process.stamp);
    let watch: ExitWatch = watch.unwrap().expect("its thread runs");
    assert_eq!(watch.wait(Some(Duration::ZERO)), Ok(false));
    running.close_stdin();
    assert_eq!(watch.wait(Some(Duration::from_secs(60))), Ok(true));
    let process = running.process();
    assert!(process.is_exited);
    assert_eq!(Proc::system().details(&process).argv, Err(Absent::Exited));
}

/// The leader has lost its memory and files; its thread has them still.
#[track_caller]
fn check_body_of_thread(table: &Proc, process: &Process, path: &std::path::Path) {
    let details = table.details(process);
    assert_eq!(details.argv.unwrap().last().unwrap(), path);
    assert!(details.exe.unwrap().to_str().unwrap().contains("python"));
    let folder = path.parent().unwrap().canonicalize().unwrap();
    assert_eq!(details.cwd.unwrap(), folder);
    let environment = table.environment(process, &["MARK"]);
    assert_eq!(environment.unwrap()[0].1, OsStr::new("by a thread"));
    let file = std::fs::metadata(path).unwrap();
    let file = FileId {
        device: file.dev(),
        inode: file.ino(),
    };
    let holders = table.holders(&[file], Among::All).unwrap();
    let holder = holders.of(file).next().expect("the thread holds it");
    assert_eq!(holder.pid, process.pid);
    assert_eq!(holder.access, Access::ReadWrite);
    assert_eq!(holder.locks, [LockKind::Flock { is_exclusive: true }]);
}

/// A zombie of a shell that ended by running the line.
fn ended_by(line: &str) -> (Running, Process) {
    let mut running = Running::spawn(Command::new("sh").args(["-c", line]));
    wait_until("it is a zombie", || {
        running.process().run_state == RunState::Zombie
    });
    running.close_stdin();
    let process = running.process();
    (running, process)
}

#[test]
fn the_exit_status_of_a_zombie_is_known_to_readers_with_permission() {
    const TEST: &str = "the_exit_status_of_a_zombie_is_known_to_readers_with_permission";
    as_every_user(TEST, || {
        for (line, status) in [
            ("exit 3", ExitStatus::Code(3)),
            ("exit 255", ExitStatus::Code(255)),
            ("kill -KILL $$", ExitStatus::Signal(9)),
            ("kill -TERM $$", ExitStatus::Signal(15)),
        ] {
            let (mut zombie, process) = ended_by(line);
            let reported = Proc::system().exit_status(&process);
            assert_eq!(reported, Ok(Some(status)), "{line}");
            zombie.reap();
            let reported = Proc::system().exit_status(&process);
            assert_eq!(reported, Err(Absent::Vanished), "{line}, waited for");
        }
        // The kernel reports 0 to readers without permission, so 0 counts only for
        // readers with permission.
        let (_zombie, process) = ended_by("exit 0");
        let reported = Proc::system().exit_status(&process);
        let expected = if is_root() {
            Ok(Some(ExitStatus::Code(0)))
        } else {
            Err(Absent::PermissionDenied)
        };
        assert_eq!(reported, expected);
        let sleeper = Running::sleeper();
        let reported = Proc::system().exit_status(&sleeper.process());
        assert_eq!(reported, Ok(None), "it runs");
    });
}

#[test]
fn how_a_zombie_of_another_user_ended_is_not_known() {
    const TEST: &str = "how_a_zombie_of_another_user_ended_is_not_known";
    if world::part().is_some() {
        let process = world::process(world::pid(world::variable("OTHER").parse().unwrap()));
        assert_eq!(process.run_state, RunState::Zombie);
        let reported = Proc::system().exit_status(&process);
        assert_eq!(reported, Err(Absent::PermissionDenied));
        return;
    }
    if !is_root() {
        return skip("only root can be another user than itself");
    }
    for line in ["exit 3", "exit 0", "kill -KILL $$"] {
        let (zombie, _) = ended_by(line);
        let program = Program::public();
        let mut part = program.again_unprivileged(TEST, "unprivileged");
        world::require_pass(part.env("OTHER", zombie.pid().to_string()));
    }
}
