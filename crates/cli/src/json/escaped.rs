//! JSON in which nothing steers a terminal.
//!
//! JSON itself wants escapes for the controls below a space only. DEL, the controls
//! of C1, characters of direction and others that nobody sees get them here too: that
//! decodes to the same text, and a terminal shows it instead of obeying it.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::{CompactFormatter, Formatter, PrettyFormatter};
use serde_json::{Result, Serializer};

use crate::text::is_steering;

/// Writes a value on one line.
///
/// # Errors
///
/// That of the writer or of the value.
pub(crate) fn write(out: impl Write, value: &(impl Serialize + ?Sized)) -> Result<()> {
    value.serialize(&mut Serializer::with_formatter(
        out,
        Escaping(CompactFormatter),
    ))
}

/// Writes a value over several lines, indented by two blanks.
///
/// # Errors
///
/// That of the writer or of the value.
pub(crate) fn write_pretty(out: impl Write, value: &(impl Serialize + ?Sized)) -> Result<()> {
    let formatter = Escaping(PrettyFormatter::new());
    value.serialize(&mut Serializer::with_formatter(out, formatter))
}

/// The text that [`write_pretty`] writes.
///
/// # Errors
///
/// That of the value.
pub(crate) fn pretty(value: &(impl Serialize + ?Sized)) -> Result<String> {
    let mut text = Vec::new();
    write_pretty(&mut text, value)?;
    String::from_utf8(text).map_err(serde::ser::Error::custom)
}

/// Another formatter, and escapes for what would steer a terminal.
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
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::{pretty, write};
    use crate::text::is_steering;

    fn compact(value: &Value) -> String {
        let mut text = Vec::new();
        write(&mut text, value).unwrap();
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

    proptest! {
        #[test]
        fn it_decodes_to_what_it_was_and_steers_nothing(
            texts in prop::collection::vec(any::<String>(), 0..4),
            odd in "[a\u{7f}-\u{9f}\u{61c}\u{200b}-\u{200f}\u{2028}-\u{202e}\u{2066}-\u{2069}\u{e0000}-\u{e0fff}]{0,9}",
        ) {
            let value = json!({ "texts": texts, odd.as_str(): [odd, { "n": 1.5 }, [], null] });
            for text in [compact(&value), pretty(&value).unwrap()] {
                prop_assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value.clone());
                let steers = |c: char| is_steering(c) && c != '\n';
                prop_assert!(!text.contains(steers), "{:?}", text);
            }
        }
    }
}
