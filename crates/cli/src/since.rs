//! Instants and time spans on the command line and in the configuration, parsed by jiff.

use std::str::FromStr;
use std::time::Duration;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{Span, SpanRelativeTo, Timestamp, ToSpan as _, ZonedDateTime};

const EXPECTED: &str = "expected a span of time such as `90m`, `2h` or `3 days`, `today`, \
                        `yesterday`, or a date such as `2026-11-28` or `2026-11-28T10:00`, which \
                        is in local time unless it names an offset";

/// An instant to start from.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Since {
    /// A span before now.
    Ago(Span),
    /// The start of the day so many days ago.
    DaysAgo(i64),
    /// A local date and time.
    Local(DateTime),
    /// The instant itself.
    At(Timestamp),
}

impl Since {
    /// The instant in milliseconds since 1970; the first representable date for earlier ones.
    pub(crate) fn at_ms(self, now_ms: i64, zone: &TimeZone) -> i64 {
        let at = self.at(now_ms, zone).unwrap_or(Timestamp::MIN);
        at.as_millisecond()
    }

    fn at(self, now_ms: i64, zone: &TimeZone) -> Result<Timestamp, jiff::Error> {
        let now = ZonedDateTime::new(Timestamp::from_millisecond(now_ms)?, zone.clone());
        Ok(match self {
            Self::Ago(span) => now.checked_sub(span)?.timestamp(),
            Self::DaysAgo(days) => now.checked_sub(days.days())?.start_of_day()?.timestamp(),
            Self::Local(shown) => zone.to_timestamp(shown)?,
            Self::At(at) => at,
        })
    }
}

impl FromStr for Since {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "today" => return Ok(Self::DaysAgo(0)),
            "yesterday" => return Ok(Self::DaysAgo(1)),
            _ => {}
        }
        if let Ok(span) = text.parse::<Span>() {
            // jiff reads `2h ago` as a negative span, like `-2h`; here that would be the future.
            let is_past = !span.is_negative() || text.ends_with("ago");
            return is_past.then(|| Self::Ago(span.abs())).ok_or(EXPECTED);
        }
        // A date with an offset is not a local date.
        let at = text.parse().map(Self::At);
        at.or_else(|_| text.parse().map(Self::Local))
            .map_err(|_| EXPECTED)
    }
}

/// A span of time with days of 24 hours.
pub(crate) fn parse_span(text: &str) -> Option<Duration> {
    let span: Span = text.parse().ok()?;
    let duration = span.to_duration(SpanRelativeTo::days_are_24_hours());
    Duration::try_from(duration.ok()?).ok()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use jiff::Timestamp;
    use jiff::tz::{TimeZone, offset};

    use super::{Since, parse_span};

    /// Half past one in the morning, five hours east of Greenwich.
    const NOW: &str = "2026-11-28T01:30:00+05:00";

    #[track_caller]
    fn check_instant(text: &str, expected: &str) {
        let now: Timestamp = NOW.parse().unwrap();
        let east = TimeZone::fixed(offset(5));
        let since: Since = text.parse().unwrap();
        let at_ms = since.at_ms(now.as_millisecond(), &east);
        let expected: Timestamp = expected.parse().unwrap();
        assert_eq!(at_ms, expected.as_millisecond(), "{text}");
    }

    #[test]
    fn a_span_is_so_long_ago() {
        check_instant("90m", "2026-11-28T00:00:00+05:00");
        check_instant("2h", "2026-11-27T23:30:00+05:00");
        check_instant("3 days", "2026-11-25T01:30:00+05:00");
        check_instant("2w", "2026-11-14T01:30:00+05:00");
        check_instant("1 day 2 hours ago", "2026-11-26T23:30:00+05:00");
    }

    #[test]
    fn days_begin_at_midnight_here() {
        check_instant("today", "2026-11-28T00:00:00+05:00");
        check_instant("yesterday", "2026-11-27T00:00:00+05:00");
        check_instant("2026-11-28", "2026-11-28T00:00:00+05:00");
    }

    #[test]
    fn a_date_is_local_unless_it_names_an_offset() {
        check_instant("2026-11-28T10:00", "2026-11-28T10:00:00+05:00");
        check_instant("2026-11-28 10:00", "2026-11-28T10:00:00+05:00");
        check_instant("2026-11-27T09:00:00.123Z", "2026-11-27T09:00:00.123Z");
        check_instant("2026-11-27T10:00:00+01:00", "2026-11-27T09:00:00Z");
    }

    #[test]
    fn what_lies_before_all_dates_is_before_everything() {
        let since: Since = "19000 years".parse().unwrap();
        let at_ms = since.at_ms(0, &TimeZone::UTC);
        assert_eq!(at_ms, Timestamp::MIN.as_millisecond());
    }

    #[test]
    fn anything_else_says_what_was_expected() {
        for text in [
            "",
            "m",
            "-1h",
            "tomorrow",
            "2026-13-01",
            "99999999999999999d",
        ] {
            let error = text.parse::<Since>().unwrap_err();
            assert!(error.contains("`90m`"), "{text}: {error}");
        }
    }

    #[test]
    fn a_span_without_months_has_a_length() {
        assert_eq!(parse_span("30s"), Some(Duration::from_secs(30)));
        assert_eq!(parse_span("3 days"), Some(Duration::from_secs(3 * 86_400)));
        assert_eq!(parse_span("2w"), Some(Duration::from_secs(14 * 86_400)));
        for text in ["1 month", "-1d", "30", "soon"] {
            assert_eq!(parse_span(text), None, "{text}");
        }
    }
}
