//! Who holds which files and locks.
#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
#![cfg(target_os = "linux")]

mod world;

use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use whosup_process::linux::Proc;
use whosup_process::{Absent, Access, Among, Backend, FileId, Holder, Holders, LockKind, Pid};
use world::{
    LeftBehind, Program, Running, can_or_skip, in_new, is_root, pid, skip, variable, wait_until,
};

const EXCLUSIVE: LockKind = LockKind::Flock { is_exclusive: true };

fn file_id(path: &Path) -> FileId {
    let file = std::fs::metadata(path).unwrap();
    FileId {
        device: file.dev(),
        inode: file.ino(),
    }
}

#[track_caller]
fn holders(path: &Path) -> Holders {
    let file = file_id(path);
    Proc::system().holders(&[file], Among::All).unwrap()
}

/// The descriptors that this process has of a file. A process that another
/// test is just starting has ours too, until it executes its program.
#[track_caller]
fn own_holders(path: &Path) -> Vec<Holder> {
    let mut found = holders(path).found;
    found.retain(|holder| holder.pid == Pid::own());
    found
}

/// A file and a shell that runs `script` with it as `$1`.
fn held(script: &str) -> (tempfile::TempDir, std::path::PathBuf, Running) {
    let folder = world::public_folder();
    let path = folder.path().join("held");
    std::fs::write(&path, "text").unwrap();
    let script = format!("{script}; echo ready; read line");
    let shell = Running::shell(&script, &[path.as_os_str()]);
    (folder, path, shell)
}

#[test]
fn readers_and_writers_of_a_file_are_distinguished() {
    let script = "exec 5< \"$1\"; exec 6>> \"$1\"; exec 7<> \"$1\"";
    let (_folder, path, shell) = held(script);
    let found = holders(&path).found;
    let ours = found.iter().filter(|holder| holder.pid == shell.pid());
    let ours: Vec<_> = ours
        .map(|holder| (holder.descriptor, holder.access))
        .collect();
    let expected = [
        (5, Access::Read),
        (6, Access::Write),
        (7, Access::ReadWrite),
    ];
    assert_eq!(ours, expected);
    assert!(found.iter().all(|holder| holder.locks.is_empty()));
    let writers: Vec<_> = ours.iter().map(|(_, access)| access.is_writer()).collect();
    assert_eq!(writers, [false, true, true]);
}

#[test]
fn the_open_files_of_a_process_have_their_paths_and_are_those_files() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().canonicalize().unwrap();
    let [kept, renamed, closed] = ["kept", "renamed", "closed"].map(|name| folder.join(name));
    let _open = [&kept, &renamed].map(|path| File::create(path).unwrap());
    std::fs::write(&closed, "").unwrap();
    let elsewhere = folder.join("elsewhere");
    std::fs::rename(&renamed, &elsewhere).unwrap();
    let table = Proc::system();
    let own = table.probe(Pid::own()).unwrap().unwrap();
    let found = table.open_files(&own).unwrap();
    for path in [&kept, &elsewhere] {
        let opened = found.iter().find(|file| file.path == *path);
        assert_eq!(
            opened.map(|opened| opened.file),
            Some(file_id(path)),
            "{found:?}"
        );
    }
    let has = |path: &PathBuf| found.iter().any(|file| file.path == *path);
    assert!(!has(&renamed) && !has(&closed), "{found:?}");
    assert!(
        found.iter().all(|file| file.path.is_absolute()),
        "{found:?}"
    );
}

#[test]
fn a_descriptor_that_only_names_a_path_is_no_writer() {
    use rustix::fs::{CWD, Mode, OFlags, openat};
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("named");
    std::fs::write(&path, "").unwrap();
    let _open = openat(CWD, &path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).unwrap();
    let found = own_holders(&path);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].access, Access::Read);
}

#[test]
fn no_process_holds_a_closed_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("closed");
    std::fs::write(&path, "").unwrap();
    wait_until("no process holds it", || holders(&path).found.is_empty());
    assert_eq!(
        Proc::system().holders(&[], Among::All),
        Ok(Holders::default())
    );
}

#[test]
fn locks_are_reported_with_their_kind_and_mode() {
    use rustix::fs::{FlockOperation, fcntl_lock, flock};
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("locked");
    let file = File::create(&path).unwrap();
    flock(&file, FlockOperation::LockShared).unwrap();
    let shared = LockKind::Flock {
        is_exclusive: false,
    };
    assert_eq!(own_holders(&path)[0].locks, [shared]);
    flock(&file, FlockOperation::LockExclusive).unwrap();
    fcntl_lock(&file, FlockOperation::LockExclusive).unwrap();
    let record = LockKind::Record { is_exclusive: true };
    let mut locks = own_holders(&path)[0].locks.clone();
    locks.sort_by_key(|lock| *lock == record);
    assert_eq!(locks, [EXCLUSIVE, record]);
    flock(&file, FlockOperation::Unlock).unwrap();
    assert_eq!(own_holders(&path)[0].locks, [record]);
}

#[test]
fn a_lock_is_held_by_the_child_of_the_one_that_took_it_and_is_gone() {
    if !can_or_skip(&["flock", "--version"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("locked");
    std::fs::write(&path, "").unwrap();
    let script = "exec 9<> \"$1\"; flock 9; sleep 1000 > /dev/null & echo $!; echo ready";
    let mut taker = Running::spawn(
        Command::new("sh")
            .args([OsStr::new("-c"), OsStr::new(script)])
            .args([OsStr::new("sh"), path.as_os_str()]),
    );
    let heir = pid(taker.line().parse().unwrap());
    let heir = LeftBehind::new(heir);
    assert_eq!(taker.line(), "ready");
    taker.reap();
    let mut found = holders(&path).found;
    found.retain(|holder| !holder.locks.is_empty());
    let expected = Holder {
        pid: heir.pid(),
        file: file_id(&path),
        descriptor: 9,
        access: Access::ReadWrite,
        locks: vec![EXCLUSIVE],
    };
    assert_eq!(found, [expected]);
}

#[test]
fn a_lock_that_is_waited_for_is_not_held() {
    if !can_or_skip(&["flock", "--version"]) {
        return;
    }
    let (_folder, path, holder) = held("exec 9<> \"$1\"; flock 9");
    let waiter = Running::shell(
        "exec 9<> \"$1\"; echo ready; exec flock 9",
        &[path.as_os_str()],
    );
    wait_until("it waits for the lock", || {
        let stack = std::fs::read_to_string(format!("/proc/{}/wchan", waiter.pid()));
        waiter.process().comm == b"flock" || stack.is_ok_and(|place| place.contains("lock"))
    });
    let found = holders(&path).found;
    let locks_of = |pid: Pid| {
        let mut holders = found.iter().filter(|holder| holder.pid == pid);
        holders.next().map(|holder| holder.locks.clone())
    };
    assert_eq!(locks_of(holder.pid()), Some(vec![EXCLUSIVE]));
    assert_eq!(locks_of(waiter.pid()), Some(vec![]));
}

#[test]
fn a_file_is_found_by_its_numbers_whatever_it_is_called() {
    let folder = tempfile::tempdir().unwrap();
    let odd = folder.path().join("name (deleted)");
    let plain = folder.path().join("name");
    let open = File::create(&odd).unwrap();
    std::fs::write(&plain, "").unwrap();
    assert_eq!(own_holders(&odd).len(), 1);
    assert_eq!(own_holders(&plain), []);
    // Unlinked and replaced: the open file is another one than the new one.
    let before = file_id(&odd);
    std::fs::remove_file(&odd).unwrap();
    std::fs::write(
        folder
            .path()
            .join("keeps the number of the next file apart"),
        "",
    )
    .unwrap();
    std::fs::write(&odd, "").unwrap();
    assert_eq!(own_holders(&odd), []);
    let own = [Pid::own()];
    let found = Proc::system().holders(&[before], Among::These(&own));
    assert_eq!(found.unwrap().found.len(), 1);
    drop(open);
}

#[test]
fn several_files_are_found_in_one_walk_and_among_those_asked_only() {
    let (_folder, first, one) = held("exec 5< \"$1\"");
    let (_other, second, two) = held("exec 6> \"$1\"");
    let files = [file_id(&first), file_id(&second)];
    let pids = |file: FileId, holders: &Holders| -> Vec<Pid> {
        holders.of(file).map(|holder| holder.pid).collect()
    };
    wait_until("each has its holder", || {
        let all = Proc::system().holders(&files, Among::All).unwrap();
        pids(files[0], &all) == [one.pid()] && pids(files[1], &all) == [two.pid()]
    });
    let asked = [two.pid(), pid(i64::from(i32::MAX))];
    let some = Proc::system()
        .holders(&files, Among::These(&asked))
        .unwrap();
    assert_eq!(pids(files[0], &some), []);
    assert_eq!(pids(files[1], &some), [two.pid()]);
    assert_eq!(some.unreadable, []);
}

#[test]
fn whom_we_may_not_ask_is_named_and_who_vanished_is_not() {
    const TEST: &str = "whom_we_may_not_ask_is_named_and_who_vanished_is_not";
    if world::part().is_none() {
        if !is_root() {
            return skip("it takes root to be two users");
        }
        let (_folder, path, shell) = held("exec 6> \"$1\"");
        let program = Program::public();
        let mut part = program.again_unprivileged(TEST, "unprivileged");
        part.env("OTHER", shell.pid().to_string())
            .env("FILE", &path);
        return world::require_pass(&mut part);
    }
    let other = pid(variable("OTHER").parse().unwrap());
    let path = variable("FILE");
    let found = holders(Path::new(&path));
    assert!(
        found
            .unreadable
            .contains(&(other, Absent::PermissionDenied))
    );
    assert!(found.unreadable.iter().all(|(pid, _)| *pid != Pid::own()));
    for (unreadable, _) in &found.unreadable {
        let process = Proc::system().probe(*unreadable);
        assert!(
            !process.is_ok_and(|process| process.is_some_and(|one| one.is_kernel_thread)),
            "{unreadable}"
        );
    }
    let asked = [other];
    let asked = Proc::system().holders(&[file_id(Path::new(&path))], Among::These(&asked));
    assert_eq!(
        asked.unwrap().unreadable,
        [(other, Absent::PermissionDenied)]
    );
}

#[test]
fn a_file_of_an_overlay_is_found_by_the_numbers_that_stat_gives() {
    const TEST: &str = "a_file_of_an_overlay_is_found_by_the_numbers_that_stat_gives";
    if world::part().is_none() {
        let folder = tempfile::tempdir().unwrap();
        let mounts = "mount -t tmpfs tmpfs \"$0\" && cd \"$0\" && mkdir l u w m && echo text > l/held && \
            mount -t overlay -o lowerdir=l,upperdir=u,workdir=w overlay m";
        let place = folder.path().to_str().unwrap();
        if !can_or_skip(&in_new(&["-m", "sh", "-c", mounts, place])) {
            return;
        }
        let script = format!("{mounts} && exec \"$@\"");
        let wrapper = in_new(&["-m", "sh", "-c", &script, place]);
        let mut part = world::again_here(&wrapper, TEST, "overlay");
        return world::require_pass(part.env("FILE", folder.path().join("m/held")));
    }
    let path = variable("FILE");
    // An open reader of the lower file, and a writer, whose opening copies it up.
    let reader = File::open(&path).unwrap();
    let writer = File::options().append(true).open(&path).unwrap();
    rustix::fs::flock(&writer, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let found = holders(Path::new(&path)).found;
    let locked = found.iter().find(|holder| holder.access.is_writer());
    assert_eq!(locked.unwrap().locks, [EXCLUSIVE]);
    drop((reader, writer));
}
