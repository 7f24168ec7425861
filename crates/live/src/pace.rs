//! Limits how often the engine looks. Time is an argument.

use std::time::{Duration, Instant};

/// The shortest time between the starts of two looks.
const LOOKS_APART_MIN: Duration = Duration::from_millis(50);
/// It uses at most this fraction of a core.
const PART_OF_CORE: u32 = 10;
/// How much processor time may be saved up while nothing happens, so that a burst is followed
/// without delay.
const SAVED_MAX: Duration = Duration::from_millis(250);

/// Decides when the next look may be taken.
#[derive(Debug)]
pub(crate) struct Pace {
    /// When the last look began.
    last: Option<Instant>,
    /// Processor time that may be used at `counted_at`; negative amounts are `owed`.
    saved: Duration,
    owed: Duration,
    counted_at: Instant,
}

impl Pace {
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            last: None,
            saved: SAVED_MAX,
            owed: Duration::ZERO,
            counted_at: now,
        }
    }

    /// Records the start of a look, and the processor time that it took.
    pub(crate) fn looked(&mut self, began: Instant, now: Instant, cost: Duration) {
        self.count(now);
        self.last = Some(began);
        let unpaid = cost.saturating_sub(self.saved);
        self.saved = self.saved.saturating_sub(cost);
        self.owed += unpaid;
    }

    /// When the next look may begin: `now` or later.
    pub(crate) fn next_at(&mut self, now: Instant) -> Instant {
        self.count(now);
        let apart = self.last.map_or(now, |last| last + LOOKS_APART_MIN);
        apart.max(now + self.owed * PART_OF_CORE)
    }

    fn count(&mut self, now: Instant) {
        let earned = now.saturating_duration_since(self.counted_at) / PART_OF_CORE;
        self.counted_at = now;
        let rest = earned.saturating_sub(self.owed);
        self.owed = self.owed.saturating_sub(earned);
        self.saved = (self.saved + rest).min(SAVED_MAX);
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::Pace;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn the_first_event_is_looked_at_at_once_and_the_next_after_50_ms() {
        let start = Instant::now();
        let mut pace = Pace::new(start);
        assert_eq!(pace.next_at(start), start);
        pace.looked(start, start + 3 * MS, 3 * MS);
        assert_eq!(pace.next_at(start + 4 * MS), start + 50 * MS);
        let later = start + 500 * MS;
        assert_eq!(pace.next_at(later), later);
    }

    #[test]
    fn a_storm_costs_a_tenth_of_a_core_and_no_more() {
        let start = Instant::now();
        let mut pace = Pace::new(start);
        let (mut now, mut used) = (start, Duration::ZERO);
        let cost = 30 * MS;
        while now < start + 60_000 * MS {
            let began = pace.next_at(now);
            now = began + cost;
            used += cost;
            pace.looked(began, now, cost);
        }
        let share = used.as_secs_f64() / (now - start).as_secs_f64();
        assert!((0.09..0.106).contains(&share), "{share}");
    }
}
