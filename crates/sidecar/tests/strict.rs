//! Strict getters, as adapters use them on formats of their own.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::borrow::Cow;

use serde_json::json;
use whosup_sidecar::{FieldError, JsonError, SidecarPid, StrictObject};

fn object() -> StrictObject<'static> {
    StrictObject::parse(
        br#"{
            "text": "a", "empty": "", "int": -7, "zero": 0, "pid": 4711, "float": 1.5, "whole": 2.0,
            "yes": true, "none": null, "list": [1, "a"], "words": ["a", "b"],
            "data": {"pid": "4711", "inner": {"n": 1, "list": {}}},
            "big": 9223372036854775808, "huge": 18446744073709551616
        }"#,
    )
    .unwrap()
}

#[track_caller]
fn check_error<T: std::fmt::Debug>(answer: Result<T, FieldError>, expected: &str) {
    assert_eq!(answer.unwrap_err().to_string(), expected);
}

#[test]
fn each_getter_reads_its_type() {
    let object = object();
    assert_eq!(object.string("text"), Ok("a"));
    assert_eq!(object.opt_string("empty"), Ok(Some("")));
    assert_eq!(object.integer("int"), Ok(-7));
    assert_eq!(object.opt_integer("zero"), Ok(Some(0)));
    assert_eq!(object.pid("pid").map(|pid| pid.get()), Ok(4711));
    assert_eq!(
        object.opt_pid("pid").map(|pid| pid.unwrap().get()),
        Ok(4711)
    );
    assert_eq!(object.pid_or_zero("zero"), Ok(SidecarPid::Released));
    assert_eq!(
        object.opt_pid_or_zero("zero"),
        Ok(Some(SidecarPid::Released))
    );
    assert_eq!(object.number("float"), Ok(1.5));
    assert_eq!(object.opt_number("int"), Ok(Some(-7.0)));
    assert_eq!(object.bool("yes"), Ok(true));
    assert_eq!(object.opt_bool("yes"), Ok(Some(true)));
    assert_eq!(object.array("list").unwrap().len(), 2);
    assert_eq!(object.opt_array("list").unwrap().unwrap().len(), 2);
    assert_eq!(object.opt_strings("words"), Ok(Some(vec!["a", "b"])));
    let value = |key: &str| object.opt_value(key).unwrap().map(Cow::into_owned);
    assert_eq!(value("list"), Some(json!([1, "a"])));
    assert_eq!(value("text"), Some(json!(object.string("text").unwrap())));
    assert!(object.keys().any(|key| key == "huge"));
}

#[test]
fn what_is_absent_or_null_is_none_where_it_may_be() {
    let object = object();
    for key in ["absent", "none"] {
        assert_eq!(object.opt_string(key), Ok(None));
        assert_eq!(object.opt_integer(key), Ok(None));
        assert_eq!(object.opt_pid(key), Ok(None));
        assert_eq!(object.opt_pid_or_zero(key), Ok(None));
        assert_eq!(object.opt_number(key), Ok(None));
        assert_eq!(object.opt_bool(key), Ok(None));
        assert_eq!(object.opt_array(key), Ok(None));
        assert_eq!(object.opt_strings(key), Ok(None));
        assert_eq!(object.opt_value(key), Ok(None));
        assert!(object.opt_object(key).unwrap().is_none());
    }
    check_error(object.string("absent"), "`absent` is missing");
    check_error(object.string("none"), "`none` is not a string: found null");
}

#[test]
fn numbers_are_checked() {
    let object = object();
    check_error(
        object.integer("float"),
        "`float` is not an integer: found the number `1.5`",
    );
    check_error(
        object.integer("whole"),
        "`whole` is not an integer: found the number `2.0`",
    );
    check_error(
        object.integer("yes"),
        "`yes` is not an integer: found the bool `true`",
    );
    check_error(
        object.integer("big"),
        "`big` is not an integer of 64 bits: found `9223372036854775808`",
    );
    assert!(matches!(
        object.integer("huge"),
        Err(FieldError::WrongType { .. })
    ));
    check_error(
        object.pid("zero"),
        "`zero` is not a process id (1 to 2147483647): found `0`",
    );
    check_error(
        object.pid_or_zero("int"),
        "`int` is not a process id (1 to 2147483647), or 0: found `-7`",
    );
    check_error(
        object.number("text"),
        "`text` is not a number: found the string `a`",
    );
}

#[test]
fn a_key_in_a_nested_object_is_named_by_its_whole_path() {
    let object = object();
    let data = object.object("data").unwrap();
    check_error(
        data.pid("pid"),
        "`data.pid` is not an integer: found the string `4711`",
    );
    let inner = data.opt_object("inner").unwrap().unwrap();
    check_error(inner.string("x"), "`data.inner.x` is missing");
    check_error(
        inner.opt_strings("list"),
        "`data.inner.list` is not an array of strings: found an object of 0",
    );
    check_error(
        object.object("list"),
        "`list` is not an object: found an array of 2",
    );
    assert_eq!(data.pid("pid").unwrap_err().key(), "data.pid");
}

#[test]
fn a_key_or_value_cannot_steer_the_terminal_that_shows_the_error() {
    let object =
        StrictObject::parse("{\"a\\u001b[2J\": 1, \"b\": \"\\u202ex\"}".as_bytes()).unwrap();
    check_error(
        object.string("a\u{1b}[2J"),
        "`a\\u{1b}[2J` is not a string: found the number `1`",
    );
    check_error(
        object.bool("b"),
        "`b` is not a bool: found the string `\\u{202e}x`",
    );
}

#[test]
fn a_parsed_value_is_read_like_a_file() {
    let value = json!({"payload": {"id": 7}});
    let object = StrictObject::from_value(&value).unwrap();
    let payload = object.object("payload").unwrap();
    check_error(
        payload.string("id"),
        "`payload.id` is not a string: found the number `7`",
    );
    assert_eq!(
        StrictObject::from_value(&json!([1])).unwrap_err(),
        JsonError::NotAnObject { found: "an array" }
    );
}

#[test]
fn a_repeated_key_is_an_error_only_when_it_is_asked_for() {
    let object = StrictObject::parse(br#"{"pid": 1, "cwd": "/w", "pid": 2}"#).unwrap();
    assert_eq!(object.string("cwd"), Ok("/w"));
    check_error(object.pid("pid"), "`pid` is there more than once");
    check_error(object.opt_pid("pid"), "`pid` is there more than once");
    check_error(object.opt_value("pid"), "`pid` is there more than once");
}
