//! Reading a transcript takes little memory, however long it or its lines are.
//!
//! One test in a program of its own: what it measures is the whole program.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(
    clippy::disallowed_methods,
    reason = "a test makes the files that it reads"
)]

use std::fs::File;
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::Path;

use whosup_core::sources::transcript::{
    HeadBounds, LineContent, Stopped, TailBounds, TranscriptFile,
};

/// How much the peak may grow: buffers of 2 MiB and what an allocator keeps.
const GROWTH_BYTES_MAX: u64 = 32 << 20;

/// The most memory that this program has had (`VmHWM`, proc_pid_status(5)).
fn resident_bytes_peak() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    let kibibytes: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kibibytes * 1024)
}

/// A long line of which nearly nothing is on disk; a line of 64 MB of NUL bytes at
/// the end, between two small ones.
fn write_transcript(path: &Path, long_line_end: u64) {
    let mut file = File::create(path).unwrap();
    file.write_all(b"{\"first\":1}\n").unwrap();
    file.seek(SeekFrom::Start(long_line_end)).unwrap();
    file.write_all(b"\n{\"before\":1}\n").unwrap();
    file.seek(SeekFrom::Current(64 << 20)).unwrap();
    file.write_all(b"\n{\"last\":1}\n").unwrap();
}

#[test]
fn a_transcript_of_3_gb_with_a_line_of_64_mb_is_read_in_little_memory() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("transcript.jsonl");
    write_transcript(&path, 3_000_000_000);
    let Some(before) = resident_bytes_peak() else {
        eprintln!("skipped: /proc/self/status does not tell the peak of memory");
        return;
    };

    let file = TranscriptFile::open(&path).unwrap();
    let head = file.head(HeadBounds::default()).unwrap();
    assert_eq!(head.lines.len(), 1);
    assert_eq!(head.stopped, Stopped::BytesMax);

    let bytes_max = 100 << 20;
    let mut backwards = file.backwards(TailBounds { bytes_max }).unwrap();
    let lines: Vec<_> = backwards.by_ref().map(Result::unwrap).collect();
    assert_eq!(lines[0].bytes(), b"{\"last\":1}");
    let LineContent::TooLong { bytes, .. } = lines[1].content else {
        panic!("a line of 64 MB was held");
    };
    assert_eq!(bytes, 64 << 20);
    assert_eq!(lines[2].bytes(), b"{\"before\":1}");
    assert_eq!(backwards.stopped(), Some(Stopped::BytesMax));

    write_transcript(&path, 100 << 20);
    let file = TranscriptFile::open(&path).unwrap();
    let mut backwards = file.backwards(TailBounds { bytes_max }).unwrap();
    let last = [(); 2].map(|()| backwards.next().unwrap().unwrap());
    let mut appended = file.appended(&file.cursor_at_start()).unwrap();
    let mut forwards = Vec::new();
    while let Some(line) = appended.next_line().unwrap() {
        forwards.push(line.clone());
    }
    forwards.reverse();
    assert_eq!((forwards.len(), &forwards[..2]), (5, &last[..]));

    let growth = resident_bytes_peak().unwrap().saturating_sub(before);
    assert!(growth <= GROWTH_BYTES_MAX, "it grew by {growth} bytes");
}
