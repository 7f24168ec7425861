//! `expected.json` of a fixture: an answer without the fields that have their defaults.
//!
//! The schema gives the defaults: null where a field may be null, else `false`, an empty
//! list, or an object whose own fields have their defaults. A text or a number has none.
//! `schema_version`, `taken_at` and `host` are by default what `world.json` makes them.

use std::path::Path;

use serde_json::{Map, Value, json};

use super::{WorldFile, wire_schema};

/// What a fixture states.
#[track_caller]
pub fn stated(case: &Path) -> Value {
    let path = case.join("expected.json");
    let text = std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The defaults of the answers in one world.
#[derive(Debug)]
pub struct Defaults {
    schema: Value,
    /// The fields that the world decides.
    of_world: [(&'static str, Value); 3],
}

impl Defaults {
    /// Those of a world.
    pub fn of(world: &WorldFile) -> Self {
        let host = json!({
            "hostname": world.host, "boot_id": world.boot_id, "pid_namespace": world.pid_namespace,
        });
        let now = whosup_core::views::wire::timestamp(super::time_ms(&world.now));
        Self {
            schema: wire_schema::bundled("list"),
            of_world: [
                ("schema_version", json!(1)),
                ("taken_at", json!(now)),
                ("host", host),
            ],
        }
    }

    /// The whole answer that a stated one stands for.
    pub fn fill(&self, mut stated: Value) -> Value {
        let fields = stated.as_object_mut().expect("an answer is an object");
        for (name, default) in &self.of_world {
            fields.entry(*name).or_insert_with(|| default.clone());
        }
        self.filled(&self.schema, stated)
    }

    /// What has to be stated of a whole answer.
    pub fn leave_out(&self, mut answer: Value) -> Value {
        let fields = answer.as_object_mut().expect("an answer is an object");
        for (name, default) in &self.of_world {
            if fields.get(*name) == Some(default) {
                fields.remove(*name);
            }
        }
        self.without(&self.schema, answer)
    }

    fn filled(&self, schema: &Value, value: Value) -> Value {
        match value {
            Value::Array(items) => {
                let of_item = &self.kind(schema)["items"];
                let items = items.into_iter();
                items.map(|item| self.filled(of_item, item)).collect()
            }
            Value::Object(mut fields) => {
                let kind = self.kind(schema);
                for (name, schema) in properties(kind) {
                    let field = match fields.remove(name) {
                        Some(stated) => Some(self.filled(schema, stated)),
                        None if is_required(kind, name) => self.default(schema),
                        None => None,
                    };
                    fields.extend(field.map(|field| (name.clone(), field)));
                }
                Value::Object(fields)
            }
            other => other,
        }
    }

    fn without(&self, schema: &Value, value: Value) -> Value {
        match value {
            Value::Array(items) => {
                let of_item = &self.kind(schema)["items"];
                let items = items.into_iter();
                items.map(|item| self.without(of_item, item)).collect()
            }
            Value::Object(fields) => {
                let kind = self.kind(schema);
                let stated = fields.into_iter().filter_map(|(name, value)| {
                    let schema = &kind["properties"][&name];
                    let is_default =
                        is_required(kind, &name) && self.default(schema).as_ref() == Some(&value);
                    (!is_default).then(|| (name, self.without(schema, value)))
                });
                Value::Object(stated.collect())
            }
            other => other,
        }
    }

    /// The default of a field, if it has one.
    fn default(&self, schema: &Value) -> Option<Value> {
        if self.may_be_null(schema) {
            return Some(Value::Null);
        }
        let kind = self.kind(schema);
        match kind["type"].as_str()? {
            "boolean" => Some(json!(false)),
            "array" => Some(json!([])),
            "object" => {
                let required = properties(kind).filter(|(name, _)| is_required(kind, name));
                let fields = required
                    .map(|(name, schema)| Some((name.clone(), self.default(schema)?)))
                    .collect::<Option<Map<_, _>>>()?;
                Some(Value::Object(fields))
            }
            _ => None,
        }
    }

    fn may_be_null(&self, schema: &Value) -> bool {
        let schema = self.resolve(schema);
        let lists = [&schema["type"], &schema["enum"]];
        let mut words = lists.into_iter().filter_map(Value::as_array).flatten();
        words.any(|word| word.is_null() || word == "null")
            || schema["type"] == "null"
            || any_of(schema).any(|schema| self.may_be_null(schema))
    }

    /// What describes the objects or lists of a schema that may allow null beside them.
    fn kind<'a>(&'a self, schema: &'a Value) -> &'a Value {
        let schema = self.resolve(schema);
        let mut others = any_of(schema).filter(|schema| schema["type"] != "null");
        others.next().map_or(schema, |schema| self.resolve(schema))
    }

    fn resolve<'a>(&'a self, schema: &'a Value) -> &'a Value {
        let Some(reference) = schema["$ref"].as_str() else {
            return schema;
        };
        let place = reference.strip_prefix('#').expect("a place in this file");
        self.schema
            .pointer(place)
            .unwrap_or_else(|| panic!("the schema has no {reference}"))
    }
}

fn properties(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    schema["properties"].as_object().into_iter().flatten()
}

fn is_required(schema: &Value, name: &str) -> bool {
    let mut required = schema["required"].as_array().into_iter().flatten();
    required.any(|field| field == name)
}

fn any_of(schema: &Value) -> impl Iterator<Item = &Value> {
    schema["anyOf"].as_array().into_iter().flatten()
}
