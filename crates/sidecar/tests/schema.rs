//! The checked-in JSON Schema and the reader agree.

use std::path::Path;

use jsonschema::Validator;
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use whosup_sidecar::{SidecarError, parse_sidecar};

const FULL: &[u8] = include_bytes!("fixtures/full.runtime.json");

fn validator() -> Validator {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schema/runtime.v1.schema.json");
    let schema: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    jsonschema::validator_for(&schema).unwrap()
}

fn full() -> Map<String, Value> {
    serde_json::from_slice(FULL).unwrap()
}

fn with(key: &str, value: Value) -> Value {
    let mut fields = full();
    fields.insert(key.to_owned(), value);
    Value::Object(fields)
}

/// What the schema can't express, and the reader refuses.
fn is_beyond_schemas(sidecar: &Value) -> bool {
    let is_whole_float = |value: &Value| {
        value.is_f64() && value.as_f64().is_some_and(|number| number.fract() == 0.0)
    };
    let integers = ["schema_version", "pid", "pid_namespace", "client_pid"];
    let has_whole_float = integers
        .iter()
        .any(|key| sidecar.get(key).is_some_and(is_whole_float));
    let parsed = parse_sidecar(sidecar.to_string().as_bytes());
    has_whole_float || matches!(parsed, Err(SidecarError::SessionId(_)))
}

#[track_caller]
fn check_agree(validator: &Validator, sidecar: &Value) {
    let read = parse_sidecar(sidecar.to_string().as_bytes());
    if validator.is_valid(sidecar) {
        assert!(
            read.is_ok() || is_beyond_schemas(sidecar),
            "the schema accepts what the reader refuses ({}): {sidecar}",
            read.unwrap_err()
        );
    } else {
        assert!(
            read.is_err(),
            "the reader accepts what the schema refuses: {sidecar}"
        );
    }
}

/// Values that are at or beyond the edge of some field.
fn values() -> Vec<Value> {
    vec![
        json!(null),
        json!(true),
        json!(0),
        json!(1),
        json!(-1),
        json!(2),
        json!(1.5),
        json!(0.5),
        json!(2_147_483_647_i64),
        json!(2_147_483_648_i64),
        json!(253_370_764_800_i64),
        json!(253_370_764_801_i64),
        json!(9_223_372_036_854_775_807_i64),
        json!(9_223_372_036_854_775_808_u64),
        json!(""),
        json!("x"),
        json!(" x"),
        json!("x "),
        json!("x."),
        json!("."),
        json!(".."),
        json!("../x"),
        json!("a\\b"),
        json!("a\u{0}b"),
        json!("a\nb"),
        json!("a:b"),
        json!("séance-会話"),
        json!("19c1d8ff-a55f-47c0-82a1-b0f1bc43623a"),
        json!("19c1d8ff-a55f-47c0-82a1-b0f1bc43623"),
        json!([]),
        json!(["a", "b"]),
        json!(["a", 1]),
        json!({}),
        json!({"a": 1}),
    ]
}

#[test]
fn schema_and_reader_agree_on_every_value_of_every_field() {
    let validator = validator();
    let mut keys: Vec<String> = full().keys().cloned().collect();
    keys.push("from_the_future".to_owned());
    for key in &keys {
        for value in values() {
            check_agree(&validator, &with(key, value));
        }
        let mut fields = full();
        fields.remove(key);
        check_agree(&validator, &Value::Object(fields));
    }
}

#[test]
fn the_schema_knows_every_field_of_the_reader_and_no_other() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schema/runtime.v1.schema.json");
    let schema: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let described = schema["properties"].as_object().unwrap().keys();
    let mut described: Vec<&str> = described.map(String::as_str).collect();
    described.push("my_agent_version");
    described.sort_unstable();
    let fields = full();
    let mut read: Vec<&str> = fields.keys().map(String::as_str).collect();
    read.sort_unstable();
    assert_eq!(described, read);
}

#[test]
fn what_is_no_object_is_refused_by_both() {
    let validator = validator();
    for value in values().iter().filter(|value| !value.is_object()) {
        check_agree(&validator, value);
        assert!(!validator.is_valid(value), "{value}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn schema_and_reader_agree_on_made_up_text(
        key in prop::sample::select(full().keys().cloned().collect::<Vec<_>>()),
        text in any::<String>(),
    ) {
        check_agree(&validator(), &with(&key, json!(text)));
    }

    #[test]
    fn schema_and_reader_agree_on_made_up_numbers(
        key in prop::sample::select(full().keys().cloned().collect::<Vec<_>>()),
        number in any::<i64>(),
        fraction in any::<f64>(),
    ) {
        let validator = validator();
        check_agree(&validator, &with(&key, json!(number)));
        check_agree(&validator, &with(&key, json!(fraction)));
    }
}

/// The words in backticks that a row of the document's table has.
fn words_of_row(document: &str, field: &str) -> Vec<String> {
    let begin = format!("| `{field}` | string | ");
    let row = document
        .lines()
        .find_map(|line| line.strip_prefix(&begin))
        .unwrap();
    let quoted = row.split('`').skip(1).step_by(2).map(str::to_owned);
    let is_word = |word: &String| word.bytes().all(|it| it.is_ascii_lowercase() || it == b'-');
    quoted.filter(is_word).collect()
}

#[test]
fn the_document_and_the_schema_know_the_same_words() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let document = std::fs::read_to_string(root.join("docs/sidecar.md")).unwrap();
    let schema = std::fs::read(root.join("schema/runtime.v1.schema.json")).unwrap();
    let schema: Value = serde_json::from_slice(&schema).unwrap();
    for field in ["process_start_kind", "serves", "phase", "waiting_for"] {
        let known = &schema["properties"][field]["examples"];
        assert_eq!(json!(words_of_row(&document, field)), *known, "{field}");
    }
}
