//! Sidecars as agents write them, and every way in which one can be wrong.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use whosup_process::StartStamp;
use whosup_sidecar::{
    FieldError, JsonError, Resume, SIDECAR_BYTES_MAX, Serves, SessionId, SessionIdError, Sidecar,
    SidecarError, SidecarPid, parse_sidecar,
};

const QWEN: &[u8] = include_bytes!("fixtures/qwen.runtime.json");
const FULL: &[u8] = include_bytes!("fixtures/full.runtime.json");

/// The plain schema, with `change` made to it.
fn changed(change: impl FnOnce(&mut Map<String, Value>)) -> Vec<u8> {
    let mut fields: Map<String, Value> = serde_json::from_slice(QWEN).unwrap();
    change(&mut fields);
    serde_json::to_vec(&fields).unwrap()
}

fn with(key: &str, value: Value) -> Vec<u8> {
    changed(|fields| {
        fields.insert(key.to_owned(), value);
    })
}

fn parse_with(key: &str, value: Value) -> Result<Sidecar, SidecarError> {
    parse_sidecar(&with(key, value))
}

#[track_caller]
fn check_error(bytes: &[u8], expected: &str) {
    assert_eq!(parse_sidecar(bytes).unwrap_err().to_string(), expected);
}

#[test]
fn a_sidecar_of_qwen_code_is_read() {
    let sidecar = parse_sidecar(QWEN).unwrap();
    assert!(matches!(sidecar.pid, SidecarPid::Process(pid) if pid.get() == 21775));
    let id = SessionId::parse("0a0cf238-8b66-4429-9815-234560ccc5d1").unwrap();
    assert_eq!(sidecar.session_id, id);
    assert_eq!(sidecar.work_dir, Path::new("/home/dev/my_app.v1"));
    assert_eq!(sidecar.hostname, "devbox");
    assert_eq!(sidecar.started_at_ms, 1_795_812_879_887);
    assert_eq!(sidecar.agent_name.as_deref(), Some("qwen"));
    assert_eq!(sidecar.agent_version.as_deref(), Some("0.24.4"));
    assert_eq!(sidecar.process_start, None);
    assert_eq!(sidecar.resume, None);
}

#[test]
fn every_optional_field_is_read() {
    let sidecar = parse_sidecar(FULL).unwrap();
    assert_eq!(sidecar.agent_name.as_deref(), Some("my-agent"));
    assert_eq!(sidecar.agent_version, None);
    assert_eq!(sidecar.process_start, Some(StartStamp::LinuxTicks(8123)));
    assert_eq!(
        sidecar.process_start_text.as_deref(),
        Some("linux-ticks 8123")
    );
    let boot = sidecar.boot_id.unwrap();
    assert_eq!(boot.as_str(), "19c1d8ff-a55f-47c0-82a1-b0f1bc43623a");
    assert_eq!(sidecar.pid_namespace.unwrap().0, 4_026_531_836);
    assert_eq!(
        sidecar.executable.as_deref(),
        Some(Path::new("/usr/bin/my-agent"))
    );
    assert_eq!(sidecar.serves, Some(Serves::One));
    assert_eq!(sidecar.phase.as_deref(), Some("waiting"));
    assert_eq!(sidecar.waiting_for.as_deref(), Some("permission"));
    assert_eq!(
        sidecar.transcript.as_deref(),
        Some(Path::new("/w/app/log.jsonl"))
    );
    assert_eq!(sidecar.client_pid.unwrap().get(), 4712);
    let argv = ["my-agent", "--resume", "s1"].map(str::to_owned).to_vec();
    assert_eq!(sidecar.resume, Some(Resume::Argv(argv)));
    assert_eq!(sidecar.endpoint.as_deref(), Some("/run/my-agent/4711.sock"));
}

#[test]
fn pid_zero_is_released() {
    assert_eq!(
        parse_with("pid", json!(0)).unwrap().pid,
        SidecarPid::Released
    );
}

#[test]
fn unknown_fields_are_ignored_also_when_they_are_repeated() {
    assert!(parse_with("from_the_future", json!({"a": [1, null]})).is_ok());
    let text = String::from_utf8(QWEN.to_vec()).unwrap();
    let repeated = text.replacen('{', "{\"x\":1,\"x\":2,", 1);
    assert!(parse_sidecar(repeated.as_bytes()).is_ok());
}

#[test]
fn null_is_the_absence_of_an_optional_field() {
    for key in [
        "process_start",
        "process_start_kind",
        "boot_id",
        "pid_namespace",
        "executable",
        "serves",
        "phase",
        "waiting_for",
        "transcript",
        "client_pid",
        "resume",
        "endpoint",
        "qwen_version",
    ] {
        assert!(parse_with(key, Value::Null).is_ok(), "{key}");
    }
}

#[test]
fn every_required_field_is_missed_by_name() {
    for key in [
        "schema_version",
        "pid",
        "session_id",
        "work_dir",
        "hostname",
        "started_at",
    ] {
        let bytes = changed(|fields| {
            fields.remove(key);
        });
        check_error(&bytes, &format!("`{key}` is missing"));
    }
}

/// Key, value as JSON, and the rest of the error after "`key` is not ".
const WRONG_TYPES: &[(&str, &str, &str)] = &[
    (
        "schema_version",
        r#""1""#,
        "an integer: found the string `1`",
    ),
    (
        "schema_version",
        "true",
        "an integer: found the bool `true`",
    ),
    (
        "schema_version",
        "1.0",
        "an integer: found the number `1.0`",
    ),
    ("pid", r#""7""#, "an integer: found the string `7`"),
    ("pid", "true", "an integer: found the bool `true`"),
    ("pid", "7.0", "an integer: found the number `7.0`"),
    ("pid", "null", "an integer: found null"),
    ("session_id", "7", "a string: found the number `7`"),
    ("work_dir", r#"["/w"]"#, "a string: found an array of 1"),
    ("hostname", r#"{"a": 1}"#, "a string: found an object of 1"),
    ("started_at", r#""7""#, "a number: found the string `7`"),
    ("started_at", "true", "a number: found the bool `true`"),
    ("qwen_version", "2", "a string: found the number `2`"),
    ("process_start", "81", "a string: found the number `81`"),
    ("process_start_kind", "1", "a string: found the number `1`"),
    ("boot_id", "1", "a string: found the number `1`"),
    (
        "pid_namespace",
        r#""4""#,
        "an integer: found the string `4`",
    ),
    ("executable", "false", "a string: found the bool `false`"),
    ("serves", "1", "a string: found the number `1`"),
    ("serves", "true", "a string: found the bool `true`"),
    ("phase", "1", "a string: found the number `1`"),
    ("waiting_for", "[]", "a string: found an array of 0"),
    ("transcript", "1", "a string: found the number `1`"),
    ("client_pid", r#""4""#, "an integer: found the string `4`"),
    ("resume", "1", "an array of strings: found the number `1`"),
    (
        "resume",
        r#"["a", 1]"#,
        "an array of strings: found an array of 2",
    ),
    ("endpoint", "{}", "a string: found an object of 0"),
];

#[test]
fn no_type_is_taken_for_another() {
    for (key, value, expected) in WRONG_TYPES {
        let value = serde_json::from_str(value).unwrap();
        check_error(&with(key, value), &format!("`{key}` is not {expected}"));
    }
}

/// Key, value as JSON, and the rest of the error after "`key` ".
const OUT_OF_RANGE: &[(&str, &str, &str)] = &[
    (
        "pid",
        "-1",
        "is not a process id (1 to 2147483647), or 0: found `-1`",
    ),
    (
        "pid",
        "2147483648",
        "is not a process id (1 to 2147483647), or 0: found `2147483648`",
    ),
    (
        "pid",
        "9223372036854775808",
        "is not an integer of 64 bits: found `9223372036854775808`",
    ),
    (
        "client_pid",
        "0",
        "is not a process id (1 to 2147483647): found `0`",
    ),
    (
        "started_at",
        "0",
        "is not a date in seconds since 1970: found `0`",
    ),
    (
        "started_at",
        "-5.5",
        "is not a date in seconds since 1970: found `-5.5`",
    ),
    (
        "started_at",
        "1795812879887",
        "is not a date in seconds since 1970: found `1795812879887`",
    ),
    ("work_dir", r#""""#, "is not a path: found ``"),
    (
        "work_dir",
        r#""/w\u0000x""#,
        r"is not a path: found `/w\u{0}x`",
    ),
    (
        "work_dir",
        r#""app""#,
        "is not an absolute path: found `app`",
    ),
    (
        "work_dir",
        r#""C:app""#,
        "is not an absolute path: found `C:app`",
    ),
    ("executable", r#""""#, "is not a path: found ``"),
    ("boot_id", r#""today""#, "is not a UUID: found `today`"),
    ("pid_namespace", "0", "is not an inode number: found `0`"),
    (
        "session_id",
        r#""../x""#,
        "cannot be used: a session id must not contain `/`, which separates the parts of a path",
    ),
];

#[test]
fn impossible_values_are_out_of_range() {
    for (key, value, expected) in OUT_OF_RANGE {
        let value = serde_json::from_str(value).unwrap();
        check_error(&with(key, value), &format!("`{key}` {expected}"));
    }
    let empty = Err(SidecarError::SessionId(SessionIdError::Empty));
    assert_eq!(parse_with("session_id", json!("")), empty);
}

#[test]
fn a_long_value_is_cut_in_the_error() {
    let error = parse_with("pid", json!("9".repeat(5000))).unwrap_err();
    assert!(error.to_string().len() < 120, "{error}");
    let error = parse_with("started_at", json!(1e300)).unwrap_err();
    assert!(error.to_string().len() < 120, "{error}");
}

#[test]
fn another_schema_version_names_both_numbers() {
    for found in [-1, 0, 2, 99] {
        let error = parse_with("schema_version", json!(found)).unwrap_err();
        assert_eq!(error, SidecarError::SchemaVersion { found });
        let expected = format!("`schema_version` is `{found}`, and only `1` can be read");
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn a_newer_schema_is_named_before_the_fields_that_it_changed() {
    check_error(
        br#"{"schema_version": 2, "process": {"pid": 1}}"#,
        "`schema_version` is `2`, and only `1` can be read",
    );
}

#[test]
fn repeated_known_fields_are_refused() {
    let text = String::from_utf8(QWEN.to_vec()).unwrap();
    for (key, again) in [
        ("pid", "1"),
        ("session_id", "\"x\""),
        ("qwen_version", "\"1\""),
    ] {
        let repeated = text.replacen('{', &format!("{{\"{key}\": {again},"), 1);
        let key = key.to_owned();
        let expected = SidecarError::Field(FieldError::Repeated { key });
        assert_eq!(parse_sidecar(repeated.as_bytes()), Err(expected));
    }
    let escaped = text.replacen('{', "{\"\\u0070id\": 1,", 1);
    check_error(escaped.as_bytes(), "`pid` is there more than once");
}

#[test]
fn an_unknown_kind_or_form_of_start_is_text_and_no_stamp() {
    let cases = [
        (
            json!("linux-ticks"),
            "8123",
            Some(StartStamp::LinuxTicks(8123)),
            "linux-ticks 8123",
        ),
        (
            json!("filetime"),
            "1337",
            Some(StartStamp::Filetime(1337)),
            "filetime 1337",
        ),
        (
            json!("darwin-tv"),
            "1795812879.000123",
            Some(StartStamp::DarwinTv {
                seconds: 1_795_812_879,
                microseconds: 123,
            }),
            "darwin-tv 1795812879.000123",
        ),
        (json!("linux-ticks"), "81.23", None, "linux-ticks 81.23"),
        (json!("linux-ticks"), "-1", None, "linux-ticks -1"),
        (json!("plan9-ns"), "8123", None, "plan9-ns 8123"),
        (json!(null), "8123", None, "8123"),
    ];
    for (kind, start, stamp, text) in cases {
        let bytes = changed(|fields| {
            fields.insert("process_start_kind".to_owned(), kind);
            fields.insert("process_start".to_owned(), json!(start));
        });
        let sidecar = parse_sidecar(&bytes).unwrap();
        assert_eq!(sidecar.process_start, stamp);
        assert_eq!(sidecar.process_start_text.as_deref(), Some(text));
    }
}

#[test]
fn how_many_sessions_it_serves_is_known_only_by_a_known_word() {
    let cases = [
        (json!("one"), Some(Serves::One)),
        (json!("many"), Some(Serves::Many)),
        (json!("few"), None),
        (json!("One"), None),
        (json!(""), None),
        (json!(null), None),
    ];
    for (word, serves) in cases {
        assert_eq!(
            parse_with("serves", word.clone()).unwrap().serves,
            serves,
            "{word}"
        );
    }
    assert_eq!(parse_sidecar(QWEN).unwrap().serves, None);
}

#[test]
fn the_agent_is_named_by_one_version_key_and_never_guessed_among_two() {
    let named = |keys: &[&str]| {
        let bytes = changed(|fields| {
            fields.remove("qwen_version");
            for key in keys {
                fields.insert((*key).to_owned(), json!("1.2"));
            }
        });
        let sidecar = parse_sidecar(&bytes).unwrap();
        (sidecar.agent_name, sidecar.agent_version)
    };
    let version = Some("1.2".to_owned());
    assert_eq!(
        named(&["kimi_version"]),
        (Some("kimi".to_owned()), version.clone())
    );
    assert_eq!(
        named(&["my_agent_version"]),
        (Some("my-agent".to_owned()), version)
    );
    assert_eq!(named(&[]), (None, None));
    assert_eq!(named(&["a_version", "b_version"]), (None, None));
    assert_eq!(named(&["_version", "Big_version", "version"]), (None, None));
}

#[test]
fn a_directory_of_any_platform_is_absolute() {
    for path in ["/w/app", r"C:\w\app", "c:/w/app", r"\\server\w"] {
        let sidecar = parse_with("work_dir", json!(path)).unwrap();
        assert_eq!(sidecar.work_dir, Path::new(path));
    }
}

#[test]
fn an_empty_command_is_none() {
    for nothing in [json!([]), json!(""), json!(" ")] {
        let sidecar = parse_with("resume", nothing.clone()).unwrap();
        assert_eq!(sidecar.resume, None, "{nothing}");
    }
}

#[test]
fn resume_is_a_command_line_or_arguments() {
    let line = parse_with("resume", json!("qwen --resume x")).unwrap();
    assert_eq!(
        line.resume,
        Some(Resume::Line("qwen --resume x".to_owned()))
    );
    let argv = parse_with("resume", json!(["qwen"])).unwrap();
    assert_eq!(argv.resume, Some(Resume::Argv(vec!["qwen".to_owned()])));
}

#[test]
fn bytes_that_are_no_object_are_errors_of_their_own() {
    check_error(b"", "it is empty");
    check_error(b"\xEF\xBB\xBF{}", "it begins with a byte order mark");
    check_error(b"\0\0\0\0", "it has a NUL byte at offset 0");
    check_error(b"{\"pid\":\"\xff\"}", "it is not valid UTF-8 at offset 8");
    check_error(b"[1]", "it is not a JSON object but an array");
    check_error("[".repeat(60_000).as_bytes(), "its JSON is nested too deep");
    let half = &QWEN[..QWEN.len() / 2];
    let error = parse_sidecar(half).unwrap_err();
    assert!(
        matches!(error, SidecarError::Json(JsonError::Invalid { .. })),
        "{error}"
    );
}

#[test]
fn a_sidecar_may_have_64_kib_and_not_a_byte_more() {
    let mut bytes = QWEN.to_vec();
    bytes.resize(64 * 1024, b' ');
    assert!(parse_sidecar(&bytes).is_ok());
    bytes.push(b' ');
    assert_eq!(SIDECAR_BYTES_MAX, 64 * 1024);
    check_error(&bytes, "it is larger than 65536 bytes: it has 65537");
}

#[test]
fn dates_are_kept_to_the_millisecond() {
    for (seconds, expected) in [
        (json!(1_795_812_879), 1_795_812_879_000),
        (json!(1_795_812_879.001), 1_795_812_879_001),
        (json!(1_795_812_879.999_6), 1_795_812_880_000),
        (json!(253_370_764_800.0), 253_370_764_800_000),
    ] {
        assert_eq!(
            parse_with("started_at", seconds).unwrap().started_at_ms,
            expected
        );
    }
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::hash_map(".{0,12}", inner, 0..6)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

/// Any value under a key that the schema knows.
fn any_known_field() -> impl Strategy<Value = (String, Value)> {
    let known: Map<String, Value> = serde_json::from_slice(FULL).unwrap();
    let keys: Vec<String> = known.keys().cloned().collect();
    (prop::sample::select(keys), any_json())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_bytes_make_the_parser_panic(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        let _ = parse_sidecar(&bytes);
    }

    #[test]
    fn no_json_makes_the_parser_panic(value in any_json()) {
        let parsed = parse_sidecar(value.to_string().as_bytes());
        prop_assert!(parsed.is_err());
    }

    #[test]
    fn a_wrong_field_is_named_and_never_panics((key, value) in any_known_field()) {
        if let Err(error) = parse_with(&key, value) {
            prop_assert!(error.to_string().contains(&format!("`{key}`")), "{error}");
        }
    }

    #[test]
    fn a_cut_or_flipped_sidecar_never_panics(at in 0..FULL.trim_ascii_end().len(), flip in any::<u8>()) {
        prop_assert!(parse_sidecar(&FULL[..at]).is_err());
        let mut flipped = FULL.to_vec();
        flipped[at] ^= flip;
        let _ = parse_sidecar(&flipped);
    }

    #[test]
    fn what_a_valid_sidecar_says_is_what_is_read(
        pid in 0..=i32::MAX,
        session_id in "[a-z0-9_-]{1,60}x",
        work_dir in "/[^\0]{0,80}",
        hostname in "[a-z.]{0,40}",
        started_at_ms in 1_000_i64..253_370_764_800_000,
        version in prop::option::of("[0-9.]{1,12}"),
        ticks in any::<u64>(),
        namespace in 1..=i64::MAX,
    ) {
        #[expect(clippy::cast_precision_loss, reason = "below 2^53")]
        let started_at = started_at_ms as f64 / 1000.0;
        let bytes = serde_json::to_vec(&json!({
            "schema_version": 1,
            "pid": pid,
            "session_id": session_id,
            "work_dir": work_dir,
            "hostname": hostname,
            "started_at": started_at,
            "some_agent_version": version,
            "process_start": ticks.to_string(),
            "process_start_kind": "linux-ticks",
            "pid_namespace": namespace,
        })).unwrap();
        // A name such as `con` may come up: then the error must name it.
        let Ok(id) = SessionId::parse(&session_id) else {
            prop_assert!(matches!(parse_sidecar(&bytes), Err(SidecarError::SessionId(_))));
            return Ok(());
        };
        let sidecar = parse_sidecar(&bytes).unwrap();
        let read_pid = match sidecar.pid {
            SidecarPid::Released => 0,
            SidecarPid::Process(pid) => pid.get(),
        };
        prop_assert_eq!(read_pid, pid);
        prop_assert_eq!(sidecar.session_id, id);
        prop_assert_eq!(sidecar.work_dir, Path::new(&work_dir));
        prop_assert_eq!(sidecar.hostname, hostname);
        prop_assert_eq!(sidecar.started_at_ms, started_at_ms);
        prop_assert_eq!(sidecar.agent_name.as_deref(), Some("some-agent"));
        prop_assert_eq!(sidecar.agent_version, version);
        prop_assert_eq!(sidecar.process_start, Some(StartStamp::LinuxTicks(ticks)));
        prop_assert_eq!(sidecar.pid_namespace.map(|n| n.0), u64::try_from(namespace).ok());
    }
}
