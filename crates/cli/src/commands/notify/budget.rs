//! What the sessions of today have cost, held against what a day may cost.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::thread::Builder;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use jiff::Timestamp;
use whosup_core::views::usage::By;

use crate::app::World;
use crate::commands::usage::{Progress, UsageArgs, sum_up};
use crate::since::Since;

/// Counting reads what was appended to transcripts: it is not done more often than this.
const COUNTS_APART: Duration = Duration::from_secs(30);

/// An amount in US dollars, more than nothing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Dollars(f64);

impl Dollars {
    /// Takes an amount, unless it is none.
    pub(crate) fn new(amount: f64) -> Result<Self, &'static str> {
        if amount.is_finite() && amount > 0.0 {
            Ok(Self(amount))
        } else {
            Err("expected an amount in US dollars such as `20` or `7.50`")
        }
    }

    pub(super) fn amount(self) -> f64 {
        self.0
    }
}

impl std::str::FromStr for Dollars {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::new(text.parse().unwrap_or_default())
    }
}

/// The cost of one day, at one moment.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct DayCost {
    /// In local time: `2026-11-28`.
    pub(super) day: String,
    pub(super) dollars: f64,
}

/// Counts in a thread, so that changes are heard meanwhile.
#[derive(Debug)]
pub(super) struct Budget {
    limit: Dollars,
    orders: SyncSender<()>,
    counts: Receiver<anyhow::Result<DayCost>>,
    is_counting: bool,
    /// Something happened that has not been counted.
    is_stale: bool,
    /// When it may be counted again.
    due: Instant,
    last: Option<DayCost>,
}

impl Budget {
    /// Begins to count. `wake` is called after each count.
    ///
    /// # Errors
    ///
    /// If there is no thread.
    pub(super) fn start(
        limit: Dollars,
        asked: &UsageArgs,
        config_file: Option<PathBuf>,
        wake: impl Fn() + Send + 'static,
    ) -> anyhow::Result<Self> {
        let (orders, ordered) = sync_channel(1);
        let (report, counts) = channel();
        let asked = asked.clone();
        let count_all = move || {
            while ordered.recv().is_ok() {
                let cost = count(&World::here(config_file.clone()), &asked);
                if report.send(cost).is_err() {
                    return;
                }
                wake();
            }
        };
        Builder::new()
            .name("costs".to_owned())
            .spawn(count_all)
            .context("cannot start the thread that counts costs")?;
        Ok(Self {
            limit,
            orders,
            counts,
            is_counting: false,
            is_stale: true,
            due: Instant::now(),
            last: None,
        })
    }

    /// Notes that sessions have changed.
    pub(super) fn touch(&mut self) {
        self.is_stale = true;
    }

    /// When [`Budget::advance`] has something to do.
    pub(super) fn due(&self) -> Option<Instant> {
        (self.is_stale && !self.is_counting).then_some(self.due)
    }

    /// Takes a count that is done and orders the next. Returns the cost if it has passed the
    /// limit just now.
    ///
    /// # Errors
    ///
    /// What kept it from counting.
    pub(super) fn advance(&mut self, now: Instant) -> anyhow::Result<Option<DayCost>> {
        let counted = self.counts.try_recv().ok();
        if counted.is_some() {
            self.is_counting = false;
            self.due = now + COUNTS_APART;
        }
        if self.due().is_some_and(|due| due <= now) && self.orders.try_send(()).is_ok() {
            self.is_counting = true;
            self.is_stale = false;
        }
        let Some(cost) = counted.transpose()? else {
            return Ok(None);
        };
        let has_passed = passes(self.last.as_ref(), &cost, self.limit);
        self.last = Some(cost.clone());
        Ok(has_passed.then_some(cost))
    }

    pub(super) fn limit(&self) -> Dollars {
        self.limit
    }
}

/// It has passed the limit since the count before. What was so at the start is no news.
fn passes(before: Option<&DayCost>, now: &DayCost, limit: Dollars) -> bool {
    let was_below = |before: &DayCost| before.day != now.day || before.dollars <= limit.0;
    now.dollars > limit.0 && before.is_some_and(was_below)
}

fn count(world: &World, asked: &UsageArgs) -> anyhow::Result<DayCost> {
    let answer = sum_up(world, asked, Progress::Silent).context("cannot count today's cost")?;
    let at = Timestamp::from_millisecond(world.machine().now_ms())?;
    Ok(DayCost {
        day: world.zone().to_datetime(at).date().to_string(),
        dollars: answer.total_dollars(),
    })
}

/// What is counted: all of today in the sessions that are asked for.
pub(super) fn asked(
    agents: Vec<whosup_core::sidecar::AgentId>,
    directory: Option<PathBuf>,
) -> UsageArgs {
    UsageArgs::of(Some(Since::DaysAgo(0)), vec![By::Day], agents, directory)
}

#[cfg(test)]
mod tests {
    use super::{DayCost, Dollars, passes};

    fn cost(day: u8, dollars: f64) -> DayCost {
        DayCost {
            day: format!("2026-11-{day}"),
            dollars,
        }
    }

    #[test]
    fn a_limit_is_passed_once_a_day_and_not_before_the_first_count() {
        let limit = Dollars::new(20.0).unwrap();
        for (before, now, expected) in [
            (None, cost(28, 25.0), false),
            (Some(cost(28, 19.0)), cost(28, 20.0), false),
            (Some(cost(28, 19.0)), cost(28, 20.5), true),
            (Some(cost(28, 20.5)), cost(28, 30.0), false),
            (Some(cost(28, 30.0)), cost(29, 1.0), false),
            (Some(cost(28, 30.0)), cost(29, 21.0), true),
        ] {
            assert_eq!(passes(before.as_ref(), &now, limit), expected, "{now:?}");
        }
    }

    #[test]
    fn an_amount_is_more_than_nothing() {
        assert_eq!("7.50".parse(), Dollars::new(7.5));
        for text in ["0", "-1", "inf", "NaN", "ten", ""] {
            assert!(text.parse::<Dollars>().is_err(), "{text}");
        }
    }
}
