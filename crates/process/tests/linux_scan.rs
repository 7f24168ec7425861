//! Looks at the whole table while processes come and go.
#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
#![cfg(target_os = "linux")]

mod world;

use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use whosup_process::linux::Proc;
use whosup_process::{Absent, Among, Backend, FileId, Pid, ProcessTable};
use world::Running;

/// Processes that come and go meanwhile.
const FORKS: usize = 200;

/// Calls `look` again and again while [`FORKS`] short-lived processes run.
fn amid_forks(mut look: impl FnMut()) {
    let is_over = AtomicBool::new(false);
    let forks = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while forks.fetch_add(1, Ordering::Relaxed) < FORKS {
                let started = Command::new("true").stdin(Stdio::null()).spawn();
                started.unwrap().wait().unwrap();
            }
            is_over.store(true, Ordering::Relaxed);
        });
        while !is_over.load(Ordering::Relaxed) {
            look();
        }
    });
}

/// One process that vanished in mid-scan failed the whole scan
/// (node_exporter#1901, util-linux#2799, psutil#503).
#[test]
fn a_look_amid_short_lived_processes_finishes_and_lists_all_that_stay() {
    let sleepers: Vec<Running> = (0..5).map(|_| Running::sleeper()).collect();
    let mut looks = 0;
    amid_forks(|| {
        let table = ProcessTable::look(whosup_process::system_backend());
        for sleeper in &sleepers {
            let seen = table.seen(sleeper.pid()).expect("it stays");
            assert!(!seen.is_exited);
        }
        assert!(table.seen(Pid::own()).is_some());
        assert_eq!(table.unreadable(), []);
        for process in table.processes().unwrap() {
            let details = table.details(process);
            // Who goes meanwhile has vanished or exited, and is not malformed.
            assert!(!matches!(details.uid, Err(Absent::Malformed(_))));
            assert!(!matches!(details.inner_pids, Err(Absent::Malformed(_))));
            assert!(!matches!(details.argv, Err(Absent::Io(_))), "{details:?}");
            assert!(!matches!(details.exe, Err(Absent::Io(_))), "{details:?}");
        }
        looks += 1;
    });
    assert!(looks >= 2, "only {looks} looks in all that time");
}

#[test]
fn a_walk_for_holders_amid_short_lived_processes_finishes_without_false_holders() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("held");
    let held = std::fs::File::create(&path).unwrap();
    let file = held.metadata().unwrap();
    let file = FileId {
        device: std::os::unix::fs::MetadataExt::dev(&file),
        inode: std::os::unix::fs::MetadataExt::ino(&file),
    };
    let refused: Vec<Pid> = pids_refused(file);
    amid_forks(|| {
        let holders = Proc::system().holders(&[file], Among::All).unwrap();
        assert!(holders.of(file).any(|holder| holder.pid == Pid::own()));
        for (pid, reason) in &holders.unreadable {
            let is_expected = refused.contains(pid) || *reason == Absent::PermissionDenied;
            assert!(is_expected, "{pid}: {reason}");
        }
    });
}

fn pids_refused(file: FileId) -> Vec<Pid> {
    let holders = Proc::system().holders(&[file], Among::All).unwrap();
    holders.unreadable.into_iter().map(|(pid, _)| pid).collect()
}

#[test]
fn a_process_that_goes_while_it_is_probed_is_there_or_gone_and_never_an_error() {
    for _ in 0..40 {
        let mut sleeper = Running::sleeper();
        let process = sleeper.process();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                sleeper.close_stdin();
                sleeper.reap();
            });
            loop {
                let probe = Proc::system().probe(process.pid);
                match probe.expect("going is no failure to look") {
                    Some(seen) if seen.stamp == process.stamp => {}
                    // The PID is free, or another process has it by now.
                    Some(_) | None => break,
                }
            }
        });
        let watch = Proc::system().watch_exit(process.pid, &process.stamp);
        assert!(matches!(watch, Ok(None)));
    }
}

/// Threads were listed as processes (sysinfo#1628, sysinfo#805).
#[test]
fn a_process_of_thirty_threads_is_one_process() {
    const THREADS: usize = 30;
    let all_run = std::sync::Barrier::new(THREADS + 1);
    let is_over = std::sync::Barrier::new(THREADS + 1);
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                all_run.wait();
                is_over.wait();
            });
        }
        all_run.wait();
        let tasks = std::fs::read_dir("/proc/self/task").unwrap();
        let threads: Vec<Pid> = tasks
            .map(|task| task.unwrap().file_name().to_str().unwrap().parse().unwrap())
            .map(world::pid)
            .collect();
        let table = ProcessTable::look(whosup_process::system_backend());
        let listed = table.processes().unwrap().iter();
        let ours: Vec<_> = listed
            .filter(|process| threads.contains(&process.pid))
            .map(|process| (process.pid, process.threads as usize > THREADS))
            .collect();
        is_over.wait();
        assert!(threads.len() > THREADS);
        assert_eq!(ours, [(Pid::own(), true)]);
    });
}
