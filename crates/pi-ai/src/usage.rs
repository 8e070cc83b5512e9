//! What a request used and what it cost.

use serde::{Deserialize, Serialize};

use crate::{json::number, model::ModelCost};

/// Token counts of one request, and their price.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Usage {
    /// Input tokens that were neither read from nor written to a cache.
    pub input: u64,
    /// Output tokens, reasoning included.
    pub output: u64,
    /// Input tokens read from a cache.
    pub cache_read: u64,
    /// Input tokens written to a cache.
    pub cache_write: u64,
    /// The part of [`cache_write`](Self::cache_write) that is kept for one hour.
    #[serde(rename = "cacheWrite1h", skip_serializing_if = "Option::is_none")]
    pub cache_write_1h: Option<u64>,
    /// The part of [`output`](Self::output) that was reasoning. Never add it again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<u64>,
    /// All tokens of the request, as the provider counts them.
    pub total_tokens: u64,
    /// The price in USD.
    pub cost: Cost,
}

/// A price in USD, by kind of token.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Cost {
    /// For input tokens.
    #[serde(with = "number")]
    pub input: f64,
    /// For output tokens.
    #[serde(with = "number")]
    pub output: f64,
    /// For cache reads.
    #[serde(with = "number")]
    pub cache_read: f64,
    /// For cache writes.
    #[serde(with = "number")]
    pub cache_write: f64,
    /// Everything: the sum, or what the provider billed.
    #[serde(with = "number")]
    pub total: f64,
    /// Whether [`total`](Self::total) is the amount that the provider billed; the parts stay estimates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_from_provider: Option<bool>,
}

impl Usage {
    /// Input of every kind: plain, cache reads and cache writes.
    pub fn all_input(&self) -> u64 {
        self.input.saturating_add(self.cache_read).saturating_add(self.cache_write)
    }

    /// Sets [`cost`](Self::cost) from the model's prices. A billed total that is already there stays.
    ///
    /// A price tier replaces all rates of the request when its threshold is strictly exceeded; writes that are kept
    /// for an hour cost twice the input rate.
    pub fn price(&mut self, prices: &ModelCost) {
        let rates = prices.rates_for(self.all_input());
        let million = 1_000_000.0;
        let long_writes = self.cache_write_1h.unwrap_or(0).min(self.cache_write);
        let short_writes = self.cache_write - long_writes;
        let cost = &mut self.cost;
        cost.input = rates.input / million * self.input as f64;
        cost.output = rates.output / million * self.output as f64;
        cost.cache_read = rates.cache_read / million * self.cache_read as f64;
        cost.cache_write = (rates.cache_write * short_writes as f64 + 2.0 * rates.input * long_writes as f64) / million;
        if cost.total_from_provider != Some(true) {
            cost.total = cost.input + cost.output + cost.cache_read + cost.cache_write;
            cost.total_from_provider = Some(false);
        }
    }

    /// Adds another request's counts and price, for totals over a session.
    pub fn add(&mut self, other: &Usage) {
        let sum = |a: Option<u64>, b: Option<u64>| match (a, b) {
            (None, None) => None,
            (a, b) => Some(a.unwrap_or(0).saturating_add(b.unwrap_or(0))),
        };
        self.input = self.input.saturating_add(other.input);
        self.output = self.output.saturating_add(other.output);
        self.cache_read = self.cache_read.saturating_add(other.cache_read);
        self.cache_write = self.cache_write.saturating_add(other.cache_write);
        self.cache_write_1h = sum(self.cache_write_1h, other.cache_write_1h);
        self.reasoning = sum(self.reasoning, other.reasoning);
        self.total_tokens = self.total_tokens.saturating_add(other.total_tokens);
        self.cost.input += other.cost.input;
        self.cost.output += other.cost.output;
        self.cost.cache_read += other.cost.cache_read;
        self.cost.cache_write += other.cost.cache_write;
        self.cost.total += other.cost.total;
    }
}
