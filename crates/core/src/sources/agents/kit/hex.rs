//! Hexadecimal digits in the names of files and folders.

/// Bytes in lower-case hexadecimal digits.
pub(crate) fn hex(bytes: impl IntoIterator<Item = u8>) -> String {
    let halves = bytes.into_iter().flat_map(|byte| [byte >> 4, byte & 0xF]);
    let digits = halves.filter_map(|half| char::from_digit(u32::from(half), 16));
    digits.collect()
}

/// Whether a text is so many lower-case hexadecimal digits.
pub(crate) fn is_hex(text: &str, digits: usize) -> bool {
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    text.len() == digits && text.bytes().all(is_digit)
}

#[cfg(test)]
mod tests {
    use super::{hex, is_hex};

    #[test]
    fn bytes_are_two_lower_case_digits_each() {
        assert_eq!(hex([0x00, 0x0F, 0xA0, 0xFF]), "000fa0ff");
        assert!(is_hex("000fa0ff", 8));
        for other in ["000fa0f", "000fa0ff0", "000FA0FF", "000fa0fg"] {
            assert!(!is_hex(other, 8), "{other}");
        }
    }
}
