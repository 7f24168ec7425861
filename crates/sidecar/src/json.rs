//! From bytes to one JSON object, or the reason why they are none.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{
    Deserialize, DeserializeOwned, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor,
};
use serde_json::Value;

use crate::surrogate::without_lone_surrogates;

/// Why bytes are no JSON object. What is wrong *in* an object is a
/// [`FieldError`](crate::FieldError).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JsonError {
    /// There is nothing: the file was created and not written, or the disk was full.
    #[error("it is empty")]
    Empty,
    /// It begins with a byte order mark, which JSON must not have (RFC 8259, section 8.1).
    #[error("it begins with a byte order mark")]
    ByteOrderMark,
    /// It has a NUL byte: what a crash of the machine leaves of unwritten blocks.
    #[error("it has a NUL byte at offset {offset}")]
    NulByte {
        /// Where, in bytes from the beginning.
        offset: usize,
    },
    /// It is no UTF-8.
    #[error("it is not valid UTF-8 at offset {offset}")]
    NotUtf8 {
        /// Where, in bytes from the beginning.
        offset: usize,
    },
    /// Its arrays and objects are nested deeper than the parser follows (128 levels).
    #[error("its JSON is nested too deep")]
    TooDeep,
    /// It is no JSON.
    #[error("it is not valid JSON: {reason}")]
    Invalid {
        /// The parser's error, with line and column.
        reason: String,
    },
    /// It is JSON, but no object.
    #[error("it is not a JSON object but {found}")]
    NotAnObject {
        /// What it is.
        found: &'static str,
    },
}

/// An object: its fields, of each key the last, and the keys that it has more than once.
/// Where there are more than [`FEW_FIELDS`], they are in the order of their keys.
#[derive(Debug)]
pub(crate) struct ParsedObject<'a> {
    pub(crate) fields: Vec<(Cow<'a, str>, Field<'a>)>,
    pub(crate) lengths: Lengths,
    pub(crate) repeated: BTreeSet<String>,
}

/// How long the keys of an object are: one of another length need not be looked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lengths(u64);

impl Lengths {
    fn of<'k>(keys: impl Iterator<Item = &'k str>) -> Self {
        Self(keys.fold(0, |lengths, key| lengths | Self::of_one(key)))
    }

    /// Keys of 63 bytes and more share one bit.
    fn of_one(key: &str) -> u64 {
        1 << key.len().min(63)
    }

    pub(crate) fn may_have(self, key: &str) -> bool {
        self.0 & Self::of_one(key) != 0
    }
}

/// The value of a field.
#[derive(Debug, Clone)]
pub(crate) enum Field<'a> {
    /// A string, as it stands in the text where it has no escapes.
    Text(Cow<'a, str>),
    /// Anything else.
    Other(Value),
}

/// Parses bytes that must be one JSON object and nothing else but space.
pub(crate) fn parse_object(bytes: &[u8]) -> Result<ParsedObject<'_>, JsonError> {
    let text = checked_text(bytes)?;
    let sound = top_value(serde_json::Deserializer::from_str(text));
    let parsed = sound.or_else(|error| match without_lone_surrogates(bytes) {
        // From a reader, so that nothing is borrowed from the repaired copy.
        Some(repaired) => top_value(serde_json::Deserializer::from_reader(repaired.as_slice())),
        None => Err(error),
    });
    let parsed = parsed.map_err(json_error)?;
    parsed.map_err(|found| JsonError::NotAnObject { found })
}

fn top_value<'de, R: serde_json::de::Read<'de>>(
    mut deserializer: serde_json::Deserializer<R>,
) -> serde_json::Result<TopValue<'de>> {
    let parsed = Top.deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(parsed)
}

/// Parses bytes that are one JSON document. Half a surrogate pair in an escape, as JavaScript
/// writes it when it cuts a string, is read as U+FFFD.
///
/// # Errors
///
/// Why they are none.
pub fn parse_json<T: DeserializeOwned>(bytes: &[u8]) -> serde_json::Result<T> {
    serde_json::from_slice(bytes).or_else(|error| match without_lone_surrogates(bytes) {
        Some(repaired) => serde_json::from_slice(&repaired),
        None => Err(error),
    })
}

fn checked_text(bytes: &[u8]) -> Result<&str, JsonError> {
    if bytes.trim_ascii().is_empty() {
        return Err(JsonError::Empty);
    }
    if bytes.starts_with(b"\xEF\xBB\xBF") {
        return Err(JsonError::ByteOrderMark);
    }
    // `contains` looks at many bytes at a time.
    if bytes.contains(&0) {
        let offset = bytes.iter().position(|byte| *byte == 0).unwrap_or(0);
        return Err(JsonError::NulByte { offset });
    }
    std::str::from_utf8(bytes).map_err(|error| JsonError::NotUtf8 {
        offset: error.valid_up_to(),
    })
}

/// Names the type of a value.
pub(crate) const fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a bool",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

fn json_error(error: serde_json::Error) -> JsonError {
    let reason = error.to_string();
    // The parser has no code for this one, only its text; a test holds it.
    if reason.starts_with("recursion limit exceeded") {
        JsonError::TooDeep
    } else {
        JsonError::Invalid { reason }
    }
}

/// How many fields there is room for at first.
const FIELDS_USUAL: usize = 16;

/// How many fields are few: these are found faster one by one, and need no order.
pub(crate) const FEW_FIELDS: usize = 32;

/// Returns whether a key is there twice; of few fields.
fn has_repeated(fields: &[(Cow<'_, str>, Field<'_>)]) -> bool {
    let mut rest = fields;
    while let [(key, _), others @ ..] = rest {
        if others.iter().any(|(other, _)| other == key) {
            return true;
        }
        rest = others;
    }
    false
}

/// A key, as it stands in the text where it has no escapes.
struct Key<'de>(Cow<'de, str>);

impl<'de> Deserialize<'de> for Key<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct KeyVisitor;

        impl<'de> Visitor<'de> for KeyVisitor {
            type Value = Key<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a key")
            }

            fn visit_borrowed_str<E>(self, key: &'de str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Borrowed(key)))
            }

            fn visit_str<E>(self, key: &str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Owned(key.to_owned())))
            }
        }

        deserializer.deserialize_str(KeyVisitor)
    }
}

impl<'de> Deserialize<'de> for Field<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct FieldVisitor;

        impl<'de> Visitor<'de> for FieldVisitor {
            type Value = Field<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON value")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Field<'de>, E> {
                Ok(Field::Text(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Field<'de>, E> {
                Ok(Field::Text(Cow::Owned(text.to_owned())))
            }

            fn visit_bool<E>(self, value: bool) -> Result<Field<'de>, E> {
                Ok(Field::Other(value.into()))
            }

            fn visit_i64<E>(self, value: i64) -> Result<Field<'de>, E> {
                Ok(Field::Other(value.into()))
            }

            fn visit_u64<E>(self, value: u64) -> Result<Field<'de>, E> {
                Ok(Field::Other(value.into()))
            }

            fn visit_f64<E>(self, value: f64) -> Result<Field<'de>, E> {
                Ok(Field::Other(value.into()))
            }

            fn visit_unit<E>(self) -> Result<Field<'de>, E> {
                Ok(Field::Other(Value::Null))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, sequence: A) -> Result<Field<'de>, A::Error> {
                Value::deserialize(SeqAccessDeserializer::new(sequence)).map(Field::Other)
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Field<'de>, A::Error> {
                Value::deserialize(MapAccessDeserializer::new(map)).map(Field::Other)
            }
        }

        deserializer.deserialize_any(FieldVisitor)
    }
}

/// Reads the outermost value: the fields of an object, or else what it is.
///
/// A [`Value`] alone would not do, since it silently keeps the last of repeated
/// keys.
struct Top;

type TopValue<'de> = Result<ParsedObject<'de>, &'static str>;

impl<'de> DeserializeSeed<'de> for Top {
    type Value = TopValue<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<TopValue<'de>, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Top {
    type Value = TopValue<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<TopValue<'de>, A::Error> {
        let mut fields: Vec<(Cow<'de, str>, Field<'de>)> = Vec::with_capacity(FIELDS_USUAL);
        while let Some((Key(key), value)) = map.next_entry::<Key<'de>, Field<'de>>()? {
            fields.push((key, value));
        }
        let mut repeated = BTreeSet::new();
        if fields.len() > FEW_FIELDS || has_repeated(&fields) {
            // Stable: of one key the last one stays the last.
            fields.sort_by(|(one, _), (other, _)| one.cmp(other));
            fields.dedup_by(|next, kept| {
                let is_same = next.0 == kept.0;
                if is_same {
                    repeated.insert(kept.0.clone().into_owned());
                    std::mem::swap(&mut kept.1, &mut next.1);
                }
                is_same
            });
        }
        Ok(Ok(ParsedObject {
            lengths: Lengths::of(fields.iter().map(|(key, _)| &**key)),
            fields,
            repeated,
        }))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<TopValue<'de>, A::Error> {
        while sequence.next_element::<Value>()?.is_some() {}
        Ok(Err("an array"))
    }

    fn visit_bool<E>(self, _: bool) -> Result<TopValue<'de>, E> {
        Ok(Err("a bool"))
    }

    fn visit_i64<E>(self, _: i64) -> Result<TopValue<'de>, E> {
        Ok(Err("a number"))
    }

    fn visit_u64<E>(self, _: u64) -> Result<TopValue<'de>, E> {
        Ok(Err("a number"))
    }

    fn visit_f64<E>(self, _: f64) -> Result<TopValue<'de>, E> {
        Ok(Err("a number"))
    }

    fn visit_str<E>(self, _: &str) -> Result<TopValue<'de>, E> {
        Ok(Err("a string"))
    }

    fn visit_unit<E>(self) -> Result<TopValue<'de>, E> {
        Ok(Err("null"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Field, JsonError, parse_json, parse_object};

    #[track_caller]
    fn check_error(bytes: &[u8], expected: &JsonError) {
        assert_eq!(parse_object(bytes).map(|_| ()).as_ref(), Err(expected));
    }

    #[test]
    fn what_is_no_object_is_named() {
        let cases = [
            ("[{}]", "an array"),
            ("null", "null"),
            ("true", "a bool"),
            ("12", "a number"),
            ("-12", "a number"),
            ("1.5", "a number"),
            ("\"{}\"", "a string"),
        ];
        for (text, found) in cases {
            check_error(text.as_bytes(), &JsonError::NotAnObject { found });
        }
    }

    #[test]
    fn what_crashes_and_full_disks_leave_is_named() {
        check_error(b"", &JsonError::Empty);
        check_error(b" \n", &JsonError::Empty);
        check_error(b"\0\0\0", &JsonError::NulByte { offset: 0 });
        check_error(b"{\"a\":1}\0", &JsonError::NulByte { offset: 7 });
        let torn = parse_object(b"{\"pid\": 12").map(|_| ()).unwrap_err();
        assert_eq!(
            torn.to_string(),
            "it is not valid JSON: EOF while parsing an object at line 1 column 10"
        );
    }

    #[test]
    fn foreign_encodings_are_named() {
        check_error(b"\xEF\xBB\xBF{}", &JsonError::ByteOrderMark);
        check_error(b"{\"a\":\"\xff\"}", &JsonError::NotUtf8 { offset: 6 });
        check_error(b"{\0}\0", &JsonError::NulByte { offset: 1 });
    }

    #[test]
    fn half_an_emoji_is_one_character_that_is_lost() {
        let text = br#"{"pid":7,"name":"fix \ud83d","more":[{"\ude00":1}]}"#;
        let parsed = parse_object(text).unwrap();
        let (key, Field::Text(name)) = &parsed.fields[1] else {
            panic!("no text")
        };
        assert_eq!((&**key, &**name), ("name", "fix \u{fffd}"));
        let expected = json!({"pid": 7, "name": "fix \u{fffd}", "more": [{"\u{fffd}": 1}]});
        assert_eq!(parse_json::<Value>(text).unwrap(), expected);
        // What else is wrong stays wrong, at its place.
        for torn in [r#"{"a":"\ud83d""#, r#"{"a":"\ud83d"}{}"#] {
            let error = parse_object(torn.as_bytes()).map(|_| ()).unwrap_err();
            let sound = torn.replace("ud83d", "u00e9");
            check_error(sound.as_bytes(), &error);
        }
    }

    #[test]
    fn deep_nesting_is_an_error_of_its_own() {
        for open in ["[", "{\"a\":"] {
            let deep = format!("{{\"a\":{}", open.repeat(60_000));
            check_error(deep.as_bytes(), &JsonError::TooDeep);
        }
        check_error("[".repeat(60_000).as_bytes(), &JsonError::TooDeep);
    }

    #[test]
    fn text_after_the_object_is_an_error() {
        for text in ["{}{}", "{} x", "{},"] {
            let error = parse_object(text.as_bytes()).map(|_| ()).unwrap_err();
            assert!(matches!(error, JsonError::Invalid { .. }), "{error}");
        }
        assert!(parse_object(b" {} \r\n").is_ok());
    }

    #[test]
    fn repeated_keys_are_remembered() {
        let parsed = parse_object(br#"{"a":1,"b":2,"a":3,"\u0061":4}"#).unwrap();
        assert_eq!(parsed.repeated.into_iter().collect::<Vec<_>>(), ["a"]);
        let fields: Vec<(&str, i64)> = parsed
            .fields
            .iter()
            .map(|(key, value)| match value {
                Field::Other(value) => (&**key, value.as_i64().unwrap()),
                Field::Text(text) => panic!("{text}"),
            })
            .collect();
        assert_eq!(fields, [("a", 4), ("b", 2)]);
    }
}
