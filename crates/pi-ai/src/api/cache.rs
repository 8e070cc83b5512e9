//! How requests name and mark what is to be cached.

use serde::Serialize;
use serde_json::{Value, json};

use crate::options::CacheRetention;

/// Anthropic's mark of a cached prefix: everything up to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename = "ephemeral")]
pub(crate) struct CacheControl {
    #[serde(skip_serializing_if = "Option::is_none")]
    ttl: Option<&'static str>,
}

/// The longest cache key that is taken, in characters.
const MAX_CACHE_KEY: usize = 64;

impl CacheControl {
    /// The mark of a retention; `None` where nothing is cached. `long` says whether the provider has a long one.
    pub(crate) fn of(retention: CacheRetention, long: bool) -> Option<Self> {
        match retention {
            CacheRetention::None => None,
            CacheRetention::Long if long => Some(Self { ttl: Some("1h") }),
            CacheRetention::Short | CacheRetention::Long => Some(Self { ttl: None }),
        }
    }

    pub(crate) fn to_value(self) -> Value {
        json!(self)
    }
}

/// A conversation's name as OpenAI takes it for a cache key.
pub(crate) fn clipped_cache_key(session: &str) -> &str {
    session.char_indices().nth(MAX_CACHE_KEY).map_or(session, |(at, _)| &session[..at])
}
