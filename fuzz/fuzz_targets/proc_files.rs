//! A process table with odd files: fields are there or absent with a reason,
//! and other processes are not hidden by it.

#![no_main]

use std::cell::RefCell;
use std::fs;

use libfuzzer_sys::fuzz_target;
use tempfile::TempDir;
use whosup_process::linux::Proc;
use whosup_process::{Among, Backend, FileId, Pid};

/// The files of one process, and those of the whole table, that the parts of an
/// input are put into, in turn.
const FILES: [&str; 12] = [
    "7/stat",
    "7/status",
    "7/cmdline",
    "7/comm",
    "7/environ",
    "7/fdinfo/3",
    "7/task/8/stat",
    "locks",
    "stat",
    "self/mountinfo",
    "sys/kernel/random/boot_id",
    "self/status",
];
/// What parts an input, so that a mutation seldom moves the others.
const PART: &[u8] = b"\x00\xff\x00\xff";
const SOUND: &str = "9 (sound) S 1 9 9 0 -1 4194304 0 0 0 0 0 0 0 0 20 0 1 0 5000 1 1 1";

thread_local! {
    static TABLE: RefCell<TempDir> = RefCell::new(table());
}

fn table() -> TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    for folder in ["7/fdinfo", "7/fd", "7/task/8", "9", "self", "sys/kernel/random"] {
        fs::create_dir_all(directory.path().join(folder)).expect("a directory");
    }
    fs::write(directory.path().join("9/stat"), SOUND).expect("a file");
    directory
}

fuzz_target!(|bytes: &[u8]| {
    TABLE.with_borrow(|directory| look(directory, bytes));
});

fn look(directory: &TempDir, bytes: &[u8]) {
    let mut rest = bytes;
    for name in FILES {
        let end = rest.windows(PART.len()).position(|window| window == PART);
        let (part, after) = match end {
            Some(end) => (&rest[..end], &rest[end + PART.len()..]),
            None => (rest, &[][..]),
        };
        rest = after;
        fs::write(directory.path().join(name), part).expect("a file");
    }
    let proc = Proc::at(directory.path().to_owned());
    let _ = proc.view();
    let _ = proc.scope();
    let (seven, nine) = (Pid::new(7).expect("a PID"), Pid::new(9).expect("a PID"));
    if let Ok((processes, _)) = proc.processes() {
        assert!(processes.iter().any(|process| process.pid == nine), "9 is hidden");
    }
    for pid in [seven, nine] {
        if let Ok(Some(process)) = proc.probe(pid) {
            assert_eq!(process.pid, pid);
            let _ = proc.details(&process);
            let _ = proc.environment(&process, &["HOME", "CODEX_HOME"]);
        }
    }
    let file = FileId { device: 1, inode: 1 };
    let _ = proc.holders(&[file], Among::All);
}
