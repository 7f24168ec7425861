//! What tokens cost, by tables of prices.
//!
//! The table that is shipped is made by `tests/usage/prices.py` and names its source and
//! date. The user's own, `whosup/prices.toml` in the configuration directory, has the same
//! form, and what it has of a model takes the place of what is shipped:
//!
//! ```toml
//! [model."our-model-*"]
//! input = 2.0        # USD per million tokens
//! cached_input = 0.2
//! cache_write = 2.5
//! cache_write_1h = 4.0
//! output = 8.0
//! [model."our-model-*".above.200]
//! input = 4.0        # of requests with more than 200,000 tokens of input
//! ```

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;
use toml::Spanned;
use whosup_sidecar::file::{Links, ReadFileError, read_regular};

use super::{Slot, Sums};
use crate::machine::Environment;
use crate::sources::config::{ConfigError, Wrong, line_of, parse_toml};

/// How long the user's table may be, in bytes.
const PRICES_BYTES_MAX: u64 = 4 << 20;
/// The table that is shipped.
const SHIPPED: &str = include_str!("prices.toml");
/// What of a model's name is left out if the whole of it has no price: a date, in these
/// forms.
const DATES: &[&str] = &["-00000000", "-0000-00-00"];

/// Prices of models.
#[derive(Debug, Clone, Default)]
pub struct Prices {
    models: BTreeMap<String, Model>,
    /// Where what is shipped comes from.
    pub source: String,
    /// When that was taken.
    pub date: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    #[serde(default)]
    source: String,
    #[serde(default)]
    date: String,
    #[serde(default)]
    model: BTreeMap<String, Spanned<Model>>,
}

/// Prices of one model, in USD per million tokens.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Model {
    input: Option<f64>,
    cached_input: Option<f64>,
    cache_write: Option<f64>,
    cache_write_1h: Option<f64>,
    output: Option<f64>,
    /// Of requests with more input than so many thousand tokens.
    #[serde(default)]
    above: BTreeMap<String, Model>,
}

impl Prices {
    /// The prices that are shipped, and over them the user's own.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] if the user's own are there and can't be understood.
    pub fn read(environment: &Environment) -> Result<Self, ConfigError> {
        let mut prices = Self::shipped();
        let Some(path) = path_in(environment) else {
            return Ok(prices);
        };
        let bytes = match read_regular(&path, PRICES_BYTES_MAX, Links::Follow) {
            Ok(file) => file.bytes,
            Err(ReadFileError::NotFound { .. }) => return Ok(prices),
            Err(source) => return Err(ConfigError::Read { path, source }),
        };
        let own = Self::parse(&bytes).map_err(|wrong| ConfigError::Parse {
            line: line_of(&bytes, wrong.at),
            path,
            reason: wrong.reason,
        })?;
        prices.models.extend(own.models);
        Ok(prices)
    }

    /// The prices that are shipped.
    #[must_use]
    pub fn shipped() -> Self {
        // A test reads it.
        Self::parse(SHIPPED.as_bytes()).unwrap_or_default()
    }

    /// Parses a table.
    ///
    /// # Errors
    ///
    /// [`Wrong`] with the first thing that can't be understood.
    pub fn parse(bytes: &[u8]) -> Result<Self, Wrong> {
        let table: Table = parse_toml(bytes)?;
        let mut models = BTreeMap::new();
        for (name, model) in table.model {
            let at = model.span().start;
            let model = model.into_inner();
            model.check(true).map_err(|reason| Wrong {
                at,
                reason: format!("model `{name}`: {reason}"),
            })?;
            models.insert(name, model);
        }
        Ok(Self {
            models,
            source: table.source,
            date: table.date,
        })
    }

    /// What a sum cost, in billionths of a dollar: by the agent, else by its model's
    /// price; `None` if that is not known.
    #[must_use]
    pub fn cost_nano(&self, slot: &Slot, sums: &Sums) -> Option<u64> {
        if slot.has_cost {
            return Some(sums.cost_nano);
        }
        let model = self.of(slot.model.as_deref()?)?;
        Some(model.cost_nano(slot.tier, sums))
    }

    fn of(&self, name: &str) -> Option<&Model> {
        let name = name.split_once('[').map_or(name, |(name, _)| name);
        let short = name.rsplit('/').next().unwrap_or(name);
        let undated = without_date(short);
        let mut names = [name, short, undated].into_iter();
        names
            .find_map(|name| self.models.get(name))
            .or_else(|| self.by_pattern(name))
            .or_else(|| self.by_pattern(short))
    }

    /// The longest pattern that fits: a name with `*` at its end.
    fn by_pattern(&self, name: &str) -> Option<&Model> {
        let patterns = self.models.iter().filter_map(|(pattern, model)| {
            let start = pattern.strip_suffix('*')?;
            name.starts_with(start).then_some((start.len(), model))
        });
        patterns.max_by_key(|(len, _)| *len).map(|(_, model)| model)
    }
}

/// Where the user's own prices are.
fn path_in(environment: &Environment) -> Option<PathBuf> {
    let directory = environment.xdg_directory("XDG_CONFIG_HOME", ".config")?;
    Some(directory.join("whosup/prices.toml"))
}

fn without_date(name: &str) -> &str {
    let is_date = |date: &str, form: &str| {
        let mut pairs = date.bytes().zip(form.bytes());
        date.len() == form.len()
            && pairs.all(|(byte, form)| match form {
                b'0' => byte.is_ascii_digit(),
                dash => byte == dash,
            })
    };
    let mut names = DATES.iter().filter_map(|form| {
        let (name, date) = name.split_at_checked(name.len().checked_sub(form.len())?)?;
        is_date(date, form).then_some(name)
    });
    names.next().unwrap_or(name)
}

impl Model {
    fn check(&self, is_whole: bool) -> Result<(), String> {
        let kinds = [
            self.input,
            self.cached_input,
            self.cache_write,
            self.cache_write_1h,
            self.output,
        ];
        if kinds
            .into_iter()
            .flatten()
            .any(|price| !(price >= 0.0 && price.is_finite()))
        {
            return Err("a price is a number of dollars, and not negative".to_owned());
        }
        if is_whole && (self.input.is_none() || self.output.is_none()) {
            return Err("`input` and `output` are both needed".to_owned());
        }
        for (tier, model) in &self.above {
            if tier.parse::<u16>().is_err() || !model.above.is_empty() {
                let example = "such as `above.200`";
                return Err(format!(
                    "`above.{tier}` is no number of thousand tokens, {example}"
                ));
            }
            model.check(false)?;
        }
        Ok(())
    }

    /// The prices of requests above so many thousand tokens.
    fn tier(&self, tier: u16) -> Option<&Self> {
        let tiers = self.above.iter();
        let tiers = tiers.filter_map(|(above, model)| Some((above.parse().ok()?, model)));
        let passed = tiers.filter(|(above, _): &(u16, _)| *above <= tier);
        passed
            .max_by_key(|(above, _)| *above)
            .map(|(_, model)| model)
    }

    fn cost_nano(&self, tier: u16, sums: &Sums) -> u64 {
        let above = self.tier(tier);
        let of = |kind: fn(&Self) -> Option<f64>| above.and_then(kind).or_else(|| kind(self));
        let input = of(|model| model.input).unwrap_or(0.0);
        let output = of(|model| model.output).unwrap_or(0.0);
        // Where a kind has no price of its own, it is charged as the next kind.
        let cached = of(|model| model.cached_input).unwrap_or(input);
        let write = of(|model| model.cache_write).unwrap_or(input);
        let long_write = of(|model| model.cache_write_1h).unwrap_or(write);
        let long_writes = sums.long_cache_writes.min(sums.cache_writes);
        let nano = |tokens: u64, price: f64| {
            // A dollar per million tokens is a thousand billionths per token.
            #[expect(
                clippy::cast_precision_loss,
                reason = "a sum of money is no exact number"
            )]
            let tokens = tokens as f64;
            tokens * price * 1_000.0
        };
        let all = nano(sums.input, input)
            + nano(sums.cached_input, cached)
            + nano(sums.cache_writes.saturating_sub(long_writes), write)
            + nano(long_writes, long_write)
            + nano(sums.output, output);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "no price is negative, and what is too much becomes the most there is"
        )]
        let all = all.round() as u64;
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot(model: &str, tier: u16) -> Slot {
        Slot {
            model: Some(model.to_owned()),
            tier,
            ..Slot::default()
        }
    }

    const SUMS: Sums = Sums {
        input: 1_000_000,
        cached_input: 2_000_000,
        cache_writes: 3_000_000,
        long_cache_writes: 1_000_000,
        output: 100_000,
        reasoning: None,
        cost_nano: 0,
        requests: 1,
    };

    fn dollars(prices: &Prices, slot: &Slot) -> Option<f64> {
        #[expect(clippy::cast_precision_loss, reason = "a few dollars")]
        prices.cost_nano(slot, &SUMS).map(|nano| nano as f64 / 1e9)
    }

    #[test]
    fn what_is_shipped_has_the_models_of_agents_and_names_its_source() {
        let prices =
            Prices::parse(SHIPPED.as_bytes()).unwrap_or_else(|wrong| panic!("{}", wrong.reason));
        assert!(prices.source.contains("litellm") && !prices.date.is_empty());
        // 5 + 2 * 0.5 + 2 * 6.25 + 10 + 0.1 * 25
        let opus = Some(31.0);
        for name in [
            "claude-opus-4-8",
            "claude-opus-4-8[1m]",
            "anthropic/claude-opus-4-8",
            "claude-opus-4-8-20260401",
        ] {
            assert_eq!(dollars(&prices, &slot(name, 0)), opus, "{name}");
        }
        assert_eq!(dollars(&prices, &slot("mock", 0)), None);
        assert_eq!(dollars(&prices, &Slot::default()), None);
        // Every bound of a price is one that requests are sorted by.
        for (name, model) in &prices.models {
            for above in model.above.keys() {
                let above: u64 = above.parse().unwrap();
                let request = Sums {
                    input: above * 1_000 + 1,
                    ..Sums::default()
                };
                assert_eq!(u64::from(request.tier()), above, "{name}");
            }
        }
    }

    #[test]
    fn a_table_of_ones_own_has_patterns_and_tiers() {
        let text = "[model.\"our-*\"]\ninput = 1\noutput = 2\n[model.\"our-big-*\"]\ninput = 3\noutput = 0\n\
            [model.\"our-big-*\".above.200]\ninput = 10\n";
        let prices =
            Prices::parse(text.as_bytes()).unwrap_or_else(|wrong| panic!("{}", wrong.reason));
        // Cached input and writes have no price of their own.
        assert_eq!(dollars(&prices, &slot("our-small", 0)), Some(6.2));
        assert_eq!(dollars(&prices, &slot("our-big-1", 128)), Some(18.0));
        assert_eq!(dollars(&prices, &slot("our-big-1", 272)), Some(60.0));
    }

    #[test]
    fn what_is_no_price_is_named() {
        for (text, said) in [
            ("[model.a]\ninput = -1\noutput = 1", "negative"),
            ("[model.a]\ninput = nan\noutput = 1", "number"),
            ("[model.a]\ninput = 1", "`output`"),
            (
                "[model.a]\ninput = 1\noutput = 1\n[model.a.above.many]\ninput = 1",
                "above.many",
            ),
            ("[model.a]\nimput = 1", "imput"),
        ] {
            let wrong = Prices::parse(text.as_bytes()).unwrap_err();
            assert!(wrong.reason.contains(said), "{text}: {}", wrong.reason);
        }
    }

    #[test]
    fn the_agents_own_cost_wins() {
        let slot = Slot {
            has_cost: true,
            ..slot("claude-opus-4-8", 0)
        };
        let sums = Sums {
            cost_nano: 7,
            ..SUMS
        };
        assert_eq!(Prices::shipped().cost_nano(&slot, &sums), Some(7));
    }
}
