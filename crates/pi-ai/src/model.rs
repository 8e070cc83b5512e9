//! What is known about a model.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    id::{ApiId, ModelId, ProviderId},
    json::number,
};

/// A model at a provider: how it is reached, what it can do, what it costs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Model {
    /// Its name at the provider.
    pub id: ModelId,
    /// Its name for people.
    #[serde(default)]
    pub name: String,
    /// The wire that it speaks.
    #[serde(default)]
    pub api: ApiId,
    /// Who serves it.
    #[serde(default)]
    pub provider: ProviderId,
    /// Where it is served.
    #[serde(default)]
    pub base_url: String,
    /// What it is for; most are for chat.
    #[serde(default, rename = "type", skip_serializing_if = "ModelKind::is_chat")]
    pub kind: ModelKind,
    /// Whether it can think before it answers.
    #[serde(default)]
    pub reasoning: bool,
    /// The provider's word for a thinking level; `None` says that the model does not support the level.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub thinking_level_map: IndexMap<ThinkingLevel, Option<String>>,
    /// What it reads.
    #[serde(default)]
    pub input: Vec<InputKind>,
    /// Limits on what it reads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_limits: Option<InputLimits>,
    /// Prices.
    #[serde(default)]
    pub cost: ModelCost,
    /// Tokens that fit into one request, answer included. 0 = unknown.
    #[serde(default)]
    pub context_window: u64,
    /// Tokens that one answer may have. 0 = unknown.
    #[serde(default)]
    pub max_tokens: u64,
    /// How long the provider keeps a cached prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt_cache: Option<PromptCacheLifetime>,
    /// Sampling parameters that every request carries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sampling_params: Option<Map<String, Value>>,
    /// Sampling parameters by thinking level.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sampling_params_by_thinking_level: Option<IndexMap<ThinkingLevel, Map<String, Value>>>,
    /// Headers that every request carries.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub headers: IndexMap<String, String>,
    /// Switches for what differs between vendors of one wire; each wire reads its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compat: Option<Map<String, Value>>,
}

/// What a model is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum ModelKind {
    /// Conversation.
    #[default]
    Chat,
    /// Making pictures.
    Image,
    /// Answering with a class.
    Classifier,
    /// A kind that this version does not know.
    #[serde(other)]
    Unknown,
}

impl ModelKind {
    /// Whether the model is for conversation.
    pub fn is_chat(&self) -> bool {
        matches!(self, Self::Chat)
    }
}

/// A kind of input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum InputKind {
    /// Text.
    Text,
    /// Pictures.
    Image,
    /// A kind that this version does not know.
    #[serde(other)]
    Unknown,
}

/// Limits on what a model reads.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct InputLimits {
    /// Bytes of a whole request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_request_bytes: Option<u64>,
    /// Limits on pictures.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub images: Option<ImageLimits>,
}

/// Limits on pictures.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ImageLimits {
    /// Pictures in one message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_per_message: Option<u64>,
    /// Pictures in one request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_per_request: Option<u64>,
    /// To what a picture is scaled down before it is sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resize: Option<ImageResize>,
}

/// To what a picture is scaled down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ImageResize {
    /// Pixels.
    pub max_width: u32,
    /// Pixels.
    pub max_height: u32,
    /// Bytes of the base64 text.
    pub max_bytes: u64,
    /// 1 to 100.
    pub jpeg_quality: u8,
}

impl Default for ImageResize {
    fn default() -> Self {
        Self { max_width: 2000, max_height: 2000, max_bytes: 4_718_592, jpeg_quality: 80 }
    }
}

/// How long a provider keeps a cached prompt, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PromptCacheLifetime {
    /// With short retention.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub short: Option<u64>,
    /// With long retention.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub long: Option<u64>,
}

/// Prices in USD per million tokens.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ModelCost {
    /// The rates of a plain request.
    #[serde(flatten)]
    pub rates: Rates,
    /// Rates of requests with much input.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tiers: Vec<CostTier>,
}

/// Rates in USD per million tokens, by kind of token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Rates {
    /// Plain input.
    #[serde(with = "number")]
    pub input: f64,
    /// Output.
    #[serde(with = "number")]
    pub output: f64,
    /// Cache reads.
    #[serde(with = "number")]
    pub cache_read: f64,
    /// Cache writes.
    #[serde(with = "number")]
    pub cache_write: f64,
}

/// Rates that replace all others when a request has more input than a threshold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CostTier {
    /// The threshold, in input tokens of every kind.
    pub input_tokens_above: u64,
    /// The rates above it.
    #[serde(flatten)]
    pub rates: Rates,
}

impl ModelCost {
    /// The rates of a request with this many input tokens of every kind: those of the highest tier whose threshold is
    /// strictly exceeded, else the plain ones.
    pub fn rates_for(&self, all_input: u64) -> Rates {
        self.tiers
            .iter()
            .filter(|tier| all_input > tier.input_tokens_above)
            .max_by_key(|tier| tier.input_tokens_above)
            .map_or(self.rates, |tier| tier.rates)
    }
}

/// How hard a model should think before it answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ThinkingLevel {
    /// Not at all.
    #[default]
    Off,
    /// As little as the model can.
    Minimal,
    /// A little.
    Low,
    /// Some.
    Medium,
    /// Much.
    High,
    /// More than most models offer.
    XHigh,
    /// As much as the model can.
    Max,
}

impl ThinkingLevel {
    /// Every level, from the least.
    pub const ALL: [Self; 7] = [Self::Off, Self::Minimal, Self::Low, Self::Medium, Self::High, Self::XHigh, Self::Max];

    /// The level as it is written.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Minimal => "minimal",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::XHigh => "xhigh",
            Self::Max => "max",
        }
    }
}

impl std::fmt::Display for ThinkingLevel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Not the name of a thinking level.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{found}` is not a thinking level; use one of off, minimal, low, medium, high, xhigh, max")]
pub struct UnknownThinkingLevel {
    /// What was given.
    pub found: String,
}

impl std::str::FromStr for ThinkingLevel {
    type Err = UnknownThinkingLevel;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|level| level.as_str() == name)
            .ok_or_else(|| UnknownThinkingLevel { found: name.to_owned() })
    }
}

impl Model {
    /// Whether the model reads pictures.
    pub fn reads_images(&self) -> bool {
        self.input.contains(&InputKind::Image)
    }

    /// Whether the model supports a thinking level: one without reasoning only [`ThinkingLevel::Off`]; otherwise all
    /// up to `high` that are not mapped to nothing, and `xhigh` and `max` only where the map names them.
    pub fn supports(&self, level: ThinkingLevel) -> bool {
        if !self.reasoning {
            return level == ThinkingLevel::Off;
        }
        match self.thinking_level_map.get(&level) {
            Some(mapped) => mapped.is_some(),
            None => level <= ThinkingLevel::High,
        }
    }

    /// The thinking levels that the model supports, from the least.
    pub fn thinking_levels(&self) -> impl Iterator<Item = ThinkingLevel> {
        ThinkingLevel::ALL.into_iter().filter(|level| self.supports(*level))
    }

    /// The nearest supported level: the same, else the next higher one, else the next lower one.
    pub fn clamp(&self, level: ThinkingLevel) -> ThinkingLevel {
        let higher = self.thinking_levels().find(|supported| *supported >= level);
        let lower = || self.thinking_levels().filter(|supported| *supported < level).last();
        higher.or_else(lower).unwrap_or_default()
    }

    /// The provider's word for a level, if the model maps it to one.
    pub fn mapped_level(&self, level: ThinkingLevel) -> Option<&str> {
        self.thinking_level_map.get(&level)?.as_deref()
    }
}
