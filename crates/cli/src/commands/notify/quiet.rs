//! Hours without notifications.

use std::str::FromStr;

use jiff::Timestamp;
use jiff::civil::Time;
use jiff::tz::TimeZone;

const EXPECTED: &str = "expected two times of day, such as `22:00-07:00`";

/// A span of each day in local time. It may include midnight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Quiet {
    from: Time,
    to: Time,
}

impl Quiet {
    /// Whether it holds at an instant, in milliseconds since 1970.
    pub(super) fn holds(self, at_ms: i64, zone: &TimeZone) -> bool {
        let Ok(at) = Timestamp::from_millisecond(at_ms) else {
            return false;
        };
        let time = zone.to_datetime(at).time();
        if self.from < self.to {
            self.from <= time && time < self.to
        } else {
            self.from <= time || time < self.to
        }
    }
}

impl FromStr for Quiet {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (from, to) = text.split_once('-').ok_or(EXPECTED)?;
        let time = |text: &str| Time::strptime("%H:%M", text.trim()).map_err(|_| EXPECTED);
        let quiet = Self {
            from: time(from)?,
            to: time(to)?,
        };
        if quiet.from == quiet.to {
            return Err("it begins when it ends; expected two different times of day");
        }
        Ok(quiet)
    }
}

#[cfg(test)]
mod tests {
    use jiff::tz::{TimeZone, offset};

    use super::Quiet;

    #[track_caller]
    fn check(span: &str, time: &str, expected: bool) {
        let quiet: Quiet = span.parse().unwrap();
        let at: jiff::Timestamp = format!("2026-11-28T{time}:00+05:00").parse().unwrap();
        let zone = TimeZone::fixed(offset(5));
        assert_eq!(quiet.holds(at.as_millisecond(), &zone), expected, "{time}");
    }

    #[test]
    fn a_span_may_include_midnight() {
        for (time, expected) in [("22:00", true), ("03:00", true), ("07:00", false)] {
            check("22:00-07:00", time, expected);
        }
        for (time, expected) in [("11:59", false), ("12:00", true), ("13:30", false)] {
            check("12:00 - 13:30", time, expected);
        }
    }

    #[test]
    fn what_is_no_span_is_refused() {
        for text in ["22:00", "22-7", "25:00-07:00", "07:00-07:00", ""] {
            assert!(text.parse::<Quiet>().is_err(), "{text}");
        }
    }
}
