//! What lies at a path instead of a small file never makes a reader wait.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use rustix::fs::{CWD, FileType, Mode};
use tempfile::TempDir;
use whosup_sidecar::file::{
    FileKind, Links, OpenFile, ReadFileError, facts, owner_of, read_regular,
};
use whosup_sidecar::{ReadSidecarError, read_sidecar};

/// How long a read may take before it counts as blocked.
const PATIENCE: Duration = Duration::from_secs(20);

/// Runs `work` on a thread of its own and returns its answer; fails when there
/// is none in time.
#[track_caller]
fn in_time<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || sender.send(work()));
    receiver.recv_timeout(PATIENCE).expect("it still waits")
}

/// The result of each way of reading what is at `path`.
#[track_caller]
fn check_refused(path: &Path, links: Links, expected: FileKind) {
    let at = path.to_owned();
    let read = in_time(move || read_regular(&at, 1 << 16, links).unwrap_err());
    let at = path.to_owned();
    let opened = in_time(move || OpenFile::open(&at, links).unwrap_err());
    for error in [read, opened, facts(path, links).unwrap_err()] {
        let ReadFileError::NotRegular { kind, .. } = error else {
            panic!("{error}");
        };
        assert_eq!(kind, expected);
        let text = format!("cannot read `{}`: it is {expected}", path.display());
        assert_eq!(error.to_string(), text);
    }
}

fn fifo_in(world: &TempDir) -> PathBuf {
    let path = world.path().join("runtime.json");
    rustix::fs::mknodat(CWD, &path, FileType::Fifo, Mode::RWXU, 0).unwrap();
    path
}

#[test]
fn a_fifo_is_refused_without_waiting_for_a_writer() {
    let world = TempDir::new().unwrap();
    let fifo = fifo_in(&world);
    check_refused(&fifo, Links::Refuse, FileKind::Fifo);
    check_refused(&fifo, Links::Follow, FileKind::Fifo);
    let link = world.path().join("link");
    symlink(&fifo, &link).unwrap();
    check_refused(&link, Links::Follow, FileKind::Fifo);
}

/// Waits until a thread of ours sleeps.
#[cfg(target_os = "linux")]
fn wait_until_asleep(thread: rustix::process::Pid) {
    let path = format!("/proc/self/task/{}/stat", thread.as_raw_nonzero());
    let begin = std::time::Instant::now();
    // proc_pid_stat(5): the state follows the name in parentheses.
    while !fs::read_to_string(&path).unwrap().contains(") S ") {
        assert!(begin.elapsed() < PATIENCE, "it never sleeps");
        thread::sleep(Duration::from_millis(2));
    }
}

#[test]
#[cfg(target_os = "linux")]
fn looking_at_a_fifo_does_not_wake_its_writer() {
    let world = TempDir::new().unwrap();
    let fifo = fifo_in(&world);
    let at = fifo.clone();
    let (started, writer_started) = mpsc::channel();
    let writer = thread::spawn(move || {
        started.send(rustix::thread::gettid()).unwrap();
        let mut fifo = OpenOptions::new().write(true).open(at).unwrap();
        fifo.write_all(b"for its reader")
    });
    wait_until_asleep(writer_started.recv_timeout(PATIENCE).unwrap());
    for _ in 0..10 {
        read_regular(&fifo, 100, Links::Refuse).unwrap_err();
    }
    let text = in_time(move || {
        let mut text = String::new();
        File::open(fifo).unwrap().read_to_string(&mut text).unwrap();
        text
    });
    assert_eq!(text, "for its reader");
    writer.join().unwrap().unwrap();
}

#[test]
fn devices_directories_and_sockets_are_refused_by_name() {
    check_refused(
        Path::new("/dev/zero"),
        Links::Refuse,
        FileKind::CharacterDevice,
    );
    check_refused(
        Path::new("/dev/tty"),
        Links::Follow,
        FileKind::CharacterDevice,
    );
    let world = TempDir::new().unwrap();
    check_refused(world.path(), Links::Refuse, FileKind::Directory);
    let socket = world.path().join("socket");
    let _listener = UnixListener::bind(&socket).unwrap();
    check_refused(&socket, Links::Refuse, FileKind::Socket);
}

#[test]
fn a_symbolic_link_is_refused_or_followed_as_asked() {
    let world = TempDir::new().unwrap();
    let target = world.path().join("target");
    fs::write(&target, "text").unwrap();
    let link = world.path().join("link");
    symlink(&target, &link).unwrap();
    check_refused(&link, Links::Refuse, FileKind::Symlink);
    let followed = read_regular(&link, 100, Links::Follow).unwrap();
    assert_eq!(followed.bytes, b"text");
    assert_eq!(followed.facts, facts(&target, Links::Refuse).unwrap());
}

#[test]
fn a_link_to_nothing_is_a_link_or_nothing() {
    let world = TempDir::new().unwrap();
    let link = world.path().join("link");
    symlink("nowhere", &link).unwrap();
    check_refused(&link, Links::Refuse, FileKind::Symlink);
    let error = read_regular(&link, 100, Links::Follow).unwrap_err();
    assert!(matches!(error, ReadFileError::NotFound { .. }), "{error}");
}

#[test]
fn a_link_to_itself_is_an_error_and_no_absence() {
    let world = TempDir::new().unwrap();
    let link = world.path().join("link");
    symlink(&link, &link).unwrap();
    let error = read_regular(&link, 100, Links::Follow).unwrap_err();
    assert!(matches!(error, ReadFileError::Io { .. }), "{error}");
}

#[test]
fn a_file_that_is_not_there_is_not_found() {
    let world = TempDir::new().unwrap();
    let file = world.path().join("file");
    fs::write(&file, "").unwrap();
    for path in [world.path().join("absent"), file.join("runtime.json")] {
        let error = read_regular(&path, 100, Links::Refuse).unwrap_err();
        assert!(matches!(error, ReadFileError::NotFound { .. }), "{error}");
        let text = format!("cannot read `{}`: no such file", path.display());
        assert_eq!(error.to_string(), text);
        assert_eq!(error.path(), path);
    }
}

#[test]
fn a_name_too_long_is_an_error_and_no_absence() {
    let world = TempDir::new().unwrap();
    let path = world.path().join("x".repeat(5000));
    let error = read_regular(&path, 100, Links::Refuse).unwrap_err();
    assert!(matches!(error, ReadFileError::Io { .. }), "{error}");
}

#[test]
fn a_sparse_file_of_200_mb_is_too_large() {
    let world = TempDir::new().unwrap();
    let path = world.path().join("runtime.json");
    File::create(&path).unwrap().set_len(200_000_000).unwrap();
    let error = read_regular(&path, 65_536, Links::Refuse).unwrap_err();
    assert_eq!(
        error.reason(),
        "it is larger than 65536 bytes: it has at least 200000000"
    );
}

#[test]
fn a_file_may_have_as_many_bytes_as_the_bound_and_not_one_more() {
    let world = TempDir::new().unwrap();
    let path = world.path().join("file");
    fs::write(&path, [b'x'; 100]).unwrap();
    assert_eq!(
        read_regular(&path, 100, Links::Refuse).unwrap().bytes.len(),
        100
    );
    let error = read_regular(&path, 99, Links::Refuse).unwrap_err();
    assert!(
        matches!(error, ReadFileError::TooLarge { len: 100, .. }),
        "{error}"
    );
    fs::write(&path, "").unwrap();
    assert!(
        read_regular(&path, 0, Links::Refuse)
            .unwrap()
            .bytes
            .is_empty()
    );
}

#[test]
fn a_file_without_a_length_is_still_bounded() {
    // Files of /proc report a length of 0 bytes.
    let path = Path::new("/proc/self/status");
    if !path.exists() {
        eprintln!("skipped: there is no {}", path.display());
        return;
    }
    let whole = read_regular(path, 1 << 16, Links::Follow).unwrap();
    assert_eq!(whole.facts.len, 0);
    assert!(whole.bytes.starts_with(b"Name:"));
    let error = read_regular(path, 10, Links::Follow).unwrap_err();
    assert!(matches!(error, ReadFileError::TooLarge { .. }), "{error}");
}

#[test]
fn the_facts_are_those_of_the_file_system() {
    let world = TempDir::new().unwrap();
    let path = world.path().join("file");
    fs::write(&path, "text").unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
    let metadata = fs::metadata(&path).unwrap();
    let facts = facts(&path, Links::Refuse).unwrap();
    assert_eq!(facts.uid, Some(metadata.uid()));
    assert_eq!(facts.mode, Some(metadata.mode()));
    assert_eq!(facts.mode.unwrap() & 0o7777, 0o640);
    assert_eq!(
        (facts.device, facts.inode),
        (metadata.dev(), metadata.ino())
    );
    assert_eq!(facts.len, 4);
    let modified_ms = metadata.mtime() * 1000 + metadata.mtime_nsec() / 1_000_000;
    assert_eq!(facts.modified_ms, Some(modified_ms));
    match metadata.created() {
        Ok(_) => assert!(facts.born_ms.unwrap() <= modified_ms),
        Err(_) => assert_eq!(facts.born_ms, None),
    }
}

#[test]
fn a_file_without_read_permission_is_denied_and_its_facts_are_known() {
    let world = TempDir::new().unwrap();
    let path = world.path().join("file");
    fs::write(&path, "secret").unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o000)).unwrap();
    fs::set_permissions(world.path(), Permissions::from_mode(0o755)).unwrap();
    let at = path.clone();
    let (read, looked) = as_unprivileged_user(move || {
        let read = read_regular(&at, 100, Links::Refuse);
        (read, facts(&at, Links::Refuse))
    });
    let error = read.unwrap_err();
    assert!(
        matches!(error, ReadFileError::PermissionDenied { .. }),
        "{error}"
    );
    assert_eq!(error.reason(), "permission denied");
    assert_eq!(looked.unwrap().len, 6);
}

#[test]
fn a_file_in_a_closed_directory_is_denied_and_not_absent() {
    let world = TempDir::new().unwrap();
    let closed = world.path().join("closed");
    fs::create_dir(&closed).unwrap();
    fs::set_permissions(&closed, Permissions::from_mode(0o000)).unwrap();
    let path = closed.join("runtime.json");
    let error = as_unprivileged_user(move || read_sidecar(&path).unwrap_err());
    fs::set_permissions(&closed, Permissions::from_mode(0o700)).unwrap();
    let ReadSidecarError::File(ReadFileError::PermissionDenied { .. }) = error else {
        panic!("{error}");
    };
}

/// Runs `work` on a thread without root's rights. Only root has any to give
/// up; on Linux a thread can do so alone.
fn as_unprivileged_user<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    in_time(move || {
        #[cfg(target_os = "linux")]
        if rustix::process::geteuid().is_root() {
            let unprivileged = rustix::process::Uid::from_raw(65_534);
            rustix::thread::set_thread_res_uid(unprivileged, unprivileged, unprivileged).unwrap();
        }
        work()
    })
}

#[test]
fn readers_of_one_open_file_do_not_disturb_each_other() {
    let world = TempDir::new().unwrap();
    let path = world.path().join("file");
    fs::write(&path, b"0123456789").unwrap();
    let open = OpenFile::open(&path, Links::Refuse).unwrap();
    let mut buffer = [0; 4];
    assert_eq!(open.read_at(&mut buffer, 8).unwrap(), 2);
    assert_eq!(&buffer[..2], b"89");
    assert_eq!(open.read_at(&mut buffer, 0).unwrap(), 4);
    assert_eq!(&buffer, b"0123");
    assert_eq!(open.read_at(&mut buffer, 10).unwrap(), 0);
    fs::write(&path, b"0123456789ab").unwrap();
    assert_eq!(open.facts().unwrap().len, 12);
    assert_eq!(open.path(), path);
}

#[test]
fn a_sidecar_is_read_with_the_facts_of_its_file() {
    let world = TempDir::new().unwrap();
    let path = world.path().join("s.runtime.json");
    fs::write(&path, include_bytes!("fixtures/qwen.runtime.json")).unwrap();
    let (sidecar, read_facts) = read_sidecar(&path).unwrap();
    assert_eq!(sidecar.hostname, "devbox");
    assert_eq!(read_facts, facts(&path, Links::Refuse).unwrap());
}

#[test]
fn a_sidecar_that_is_none_is_an_error_with_path_and_reason() {
    let world = TempDir::new().unwrap();
    let path = world.path().join("runtime.json");
    fs::write(&path, br#"{"schema_version": 1, "pid": "1"}"#).unwrap();
    let error = read_sidecar(&path).unwrap_err();
    let reason = "`pid` is not an integer: found the string `1`";
    assert_eq!(error.reason(), reason);
    assert_eq!(error.path(), path);
    let text = format!("cannot read sidecar `{}`: {reason}", path.display());
    assert_eq!(error.to_string(), text);
}

#[test]
fn whatever_lies_at_the_path_of_a_sidecar_is_an_error_in_time() {
    let world = TempDir::new().unwrap();
    let sparse = world.path().join("sparse.runtime.json");
    File::create(&sparse).unwrap().set_len(200_000_000).unwrap();
    let deep = world.path().join("deep.runtime.json");
    fs::write(&deep, "{\"a\":".repeat(13_000)).unwrap();
    let empty = world.path().join("empty.runtime.json");
    fs::write(&empty, "").unwrap();
    let link = world.path().join("link.runtime.json");
    symlink(&empty, &link).unwrap();
    let cases = [
        (fifo_in(&world), "it is a FIFO"),
        (PathBuf::from("/dev/zero"), "it is a character device"),
        (world.path().to_owned(), "it is a directory"),
        (link, "it is a symbolic link"),
        (
            sparse,
            "it is larger than 65536 bytes: it has at least 200000000",
        ),
        (deep, "its JSON is nested too deep"),
        (empty, "it is empty"),
        (world.path().join("absent"), "no such file"),
    ];
    for (path, reason) in cases {
        let error = in_time(move || read_sidecar(&path).unwrap_err());
        assert_eq!(error.reason(), reason);
    }
}

#[test]
fn reading_changes_nothing() {
    let world = TempDir::new().unwrap();
    let path = world.path().join("s.runtime.json");
    fs::write(&path, include_bytes!("fixtures/qwen.runtime.json")).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
    let look = |path: &Path| {
        let metadata = fs::metadata(path).unwrap();
        let changed = (metadata.ctime(), metadata.ctime_nsec());
        (
            metadata.modified().unwrap(),
            changed,
            metadata.mode(),
            metadata.len(),
        )
    };
    let before = (look(&path), look(world.path()));
    read_sidecar(&path).unwrap();
    OpenFile::open(&path, Links::Follow).unwrap();
    assert_eq!((look(&path), look(world.path())), before);
    assert_eq!(fs::read_dir(world.path()).unwrap().count(), 1);
}

#[test]
fn the_owner_of_a_directory_is_known_and_of_a_missing_path_is_not() {
    let world = tempfile::tempdir().unwrap();
    let us = rustix::process::geteuid().as_raw();
    assert_eq!(owner_of(world.path()), Some(us));
    let link = world.path().join("link");
    symlink(world.path(), &link).unwrap();
    assert_eq!(owner_of(&link), Some(us));
    assert_eq!(owner_of(&world.path().join("none")), None);
}
