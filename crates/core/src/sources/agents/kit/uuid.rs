//! UUIDs, as which several agents name their sessions.

/// How long a UUID is in its usual form, in bytes.
pub(crate) const UUID_BYTES: usize = 36;

/// Returns whether a text is a UUID in the usual form.
pub(crate) fn is_uuid(text: &str) -> bool {
    text.len() == UUID_BYTES
        && text.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}
