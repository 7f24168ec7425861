//! Removes differences between two looks that are no changes.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Map, Value};
use whosup_core::adapter::claim::SessionKey;

use crate::rows::{Row, Rows};

/// Fields that may change with each record of a transcript.
const SLOW: [&str; 4] = ["last_activity_at", "context", "turn", "usage"];
/// How often those fields are published.
const SLOW_APART: Duration = Duration::from_secs(1);
/// How much a date may differ that is computed from a clock and a stamp, in milliseconds.
const JITTER_MS: i64 = 20;
/// Dates that may be that of the process, which is computed.
const DATES: [&str; 2] = ["started_at", "phase_since"];
/// Processes in a session.
const PROCESSES: [&str; 2] = ["owner", "client"];

/// Removes from `after` what is no change since `before`: the dates of unchanged processes.
/// What is the same then is shared with `before`, so that it is not compared again.
pub(crate) fn steady(before: &Rows, after: &mut Rows) {
    for (key, row) in &mut after.sessions {
        let known = before.sessions.get(key);
        let Some(known) = known.filter(|known| !Arc::ptr_eq(known, row)) else {
            continue;
        };
        // A new row is not shared yet, so that nothing is copied.
        let fields = &mut Arc::make_mut(row).session;
        let began = fields.get("owner").map(|owner| owner["started_at"].clone());
        for process in PROCESSES {
            if let (Some(old), Some(new)) = (known.session.get(process), fields.get_mut(process)) {
                keep_start(old, new);
            }
        }
        for date in DATES {
            if let (Some(old), Some(new)) = (known.session.get(date), fields.get_mut(date))
                && Some(&*new) == began.as_ref()
            {
                keep_date(old, new);
            }
        }
        if row == known {
            *row = Arc::clone(known);
        }
    }
    if Arc::ptr_eq(&before.unattributed, &after.unattributed) {
        return;
    }
    let mut processes = (*after.unattributed).clone();
    for new in &mut processes {
        let mut known = before.unattributed.iter();
        if let Some(old) = known.find(|old| is_one_process(old, new)) {
            keep_start(old, new);
        }
    }
    after.unattributed = Arc::new(processes);
}

fn is_one_process(one: &Value, other: &Value) -> bool {
    ["pid", "start_stamp"]
        .iter()
        .all(|field| one[*field] == other[*field])
}

fn keep_start(old: &Value, new: &mut Value) {
    if old != new && new.is_object() && is_one_process(old, new) {
        new["started_at"] = old["started_at"].clone();
    }
}

fn keep_date(old: &Value, new: &mut Value) {
    let date = |value: &Value| -> Option<i64> {
        let date: jiff::Timestamp = value.as_str()?.parse().ok()?;
        Some(date.as_millisecond())
    };
    if old != new
        && let (Some(was), Some(is)) = (date(old), date(new))
        && was.abs_diff(is) <= JITTER_MS.unsigned_abs()
    {
        *new = old.clone();
    }
}

/// Publishes frequently changing fields once a second.
#[derive(Debug, Default)]
pub(crate) struct Slow {
    published: HashMap<SessionKey, Instant>,
}

impl Slow {
    /// The part of `latest` to publish now, and when the rest is due.
    pub(crate) fn hold(
        &mut self,
        before: &Rows,
        latest: &Rows,
        now: Instant,
    ) -> (Rows, Option<Instant>) {
        self.published.retain(|key, at| {
            latest.sessions.contains_key(key) && now.saturating_duration_since(*at) < SLOW_APART
        });
        let mut due: Option<Instant> = None;
        let mut sessions = BTreeMap::new();
        for (key, row) in &latest.sessions {
            let known = before.sessions.get(key);
            let known = known.filter(|known| {
                !Arc::ptr_eq(known, row) && slow(&known.session).ne(slow(&row.session))
            });
            let row = match (known, self.published.get(key).copied()) {
                (None, _) => Arc::clone(row),
                (Some(_), None) => {
                    self.published.insert(key.clone(), now);
                    Arc::clone(row)
                }
                (Some(known), Some(at)) => {
                    let at = at + SLOW_APART;
                    due = Some(due.map_or(at, |due| due.min(at)));
                    Arc::new(with_slow_of(known, row))
                }
            };
            sessions.insert(key.clone(), row);
        }
        let held = Rows {
            sessions,
            ..latest.clone()
        };
        (held, due)
    }
}

fn slow(fields: &Map<String, Value>) -> impl Iterator<Item = Option<&Value>> {
    SLOW.iter().map(|field| fields.get(*field))
}

fn with_slow_of(known: &Row, row: &Row) -> Row {
    let mut row = row.clone();
    for field in SLOW {
        match known.session.get(field) {
            Some(value) => row.session.insert(field.to_owned(), value.clone()),
            None => row.session.remove(field),
        };
    }
    row
}

#[cfg(test)]
mod tests;
