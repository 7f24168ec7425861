//! The value on a line, with the parts alone that its reader uses.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use super::{Line, LineContent};

impl Line {
    /// Parses the line, and keeps of its objects what has one of `keys`; everything if
    /// there are none. The rest is stepped over. `None` unless the line is one sound
    /// value: what else may be on it is for [`Line::json`].
    pub(crate) fn sparse_value(&self, keys: &[&str]) -> Option<Value> {
        let LineContent::Whole(bytes) = &self.content else {
            return None;
        };
        // All of the line is text, also what is stepped over.
        let text = std::str::from_utf8(bytes).ok()?;
        let mut parser = serde_json::Deserializer::from_str(text);
        let value = Sparse { keys }.deserialize(&mut parser).ok()?;
        parser.end().ok()?;
        Some(value)
    }
}

/// Builds a value as `serde_json` does, of some of the parts.
#[derive(Clone, Copy)]
struct Sparse<'a> {
    keys: &'a [&'a str],
}

impl<'de> DeserializeSeed<'de> for Sparse<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Sparse<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = parts.next_element_seed(self)? {
            values.push(value);
        }
        Ok(Value::Array(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut parts: A) -> Result<Value, A::Error> {
        let mut values = Map::new();
        while let Some(key) = parts.next_key_seed(Key(self.keys))? {
            match key {
                Some(key) => {
                    values.insert(key, parts.next_value_seed(self)?);
                }
                None => {
                    parts.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(Value::Object(values))
    }
}

/// A key of an object; `None` if what it has is not kept.
struct Key<'a>(&'a [&'a str]);

impl<'de> DeserializeSeed<'de> for Key<'_> {
    type Value = Option<String>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Key<'_> {
    type Value = Option<String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E>(self, key: &str) -> Result<Self::Value, E> {
        let is_kept = self.0.is_empty() || self.0.contains(&key);
        Ok(is_kept.then(|| key.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn line(bytes: &[u8]) -> Line {
        Line {
            offset: 0,
            end: bytes.len() as u64 + 1,
            is_torn: false,
            content: LineContent::Whole(bytes.to_vec()),
        }
    }

    #[test]
    fn what_has_one_of_the_keys_is_kept_wherever_it_is_and_nothing_else() {
        let text = r#"{"a":{"x":[1,{"a":2}],"b":-1},"x":"\ud83d","c":[{"x":1.5,"b":1.5},null]}"#;
        let keys = &["a", "b", "c"];
        assert_eq!(
            line(text.as_bytes()).sparse_value(keys),
            Some(json!({"a": {"b": -1}, "c": [{"b": 1.5}, null]}))
        );
        for bad in [
            "",
            "{}{}",
            "{} x",
            "{\"a\":1",
            "\u{feff}{}",
            "{\"x\":01}",
            "{\"x\":\"\\x\"}",
            "{\"x\":\"\0\"}",
        ] {
            assert_eq!(line(bad.as_bytes()).sparse_value(keys), None, "{bad}");
        }
        assert_eq!(line(b"{\"x\":\"\xff\"}").sparse_value(keys), None);
    }

    fn json_texts() -> impl Strategy<Value = String> {
        let leaf = prop_oneof![
            Just("null".to_owned()),
            any::<bool>().prop_map(|flag| flag.to_string()),
            any::<i64>().prop_map(|number| number.to_string()),
            any::<u64>().prop_map(|number| number.to_string()),
            any::<f64>().prop_map(|number| format!("{number:e}")),
            ".*".prop_map(|text| Value::from(text).to_string()),
        ];
        leaf.prop_recursive(4, 32, 5, |inner| {
            let key = prop_oneof![Just("a".to_owned()), "[ab\"\\\\]{0,2}"];
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5)
                    .prop_map(|values| format!("[{}]", values.join(","))),
                prop::collection::vec((key, inner), 0..5).prop_map(|fields| {
                    let fields = fields.into_iter();
                    let fields = fields.map(|(key, value)| format!("{}:{value}", Value::from(key)));
                    format!("{{ {} }}", fields.collect::<Vec<_>>().join(" , "))
                }),
            ]
        })
    }

    proptest! {
        #[test]
        fn without_keys_the_value_is_that_of_the_line(text in json_texts()) {
            let line = line(text.as_bytes());
            let json = line.json();
            let expected = (json.bad_count == 0).then(|| json.values[0].clone());
            prop_assert_eq!(line.sparse_value(&[]), expected);
        }
    }
}
