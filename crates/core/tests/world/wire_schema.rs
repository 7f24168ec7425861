//! The schemas of `schema/`, for tests.

use std::path::Path;

use serde_json::{Map, Value, json};

/// The file of what the others have in common.
const COMMON: &str = "common.v1.schema.json";

/// A schema as it is checked in.
#[track_caller]
pub fn checked_in(name: &str) -> Value {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schema");
    let path = folder.join(name);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{path:?}: {error}"))
}

/// The schema of an output (`list`, `why-pid`) and all that it refers to, in one document.
#[track_caller]
pub fn bundled(output: &str) -> Value {
    let text = checked_in(&format!("{output}.v1.schema.json")).to_string();
    let mut schema: Value = serde_json::from_str(&text.replace(COMMON, "")).unwrap();
    schema["$defs"] = checked_in(COMMON)["$defs"].take();
    schema
}

/// The same, closed: a field that it does not describe is refused, and each field that it
/// describes must be there, except bytes of what is text as a rule. `show` has `messages`
/// or not, as `absent` says.
#[track_caller]
pub fn strict(output: &str, absent: &[&str]) -> Value {
    let mut schema = bundled(output);
    for name in absent {
        let fields = schema["properties"].as_object_mut().unwrap();
        if fields.remove(*name).is_none() {
            // What rows are not about is absent in them.
            let fields = &mut schema["properties"]["rows"]["items"]["properties"];
            let fields = fields.as_object_mut().expect("rows");
            fields.remove(*name).expect("a field of this schema");
        }
    }
    let definitions = schema["$defs"].clone();
    closed(&schema, &definitions)
}

fn closed(schema: &Value, definitions: &Value) -> Value {
    let Value::Object(fields) = schema else {
        let Value::Array(items) = schema else {
            return schema.clone();
        };
        return items.iter().map(|item| closed(item, definitions)).collect();
    };
    let mut fields = fields.clone();
    // What refers to others and adds to them is closed as a whole.
    for part in fields
        .remove("allOf")
        .iter()
        .filter_map(Value::as_array)
        .flatten()
    {
        let name = part["$ref"]
            .as_str()
            .and_then(|name| name.strip_prefix("#/$defs/"));
        let part = &definitions[name.expect("a reference to what is common")];
        let own = fields["properties"].as_object_mut().unwrap();
        own.extend(part["properties"].as_object().unwrap().clone());
    }
    if let Some(Value::Object(properties)) = fields.get("properties") {
        let required = properties
            .keys()
            .filter(|name| !is_bytes_of_text(name, properties));
        let required: Vec<_> = required.cloned().collect();
        fields.insert("required".to_owned(), json!(required));
        fields.insert("additionalProperties".to_owned(), json!(false));
    }
    let closed_field = |(name, schema): (String, Value)| (name, closed(&schema, definitions));
    Value::Object(fields.into_iter().map(closed_field).collect())
}

/// Whether a field has the bytes of another one, which are there if that lost some.
fn is_bytes_of_text(name: &str, properties: &Map<String, Value>) -> bool {
    let other = name.strip_suffix("_bytes");
    other.is_some_and(|other| properties.contains_key(other))
}
