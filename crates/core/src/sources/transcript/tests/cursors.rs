//! Readings that continue where the previous reading ended.

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
