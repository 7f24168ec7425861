//! The short form of a session's id, which Crush prints and takes:
//! the beginning of the XXH3 hash of the id, in hexadecimal digits.
//!
//! Read in the sources of Crush, 2026-08: `crush -s` takes a whole id, or a prefix of such a
//! hash, never a prefix of an id.

/// How long a UUID is in its usual form, in bytes.
const UUID_BYTES: usize = 36;
/// The factors of the hash (`XXH_PRIME64_1` and the last step of XXH3; xxHash specification,
/// version 0.2.0).
const PRIME: u64 = 0x9e37_79b1_85eb_ca87;
const AVALANCHE: u64 = 0x1656_6791_9e37_79f9;
/// The first 64 bytes of the default secret of XXH3, as eight numbers.
const SECRET: [u64; 8] = [
    0xbe4b_a423_396c_feb8,
    0x1cad_21f7_2c81_017c,
    0xdb97_9083_e96d_d4de,
    0x1f67_b3b7_a4a4_4072,
    0x78e5_c0cc_4ee6_79cb,
    0x2172_ffcc_7dd0_5a82,
    0x8e24_43f7_7446_08b8,
    0x4c26_3a81_e690_35e0,
];

/// Returns whether `named`, an argument of a process, stands for the session `id`.
pub(super) fn is_meant(named: &str, id: &str) -> bool {
    let is_short = !named.is_empty() && named.bytes().all(|byte| byte.is_ascii_hexdigit());
    named == id || (is_short && hash(id).is_some_and(|hash| hash.starts_with(named)))
}

/// The XXH3 hash (64 bits, seed 0) of a UUID's text; `None` for any other
/// length, which takes other steps.
fn hash(id: &str) -> Option<String> {
    let bytes = id.as_bytes();
    if bytes.len() != UUID_BYTES {
        return None;
    }
    let word = |at: usize| -> Option<u64> {
        let bytes: [u8; 8] = bytes.get(at..at + 8)?.try_into().ok()?;
        Some(u64::from_le_bytes(bytes))
    };
    let mut sum = (UUID_BYTES as u64).wrapping_mul(PRIME);
    for (at, secret) in [(16, 4), (UUID_BYTES - 32, 6), (0, 0), (UUID_BYTES - 16, 2)] {
        let low = word(at)? ^ SECRET.get(secret)?;
        let high = word(at + 8)? ^ SECRET.get(secret + 1)?;
        let product = u128::from(low) * u128::from(high);
        #[expect(clippy::cast_possible_truncation, reason = "the two halves are mixed")]
        let folded = product as u64 ^ (product >> 64) as u64;
        sum = sum.wrapping_add(folded);
    }
    sum ^= sum >> 37;
    sum = sum.wrapping_mul(AVALANCHE);
    sum ^= sum >> 32;
    Some(format!("{sum:016x}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_those_of_the_reference_implementation() {
        let check = |id: &str, right: &str| assert_eq!(hash(id).as_deref(), Some(right));
        check("3f9ec43d-9381-4d61-8c0d-176b7c0df906", "0cfc91f902213e99");
        check("00000000-0000-4000-8000-000000000000", "885a0b8f3f68e2c7");
        check("a1b2c3d4-e5f6-4a7b-8c9d-0e1f2a3b4c5d", "9f430e094492f35e");
        assert_eq!(hash("short"), None);
    }

    #[test]
    fn a_session_is_meant_by_its_id_or_the_beginning_of_its_hash() {
        let id = "a1b2c3d4-e5f6-4a7b-8c9d-0e1f2a3b4c5d";
        for meant in [id, "9f430e0", "9f430e094492f35e"] {
            assert!(is_meant(meant, id), "{meant}");
        }
        for other in ["", "a1b2c3d4", "9f430e094492f35e0", "0cfc91f", "-"] {
            assert!(!is_meant(other, id), "{other}");
        }
    }
}
