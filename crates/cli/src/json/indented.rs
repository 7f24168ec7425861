//! JSON over several lines that begins at any depth of a document.

use serde::ser::{Error as _, Impossible, Serialize, SerializeMap, SerializeSeq, SerializeStruct};
use serde_json::{Error, Result};

/// Writes one value as `serde_json::to_string_pretty` does, as it stands so deep in a
/// document: with two blanks more for every level above it.
///
/// Faster than that, for there may be a hundred thousand sessions: a text without
/// escapes, which nearly all are, is copied as a whole. What is not plain is left to
/// `serde_json`.
///
/// # Errors
///
/// A value with enums that have fields, tuples, bytes, or maps whose keys are no text: a
/// session has none of these.
pub(crate) fn write_indented(
    out: &mut Vec<u8>,
    value: &impl Serialize,
    depth: usize,
) -> Result<()> {
    value.serialize(Indented { out, depth })
}

/// Writes one value.
struct Indented<'a> {
    out: &'a mut Vec<u8>,
    depth: usize,
}

/// Writes what is in an array or an object.
struct Within<'a> {
    out: &'a mut Vec<u8>,
    depth: usize,
    is_empty: bool,
    close: u8,
}

impl<'a> Indented<'a> {
    fn begin(self, open: u8, close: u8) -> Within<'a> {
        self.out.push(open);
        Within {
            out: self.out,
            depth: self.depth.saturating_add(1),
            is_empty: true,
            close,
        }
    }

    fn delegate(self, value: &(impl Serialize + ?Sized)) -> Result<()> {
        serde_json::to_writer(self.out, value)
    }
}

impl Within<'_> {
    fn next(&mut self) {
        if !self.is_empty {
            self.out.push(b',');
        }
        self.is_empty = false;
        break_line(self.out, self.depth);
    }

    fn value(&mut self, value: &(impl Serialize + ?Sized)) -> Result<()> {
        value.serialize(Indented {
            out: &mut *self.out,
            depth: self.depth,
        })
    }

    fn finish(self) {
        if !self.is_empty {
            break_line(self.out, self.depth.saturating_sub(1));
        }
        self.out.push(self.close);
    }
}

fn break_line(out: &mut Vec<u8>, depth: usize) {
    const LINE: &[u8; 17] = b"\n                ";
    let line_bytes = depth.saturating_mul(2).saturating_add(1);
    let end = out.len().saturating_add(line_bytes);
    // So many bytes at once are copied faster than the right number of them.
    out.extend_from_slice(LINE);
    out.resize(end, b' ');
}

fn write_text(out: &mut Vec<u8>, text: &str) -> Result<()> {
    if !is_plain(text.as_bytes()) {
        return serde_json::to_writer(out, text);
    }
    write_plain(out, text);
    Ok(())
}

fn write_plain(out: &mut Vec<u8>, text: &str) {
    out.reserve(text.len().saturating_add(2));
    out.push(b'"');
    out.extend_from_slice(text.as_bytes());
    out.push(b'"');
}

/// Tells whether a text has nothing that JSON escapes. As many bytes are looked at as the
/// processor can at once; at the end some of them a second time.
fn is_plain(bytes: &[u8]) -> bool {
    let (blocks, rest) = bytes.as_chunks::<16>();
    if let Some(last) = bytes.last_chunk::<16>() {
        return blocks.iter().all(|block| is_block_plain(block)) && is_block_plain(last);
    }
    match (bytes.first_chunk::<8>(), bytes.last_chunk::<8>()) {
        (Some(first), Some(last)) => is_block_plain(first) && is_block_plain(last),
        _ => is_block_plain(rest),
    }
}

fn is_block_plain(block: &[u8]) -> bool {
    let escapes = |found, byte: &u8| found | (*byte < b' ') | (*byte == b'"') | (*byte == b'\\');
    !block.iter().fold(false, escapes)
}

/// An error that names what a session does not have.
fn unexpected<T>(what: &str) -> Result<T> {
    Err(Error::custom(format_args!("a session has no {what}")))
}

macro_rules! delegate {
    ($($name:ident: $type:ty),* $(,)?) => {
        $(fn $name(self, value: $type) -> Result<()> {
            self.delegate(&value)
        })*
    };
}

impl<'a> serde::Serializer for Indented<'a> {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = Within<'a>;
    type SerializeTuple = Impossible<(), Error>;
    type SerializeTupleStruct = Impossible<(), Error>;
    type SerializeTupleVariant = Impossible<(), Error>;
    type SerializeMap = Within<'a>;
    type SerializeStruct = Within<'a>;
    type SerializeStructVariant = Impossible<(), Error>;

    delegate! {
        serialize_i8: i8,
        serialize_i16: i16,
        serialize_i32: i32,
        serialize_i64: i64,
        serialize_u8: u8,
        serialize_u16: u16,
        serialize_u32: u32,
        serialize_u64: u64,
        serialize_f32: f32,
        serialize_f64: f64,
        serialize_char: char,
    }

    fn serialize_bytes(self, _: &[u8]) -> Result<()> {
        unexpected("bytes")
    }

    fn serialize_bool(self, value: bool) -> Result<()> {
        let word: &[u8] = if value { b"true" } else { b"false" };
        self.out.extend_from_slice(word);
        Ok(())
    }

    fn serialize_str(self, value: &str) -> Result<()> {
        write_text(self.out, value)
    }

    fn serialize_none(self) -> Result<()> {
        self.serialize_unit()
    }

    fn serialize_some<T: ?Sized + Serialize>(self, value: &T) -> Result<()> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<()> {
        self.out.extend_from_slice(b"null");
        Ok(())
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<()> {
        self.serialize_unit()
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Result<()> {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: ?Sized + Serialize>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<()> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: ?Sized + Serialize>(
        self,
        name: &'static str,
        _: u32,
        _: &'static str,
        _: &T,
    ) -> Result<()> {
        unexpected(name)
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Within<'a>> {
        Ok(self.begin(b'[', b']'))
    }

    fn serialize_tuple(self, _: usize) -> Result<Self::SerializeTuple> {
        unexpected("tuples")
    }

    fn serialize_tuple_struct(
        self,
        name: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleStruct> {
        unexpected(name)
    }

    fn serialize_tuple_variant(
        self,
        name: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleVariant> {
        unexpected(name)
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Within<'a>> {
        Ok(self.begin(b'{', b'}'))
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Within<'a>> {
        Ok(self.begin(b'{', b'}'))
    }

    fn serialize_struct_variant(
        self,
        name: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeStructVariant> {
        unexpected(name)
    }
}

impl SerializeSeq for Within<'_> {
    type Ok = ();
    type Error = Error;

    fn serialize_element<T: ?Sized + Serialize>(&mut self, value: &T) -> Result<()> {
        self.next();
        self.value(value)
    }

    fn end(self) -> Result<()> {
        self.finish();
        Ok(())
    }
}

impl SerializeMap for Within<'_> {
    type Ok = ();
    type Error = Error;

    fn serialize_key<T: ?Sized + Serialize>(&mut self, key: &T) -> Result<()> {
        self.next();
        let begin = self.out.len();
        self.value(key)?;
        match self.out.get(begin) {
            Some(b'"') => Ok(()),
            _ => unexpected("keys that are no text"),
        }
    }

    fn serialize_value<T: ?Sized + Serialize>(&mut self, value: &T) -> Result<()> {
        self.out.extend_from_slice(b": ");
        self.value(value)
    }

    fn end(self) -> Result<()> {
        self.finish();
        Ok(())
    }
}

impl SerializeStruct for Within<'_> {
    type Ok = ();
    type Error = Error;

    fn serialize_field<T: ?Sized + Serialize>(
        &mut self,
        key: &'static str,
        value: &T,
    ) -> Result<()> {
        self.next();
        // The name of a field of ours.
        debug_assert!(is_plain(key.as_bytes()), "{key}");
        write_plain(self.out, key);
        self.out.extend_from_slice(b": ");
        self.value(value)
    }

    fn end(self) -> Result<()> {
        self.finish();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::write_indented;

    #[track_caller]
    fn check(value: &Value) {
        let document = serde_json::to_string_pretty(&json!({ "rows": [value] })).unwrap();
        let mut written = Vec::new();
        write_indented(&mut written, value, 2).unwrap();
        let written = String::from_utf8(written).unwrap();
        assert_eq!(
            document,
            format!("{{\n  \"rows\": [\n    {written}\n  ]\n}}")
        );
    }

    #[test]
    fn a_value_deep_in_a_document_is_written_as_there() {
        check(&json!({
            "empty": [{}, []],
            "texts": ["a\nb", "\"{", "\u{7f}é\u{2028}", null, true, 1.5, -7, u64::MAX],
            "odd \" key": "",
            "deep": [[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]
        }));
        let every = (0..=0x7f_u8).map(|byte| json!(char::from(byte).to_string()));
        check(&every.collect());
    }

    fn any_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
            "[ -~]{0,70}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 40, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::hash_map(any::<String>(), inner, 0..6)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn whatever_the_value_is_it_is_written_as_serde_json_does(value in any_value()) {
            check(&value);
        }
    }

    #[test]
    fn a_key_that_is_no_text_is_an_error() {
        let error = write_indented(&mut Vec::new(), &BTreeMap::from([(1, 2)]), 0).unwrap_err();
        assert_eq!(error.to_string(), "a session has no keys that are no text");
    }
}
