//! Properties that hold for any content.

use proptest::prelude::*;

use super::*;

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
            let (more, answer, next) = appended(&world.open(), &cursor);
            prop_assert_eq!(answer, CursorAnswer::Continued);
            lines.extend(more);
            cursor = next;
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
