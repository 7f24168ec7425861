//! From clock ticks since boot to a date.

use rustix::time::{ClockId, Timespec, clock_gettime};

use crate::{Absent, Field};

/// What turns start ticks into dates, read once per look.
#[derive(Debug, Clone)]
pub(super) struct Clock {
    /// When the kernel began by the wall clock of now, in milliseconds since 1970.
    pub(super) booted_at_ms: Field<i64>,
    ticks_per_second: u64,
}

impl Clock {
    /// The clock of the running kernel: the distance of its wall clock from the
    /// clock that start ticks count on, `CLOCK_BOOTTIME`. In a time namespace
    /// both that clock and field 22 of `stat` have the namespace's offset.
    pub(super) fn system() -> Self {
        Self::new(booted_at_ms().ok_or(Absent::Unsupported))
    }

    /// A clock for a kernel that began at `booted_at_ms`.
    pub(super) fn new(booted_at_ms: Field<i64>) -> Self {
        Self {
            booted_at_ms,
            ticks_per_second: rustix::param::clock_ticks_per_second(),
        }
    }

    /// The date of a start stamp, in milliseconds since 1970.
    pub(super) fn began_at_ms(&self, ticks: u64) -> Field<i64> {
        let booted_at_ms = self.booted_at_ms.clone()?;
        let since_boot_ms = i64::try_from(self.milliseconds_of(ticks)?).ok();
        since_boot_ms
            .and_then(|since_boot_ms| booted_at_ms.checked_add(since_boot_ms))
            .ok_or_else(|| Absent::Malformed(format!("{ticks} ticks are no date")))
    }

    /// So many ticks in milliseconds.
    pub(super) fn milliseconds_of(&self, ticks: u64) -> Field<u64> {
        u128::from(ticks)
            .checked_mul(1000)
            .and_then(|scaled| scaled.checked_div(u128::from(self.ticks_per_second)))
            .and_then(|ms| u64::try_from(ms).ok())
            .ok_or_else(|| Absent::Malformed(format!("{ticks} ticks are no time")))
    }
}

/// Parses the line `btime` of `/proc/stat`: seconds since 1970 (proc_stat(5)).
pub(super) fn parse_booted_at_ms(bytes: &[u8]) -> Field<i64> {
    let mut lines = bytes.split(|byte| *byte == b'\n');
    lines
        .find_map(|line| line.strip_prefix(b"btime "))
        .and_then(|value| std::str::from_utf8(value.trim_ascii()).ok()?.parse().ok())
        .and_then(|seconds: i64| seconds.checked_mul(1000))
        .ok_or_else(|| Absent::Malformed("no `btime` in `stat`".to_owned()))
}

/// When the kernel began, in whole milliseconds since 1970.
///
/// Every look is to come to the same date. So the difference of the two clocks is rounded
/// once, and of several readings the one counts that was interrupted least.
fn booted_at_ms() -> Option<i64> {
    let readings = (0..CLOCK_READINGS).filter_map(|_| {
        let before = nanoseconds(clock_gettime(ClockId::Boottime))?;
        let now = nanoseconds(clock_gettime(ClockId::Realtime))?;
        let after = nanoseconds(clock_gettime(ClockId::Boottime))?;
        let took = after.checked_sub(before)?;
        let booted_at = now.checked_sub(before.checked_add(took / 2)?)?;
        Some((took, booted_at))
    });
    let (_, booted_at) = readings.min()?;
    booted_at
        .checked_add(500_000)
        .map(|it| it.div_euclid(1_000_000))
}

/// How often the clocks are read for one date.
const CLOCK_READINGS: usize = 5;

fn nanoseconds(time: Timespec) -> Option<i64> {
    let whole = time.tv_sec.checked_mul(1_000_000_000)?;
    whole.checked_add(time.tv_nsec)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_date_is_the_boot_date_plus_the_ticks() {
        let mut clock = Clock::new(Ok(1_790_000_000_000));
        clock.ticks_per_second = 100;
        assert_eq!(clock.began_at_ms(8123), Ok(1_790_000_081_230));
        clock.ticks_per_second = 300;
        assert_eq!(clock.began_at_ms(1), Ok(1_790_000_000_003));
    }

    #[test]
    fn two_looks_date_the_boot_alike() {
        // The clock may be set in between, and its rate be corrected.
        let dates: Vec<_> = (0..200).map(|_| booted_at_ms().unwrap()).collect();
        let alike = dates.windows(2).filter(|pair| pair[0] == pair[1]).count();
        assert!(alike >= 190, "{dates:?}");
    }

    #[test]
    fn a_date_that_cannot_be_computed_is_absent_and_never_zero() {
        let mut clock = Clock::new(Ok(i64::MAX));
        assert!(matches!(clock.began_at_ms(1000), Err(Absent::Malformed(_))));
        clock.ticks_per_second = 0;
        assert!(clock.began_at_ms(1000).is_err());
        assert!(clock.milliseconds_of(1000).is_err());
        let clock = Clock::new(Err(Absent::Unsupported));
        assert_eq!(clock.began_at_ms(1), Err(Absent::Unsupported));
    }

    #[test]
    fn boot_date_is_read_from_the_btime_line() {
        let text = b"cpu  1 2 3\nintr 5\nctxt 7\nbtime 1790000000\nprocesses 9\n";
        assert_eq!(parse_booted_at_ms(text), Ok(1_790_000_000_000));
        for garbage in [
            &b"btime x\n"[..],
            b"",
            b"xbtime 5\n",
            b"btime 99999999999999999999\n",
        ] {
            assert!(parse_booted_at_ms(garbage).is_err());
        }
    }
}
