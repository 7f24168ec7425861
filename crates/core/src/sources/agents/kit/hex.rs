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
