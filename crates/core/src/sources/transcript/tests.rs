#![allow(
    clippy::disallowed_methods,
    reason = "a test makes the files that it reads"
)]

mod any_content;
mod cursors;
mod json_lines;
mod missing_end;

use std::fs::{self, File, OpenOptions};
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::PathBuf;

use serde_json::json;
use tempfile::TempDir;
use whosup_sidecar::file::{FileKind, Links, OpenFile, ReadFileError};

use super::*;

/// A directory of its own with one transcript in it.
struct World {
    _directory: TempDir,
    path: PathBuf,
}

impl World {
    fn with(content: &[u8]) -> Self {
        let directory = TempDir::new().unwrap();
        let path = directory.path().join("transcript.jsonl");
        fs::write(&path, content).unwrap();
        Self {
            _directory: directory,
            path,
        }
    }

    fn open(&self) -> TranscriptFile {
        TranscriptFile::open(&self.path).unwrap()
    }

    fn append(&self, content: &[u8]) {
        let mut file = OpenOptions::new().append(true).open(&self.path).unwrap();
        file.write_all(content).unwrap();
    }
}

/// The expected lines of `content`, by the simplest algorithm.
fn expected_lines(content: &[u8]) -> Vec<Line> {
    let mut offset = 0;
    let mut lines = Vec::new();
    for bytes in content.split_inclusive(|byte| *byte == b'\n') {
        let end = offset + bytes.len() as u64;
        let (line, is_torn) = match bytes.strip_suffix(b"\n") {
            Some(line) => (line, false),
            None => (bytes, true),
        };
        let content = if line.len() > LINE_BYTES_MAX {
            LineContent::TooLong {
                bytes: line.len() as u64,
                head: line[..LINE_HEAD_BYTES].to_vec(),
            }
        } else if is_torn {
            LineContent::Whole(line.to_vec())
        } else {
            LineContent::Whole(line.strip_suffix(b"\r").unwrap_or(line).to_vec())
        };
        lines.push(Line {
            offset,
            end,
            is_torn,
            content,
        });
        offset = end;
    }
    lines
}

fn all_backwards(path: &Path, step_bytes: usize) -> Vec<Line> {
    let open = OpenFile::open(path, Links::Follow).unwrap();
    let len = open.facts().unwrap().len;
    let mut lines: Vec<Line> = Backwards::new(&open, len, u64::MAX, step_bytes)
        .map(Result::unwrap)
        .collect();
    lines.reverse();
    lines
}

fn whole(line: &Line) -> &str {
    std::str::from_utf8(line.bytes()).unwrap()
}

#[track_caller]
fn check_lines(content: &[u8]) {
    let world = World::with(content);
    let expected = expected_lines(content);
    for step_bytes in [1, 2, 3, 7, STEP_BYTES] {
        assert_eq!(all_backwards(&world.path, step_bytes), expected);
    }
    let bounds = HeadBounds {
        bytes_max: u64::MAX,
        lines_max: usize::MAX,
    };
    let head = world.open().head(bounds).unwrap();
    assert_eq!(head.lines, expected);
    assert_eq!(head.stopped, Stopped::NothingLeft);
}

#[test]
fn lines_are_the_same_from_both_ends() {
    check_lines(b"");
    check_lines(b"\n");
    check_lines(b"\n\n");
    check_lines(b"a");
    check_lines(b"a\n");
    check_lines(b"\na");
    check_lines(b"a\nbc\n\ndef\n");
    check_lines(b"a\r\nb\r\n");
    check_lines(b"\r\n\r\r\nb\r");
    check_lines(b"\0\0\n\xff\xfe\n\0");
}

#[test]
fn lines_around_a_step_are_the_same_from_both_ends() {
    for len in [STEP_BYTES - 1, STEP_BYTES, STEP_BYTES + 1] {
        let mut content = vec![b'x'; len];
        content.extend_from_slice(b"\nshort\n");
        check_same_at_step(&content);
        content.extend(vec![b'y'; len]);
        check_same_at_step(&content);
    }
}

#[test]
fn lines_around_the_longest_length_are_the_same_from_both_ends() {
    for len in [LINE_BYTES_MAX - 1, LINE_BYTES_MAX, LINE_BYTES_MAX + 1] {
        for end in ["\n", "", "\r\n"] {
            let mut content = b"first\n".to_vec();
            content.extend(vec![b'x'; len]);
            content.extend_from_slice(end.as_bytes());
            check_same_at_step(&content);
            content.extend_from_slice(b"last\n");
            check_same_at_step(&content);
        }
    }
}

#[track_caller]
fn check_same_at_step(content: &[u8]) {
    let world = World::with(content);
    let expected = expected_lines(content);
    // Not compared by `assert_eq`: a failure would print megabytes.
    assert!(all_backwards(&world.path, STEP_BYTES) == expected);
    let bounds = HeadBounds {
        bytes_max: u64::MAX,
        lines_max: usize::MAX,
    };
    assert!(world.open().head(bounds).unwrap().lines == expected);
    let appended = read_all(&world.open(), &world.open().cursor_at_start());
    let sound: Vec<Line> = expected.into_iter().filter(|line| !line.is_torn).collect();
    assert!(appended == sound);
}

/// What was appended since a cursor: the lines, whether they continue, and the next cursor.
fn appended(file: &TranscriptFile, cursor: &Cursor) -> (Vec<Line>, CursorAnswer, Cursor) {
    let mut appended = file.appended(cursor).unwrap();
    let mut lines = Vec::new();
    while let Some(line) = appended.next_line().unwrap() {
        lines.push(line.clone());
    }
    (lines, appended.answer(), appended.cursor().unwrap())
}

/// The lines since a cursor of the same file.
fn read_all(file: &TranscriptFile, cursor: &Cursor) -> Vec<Line> {
    let (lines, answer, _) = appended(file, cursor);
    assert_eq!(answer, CursorAnswer::Continued);
    lines
}

#[test]
fn a_torn_last_line_is_flagged_and_may_be_sound() {
    let world = World::with(b"{\"a\":1}\n{\"b\":2}");
    let file = world.open();
    let last = file
        .backwards(TailBounds::default())
        .unwrap()
        .next()
        .unwrap()
        .unwrap();
    assert!(last.is_torn);
    assert_eq!((last.offset, last.end), (8, 15));
    assert_eq!(last.json().values, [json!({"b": 2})]);
    assert_eq!(last.json().problem, None);
}

#[test]
fn the_bound_on_bytes_holds_backwards_and_is_reported() {
    let world = World::with(&b"0123456789abcde\n".repeat(1000));
    let file = world.open();
    let mut backwards = file.backwards(TailBounds { bytes_max: 40 }).unwrap();
    let lines: Vec<Line> = backwards.by_ref().map(Result::unwrap).collect();
    assert_eq!(lines.len(), 2);
    assert_eq!(backwards.stopped(), Some(Stopped::BytesMax));
    assert!(backwards.next().is_none());

    let mut backwards = file.backwards(TailBounds { bytes_max: 0 }).unwrap();
    assert!(backwards.next().is_none());
    assert_eq!(backwards.stopped(), Some(Stopped::BytesMax));

    let mut backwards = file.backwards(TailBounds::default()).unwrap();
    assert_eq!(backwards.by_ref().count(), 1000);
    assert_eq!(backwards.stopped(), Some(Stopped::NothingLeft));
}

#[test]
fn the_bounds_of_the_head_hold_and_are_reported() {
    let world = World::with(b"one\ntwo\nthree\nfour");
    let head = |bytes_max, lines_max| {
        let bounds = HeadBounds {
            bytes_max,
            lines_max,
        };
        let head = world.open().head(bounds).unwrap();
        let lines: Vec<String> = head
            .lines
            .iter()
            .map(|line| whole(line).to_owned())
            .collect();
        (lines.join(" "), head.stopped)
    };
    assert_eq!(head(100, 2), ("one two".to_owned(), Stopped::LinesMax));
    assert_eq!(head(100, 0), (String::new(), Stopped::LinesMax));
    assert_eq!(head(10, 9), ("one two".to_owned(), Stopped::BytesMax));
    assert_eq!(head(0, 9), (String::new(), Stopped::BytesMax));
    let all = "one two three four".to_owned();
    assert_eq!(head(100, 9), (all.clone(), Stopped::NothingLeft));
    assert_eq!(head(18, 9), (all, Stopped::NothingLeft));
}

#[test]
fn what_is_appended_while_reading_backwards_does_not_disturb() {
    let world = World::with(b"one\ntwo\nthr");
    let file = world.open();
    let mut backwards = file.backwards(TailBounds::default()).unwrap();
    world.append(b"ee\nfour\n");
    let torn = backwards.next().unwrap().unwrap();
    assert_eq!((whole(&torn), torn.is_torn), ("thr", true));
    assert_eq!(backwards.count(), 2);
}

#[test]
fn a_file_that_shrinks_while_it_is_read_is_an_error_and_the_end() {
    let world = World::with(&b"line\n".repeat(100_000));
    let file = world.open();
    let mut backwards = file.backwards(TailBounds::default()).unwrap();
    assert!(backwards.next().unwrap().is_ok());
    let writer = OpenOptions::new().write(true).open(&world.path).unwrap();
    writer.set_len(10).unwrap();
    let error = backwards.find_map(Result::err).unwrap();
    assert!(matches!(error, TranscriptError::Shrunk { .. }), "{error}");
    assert_eq!(error.reason(), "it became shorter while it was read");
    assert!(backwards.next().is_none());
    assert_eq!(backwards.stopped(), Some(Stopped::Failed));
}

#[test]
fn what_is_no_regular_file_is_refused() {
    let world = World::with(b"");
    let directory = world.path.parent().unwrap();
    let error = TranscriptFile::open(directory).unwrap_err();
    assert!(matches!(
        error,
        TranscriptError::File(ReadFileError::NotRegular {
            kind: FileKind::Directory,
            ..
        })
    ));
    assert_eq!(error.reason(), "it is a directory");
    let absent = TranscriptFile::open(&directory.join("absent")).unwrap_err();
    assert!(matches!(
        absent,
        TranscriptError::File(ReadFileError::NotFound { .. })
    ));
}

#[test]
fn a_line_of_64_mb_is_counted_and_the_lines_around_it_are_read() {
    let world = World::with(b"{\"first\":1}\n");
    let mut file = OpenOptions::new().append(true).open(&world.path).unwrap();
    let chunk = vec![b'x'; 1 << 20];
    for _ in 0..64 {
        file.write_all(&chunk).unwrap();
    }
    file.write_all(b"\n{\"last\":1}\n").unwrap();
    let transcript = world.open();
    let bounds = TailBounds {
        bytes_max: u64::MAX,
    };
    let mut backwards = transcript.backwards(bounds).unwrap();
    let lines: Vec<Line> = backwards.by_ref().map(Result::unwrap).collect();
    assert_eq!(whole(&lines[0]), "{\"last\":1}");
    let LineContent::TooLong { bytes, head } = &lines[1].content else {
        panic!("it was held");
    };
    assert_eq!(*bytes, 64 << 20);
    assert_eq!(head, &vec![b'x'; LINE_HEAD_BYTES]);
    assert_eq!(
        lines[1].json().problem,
        Some(LineProblem::TooLong { bytes: 64 << 20 })
    );
    assert_eq!(whole(&lines[2]), "{\"first\":1}");
    assert_eq!(lines.len(), 3);
    let peak = backwards.buffer_bytes_peak();
    assert!(peak <= 2 * (LINE_BYTES_MAX + STEP_BYTES), "{peak}");
    assert!(
        read_all(&transcript, &transcript.cursor_at_start()) == {
            let mut forwards = lines;
            forwards.reverse();
            forwards
        }
    );
}

#[test]
fn a_head_that_the_bound_does_not_allow_is_empty() {
    let mut content = vec![b'x'; LINE_BYTES_MAX + 10];
    content.insert(0, b'\n');
    let world = World::with(&content);
    // To the newline, and not a byte more; its step begins with it.
    let transcript = world.open();
    let bytes_max = content.len() as u64;
    let open = &transcript.open;
    let step_bytes = content.len() - 1;
    let mut backwards = Backwards::new(open, bytes_max, bytes_max, step_bytes);
    let line = backwards.next().unwrap().unwrap();
    assert!(line.is_too_long());
    assert!(line.bytes().is_empty());
}

#[test]
fn the_tail_of_a_sparse_file_of_3_gb_is_read_with_small_buffers() {
    let world = World::with(b"{\"first\":1}\n");
    let mut file = OpenOptions::new().write(true).open(&world.path).unwrap();
    file.seek(SeekFrom::Start(3_000_000_000)).unwrap();
    file.write_all(b"\n{\"last\":1}\n").unwrap();
    let transcript = world.open();
    let mut backwards = transcript.backwards(TailBounds::default()).unwrap();
    let lines: Vec<Line> = backwards.by_ref().map(Result::unwrap).collect();
    assert_eq!(lines.len(), 1);
    assert_eq!(whole(&lines[0]), "{\"last\":1}");
    assert_eq!(backwards.stopped(), Some(Stopped::BytesMax));
    let peak = backwards.buffer_bytes_peak();
    assert!(peak <= 2 * (LINE_BYTES_MAX + STEP_BYTES), "{peak}");
    let head = transcript.head(HeadBounds::default()).unwrap();
    assert_eq!(head.lines.len(), 1);
}

#[test]
fn reading_a_transcript_changes_nothing() {
    let world = World::with(b"one\ntwo\n");
    let before = fs::metadata(&world.path).unwrap();
    let file = world.open();
    file.head(HeadBounds::default()).unwrap();
    assert_eq!(file.backwards(TailBounds::default()).unwrap().count(), 2);
    read_all(&file, &file.cursor_at_start());
    let after = File::open(&world.path).unwrap().metadata().unwrap();
    assert_eq!(after.modified().unwrap(), before.modified().unwrap());
    assert_eq!(after.len(), before.len());
    assert_eq!(file.facts().len, 8);
    assert_eq!(file.path(), world.path);
}
