//! Sums of tokens, and what they are sums of.

use std::collections::BTreeMap;

use crate::sources::agents::kit::dialect::TokenCount;

/// How long a quarter of an hour is, in milliseconds. Every time zone is some of them off
/// UTC, so that days add up in all of them.
pub const QUARTER_MS: i64 = 15 * 60 * 1_000;

/// Above how many tokens of input a request may cost more per token, in thousands.
const TIERS: [u16; 7] = [32, 100, 128, 200, 256, 272, 512];

/// What a sum is of.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Slot {
    /// The quarter of an hour, counted from 1970 in UTC; `None` where nothing is dated.
    pub quarter: Option<i64>,
    /// The model that was asked.
    pub model: Option<String>,
    /// The branch.
    pub branch: Option<String>,
    /// The directory.
    pub directory: Option<String>,
    /// The requests had more input than so many thousand tokens, and not more than the
    /// next bound.
    pub tier: u16,
    /// The agent recorded what they cost.
    pub has_cost: bool,
}

/// Tokens of some requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sums {
    /// Input that was neither read from a cache nor written to one.
    pub input: u64,
    /// Input that was read from a cache.
    pub cached_input: u64,
    /// Input that was written to a cache.
    pub cache_writes: u64,
    /// Those of them that are kept for an hour.
    pub long_cache_writes: u64,
    /// Output, reasoning included.
    pub output: u64,
    /// Output that is reasoning, where the agent counts it.
    pub reasoning: Option<u64>,
    /// What they cost by the agent, in billionths of a dollar.
    pub cost_nano: u64,
    /// How many requests.
    pub requests: u64,
}

impl Slot {
    /// The beginning of its quarter of an hour, in milliseconds since 1970.
    #[must_use]
    pub fn starts_at_ms(&self) -> Option<i64> {
        self.quarter
            .map(|quarter| quarter.saturating_mul(QUARTER_MS))
    }
}

impl Sums {
    /// All tokens.
    #[must_use]
    pub fn tokens(&self) -> u64 {
        self.all_input().saturating_add(self.output)
    }

    /// All input.
    #[must_use]
    pub fn all_input(&self) -> u64 {
        self.input
            .saturating_add(self.cached_input)
            .saturating_add(self.cache_writes)
    }

    /// Nothing was counted.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        self.tokens() == 0 && self.cost_nano == 0
    }

    /// It is known how many tokens there were. A cost may be all that the agent records.
    #[must_use]
    pub const fn are_tokens_known(&self) -> bool {
        self.requests > 0 || self.cost_nano == 0
    }

    /// Adds others. What is more than can be counted stays at the most that can.
    pub fn add(&mut self, more: &Self) {
        self.change(more, u64::saturating_add);
        if more.reasoning.is_some() && self.reasoning.is_none() {
            self.reasoning = more.reasoning;
        }
    }

    pub(super) fn take_away(&mut self, less: &Self) {
        self.change(less, u64::saturating_sub);
    }

    fn change(&mut self, other: &Self, change: impl Fn(u64, u64) -> u64) {
        let Self {
            input,
            cached_input,
            cache_writes,
            long_cache_writes,
            output,
            reasoning,
            cost_nano,
            requests,
        } = *other;
        self.input = change(self.input, input);
        self.cached_input = change(self.cached_input, cached_input);
        self.cache_writes = change(self.cache_writes, cache_writes);
        self.long_cache_writes = change(self.long_cache_writes, long_cache_writes);
        self.output = change(self.output, output);
        self.reasoning = self
            .reasoning
            .map(|sum| change(sum, reasoning.unwrap_or(0)));
        self.cost_nano = change(self.cost_nano, cost_nano);
        self.requests = change(self.requests, requests);
    }

    /// The difference from an earlier total; `None` if that was more: counting began anew.
    pub(super) fn since(&self, earlier: &Self) -> Option<Self> {
        Some(Self {
            input: self.input.checked_sub(earlier.input)?,
            cached_input: self.cached_input.checked_sub(earlier.cached_input)?,
            cache_writes: self.cache_writes.checked_sub(earlier.cache_writes)?,
            long_cache_writes: self
                .long_cache_writes
                .checked_sub(earlier.long_cache_writes)?,
            output: self.output.checked_sub(earlier.output)?,
            reasoning: match (self.reasoning, earlier.reasoning) {
                (Some(now), Some(before)) => Some(now.checked_sub(before)?),
                (now, _) => now,
            },
            cost_nano: self.cost_nano.checked_sub(earlier.cost_nano)?,
            requests: 1,
        })
    }

    /// The bound that this one request is above, of those that prices know.
    pub(super) fn tier(&self) -> u16 {
        let input = self.all_input();
        let above = TIERS.into_iter().rev();
        let mut above = above.filter(|tier| input > u64::from(*tier) * 1_000);
        above.next().unwrap_or(0)
    }
}

/// The sums of one request; `None` if it has no counts. A cost without counts is of no
/// request: it is not known how many tokens it is for.
pub(super) fn of_request(counted: &TokenCount) -> Option<Sums> {
    let has_counts = counted.output.or(counted.input).is_some();
    if !has_counts && counted.cost_nano.is_none() {
        return None;
    }
    let cache_writes = counted.cache_writes.unwrap_or(0);
    Some(Sums {
        input: counted.input.unwrap_or(0),
        cached_input: counted.cached_input.unwrap_or(0),
        cache_writes,
        long_cache_writes: counted.long_cache_writes.unwrap_or(0).min(cache_writes),
        output: counted.output.unwrap_or(0),
        reasoning: counted.reasoning,
        cost_nano: counted.cost_nano.unwrap_or(0),
        requests: u64::from(has_counts),
    })
}

/// Adds to one of many sums, and forgets those that are nothing.
pub(super) fn add_to(sums: &mut BTreeMap<Slot, Sums>, slot: &Slot, more: &Sums) {
    match sums.get_mut(slot) {
        Some(sum) => sum.add(more),
        None => {
            sums.insert(slot.clone(), *more);
        }
    }
}

/// Takes away from one of many sums, and forgets it if it is nothing then.
pub(super) fn take_from(sums: &mut BTreeMap<Slot, Sums>, slot: &Slot, less: &Sums) {
    if let Some(sum) = sums.get_mut(slot) {
        sum.take_away(less);
        if sum.requests == 0 {
            sums.remove(slot);
        }
    }
}
