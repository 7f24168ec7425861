//! Instants on the command line: how long ago, or a date.

use std::str::FromStr;
use std::time::Duration;

/// An instant: a date, or so long before now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Since {
    /// So many milliseconds ago.
    Ago(i64),
    /// In milliseconds since 1970.
    At(i64),
}

/// The units, and their length in seconds.
const UNITS: [(char, i64); 5] = [
    ('s', 1),
    ('m', 60),
    ('h', 3_600),
    ('d', 86_400),
    ('w', 604_800),
];

impl Since {
    /// The instant in milliseconds since 1970.
    pub(crate) const fn at_ms(self, now_ms: i64) -> i64 {
        match self {
            Self::Ago(ago_ms) => now_ms.saturating_sub(ago_ms),
            Self::At(at_ms) => at_ms,
        }
    }
}

impl FromStr for Since {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Some(ago_ms) = parse_ago_ms(text) {
            return Ok(Self::Ago(ago_ms));
        }
        let date: Result<jiff::Timestamp, _> = text.parse();
        date.map(|date| Self::At(date.as_millisecond()))
            .map_err(|_| {
                "expected a number with a unit (s, m, h, d, w) such as `90m`, or a date with its \
             time zone such as `2026-11-27T09:00:00Z`"
                    .to_owned()
            })
    }
}

/// A span of time: a number with a unit.
pub(crate) fn parse_span(text: &str) -> Option<Duration> {
    Some(Duration::from_millis(
        u64::try_from(parse_ago_ms(text)?).ok()?,
    ))
}

fn parse_ago_ms(text: &str) -> Option<i64> {
    let unit = text.chars().next_back()?;
    let (_, seconds) = UNITS.iter().find(|(name, _)| *name == unit)?;
    let number = text.strip_suffix(unit)?;
    if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let number: i64 = number.parse().ok()?;
    number.checked_mul(*seconds)?.checked_mul(1_000)
}

#[cfg(test)]
mod tests {
    use super::Since;

    #[test]
    fn a_number_with_a_unit_is_so_long_ago() {
        assert_eq!("90m".parse(), Ok(Since::Ago(5_400_000)));
        assert_eq!("2w".parse(), Ok(Since::Ago(1_209_600_000)));
        assert_eq!(Since::Ago(1_000).at_ms(5_000), 4_000);
    }

    #[test]
    fn a_date_is_that_instant() {
        let expected = Ok(Since::At(1_795_770_000_123));
        assert_eq!("2026-11-27T09:00:00.123Z".parse(), expected);
        assert_eq!("2026-11-27T10:00:00.123+01:00".parse(), expected);
    }

    #[test]
    fn anything_else_says_what_was_expected() {
        for text in [
            "",
            "m",
            "-1h",
            "1.5h",
            "yesterday",
            "2026-11-27",
            "99999999999999999d",
        ] {
            let error = text.parse::<Since>().unwrap_err();
            assert!(error.contains("`90m`"), "{text}: {error}");
        }
    }
}
