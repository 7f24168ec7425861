//! JSON over several lines that begins at any depth of a document.

use serde::ser::{Error as _, Impossible, Serialize, SerializeMap, SerializeSeq, SerializeStruct};
use serde_json::{Error, Result};

use super::escaped;

/// Writes values as [`escaped::write_pretty`] does, as they stand so deep in a
/// document: with two blanks more for every level above them.
///
/// Faster than that, for there may be a hundred thousand sessions: a text without
/// escapes, which nearly all are, is copied as a whole, and how a field begins is put
/// together once. What is not plain is left to [`escaped::write`].
#[derive(Debug)]
pub(crate) struct Indenter {
    depth: usize,
    fields: Fields,
}

impl Indenter {
    /// For values so deep in a document.
    pub(crate) const fn at(depth: usize) -> Self {
        Self {
            depth,
            fields: Fields {
                known: Vec::new(),
                next: 0,
            },
        }
    }

    /// Writes one value.
    ///
    /// # Errors
    ///
    /// A value with enums that have fields, tuples, bytes, or maps whose keys are no
    /// text: a session has none of these.
    pub(crate) fn write(&mut self, out: &mut Vec<u8>, value: &impl Serialize) -> Result<()> {
        value.serialize(Indented {
            out,
            fields: &mut self.fields,
            depth: self.depth,
        })
    }
}

/// How fields begin that were written before.
#[derive(Debug)]
struct Fields {
    known: Vec<Field>,
    /// The one that comes next, if this value has the fields of the one before.
    next: usize,
}

#[derive(Debug)]
struct Field {
    key: &'static str,
    depth: usize,
    /// All that stands before its value, where it is not the first field.
    begin: Vec<u8>,
}

impl Fields {
    /// Writes all that stands before the value of a field.
    #[inline]
    fn begin(&mut self, out: &mut Vec<u8>, key: &'static str, depth: usize, is_first: bool) {
        let next = self.known.get(self.next);
        if !next.is_some_and(|field| field.is(key, depth)) {
            self.next = self.place_of(key, depth);
        }
        if let Some(field) = self.known.get(self.next) {
            // The first has no comma before it.
            let begin = field.begin.get(usize::from(is_first)..);
            out.extend_from_slice(begin.unwrap_or_default());
        }
        self.next = self.next.saturating_add(1);
    }

    #[cold]
    fn place_of(&mut self, key: &'static str, depth: usize) -> usize {
        let mut known = self.known.iter();
        if let Some(place) = known.position(|field| field.is(key, depth)) {
            return place;
        }
        // The name of a field of ours.
        debug_assert!(is_plain(key.as_bytes()), "{key}");
        let mut begin = vec![b','];
        break_line(&mut begin, depth);
        write_plain(&mut begin, key);
        begin.extend_from_slice(b": ");
        self.known.push(Field { key, depth, begin });
        self.known.len().saturating_sub(1)
    }
}

impl Field {
    fn is(&self, key: &'static str, depth: usize) -> bool {
        // The name of a field stands in the program once.
        std::ptr::eq(self.key, key) && self.depth == depth
    }
}

/// Writes one value.
struct Indented<'a> {
    out: &'a mut Vec<u8>,
    fields: &'a mut Fields,
    depth: usize,
}

/// Writes what is in an array or an object.
struct Within<'a> {
    out: &'a mut Vec<u8>,
    fields: &'a mut Fields,
    depth: usize,
    is_empty: bool,
    close: u8,
}

impl<'a> Indented<'a> {
    fn begin(self, open: u8, close: u8) -> Within<'a> {
        self.out.push(open);
        Within {
            out: self.out,
            fields: self.fields,
            depth: self.depth.saturating_add(1),
            is_empty: true,
            close,
        }
    }

    fn delegate(self, value: &(impl Serialize + ?Sized)) -> Result<()> {
        escaped::write(self.out, value)
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
            fields: &mut *self.fields,
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
        return escaped::write(out, text);
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

/// Tells whether a text has nothing that is escaped: text beyond ASCII is looked at more
/// closely elsewhere. As many bytes are looked at as the
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
    let escapes = |found, byte: &u8| {
        found | (*byte < b' ') | (*byte >= 0x7f) | (*byte == b'"') | (*byte == b'\\')
    };
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
        self.fields.begin(self.out, key, self.depth, self.is_empty);
        self.is_empty = false;
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

    use super::{Indenter, escaped};

    #[track_caller]
    fn check(value: &Value) {
        let document = escaped::pretty(&json!({ "rows": [value] })).unwrap();
        let mut written = Vec::new();
        Indenter::at(2).write(&mut written, value).unwrap();
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
        fn whatever_the_value_is_it_is_written_as_in_a_document(value in any_value()) {
            check(&value);
        }
    }

    #[derive(serde::Serialize)]
    struct Row {
        #[serde(skip_serializing_if = "Option::is_none")]
        first: Option<u8>,
        again: Option<Box<Row>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        last: Option<&'static str>,
    }

    #[test]
    fn fields_are_told_apart_however_deep_and_whichever_are_there() {
        let row = |first, again, last| Row { first, again, last };
        let deep = |first, inner, last| row(first, Some(Box::new(inner)), last);
        let rows = [
            row(None, None, None),
            deep(Some(1), row(None, None, Some("in")), Some("out")),
            deep(None, deep(Some(2), row(Some(3), None, None), None), None),
            row(Some(4), None, Some("end")),
        ];
        let mut indenter = Indenter::at(1);
        for row in rows.iter().chain(rows.iter().rev()) {
            let mut written = b"[\n  ".to_vec();
            indenter.write(&mut written, row).unwrap();
            written.extend_from_slice(b"\n]");
            let written = String::from_utf8(written).unwrap();
            assert_eq!(escaped::pretty(&[row]).unwrap(), written);
        }
    }

    #[test]
    fn a_key_that_is_no_text_is_an_error() {
        let error = Indenter::at(0).write(&mut Vec::new(), &BTreeMap::from([(1, 2)]));
        let error = error.unwrap_err();
        assert_eq!(error.to_string(), "a session has no keys that are no text");
    }
}
