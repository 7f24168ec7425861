//! The values of a line, and what is wrong with it.

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
fn check_json(bytes: &[u8], values: &[serde_json::Value], problem: Option<&str>, bad_count: usize) {
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
