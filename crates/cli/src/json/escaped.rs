//! JSON that can't steer a terminal.
//!
//! JSON itself requires escapes only for the controls below a space. DEL, the C1
//! controls, bidirectional controls and other invisible characters are escaped here too:
//! the text decodes to the same, and a terminal shows it instead of obeying it.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::{CompactFormatter, Formatter, PrettyFormatter};
use serde_json::{Result, Serializer};

use crate::text::is_steering;

/// Writes a value on one line.
///
/// # Errors
///
/// The error of the writer or of the value.
pub(crate) fn write(out: impl Write, value: &(impl Serialize + ?Sized)) -> Result<()> {
    value.serialize(&mut Serializer::with_formatter(
        out,
        Escaping(CompactFormatter),
    ))
}

/// Writes a value over several lines, indented by two spaces.
///
/// # Errors
///
/// The error of the writer or of the value.
pub(crate) fn write_pretty(out: impl Write, value: &(impl Serialize + ?Sized)) -> Result<()> {
    let formatter = Escaping(PrettyFormatter::new());
    value.serialize(&mut Serializer::with_formatter(out, formatter))
}

/// Another formatter, with escapes for what would steer a terminal.
struct Escaping<F>(F);

macro_rules! as_the_other_does {
    ($($name:ident($($flag:ident)?)),* $(,)?) => {
        $(fn $name<W: ?Sized + Write>(
            &mut self,
            out: &mut W,
            $($flag: bool)?
        ) -> io::Result<()> {
            self.0.$name(out, $($flag)?)
        })*
    };
}

impl<F: Formatter> Formatter for Escaping<F> {
    as_the_other_does! {
        begin_array(),
        end_array(),
        begin_array_value(is_first),
        end_array_value(),
        begin_object(),
        end_object(),
        begin_object_key(is_first),
        end_object_key(),
        begin_object_value(),
        end_object_value(),
    }

    fn write_string_fragment<W: ?Sized + Write>(
        &mut self,
        out: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        let mut rest = fragment;
        while let Some((at, found)) = rest.char_indices().find(|(_, c)| is_steering(*c)) {
            let (before, after) = rest.split_at(at);
            out.write_all(before.as_bytes())?;
            for unit in found.encode_utf16(&mut [0; 2]) {
                write!(out, "\\u{unit:04x}")?;
            }
            rest = after.get(found.len_utf8()..).unwrap_or_default();
        }
        out.write_all(rest.as_bytes())
    }

    /// Formats JSON from [`to_raw_value`](serde_json::value::to_raw_value) like the document
    /// around it.
    fn write_raw_fragment<W: ?Sized + Write>(
        &mut self,
        out: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        let mut text = Vec::with_capacity(fragment.len().saturating_mul(2));
        let mut rest = fragment;
        while !rest.is_empty() {
            let (token, after) = rest.split_at(token_bytes(rest.as_bytes()));
            self.write_token(&mut text, token, after)?;
            rest = after;
        }
        out.write_all(&text)
    }
}

impl<F: Formatter> Escaping<F> {
    /// Writes one token of compact JSON; `after` is what follows it. Objects and arrays are
    /// formatted alike.
    fn write_token(&mut self, out: &mut Vec<u8>, token: &str, after: &str) -> io::Result<()> {
        match token {
            "{" => self.begin_object(out)?,
            "[" => self.begin_array(out)?,
            "}" => self.end_object(out)?,
            "]" => self.end_array(out)?,
            ":" => return self.begin_object_value(out),
            "," => return self.begin_array_value(out, false),
            text => self.write_string_fragment(out, text)?,
        }
        match (token, after.as_bytes().first()) {
            ("{" | "[", Some(b'}' | b']')) => Ok(()),
            ("{" | "[", _) => self.begin_array_value(out, true),
            (_, Some(b',' | b'}' | b']')) => self.end_array_value(out),
            _ => Ok(()),
        }
    }
}

/// The length of the first token of compact JSON, in bytes.
fn token_bytes(json: &[u8]) -> usize {
    let is_structure = |byte: &u8| b"{}[]:,".contains(byte);
    let mut is_escaped = false;
    let ends_text = |byte: &u8| {
        let ends = *byte == b'"' && !is_escaped;
        is_escaped = *byte == b'\\' && !is_escaped;
        ends
    };
    let end = match json {
        [b'"', text @ ..] => text.iter().position(ends_text).map(|end| end + 2),
        [first, ..] if is_structure(first) => Some(1),
        number_or_word => number_or_word.iter().position(is_structure),
    };
    end.unwrap_or(json.len())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde::Serialize;
    use serde_json::value::to_raw_value;
    use serde_json::{Value, json};

    use super::{write, write_pretty};
    use crate::text::is_steering;

    fn compact(value: &impl Serialize) -> String {
        let mut text = Vec::new();
        write(&mut text, value).unwrap();
        String::from_utf8(text).unwrap()
    }

    fn pretty(value: &impl Serialize) -> String {
        let mut text = Vec::new();
        write_pretty(&mut text, value).unwrap();
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn del_c1_and_bidi_are_escaped() {
        let value = json!({ "a\u{9b}": "\u{7f}b\u{85}c\u{202e}d\u{2066}e\u{feff}f\u{e0041}é会🦀" });
        assert_eq!(
            compact(&value),
            r#"{"a\u009b":"\u007fb\u0085c\u202ed\u2066e\ufefff\udb40\udc41é会🦀"}"#
        );
    }

    #[track_caller]
    fn check_raw(value: &Value) {
        let raw = to_raw_value(value).unwrap();
        assert_eq!(compact(&[&raw]), compact(&[value]));
        assert_eq!(pretty(&[&raw]), pretty(&[value]));
    }

    #[test]
    fn raw_json_in_a_document_is_laid_out_and_escaped_like_the_rest() {
        check_raw(&json!({
            "empty": [{}, []],
            "texts": ["a\nb", "\"{", "\\", "\u{7f}é\u{2028}", null, true, 1.5, -7, u64::MAX],
            "odd \" key, [": "",
            "deep": [[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]], { "last": [] }]
        }));
        let every = (0..=0x7f_u8).map(|byte| json!(char::from(byte).to_string()));
        check_raw(&every.collect());
    }

    proptest! {
        #[test]
        fn it_decodes_to_what_it_was_and_steers_nothing(
            texts in prop::collection::vec(any::<String>(), 0..4),
            odd in "[a\u{7f}-\u{9f}\u{61c}\u{200b}-\u{200f}\u{2028}-\u{202e}\u{2066}-\u{2069}\u{e0000}-\u{e0fff}]{0,9}",
        ) {
            let value = json!({ "texts": texts, odd.as_str(): [odd, { "n": 1.5 }, [], null] });
            check_raw(&value);
            for text in [compact(&value), pretty(&value)] {
                prop_assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value.clone());
                let steers = |c: char| is_steering(c) && c != '\n';
                prop_assert!(!text.contains(steers), "{:?}", text);
            }
        }
    }
}
