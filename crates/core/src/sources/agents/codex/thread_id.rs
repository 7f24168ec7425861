//! Thread ids: UUIDs. The newer versions contain the creation date.

use crate::sources::agents::kit::uuid::is_uuid;

/// When a thread was born, in milliseconds since 1970: the first 48 bits of a UUID of
/// version 7 (RFC 9562, section 5.7). Early releases use version 4, which has no date.
pub(super) fn born_at_ms(id: &str) -> Option<i64> {
    if !is_uuid(id) || id.as_bytes().get(14) != Some(&b'7') {
        return None;
    }
    let digits: String = id.chars().filter(|digit| *digit != '-').take(12).collect();
    i64::from_str_radix(&digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_of_version_7_tells_when_it_was_made() {
        let id = "01a21ec8-c5bb-78f0-959a-e72776985ddc";
        assert_eq!(born_at_ms(id), Some(1_795_812_804_027));
        assert_eq!(born_at_ms("5973b6c0-94b8-487b-a530-2aeb6098ae0e"), None);
        assert_eq!(born_at_ms("01a21ec8"), None);
        assert_eq!(born_at_ms(""), None);
    }

    #[test]
    fn only_uuids_are_uuids() {
        assert!(is_uuid("01a21ec8-c5bb-78f0-959a-e72776985ddc"));
        assert!(!is_uuid("01a21ec8-c5bb-78f0-959a-e72776985dd"));
        assert!(!is_uuid("01a21ec8xc5bb-78f0-959a-e72776985ddc"));
        assert!(!is_uuid("01a21ec8-c5bb-78f0-959a-e72776985dé"));
        assert!(!is_uuid(".coordination"));
    }
}
