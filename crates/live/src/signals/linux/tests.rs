use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use whosup_core::adapter::WatchPath;
use whosup_core::machine::Machine;
use whosup_core::process::{Pid, StartStamp};
use whosup_core::sessions::watch::Watch;

use super::Signals;
use crate::signals::Happened;

/// How long an event may take on a loaded machine.
const EVENT_MAX: Duration = Duration::from_secs(60);

struct Watching {
    signals: Signals,
    machine: Machine,
    watch: Watch,
}

impl Watching {
    fn paths(paths: impl IntoIterator<Item = WatchPath>) -> Self {
        let mut watching = Self {
            signals: Signals::new().unwrap(),
            machine: Machine::here(),
            watch: Watch {
                paths: paths.into_iter().collect(),
                ..Watch::default()
            },
        };
        watching.again();
        watching
    }

    /// Watches as after a look.
    fn again(&mut self) {
        self.machine = Machine::here();
        let watched = self.signals.watch(&self.machine, &self.watch);
        assert_eq!(watched.problems, Vec::<String>::new());
    }

    /// Waits for a signal that was caused already.
    #[track_caller]
    fn check(&mut self, what: &str) {
        assert!(self.happened(EVENT_MAX).is_anything, "{what} was not seen");
        self.again();
        self.quiet();
    }

    /// Waits for the exit of a watched process, which is reported once.
    #[track_caller]
    fn check_exit(&mut self, pid: Pid, stamp: StartStamp) {
        let exited = self.happened(EVENT_MAX).exited;
        assert_eq!(exited, [(pid, stamp)]);
        self.again();
        assert_eq!(
            self.signals.wait(Duration::ZERO).unwrap(),
            Happened::default()
        );
    }

    fn happened(&mut self, timeout: Duration) -> Happened {
        let mut happened = self.signals.wait(timeout).unwrap();
        // Some of several simultaneous events may come later.
        while !happened.is_anything && happened.exited.is_empty() && happened != Happened::default()
        {
            happened = self.signals.wait(timeout).unwrap();
        }
        happened
    }

    /// Reads all pending events.
    fn quiet(&mut self) {
        while self.signals.wait(Duration::ZERO).unwrap().is_change() {}
    }
}

fn directory() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().canonicalize().unwrap();
    (directory, path)
}

#[test]
fn a_file_that_is_closed_without_a_write_has_not_changed_and_is_seen() {
    let (_directory, root) = directory();
    let lock = root.join("session.lock");
    let held = fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(&lock)
        .unwrap();
    let mut watching = Watching::paths([WatchPath::tree(root)]);
    drop(held);
    let closed = Happened {
        is_closed: true,
        ..Happened::default()
    };
    assert_eq!(watching.signals.wait(EVENT_MAX).unwrap(), closed);
    fs::write(&lock, "1").unwrap();
    watching.check("a write");
}

#[test]
fn a_file_that_is_renamed_into_place_is_whole() {
    let (_directory, root) = directory();
    let mut watching = Watching::paths([WatchPath::tree(root.clone())]);
    fs::write(root.join("new"), "1").unwrap();
    let written = watching.signals.wait(EVENT_MAX).unwrap();
    assert!(written.is_anything && !written.is_in_place);
    fs::rename(root.join("new"), root.join("one")).unwrap();
    let mut waits = (0..8).map(|_| watching.signals.wait(EVENT_MAX).unwrap());
    assert!(waits.any(|happened| happened.is_in_place));
}

#[test]
fn whatever_is_written_made_renamed_or_removed_below_a_tree_is_seen() {
    let (_directory, root) = directory();
    let tree = root.join("home/sessions");
    fs::create_dir_all(tree.join("old")).unwrap();
    let mut watching = Watching::paths([WatchPath::tree(tree.clone())]);
    let deep = tree.join("a/b/c");
    fs::create_dir_all(&deep).unwrap();
    watching.check("a directory");
    fs::write(deep.join("one"), "1").unwrap();
    watching.check("a file in a directory that was made since");
    fs::write(tree.join("old/one"), "1").unwrap();
    watching.check("a file in a directory that was there");
    fs::write(tree.join("new"), "2").unwrap();
    watching.check("a file");
    fs::rename(tree.join("new"), tree.join("old/one")).unwrap();
    watching.check("a rename");
    fs::remove_file(deep.join("one")).unwrap();
    watching.check("a removal");
    // Outside of the tree nothing is of interest.
    fs::write(root.join("home/other"), "3").unwrap();
    fs::read(tree.join("old/one")).unwrap();
    assert!(!watching.signals.wait(Duration::ZERO).unwrap().is_change());
}

#[test]
fn a_directory_that_comes_goes_and_comes_again_is_watched() {
    let (_directory, root) = directory();
    let sessions = root.join("home/.agent/sessions");
    fs::create_dir_all(root.join("home")).unwrap();
    let mut watching = Watching::paths([WatchPath::tree(sessions.clone())]);
    for _ in 0..2 {
        fs::create_dir_all(&sessions).unwrap();
        watching.check("a directory that comes");
        // The look after the first event may have come before the last directory was made.
        watching.again();
        fs::write(sessions.join("one"), "1").unwrap();
        watching.check("a file in it");
        fs::remove_dir_all(root.join("home/.agent")).unwrap();
        watching.check("a directory that goes");
    }
    fs::create_dir_all(&sessions).unwrap();
    watching.check("a directory that comes");
    let elsewhere = root.join("home/elsewhere");
    fs::rename(root.join("home/.agent"), &elsewhere).unwrap();
    watching.check("a directory that is renamed");
    fs::create_dir_all(&sessions).unwrap();
    watching.check("another one in its place");
    fs::write(sessions.join("one"), "1").unwrap();
    watching.check("a file in that");
}

#[test]
fn a_path_behind_a_link_is_watched_wherever_the_link_leads() {
    let (_directory, root) = directory();
    let at = |name: &str| root.join(name);
    fs::create_dir_all(at("dot/one")).unwrap();
    fs::create_dir_all(at("two/agent")).unwrap();
    std::os::unix::fs::symlink("one", at("dot/current")).unwrap();
    std::os::unix::fs::symlink("dot/current", at("home")).unwrap();
    fs::create_dir_all(at("home/agent")).unwrap();
    let seen = at("home/agent/file");
    let mut watching = Watching::paths([WatchPath::tree(at("home/agent"))]);
    fs::write(&seen, "1").unwrap();
    watching.check("a file");
    std::os::unix::fs::symlink("../two", at("dot/new")).unwrap();
    fs::rename(at("dot/new"), at("dot/current")).unwrap();
    watching.check("a link on the way that is replaced");
    fs::write(&seen, "2").unwrap();
    watching.check("a file where the link leads now");
    fs::rename(at("two"), at("three")).unwrap();
    watching.check("a directory behind the links that is renamed");
    fs::create_dir_all(at("two/agent")).unwrap();
    watching.check("another one in its place");
    fs::write(&seen, "3").unwrap();
    watching.check("a file in that");
}

#[test]
fn one_file_is_watched_also_before_it_is_there() {
    let (_directory, root) = directory();
    let file = root.join("config.toml");
    let mut watching = Watching::paths([WatchPath::at(file.clone())]);
    fs::write(root.join("other"), "").unwrap();
    assert!(!watching.signals.wait(Duration::ZERO).unwrap().is_change());
    fs::write(&file, "1").unwrap();
    watching.check("a file that comes");
    fs::write(root.join("new"), "2").unwrap();
    fs::rename(root.join("new"), &file).unwrap();
    watching.check("a file that is replaced");
    fs::remove_file(&file).unwrap();
    watching.check("a file that goes");
}

#[test]
fn after_an_overflow_everything_is_watched_anew() {
    let (_directory, root) = directory();
    let mut watching = Watching::paths([WatchPath::tree(root.clone())]);
    let limit = fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap();
    let limit: usize = limit.trim().parse().unwrap();
    if limit > 100_000 {
        println!("skipped: the queue is too long here ({limit} events)");
        return;
    }
    // No event reports what is made while the queue is full.
    let file = root.join("file");
    for _ in 0..=limit / 2 {
        fs::write(&file, "1").unwrap();
        fs::remove_file(&file).unwrap();
    }
    fs::create_dir(root.join("late")).unwrap();
    watching.check("the overflow");
    fs::write(root.join("late/one"), "1").unwrap();
    watching.check("a file in a directory that no event reported");
}

#[test]
fn a_program_that_is_opened_is_a_launch() {
    let (_directory, root) = directory();
    let program = root.join("codex");
    fs::write(&program, "#!/bin/sh\n").unwrap();
    let mut watching = Watching::paths([]);
    watching.watch.programs.insert(program.clone());
    watching.again();
    assert!(!watching.signals.wait(Duration::ZERO).unwrap().is_change());
    fs::read(&program).unwrap();
    let happened = watching.happened(EVENT_MAX);
    assert!(happened.is_launch && happened.is_anything);
}

fn sleeper() -> (Child, Pid, StartStamp) {
    let child = Command::new("sleep")
        .arg0("sleep")
        .arg("600")
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    let pid = Pid::new(i64::from(child.id())).unwrap();
    let machine = Machine::here();
    let stamp = machine.table().probe(pid).unwrap().unwrap().stamp;
    (child, pid, stamp)
}

#[test]
fn an_exit_is_reported_once_also_while_the_zombie_is_listed() {
    let (mut child, pid, stamp) = sleeper();
    let mut watching = Watching::paths([]);
    watching.watch.processes.insert(pid, stamp.clone());
    watching.again();
    assert!(!watching.signals.wait(Duration::ZERO).unwrap().is_change());
    child.kill().unwrap();
    watching.check_exit(pid, stamp);
    child.wait().unwrap();
}

#[test]
fn a_pid_that_another_process_has_now_is_no_exit_of_that_one() {
    let (mut child, pid, stamp) = sleeper();
    let (mut other, _, other_stamp) = sleeper();
    let mut watching = Watching::paths([]);
    // The process that was looked at has exited, and another has its PID by now.
    if other_stamp != stamp {
        watching.watch.processes.insert(pid, other_stamp);
        assert!(
            watching
                .signals
                .watch(&watching.machine, &watching.watch)
                .is_more
        );
    }
    watching.watch.processes.insert(pid, stamp.clone());
    watching.again();
    child.kill().unwrap();
    watching.check_exit(pid, stamp);
    child.wait().unwrap();
    other.kill().unwrap();
    other.wait().unwrap();
}

#[test]
fn who_is_woken_up_knows_what_is_wanted() {
    let mut signals = Signals::new().unwrap();
    let waker = signals.waker();
    waker.wake();
    assert_eq!(signals.wait(EVENT_MAX).unwrap(), Happened::default());
    waker.look();
    assert!(signals.wait(EVENT_MAX).unwrap().is_anything);
    std::thread::spawn(move || waker.stop());
    assert!(signals.wait(EVENT_MAX).unwrap().is_stopped);
}

#[test]
fn a_file_system_that_machines_share_is_looked_at_all_the_time() {
    let machine = Machine::new(
        whosup_core::machine::Environment::default(),
        0,
        whosup_core::process::ProcessTable::look(whosup_core::process::system_backend()),
        whosup_core::machine::mounts::Mounts::parse(b"27 1 0:40 / / rw - virtiofs home rw\n"),
        Machine::here().commands().clone(),
    );
    let (_directory, root) = directory();
    let mut signals = Signals::new().unwrap();
    let watch = Watch {
        paths: [WatchPath::tree(root.clone())].into(),
        ..Watch::default()
    };
    let watched = signals.watch(&machine, &watch);
    assert!(watched.is_polling);
    let names = |problem: &String| problem.contains(root.to_str().unwrap_or_default());
    assert!(watched.problems.iter().any(names), "{watched:?}");
}
