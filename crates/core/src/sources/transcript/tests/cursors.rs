//! Readings that continue where the previous reading ended.

use super::*;

#[test]
fn only_what_was_appended_is_read_and_a_torn_line_waits_for_its_end() {
    let world = World::with(b"one\ntw");
    let file = world.open();
    let (lines, _, cursor) = appended(&file, &file.cursor_at_start());
    assert_eq!(lines.iter().map(whole).collect::<Vec<_>>(), ["one"]);
    assert_eq!(cursor.offset, 4);
    let (nothing, _, next) = appended(&file, &cursor);
    assert!(nothing.is_empty());
    assert_eq!(next, cursor);

    world.append(b"o\nthree\n");
    let lines = read_all(&world.open(), &cursor);
    assert_eq!(
        lines.iter().map(whole).collect::<Vec<_>>(),
        ["two", "three"]
    );
    assert_eq!(lines[0].offset, 4);
}

#[test]
fn a_reading_that_stops_between_two_lines_goes_on_there() {
    let world = World::with(b"one\ntwo\nthree\n");
    let file = world.open();
    let mut first = file.appended(&file.cursor_at_start()).unwrap();
    assert_eq!(whole(first.next_line().unwrap().unwrap()), "one");
    let cursor = first.cursor().unwrap();
    assert_eq!(cursor.offset, 4);
    // What comes meanwhile is for the next look.
    world.append(b"four\n");
    assert_eq!(whole(first.next_line().unwrap().unwrap()), "two");
    assert_eq!(whole(first.next_line().unwrap().unwrap()), "three");
    for _ in 0..2 {
        assert_eq!(first.next_line().unwrap(), None);
    }
    let rest = read_all(&file, &cursor);
    let rest: Vec<_> = rest.iter().map(whole).collect();
    assert_eq!(rest, ["two", "three", "four"]);
}

#[test]
fn a_cursor_at_the_end_begins_with_what_comes_next() {
    let world = World::with(b"one\ntwo\nthr");
    let file = world.open();
    let (_, _, cursor) = appended(&file, &file.cursor_at_start());
    world.append(b"ee\n");
    let lines = read_all(&file, &cursor);
    assert_eq!(lines.iter().map(whole).collect::<Vec<_>>(), ["three"]);
}

#[track_caller]
fn check_restart(change: impl FnOnce(&World), expected: Restart) {
    let world = World::with(b"{\"n\":1}\n{\"n\":2}\n");
    let file = world.open();
    let (_, _, cursor) = appended(&file, &file.cursor_at_start());
    change(&world);
    let (lines, answer, cursor) = appended(&world.open(), &cursor);
    assert_eq!(answer, CursorAnswer::Restarted(expected));
    let content = fs::read(&world.path).unwrap();
    assert_eq!(lines, expected_lines(&content));
    assert!(read_all(&world.open(), &cursor).is_empty());
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
    let (_, _, cursor) = appended(&file, &file.cursor_at_start());
    for start in [0, 3, u64::MAX] {
        let odd = Cursor {
            long_line_start: Some(start),
            ..cursor
        };
        let (lines, answer, _) = appended(&file, &odd);
        assert_eq!(answer, CursorAnswer::Restarted(Restart::Rewritten));
        assert_eq!(lines.len(), 2);
    }
    let odd = Cursor {
        offset: u64::MAX,
        ..cursor
    };
    let (_, answer, _) = appended(&file, &odd);
    assert_eq!(answer, CursorAnswer::Restarted(Restart::Truncated));
}

#[test]
fn a_long_line_that_grows_is_not_read_again_from_its_beginning() {
    let world = World::with(b"one\n");
    let file = world.open();
    let part = vec![b'x'; LINE_BYTES_MAX];
    world.append(&part);
    world.append(&part);
    let (_, _, cursor) = appended(&file, &file.cursor_at_start());
    assert_eq!(cursor.long_line_start, Some(4));
    assert_eq!(cursor.offset, 4 + 2 * LINE_BYTES_MAX as u64);
    world.append(b"\nlast\n");
    let (lines, _, cursor) = appended(&file, &cursor);
    assert_eq!(lines.len(), 2);
    let LineContent::TooLong { bytes, head } = &lines[0].content else {
        panic!("it was held");
    };
    assert_eq!(*bytes, 2 * LINE_BYTES_MAX as u64);
    assert_eq!(head.len(), LINE_HEAD_BYTES);
    assert_eq!(lines[0].offset, 4);
    assert_eq!(whole(&lines[1]), "last");
    assert_eq!(cursor.long_line_start, None);
}
