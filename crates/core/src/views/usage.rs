//! Sums of what sessions used, by whatever is asked for.
//!
//! Every sum is of the same counts, so that they add up however they are grouped.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::adapter::claim::{CLOCK_SLACK_MS, SessionKey};
use crate::adapter::names::names;
use crate::sources::usage::{NO_MODEL, Prices, QUARTER_MS, Slot, Sums, Tally, Usage};

/// What rows are about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum By {
    /// A session and its sub-agents.
    Session,
    /// A directory.
    Project,
    /// An agent.
    Agent,
    /// A model.
    Model,
    /// A day.
    Day,
    /// A branch of a directory.
    Branch,
}

names!(By {
    Session => "session",
    Project => "project",
    Agent => "agent",
    Model => "model",
    Day => "day",
    Branch => "branch",
});

/// What one session or sub-agent used.
#[derive(Debug)]
pub struct Used<'a> {
    /// The session that it is of: a sub-agent's parent.
    pub session: &'a SessionKey,
    /// Where the session works, where a count has no directory.
    pub work_dir: Option<&'a Path>,
    /// When it was last active, for counts without a date.
    pub last_at_ms: Option<i64>,
    /// What was counted.
    pub tally: &'a Tally,
    /// The processor time that went into it at least, in milliseconds.
    pub cpu_ms: Option<u64>,
    /// How long it was live, in milliseconds.
    pub live_ms: Option<u64>,
}

/// What is asked for.
pub struct UsageQuery<'a> {
    /// What rows are about, the first thing first.
    pub by: &'a [By],
    /// Counts since this instant, to a quarter of an hour.
    pub since_ms: Option<i64>,
    /// Counts in directories that this holds for alone.
    pub is_below: Option<&'a dyn Fn(&Path) -> bool>,
    /// The prices.
    pub prices: &'a Prices,
    /// The day of an instant, as it is shown.
    pub day: &'a dyn Fn(i64) -> String,
    /// The instant of asking.
    pub now_ms: i64,
}

/// The sums.
#[derive(Debug, Default)]
pub struct UsageTable {
    /// The rows, in order of what they are about; `None` where that is not known.
    pub rows: BTreeMap<Vec<Option<String>>, UsageRow>,
    /// All of it.
    pub total: UsageRow,
    /// What was used in the last hour.
    pub last_hour: Usage,
    /// The models that have no price.
    pub without_price: BTreeSet<String>,
}

/// One row.
#[derive(Debug, Clone, Default)]
pub struct UsageRow {
    /// What was used.
    pub usage: Usage,
    /// The processor time, in milliseconds; `None` if none of it is known, or if the row
    /// has parts of sessions.
    pub cpu_ms: Option<u64>,
    /// How long its sessions were live, in milliseconds, under the same conditions.
    pub live_ms: Option<u64>,
    /// Some of it has no date, and is counted on the last day of its session.
    pub is_day_assumed: bool,
    /// How many sessions.
    pub sessions: BTreeSet<SessionKey>,
}

/// How long ago the last hour began, in milliseconds: four quarters, the current one
/// included.
const HOUR_MS: i64 = 4 * QUARTER_MS;

impl UsageTable {
    /// Sums up what sessions used.
    pub fn add(&mut self, query: &UsageQuery<'_>, used: &Used<'_>) {
        let mut rows = BTreeSet::new();
        let mut is_whole = true;
        let dated = |slot: &Slot| slot.starts_at_ms().filter(|at| !query.is_of_future(*at));
        let last_counted = || used.tally.sums.keys().filter_map(dated).max();
        let last_at_ms = used.last_at_ms.or_else(last_counted);
        for (slot, sums) in &used.tally.sums {
            let dated_at_ms = dated(slot);
            let at_ms = dated_at_ms.or(last_at_ms);
            // The quarter in which the time lies is counted whole.
            let ends_ms = at_ms.map(|at| at.saturating_add(QUARTER_MS));
            if query
                .since_ms
                .is_some_and(|since| ends_ms.is_some_and(|end| end <= since))
            {
                is_whole = false;
                continue;
            }
            let directory = slot.directory.as_deref().map(Path::new).or(used.work_dir);
            if query
                .is_below
                .is_some_and(|is_below| !directory.is_some_and(is_below))
            {
                is_whole = false;
                continue;
            }
            let mut names = Vec::with_capacity(query.by.len());
            names.extend(
                query
                    .by
                    .iter()
                    .map(|by| name(*by, query, used, slot, directory, at_ms)),
            );
            let row = self.rows.entry(names.clone()).or_default();
            for row in [row, &mut self.total] {
                add(row, query, used, slot, sums, &mut self.without_price);
                row.is_day_assumed |= dated_at_ms.is_none();
            }
            rows.insert(names);
            if at_ms.is_some_and(|at| at > query.now_ms.saturating_sub(HOUR_MS)) {
                self.last_hour
                    .add(slot, sums, query.prices, &mut self.without_price);
            }
        }
        // Processor time and the hours live have no date and no model.
        if is_whole && !rows.is_empty() {
            self.total.add_times(used);
            if rows.len() == 1
                && let Some(row) = rows.first().and_then(|names| self.rows.get_mut(names))
            {
                row.add_times(used);
            }
        }
    }
}

impl UsageQuery<'_> {
    /// Returns whether a date can't be right yet. What is kept of a transcript has such
    /// dates, since they may be right later.
    fn is_of_future(&self, at_ms: i64) -> bool {
        at_ms > self.now_ms.saturating_add(CLOCK_SLACK_MS)
    }
}

impl UsageRow {
    fn add_times(&mut self, used: &Used<'_>) {
        let add = |sum: &mut Option<u64>, more: Option<u64>| {
            if let Some(more) = more {
                *sum = Some(sum.unwrap_or(0).saturating_add(more));
            }
        };
        add(&mut self.cpu_ms, used.cpu_ms);
        add(&mut self.live_ms, used.live_ms);
    }
}

fn add(
    row: &mut UsageRow,
    query: &UsageQuery<'_>,
    used: &Used<'_>,
    slot: &Slot,
    sums: &Sums,
    without_price: &mut BTreeSet<String>,
) {
    row.usage.add(slot, sums, query.prices, without_price);
    if !row.sessions.contains(used.session) {
        row.sessions.insert(used.session.clone());
    }
}

fn name(
    by: By,
    query: &UsageQuery<'_>,
    used: &Used<'_>,
    slot: &Slot,
    directory: Option<&Path>,
    at_ms: Option<i64>,
) -> Option<String> {
    match by {
        By::Session => Some(format!("{}:{}", used.session.agent, used.session.session)),
        By::Project => directory.map(|path| path.to_string_lossy().into_owned()),
        By::Agent => Some(used.session.agent.to_string()),
        By::Model => Some(slot.model.clone().unwrap_or_else(|| NO_MODEL.to_owned())),
        By::Day => at_ms.map(query.day),
        By::Branch => slot.branch.clone(),
    }
}

#[cfg(test)]
mod tests {
    use whosup_sidecar::{AgentId, SessionId};

    use super::*;

    #[test]
    fn times_are_in_a_row_that_has_the_whole_session() {
        let session = SessionKey {
            agent: AgentId::from_static("codex"),
            session: SessionId::parse("s").unwrap(),
            home: Path::new("/h").into(),
        };
        let mut tally = Tally::default();
        for quarter in [1, 2] {
            let slot = Slot {
                quarter: Some(quarter),
                ..Slot::default()
            };
            let sums = Sums {
                output: 1,
                requests: 1,
                ..Sums::default()
            };
            tally.sums.insert(slot, sums);
        }
        let used = Used {
            session: &session,
            work_dir: None,
            last_at_ms: None,
            tally: &tally,
            cpu_ms: Some(7),
            live_ms: Some(9),
        };
        let times = |by: By, since_ms: i64| {
            let mut table = UsageTable::default();
            let query = UsageQuery {
                by: &[by],
                since_ms: Some(since_ms),
                is_below: None,
                prices: &Prices::shipped(),
                day: &|at_ms| at_ms.to_string(),
                now_ms: 4 * QUARTER_MS,
            };
            table.add(&query, &used);
            let rows = table.rows.values().chain([&table.total]);
            rows.map(|row| row.cpu_ms.zip(row.live_ms))
                .collect::<Vec<_>>()
        };
        assert_eq!(times(By::Agent, 0), [Some((7, 9)); 2]);
        // Each day has a part of it.
        assert_eq!(times(By::Day, 0), [None, None, Some((7, 9))]);
        // What came before is left out.
        assert_eq!(times(By::Agent, 2 * QUARTER_MS), [None, None]);
    }

    #[test]
    fn a_date_of_the_future_is_none_until_its_time_has_come() {
        let session = SessionKey {
            agent: AgentId::from_static("codex"),
            session: SessionId::parse("s").unwrap(),
            home: Path::new("/h").into(),
        };
        let mut tally = Tally::default();
        let sums = Sums {
            output: 1,
            requests: 1,
            ..Sums::default()
        };
        for quarter in [10, 90, i64::MAX] {
            let quarter = Some(quarter);
            let slot = Slot {
                quarter,
                ..Slot::default()
            };
            tally.sums.insert(slot, sums);
        }
        let used = |last_quarter: Option<i64>| Used {
            session: &session,
            work_dir: None,
            last_at_ms: last_quarter.map(|quarter| quarter * QUARTER_MS),
            tally: &tally,
            cpu_ms: None,
            live_ms: None,
        };
        let sums_at = |now: i64, last: Option<i64>| {
            let mut table = UsageTable::default();
            let query = UsageQuery {
                by: &[By::Day],
                since_ms: None,
                is_below: None,
                prices: &Prices::shipped(),
                day: &|at_ms| at_ms.div_euclid(QUARTER_MS).to_string(),
                now_ms: now * QUARTER_MS,
            };
            table.add(&query, &used(last));
            let rows = table.rows.iter();
            let rows = rows.map(|(names, row)| {
                let day = names[0].as_deref().unwrap_or("none").to_owned();
                (day, row.usage.sums.output, row.is_day_assumed)
            });
            (rows.collect::<Vec<_>>(), table.last_hour.sums.output)
        };
        let row = |day: &str, output: u64, is_assumed: bool| (day.to_owned(), output, is_assumed);
        let now = vec![row("10", 1, false), row("11", 2, true)];
        assert_eq!(sums_at(20, Some(11)), (now, 0));
        let later = vec![row("10", 1, false), row("11", 1, true), row("90", 1, false)];
        assert_eq!(sums_at(90, Some(11)), (later, 1));
        // The last day of a session without a date is that of its last count.
        assert_eq!(sums_at(20, None), (vec![row("10", 3, true)], 0));
    }
}
