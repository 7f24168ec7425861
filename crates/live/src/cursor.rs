//! A place in the history of changes.

use std::fmt;
use std::str::FromStr;

/// A place in the changes of one engine: `EPOCH-SEQUENCE`.
///
/// The epoch identifies one run of one engine, so that a place of another run is recognized.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cursor {
    /// The run.
    pub epoch: u64,
    /// The number of the change; 0 is before the first change.
    pub sequence: u64,
}

/// The text is no cursor.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot read `{0}` as a cursor: expected `EPOCH-SEQUENCE`")]
pub struct CursorError(String);

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}-{}", self.epoch, self.sequence)
    }
}

impl FromStr for Cursor {
    type Err = CursorError;

    fn from_str(text: &str) -> Result<Self, CursorError> {
        let read = || {
            let (epoch, sequence) = text.split_once('-')?;
            let is_plain = |part: &str| part.bytes().all(|byte| byte.is_ascii_alphanumeric());
            let cursor = Self {
                epoch: u64::from_str_radix(epoch, 16).ok()?,
                sequence: sequence.parse().ok()?,
            };
            (is_plain(epoch) && is_plain(sequence)).then_some(cursor)
        };
        read().ok_or_else(|| CursorError(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::Cursor;

    #[test]
    fn a_cursor_is_read_as_it_is_written_and_junk_is_refused() {
        let cursor = Cursor {
            epoch: 0x01a2_b3c4,
            sequence: 17,
        };
        assert_eq!(cursor.to_string(), "1a2b3c4-17");
        assert_eq!("1a2b3c4-17".parse(), Ok(cursor));
        for junk in [
            "",
            "-",
            "1-",
            "-1",
            "x-1",
            "1-+2",
            "+1-2",
            "1-2-3",
            "1-99999999999999999999",
        ] {
            assert!(junk.parse::<Cursor>().is_err(), "{junk}");
        }
    }
}
