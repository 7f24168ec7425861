//! Half surrogate pairs in JSON escapes.

/// Replaces escapes of lone surrogates by the escape of U+FFFD; `None` if there are none. Nothing
/// changes its place, so that the offsets in errors stay right.
///
/// JavaScript cuts strings between UTF-16 units, and its `JSON.stringify` writes half an emoji
/// as an escape such as `\ud83d`, which is not valid text in any Unicode encoding (ECMA-262,
/// `QuoteJSONString`). One such title would otherwise make the whole document unreadable.
#[must_use]
pub fn without_lone_surrogates(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut repaired: Option<Vec<u8>> = None;
    let mut at = 0;
    while at < bytes.len() {
        at += match (bytes[at], escaped_unit(bytes, at)) {
            (b'\\', Some(0xD800..=0xDBFF)) if is_low_surrogate(bytes, at + ESCAPE_LEN) => {
                2 * ESCAPE_LEN
            }
            (b'\\', Some(0xD800..=0xDFFF)) => {
                let repaired = repaired.get_or_insert_with(|| bytes.to_vec());
                repaired[at..at + ESCAPE_LEN].copy_from_slice(br"\ufffd");
                ESCAPE_LEN
            }
            // An escape of another kind: its second byte begins no escape.
            (b'\\', _) => 2,
            _ => 1,
        };
    }
    repaired
}

/// The length of `\uXXXX`.
const ESCAPE_LEN: usize = 6;

/// The UTF-16 unit that `\uXXXX` at this place stands for.
fn escaped_unit(bytes: &[u8], at: usize) -> Option<u16> {
    let digits = bytes
        .get(at..at + ESCAPE_LEN)?
        .strip_prefix(br"\u")
        .filter(|digits| digits.iter().all(u8::is_ascii_hexdigit))?;
    u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

fn is_low_surrogate(bytes: &[u8], at: usize) -> bool {
    matches!(escaped_unit(bytes, at), Some(0xDC00..=0xDFFF))
}

#[cfg(test)]
mod tests {
    use super::without_lone_surrogates;

    #[track_caller]
    fn check_repaired(text: &str, expected: Option<&str>) {
        let repaired = without_lone_surrogates(text.as_bytes());
        assert_eq!(repaired.as_deref(), expected.map(str::as_bytes));
    }

    #[test]
    fn halves_are_replaced_and_pairs_are_kept() {
        check_repaired(r#""\ud83d""#, Some(r#""\ufffd""#));
        check_repaired(r#""\uDE00x""#, Some(r#""\ufffdx""#));
        check_repaired(r#""\ud83d\ud83d\ude00""#, Some(r#""\ufffd\ud83d\ude00""#));
        check_repaired(r#""\ude00\ud83d""#, Some(r#""\ufffd\ufffd""#));
        check_repaired(r#""\ud83d\ude00""#, None);
        check_repaired(r#""\u00e9 a""#, None);
    }

    #[test]
    fn an_escaped_backslash_begins_no_escape() {
        check_repaired(r#""C:\\ud83d""#, None);
        check_repaired(r#""\\\ud83d""#, Some(r#""\\\ufffd""#));
    }

    #[test]
    fn cut_escapes_are_left_alone() {
        check_repaired(r#""\ud8"#, None);
        check_repaired(r#""\"#, None);
        check_repaired(r#""\ud83d\u"#, Some(r#""\ufffd\u"#));
        check_repaired(r#""\u+83d""#, None);
    }
}
