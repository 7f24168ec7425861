//! What a session used, and what that cost.

use std::collections::BTreeSet;

use super::{Prices, Slot, Sums, Tally};

/// What a session, or several, used.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Usage {
    /// The tokens.
    pub sums: Sums,
    /// What they cost.
    pub cost: Cost,
}

/// What tokens cost, as far as that is known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cost {
    /// In billionths of a dollar.
    pub nano: u64,
    /// It is known of so many tokens,
    pub tokens: u64,
    /// of these by the agent,
    pub tokens_by_agent: u64,
    /// and it is not of so many.
    pub tokens_without_price: u64,
}

impl Usage {
    /// What was counted of a session; the models without a price are added to
    /// `without_price`.
    #[must_use]
    pub fn of(tally: &Tally, prices: &Prices, without_price: &mut BTreeSet<String>) -> Self {
        let mut usage = Self::default();
        for (slot, sums) in &tally.sums {
            usage.add(slot, sums, prices, without_price);
        }
        usage
    }

    /// Adds one sum.
    pub fn add(
        &mut self,
        slot: &Slot,
        sums: &Sums,
        prices: &Prices,
        without_price: &mut BTreeSet<String>,
    ) {
        self.sums.add(sums);
        let cost = &mut self.cost;
        let tokens = sums.tokens();
        match prices.cost_nano(slot, sums) {
            Some(nano) => {
                cost.nano = cost.nano.saturating_add(nano);
                cost.tokens = cost.tokens.saturating_add(tokens);
                if slot.has_cost {
                    cost.tokens_by_agent = cost.tokens_by_agent.saturating_add(tokens);
                }
            }
            None => {
                cost.tokens_without_price = cost.tokens_without_price.saturating_add(tokens);
                without_price.insert(slot.model.clone().unwrap_or_else(|| NO_MODEL.to_owned()));
            }
        }
    }

    /// Adds what others used.
    pub fn join(&mut self, more: &Self) {
        self.sums.add(&more.sums);
        let (cost, more) = (&mut self.cost, &more.cost);
        cost.nano = cost.nano.saturating_add(more.nano);
        cost.tokens = cost.tokens.saturating_add(more.tokens);
        cost.tokens_by_agent = cost.tokens_by_agent.saturating_add(more.tokens_by_agent);
        let without_price = cost.tokens_without_price;
        cost.tokens_without_price = without_price.saturating_add(more.tokens_without_price);
    }
}

/// What stands for the model where the agent records none.
pub const NO_MODEL: &str = "unknown";

impl Cost {
    /// In dollars; `None` if it is not known.
    #[must_use]
    pub fn dollars(&self) -> Option<f64> {
        #[expect(
            clippy::cast_precision_loss,
            reason = "a sum of money is no exact number"
        )]
        let dollars = self.nano as f64 / 1e9;
        self.is_known().then_some(dollars)
    }

    const fn is_known(&self) -> bool {
        self.tokens > 0 || self.nano > 0
    }

    /// The agent said all of it.
    #[must_use]
    pub const fn is_by_agent(&self) -> bool {
        self.is_known() && self.tokens_by_agent == self.tokens
    }
}
