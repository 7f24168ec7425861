#![allow(
    clippy::disallowed_methods,
    reason = "a test makes the files that it reads"
)]

use std::fs::{self, File, OpenOptions};
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::PathBuf;

use proptest::prelude::*;
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

/// The lines of `content` by the shortest way to say it.
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

/// Reads by a cursor until there is nothing left, with the smallest bound.
fn read_all(file: &TranscriptFile, cursor: &Cursor) -> Vec<Line> {
    let mut cursor = *cursor;
    let mut lines = Vec::new();
    loop {
        let appended = file.read_from(&cursor, 0).unwrap();
        assert_eq!(appended.answer, CursorAnswer::Continued);
        lines.extend(appended.lines);
        cursor = appended.cursor;
        if appended.stopped == Stopped::NothingLeft {
            return lines;
        }
    }
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
fn the_bound_on_bytes_holds_backwards_and_is_told() {
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
fn the_bounds_of_the_head_hold_and_are_told() {
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

mod cursors {
    use super::*;

    #[test]
    fn only_what_was_appended_is_read_and_a_torn_line_waits_for_its_end() {
        let world = World::with(b"one\ntw");
        let file = world.open();
        let first = file.read_from(&file.cursor_at_start(), 0).unwrap();
        assert_eq!(first.lines.iter().map(whole).collect::<Vec<_>>(), ["one"]);
        assert_eq!(first.cursor.offset, 4);
        assert_eq!(first.stopped, Stopped::NothingLeft);

        let nothing = file.read_from(&first.cursor, 0).unwrap();
        assert!(nothing.lines.is_empty());
        assert_eq!(nothing.cursor, first.cursor);

        world.append(b"o\nthree\n");
        let second = world.open().read_from(&first.cursor, 0).unwrap();
        assert_eq!(second.answer, CursorAnswer::Continued);
        assert_eq!(
            second.lines.iter().map(whole).collect::<Vec<_>>(),
            ["two", "three"]
        );
        assert_eq!(second.lines[0].offset, 4);
    }

    #[test]
    fn a_cursor_at_the_end_begins_with_what_comes_next() {
        let world = World::with(b"one\ntwo\nthr");
        let file = world.open();
        let torn = file
            .backwards(TailBounds::default())
            .unwrap()
            .next()
            .unwrap()
            .unwrap();
        let cursor = file.cursor_at(torn.offset).unwrap();
        world.append(b"ee\n");
        let appended = file.read_from(&cursor, 0).unwrap();
        assert_eq!(
            appended.lines.iter().map(whole).collect::<Vec<_>>(),
            ["three"]
        );
    }

    #[test]
    fn a_cursor_is_refused_where_no_line_begins() {
        let world = World::with(b"one\ntwo\n");
        let file = world.open();
        for offset in [0, 4, 8] {
            assert_eq!(file.cursor_at(offset).unwrap().offset, offset);
        }
        for offset in [1, 3, 9, 1000] {
            let error = file.cursor_at(offset).unwrap_err();
            assert_eq!(error.reason(), format!("no line begins at offset {offset}"));
        }
    }

    #[track_caller]
    fn check_restart(change: impl FnOnce(&World), expected: Restart) {
        let world = World::with(b"{\"n\":1}\n{\"n\":2}\n");
        let file = world.open();
        let cursor = file.read_from(&file.cursor_at_start(), 0).unwrap().cursor;
        change(&world);
        let again = world.open().read_from(&cursor, 0).unwrap();
        assert_eq!(again.answer, CursorAnswer::Restarted(expected));
        let content = fs::read(&world.path).unwrap();
        assert_eq!(again.lines, expected_lines(&content));
        let next = world.open().read_from(&again.cursor, 0).unwrap();
        assert_eq!(next.answer, CursorAnswer::Continued);
        assert!(next.lines.is_empty());
    }

    #[test]
    fn a_truncated_file_is_read_anew() {
        check_restart(
            |world| fs::write(&world.path, b"{\"n\":9}\n").unwrap(),
            Restart::Truncated,
        );
        check_restart(
            |world| fs::write(&world.path, b"").unwrap(),
            Restart::Truncated,
        );
    }

    #[test]
    fn a_rewritten_file_is_read_anew_also_when_it_is_longer() {
        check_restart(
            |world| fs::write(&world.path, b"{\"n\":1}\n{\"n\":3}\n{\"n\":4}\n").unwrap(),
            Restart::Rewritten,
        );
    }

    #[test]
    #[cfg(unix)]
    fn a_replaced_file_is_read_anew_also_when_it_begins_the_same() {
        check_restart(
            |world| {
                let new = world.path.with_extension("new");
                fs::write(&new, b"{\"n\":1}\n{\"n\":2}\n{\"n\":3}\n").unwrap();
                fs::rename(new, &world.path).unwrap();
            },
            Restart::Replaced,
        );
    }

    #[test]
    fn a_cursor_that_no_reading_made_is_read_anew() {
        let world = World::with(b"one\ntwo\n");
        let file = world.open();
        let cursor = file.cursor_at(4).unwrap();
        for start in [0, 3, u64::MAX] {
            let odd = Cursor {
                long_line_start: Some(start),
                ..cursor
            };
            let appended = file.read_from(&odd, 0).unwrap();
            assert_eq!(appended.answer, CursorAnswer::Restarted(Restart::Rewritten));
            assert_eq!(appended.lines.len(), 2);
        }
        let odd = Cursor {
            offset: u64::MAX,
            ..cursor
        };
        let appended = file.read_from(&odd, u64::MAX).unwrap();
        assert_eq!(appended.answer, CursorAnswer::Restarted(Restart::Truncated));
    }

    #[test]
    fn a_long_line_that_grows_is_not_read_again_from_its_beginning() {
        let world = World::with(b"one\n");
        let file = world.open();
        let part = vec![b'x'; LINE_BYTES_MAX];
        world.append(&part);
        world.append(&part);
        let mut cursor = file.cursor_at_start();
        loop {
            let appended = file.read_from(&cursor, 0).unwrap();
            cursor = appended.cursor;
            if appended.stopped == Stopped::NothingLeft {
                break;
            }
        }
        assert_eq!(cursor.long_line_start, Some(4));
        assert_eq!(cursor.offset, 4 + 2 * LINE_BYTES_MAX as u64);
        world.append(b"\nlast\n");
        let appended = file.read_from(&cursor, 0).unwrap();
        assert_eq!(appended.lines.len(), 2);
        let LineContent::TooLong { bytes, head } = &appended.lines[0].content else {
            panic!("it was held");
        };
        assert_eq!(*bytes, 2 * LINE_BYTES_MAX as u64);
        assert_eq!(head.len(), LINE_HEAD_BYTES);
        assert_eq!(appended.lines[0].offset, 4);
        assert_eq!(whole(&appended.lines[1]), "last");
        assert_eq!(appended.cursor.long_line_start, None);
    }

    #[test]
    fn a_file_of_newlines_comes_in_bounded_parts() {
        let world = World::with(&vec![b'\n'; APPENDED_LINES_MAX + 5]);
        let file = world.open();
        let first = file.read_from(&file.cursor_at_start(), u64::MAX).unwrap();
        assert_eq!(first.lines.len(), APPENDED_LINES_MAX);
        assert_eq!(first.stopped, Stopped::LinesMax);
        let second = file.read_from(&first.cursor, u64::MAX).unwrap();
        assert_eq!(second.lines.len(), 5);
        assert_eq!(second.stopped, Stopped::NothingLeft);
    }
}

mod json_lines {
    use super::*;

    fn line(bytes: &[u8], is_torn: bool) -> Line {
        Line {
            offset: 100,
            end: 100 + bytes.len() as u64 + 1,
            is_torn,
            content: LineContent::Whole(bytes.to_vec()),
        }
    }

    #[track_caller]
    fn check_json(
        bytes: &[u8],
        values: &[serde_json::Value],
        problem: Option<&str>,
        bad_count: usize,
    ) {
        let json = line(bytes, false).json();
        assert_eq!(json.values, values);
        assert_eq!(
            json.problem.map(|problem| problem.to_string()).as_deref(),
            problem
        );
        assert_eq!(json.bad_count, bad_count);
    }

    #[test]
    fn a_sound_line_has_one_value_and_an_empty_one_none() {
        check_json(br#"{"a":1}"#, &[json!({"a": 1})], None, 0);
        check_json(b"  {\"a\":1} \r", &[json!({"a": 1})], None, 0);
        check_json(b"", &[], None, 0);
        check_json(b" \t", &[], None, 0);
    }

    #[test]
    fn fused_values_are_all_read() {
        let values = [json!({"a": 1}), json!({"b": 2}), json!([3])];
        check_json(br#"{"a":1}{"b":2} [3]"#, &values, None, 0);
    }

    #[test]
    fn what_comes_before_a_torn_value_is_kept_and_what_it_may_contain_is_not() {
        let eof = "it is not valid JSON: EOF while parsing a value at line 1 column 12";
        check_json(br#"{"a":1}{"b":"#, &[json!({"a": 1})], Some(eof), 1);
        let eof = "it is not valid JSON: EOF while parsing an object at line 1 column 12";
        check_json(br#"{"c":{"d":1}"#, &[], Some(eof), 1);
        let json = line(br#"{"a":1}{"b":"#, true).json();
        assert_eq!(json.values, [json!({"a": 1})]);
        assert_eq!(json.problem, Some(LineProblem::Torn));
    }

    #[test]
    fn a_run_of_nul_bytes_is_skipped_when_what_follows_is_sound() {
        let nul = Some("there are NUL bytes");
        check_json(b"\0\0\0\0", &[], nul, 1);
        check_json(b"\0\0{\"a\":1}", &[json!({"a": 1})], nul, 1);
        check_json(b"{\"a\":1}\0\0\0", &[json!({"a": 1})], nul, 1);
        check_json(
            b"{\"a\":1}\0{\"b\":2}\0",
            &[json!({"a": 1}), json!({"b": 2})],
            nul,
            1,
        );
    }

    #[test]
    fn the_end_of_a_value_after_nul_bytes_is_no_value() {
        let json = line(b"\0\0{\"inner\":1}}", false).json();
        assert_eq!(json.values, Vec::<serde_json::Value>::new());
        assert_eq!(json.bad_count, 2);
        let json = line(b"{\"a\":\"\0\0\0\"}", false).json();
        assert_eq!(json.values, Vec::<serde_json::Value>::new());
        assert_eq!(json.bad_count, 3);
    }

    #[test]
    fn text_that_is_no_utf8_or_too_deep_is_named() {
        check_json(b"{\"a\":\"\xff\"}", &[], Some("it is not valid UTF-8"), 1);
        check_json(
            b"{\"a\":1}\xff",
            &[json!({"a": 1})],
            Some("it is not valid UTF-8"),
            1,
        );
        let deep = "[".repeat(10_000);
        check_json(deep.as_bytes(), &[], Some("its JSON is nested too deep"), 1);
    }

    #[test]
    fn half_an_emoji_does_not_cost_the_record() {
        check_json(
            br#"{"title":"a \ud83d"}"#,
            &[json!({"title": "a \u{fffd}"})],
            None,
            0,
        );
        let values = [json!({"t": "\u{1f600}"}), json!({"u": "\u{fffd}"})];
        check_json(br#"{"t":"\ud83d\ude00"}{"u":"\ude00"}"#, &values, None, 0);
    }

    #[test]
    fn many_values_on_one_line_are_bounded() {
        let json = line(&b"{}".repeat(LINE_VALUES_MAX), false).json();
        assert_eq!((json.values.len(), json.bad_count), (LINE_VALUES_MAX, 0));
        for many in [&b"{}"[..], b"{}\0"] {
            let json = line(&many.repeat(100_000), false).json();
            assert_eq!(json.values.len(), LINE_VALUES_MAX);
            assert_eq!(json.problem, Some(LineProblem::TooManyValues));
            assert!(json.bad_count < 10, "{}", json.bad_count);
        }
    }

    #[test]
    fn a_byte_order_mark_is_skipped_where_a_file_begins() {
        let mut first = line(b"\xEF\xBB\xBF{\"a\":1}", false);
        assert_eq!(first.json().values.len(), 0);
        first.offset = 0;
        assert_eq!(first.json().values, [json!({"a": 1})]);
        assert_eq!(first.json().problem, None);
    }
}

/// Pieces that lines are made of, so that ends, returns and empty lines are frequent.
fn any_content() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        Just(b"\n".to_vec()),
        Just(b"\r\n".to_vec()),
        Just(b"{\"a\":1}".to_vec()),
        Just(b"\0\0".to_vec()),
        prop::collection::vec(any::<u8>(), 0..40),
    ];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_content_gives_the_same_lines_from_both_ends(content in any_content(), step in 1_usize..50) {
        let world = World::with(&content);
        let expected = expected_lines(&content);
        prop_assert_eq!(&all_backwards(&world.path, step), &expected);
        let bounds = HeadBounds { bytes_max: u64::MAX, lines_max: usize::MAX };
        prop_assert_eq!(&world.open().head(bounds).unwrap().lines, &expected);
    }

    #[test]
    fn no_bound_on_bytes_gives_other_lines_than_the_last_ones(content in any_content(), step in 1_usize..50, bytes_max in 0_u64..400) {
        let world = World::with(&content);
        let open = OpenFile::open(&world.path, Links::Follow).unwrap();
        let len = content.len() as u64;
        let mut lines: Vec<Line> = Backwards::new(&open, len, bytes_max, step).map(Result::unwrap).collect();
        lines.reverse();
        let expected = expected_lines(&content);
        prop_assert!(expected.ends_with(&lines));
        let read: u64 = lines.iter().map(|line| line.end - line.offset).sum();
        prop_assert!(read <= bytes_max);
    }

    #[test]
    fn appended_parts_give_the_same_lines_as_the_whole(parts in prop::collection::vec(any_content(), 1..5)) {
        let world = World::with(b"");
        let mut cursor = world.open().cursor_at_start();
        let mut lines = Vec::new();
        for part in &parts {
            world.append(part);
            let appended = world.open().read_from(&cursor, 0).unwrap();
            prop_assert_eq!(appended.answer, CursorAnswer::Continued);
            lines.extend(appended.lines);
            cursor = appended.cursor;
        }
        let mut expected = expected_lines(&parts.concat());
        expected.retain(|line| !line.is_torn);
        prop_assert_eq!(lines, expected);
    }

    #[test]
    fn no_line_makes_the_parser_panic(content in any_content(), is_torn in any::<bool>()) {
        let bytes = content.len() as u64;
        let line = Line { offset: 0, end: bytes, is_torn, content: LineContent::Whole(content) };
        let json = line.json();
        prop_assert_eq!(json.problem.is_some(), json.bad_count > 0);
    }
}

#[test]
fn reading_a_transcript_changes_nothing() {
    let world = World::with(b"one\ntwo\n");
    let before = fs::metadata(&world.path).unwrap();
    let file = world.open();
    file.head(HeadBounds::default()).unwrap();
    assert_eq!(file.backwards(TailBounds::default()).unwrap().count(), 2);
    file.read_from(&file.cursor_at_start(), 0).unwrap();
    let after = File::open(&world.path).unwrap().metadata().unwrap();
    assert_eq!(after.modified().unwrap(), before.modified().unwrap());
    assert_eq!(after.len(), before.len());
    assert_eq!(file.facts().len, 8);
    assert_eq!(file.path(), world.path);
}
