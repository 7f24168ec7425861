//! What has been counted of a transcript so far, and what is needed to count on.
//!
//! A tally is a function of the records before it, and of nothing else: whoever stops
//! anywhere, keeps it and counts on later gets the same sums.

use std::collections::{BTreeMap, HashSet, VecDeque};

use super::sums::{QUARTER_MS, Slot, Sums, add_to, of_request, take_from};
use crate::sources::agents::kit::dialect::Record;
use crate::sources::transcript::hash;

/// How many of the last requests may still be counted anew: the snapshots of one message
/// stand near each other. Those that come later count no more.
const OPEN_REQUESTS_MAX: usize = 64;
/// How long after the beginning of a fork what is written was copied, where copies have
/// the date of the copying.
const COPYING_MS: i64 = 1_000;

/// What has been counted of a transcript so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    /// The sums.
    pub sums: BTreeMap<Slot, Sums>,
    /// Lines with counts that could not be read.
    pub lost_lines: u64,
    pub(super) model: Option<String>,
    pub(super) branch: Option<String>,
    pub(super) directory: Option<String>,
    /// The last total that the agent recorded.
    pub(super) total: Option<Sums>,
    /// When the session was born.
    pub(super) born_at_ms: Option<i64>,
    /// Until when what is recorded was copied from another session.
    pub(super) copied_until_ms: Option<i64>,
    /// The last requests, oldest first, each with what was counted for it.
    pub(super) open: VecDeque<Open>,
    /// Every request that was counted.
    pub(super) requests: HashSet<u64>,
}

/// A request that may be counted anew.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Open {
    pub(super) request: u64,
    pub(super) slot: Slot,
    pub(super) sums: Sums,
}

impl Tally {
    /// All of it.
    #[must_use]
    pub fn total(&self) -> Sums {
        let mut total = Sums::default();
        self.sums.values().for_each(|sums| total.add(sums));
        total
    }

    /// The sums, without what is needed to count on.
    #[must_use]
    pub fn sums_alone(&self) -> Self {
        Self {
            sums: self.sums.clone(),
            lost_lines: self.lost_lines,
            ..Self::default()
        }
    }

    /// Adds the sums of another transcript of the same session.
    pub fn join(&mut self, other: &Self) {
        for (slot, sums) in &other.sums {
            add_to(&mut self.sums, slot, sums);
        }
        self.lost_lines = self.lost_lines.saturating_add(other.lost_lines);
    }

    /// Counts one record. With `copies_keep_dates`, one that is older than the session was
    /// copied.
    pub(crate) fn add(&mut self, record: &Record<'_>, copies_keep_dates: bool) {
        if self.born_at_ms.is_none() {
            self.born_at_ms = record.born_at_ms;
        }
        set(&mut self.model, record.model);
        if record.work_dir.is_some() && record.work_dir != self.directory.as_deref() {
            set(&mut self.directory, record.work_dir);
            // Another directory may be in no repository.
            self.branch = None;
        }
        set(&mut self.branch, record.git_branch);
        if record.begins_copy && self.copied_until_ms.is_none() {
            let at_ms = record.at_ms.or(record.born_at_ms);
            self.copied_until_ms = at_ms.map(|at| at.saturating_add(COPYING_MS));
        }
        if record.ends_copy {
            self.forget_sums();
        }
        let Some(counted) = &record.tokens else {
            return;
        };
        let last = of_request(counted);
        let sums = match record.total.as_ref().and_then(of_request) {
            Some(total) => self.since_last_total(total, last),
            None => last,
        };
        let is_copied = self.is_copied(record, copies_keep_dates);
        if let Some(sums) = sums.filter(|sums| !sums.is_nothing() && !is_copied) {
            let slot = self.slot(record, &sums);
            self.count(record.request, slot, sums);
        }
    }

    /// What was counted so far is another session's.
    fn forget_sums(&mut self) {
        self.sums.clear();
        self.lost_lines = 0;
        self.open.clear();
        self.requests.clear();
    }

    /// What was used since the last total. The first one begins with what came before the
    /// transcript, and one that is less than the last began anew: then what the last
    /// request used is all that is known.
    fn since_last_total(&mut self, total: Sums, last: Option<Sums>) -> Option<Sums> {
        let before = self.total.replace(total);
        let since = before.and_then(|before| total.since(&before));
        since.or(last)
    }

    fn is_copied(&self, record: &Record<'_>, copies_keep_dates: bool) -> bool {
        let is_before = |bound: Option<i64>| {
            record
                .at_ms
                .zip(bound)
                .is_some_and(|(at, bound)| at < bound)
        };
        record.is_copied
            || is_before(self.copied_until_ms)
            || (copies_keep_dates && is_before(self.born_at_ms))
    }

    fn slot(&self, record: &Record<'_>, sums: &Sums) -> Slot {
        let model = record.counted_model.map(str::to_owned);
        Slot {
            quarter: record.at_ms.map(|at| at.div_euclid(QUARTER_MS)),
            model: model.or_else(|| self.model.clone()),
            branch: self.branch.clone(),
            directory: self.directory.clone(),
            tier: sums.tier(),
            has_cost: sums.cost_nano > 0,
        }
    }

    fn count(&mut self, request: Option<&str>, slot: Slot, sums: Sums) {
        let Some(request) = request.map(str::as_bytes).map(hash) else {
            add_to(&mut self.sums, &slot, &sums);
            return;
        };
        let is_new = self.requests.insert(request);
        let open = self.open.iter_mut().find(|open| open.request == request);
        match open {
            Some(open) => {
                take_from(&mut self.sums, &open.slot, &open.sums);
                add_to(&mut self.sums, &slot, &sums);
                (open.slot, open.sums) = (slot, sums);
            }
            None if is_new => {
                add_to(&mut self.sums, &slot, &sums);
                if self.open.len() >= OPEN_REQUESTS_MAX {
                    self.open.pop_front();
                }
                self.open.push_back(Open {
                    request,
                    slot,
                    sums,
                });
            }
            None => {}
        }
    }
}

fn set(kept: &mut Option<String>, found: Option<&str>) {
    if kept.as_deref() != found && found.is_some() {
        *kept = found.map(str::to_owned);
    }
}
