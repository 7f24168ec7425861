//! How long a session was live.

/// How long processes had a session, as far as hooks reported: each from when it took the
/// session up until it released it or last reported. Overlaps count once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LiveTime {
    /// The time, in milliseconds.
    pub ms: u64,
    /// The last report of a process that has not released it: for a live session, the time
    /// since counts too.
    pub heard_at_ms: Option<i64>,
}

impl LiveTime {
    /// The time of processes with these starts and ends, the last of which may go on.
    #[must_use]
    pub fn of(mut spans: Vec<(i64, i64)>, heard_at_ms: Option<i64>) -> Option<Self> {
        spans.sort_unstable();
        let mut covered_until = spans.first()?.0;
        let mut ms = 0_u64;
        for (from, until) in spans {
            let from = from.max(covered_until);
            // A clock that was set back makes it no shorter.
            ms = ms.saturating_add(u64::try_from(until.saturating_sub(from)).unwrap_or(0));
            covered_until = covered_until.max(until);
        }
        Some(Self { ms, heard_at_ms })
    }

    /// The time until now.
    #[must_use]
    pub fn until(self, now_ms: i64, is_live: bool) -> u64 {
        let since = self.heard_at_ms.filter(|_| is_live);
        let since_ms = since.map(|since| now_ms.saturating_sub(since));
        let more = since_ms.and_then(|ms| u64::try_from(ms).ok());
        self.ms.saturating_add(more.unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_count_once_and_never_backwards() {
        let ms = |spans: &[(i64, i64)]| LiveTime::of(spans.to_vec(), None).map(|live| live.ms);
        assert_eq!(ms(&[]), None);
        assert_eq!(ms(&[(10, 20), (15, 18), (18, 30), (50, 60)]), Some(30));
        assert_eq!(ms(&[(50, 60), (10, 20)]), Some(20));
        assert_eq!(ms(&[(20, 10)]), Some(0));
        assert_eq!(ms(&[(i64::MIN, i64::MAX)]), Some(i64::MAX.unsigned_abs()));
        let live = LiveTime::of(vec![(10, 20)], Some(20)).unwrap();
        assert_eq!(live.until(25, true), 15);
        assert_eq!((live.until(25, false), live.until(5, true)), (10, 10));
    }
}
