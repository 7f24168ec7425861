//! The value on a line, with the parts alone that its reader uses.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use super::{Line, LineContent};

/// How many keys may be kept.
const KEYS_MAX: usize = 64;

impl Line {
    /// Parses the line into `value`, and keeps of its objects what has one of `keys`;
    /// everything if there are none. The rest is stepped over. `None` unless the line is one
    /// sound value: what else may be on it is for [`Line::json`].
    ///
    /// What `value` held is gone, but its memory is used again: the records of a transcript
    /// have few shapes.
    #[expect(clippy::disallowed_methods, reason = "Line::json repairs")]
    pub(crate) fn sparse_value_into(&self, keys: &[&str], value: &mut Value) -> Option<()> {
        let LineContent::Whole(bytes) = &self.content else {
            return None;
        };
        if keys.is_empty() || keys.len() > KEYS_MAX {
            *value = serde_json::from_slice(bytes).ok()?;
            return Some(());
        }
        let mut parser = serde_json::Deserializer::from_slice(bytes);
        let sparse = Sparse { keys, value };
        sparse.deserialize(&mut parser).ok()?;
        parser.end().ok()
    }
}

/// Builds a value as `serde_json` does, of some of the parts.
struct Sparse<'a> {
    keys: &'a [&'a str],
    value: &'a mut Value,
}

impl<'a> Sparse<'a> {
    /// The list that the value becomes, with what is in it.
    fn list(&mut self) -> Option<&mut Vec<Value>> {
        if !self.value.is_array() {
            *self.value = Value::Array(Vec::new());
        }
        self.value.as_array_mut()
    }

    /// The object that the value becomes, with what is in it.
    fn object(&mut self) -> Option<&mut Map<String, Value>> {
        if !self.value.is_object() {
            *self.value = Value::Object(Map::new());
        }
        self.value.as_object_mut()
    }
}

impl<'de> DeserializeSeed<'de> for Sparse<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Sparse<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        *self.value = Value::Null;
        Ok(())
    }

    fn visit_bool<E>(self, value: bool) -> Result<(), E> {
        *self.value = Value::Bool(value);
        Ok(())
    }

    fn visit_i64<E>(self, value: i64) -> Result<(), E> {
        *self.value = value.into();
        Ok(())
    }

    fn visit_u64<E>(self, value: u64) -> Result<(), E> {
        *self.value = value.into();
        Ok(())
    }

    fn visit_f64<E>(self, value: f64) -> Result<(), E> {
        *self.value = Number::from_f64(value).map_or(Value::Null, Value::Number);
        Ok(())
    }

    fn visit_str<E>(self, value: &str) -> Result<(), E> {
        if let Value::String(text) = self.value {
            text.clear();
            text.push_str(value);
        } else {
            *self.value = Value::String(value.to_owned());
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut parts: A) -> Result<(), A::Error> {
        let keys = self.keys;
        let Some(values) = self.list() else {
            return Ok(());
        };
        let mut before = std::mem::take(values).into_iter();
        loop {
            let mut value = before.next().unwrap_or_default();
            let sparse = Sparse {
                keys,
                value: &mut value,
            };
            if parts.next_element_seed(sparse)?.is_none() {
                return Ok(());
            }
            values.push(value);
        }
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut parts: A) -> Result<(), A::Error> {
        let keys = self.keys;
        let Some(values) = self.object() else {
            return Ok(());
        };
        let mut seen = 0_u64;
        while let Some(key) = parts.next_key_seed(Key(keys))? {
            let Some((place, key)) = key else {
                parts.next_value::<IgnoredAny>()?;
                continue;
            };
            seen |= 1 << place;
            if let Some(value) = values.get_mut(key) {
                parts.next_value_seed(Sparse { keys, value })?;
            } else {
                let mut value = Value::Null;
                let sparse = Sparse {
                    keys,
                    value: &mut value,
                };
                parts.next_value_seed(sparse)?;
                values.insert(key.to_owned(), value);
            }
        }
        if values.len() != seen.count_ones() as usize {
            let is_seen = |key: &String| keys.iter().position(|kept| kept == key);
            values.retain(|key, _| is_seen(key).is_some_and(|place| seen & (1 << place) != 0));
        }
        Ok(())
    }
}

/// A key of an object, with its place; `None` if what it has is not kept.
struct Key<'a>(&'a [&'a str]);

impl<'de, 'a> DeserializeSeed<'de> for Key<'a> {
    type Value = Option<(usize, &'a str)>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'a> Visitor<'_> for Key<'a> {
    type Value = Option<(usize, &'a str)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E>(self, key: &str) -> Result<Self::Value, E> {
        // Most names differ in their first byte, and are not compared as a whole.
        let first = key.as_bytes().first();
        let is_it = |kept: &&str| kept.as_bytes().first() == first && *kept == key;
        let mut kept = self.0.iter().copied().enumerate();
        Ok(kept.find(|(_, kept)| is_it(kept)))
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
            value_of(text.as_bytes(), keys),
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
            assert_eq!(value_of(bad.as_bytes(), keys), None, "{bad}");
        }
        assert_eq!(value_of(b"{\"a\":\"\xff\"}", keys), None);
    }

    fn value_of(bytes: &[u8], keys: &[&str]) -> Option<Value> {
        let mut value = Value::Null;
        line(bytes).sparse_value_into(keys, &mut value)?;
        Some(value)
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
            prop_assert_eq!(value_of(text.as_bytes(), &[]), expected);
        }

        #[test]
        fn nothing_of_the_value_before_is_left(before in json_texts(), text in json_texts()) {
            let keys = &["a", "b", ""];
            let mut value = Value::Null;
            line(before.as_bytes()).sparse_value_into(keys, &mut value);
            let is_sound = line(text.as_bytes()).sparse_value_into(keys, &mut value);
            prop_assert_eq!(is_sound.map(|()| value), value_of(text.as_bytes(), keys));
        }
    }
}
