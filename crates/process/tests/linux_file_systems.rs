//! Locks on file systems whose files have another device number for `stat`
//! than for the kernel's list of locks: btrfs, and overlays of two file systems.
#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
#![cfg(target_os = "linux")]

mod world;

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;

use rustix::fs::{FlockOperation, fcntl_lock, flock, major, minor};
use whosup_process::linux::Proc;
use whosup_process::{Access, Among, Backend, FileId, LockKind, Pid};
use world::{Running, can_or_skip, find_program, in_new, is_root, skip, variable};

/// A file system of two subvolumes in a file, of which little is ever written;
/// smaller than this `mkfs.btrfs` makes none.
const BTRFS: &str = "cd \"$0\" && truncate -s 128M image && mkfs.btrfs -q image >&2 && mkdir m && \
    mount -o loop image m && btrfs subvolume create m/below >&2 && echo text > m/below/held";

/// An overlay whose layers lie on two file systems.
const OVERLAY: &str = "cd \"$0\" && mkdir a b && mount -t tmpfs tmpfs a && mount -t tmpfs tmpfs b && \
    mkdir a/lower b/upper b/work m && echo text > a/lower/held && \
    mount -t overlay -o lowerdir=a/lower,upperdir=b/upper,workdir=b/work overlay m";

/// Takes an open file description lock (fcntl_locking(2)), which nothing but a
/// language with the raw call offers.
const OPEN_FILE_LOCK: &str = "
import fcntl, struct, sys
held = open(sys.argv[1], 'r+')
fcntl.fcntl(held, 37, struct.pack('hhqqi4x', fcntl.F_WRLCK, 0, 0, 0, 0))
print('ready', flush=True)
sys.stdin.read()
";

/// Runs a part of a test in a mount namespace of its own, in which `mounts`
/// were made below a temporary folder; they go with it.
#[track_caller]
fn below_mounts(mounts: &str, file: &str, test: &str) {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().to_str().unwrap();
    if !can_or_skip(&in_new(&["-m", "sh", "-c", mounts, place])) {
        return;
    }
    let again = tempfile::tempdir().unwrap();
    let script = format!("{mounts} && exec \"$@\"");
    let place = again.path().to_str().unwrap();
    let wrapper = in_new(&["-m", "sh", "-c", &script, place]);
    let mut part = world::again_here(&wrapper, test, "mounted");
    world::require_pass(part.env("FILE", again.path().join(file)));
}

fn file_id(path: &Path) -> FileId {
    let file = std::fs::metadata(path).unwrap();
    FileId {
        device: file.dev(),
        inode: file.ino(),
    }
}

/// The locks that one process has on a file.
#[track_caller]
fn locks_of(pid: Pid, path: &Path) -> Vec<(Access, Vec<LockKind>)> {
    let file = file_id(path);
    let holders = Proc::system().holders(&[file], Among::All).unwrap();
    assert!(holders.found.iter().all(|holder| holder.file == file));
    let holders = holders.of(file).filter(|holder| holder.pid == pid);
    holders
        .map(|holder| (holder.access, holder.locks.clone()))
        .collect()
}

/// That the kernel's list has this file under another device: what a search by
/// that number would miss.
#[track_caller]
fn check_list_has_another_device(path: &Path) {
    let file = file_id(path);
    let device = (major(file.device), minor(file.device));
    let listed = std::fs::read_to_string("/proc/locks").unwrap();
    let inode = format!(":{}", file.inode);
    let own = Pid::own().to_string();
    let mut lines = listed.lines().map(|line| line.split_ascii_whitespace());
    let numbers = lines
        .find_map(|words| {
            let words: Vec<_> = words.collect();
            let is_ours = words.contains(&own.as_str());
            let place = words.iter().find(|word| word.ends_with(&inode));
            is_ours.then_some(place?.to_string())
        })
        .expect("the list has our lock");
    let by_stat = format!("{:02x}:{:02x}{inode}", device.0, device.1);
    assert_ne!(numbers, by_stat);
}

/// Takes locks of every kind on a file and looks who has them.
#[track_caller]
fn check_locks(path: &Path) {
    let own = Pid::own();
    let file = File::options().read(true).write(true).open(path).unwrap();
    assert_eq!(locks_of(own, path), [(Access::ReadWrite, vec![])]);

    flock(&file, FlockOperation::LockExclusive).unwrap();
    let whole = LockKind::Flock { is_exclusive: true };
    assert_eq!(locks_of(own, path), [(Access::ReadWrite, vec![whole])]);
    check_list_has_another_device(path);
    flock(&file, FlockOperation::Unlock).unwrap();

    fcntl_lock(&file, FlockOperation::LockExclusive).unwrap();
    let record = LockKind::Record { is_exclusive: true };
    assert_eq!(locks_of(own, path), [(Access::ReadWrite, vec![record])]);
    check_list_has_another_device(path);
    fcntl_lock(&file, FlockOperation::Unlock).unwrap();
    assert_eq!(locks_of(own, path), [(Access::ReadWrite, vec![])]);

    let Some(python) = find_program("python3") else {
        return skip("there is no python3 to take a lock of an open file description");
    };
    let holder = Running::ready(Command::new(python).args(["-c", OPEN_FILE_LOCK]).arg(path));
    assert_eq!(
        locks_of(holder.pid(), path),
        [(Access::ReadWrite, vec![record])]
    );
}

#[test]
fn locks_on_btrfs_are_found_whatever_device_the_kernel_lists_them_under() {
    const TEST: &str = "locks_on_btrfs_are_found_whatever_device_the_kernel_lists_them_under";
    if world::part().is_some() {
        return check_locks(Path::new(&variable("FILE")));
    }
    if !is_root() {
        return skip("it takes root to mount a file");
    }
    if !can_or_skip(&["mkfs.btrfs", "--version"]) {
        return;
    }
    below_mounts(BTRFS, "m/below/held", TEST);
}

#[test]
fn locks_on_an_overlay_of_two_file_systems_are_found_before_and_after_a_copy() {
    const TEST: &str = "locks_on_an_overlay_of_two_file_systems_are_found_before_and_after_a_copy";
    if world::part().is_none() {
        return below_mounts(OVERLAY, "m/held", TEST);
    }
    let path = variable("FILE");
    let path = Path::new(&path);
    // A lock needs no right to write: the file is still that of the lower layer.
    let reader = File::open(path).unwrap();
    flock(&reader, FlockOperation::LockExclusive).unwrap();
    let whole = LockKind::Flock { is_exclusive: true };
    assert_eq!(locks_of(Pid::own(), path), [(Access::Read, vec![whole])]);
    check_list_has_another_device(path);
    // Opening it for writing copies it to the upper layer; the lock stays.
    drop(File::options().append(true).open(path).unwrap());
    assert_eq!(locks_of(Pid::own(), path), [(Access::Read, vec![whole])]);
    drop(reader);
    check_locks(path);
}
