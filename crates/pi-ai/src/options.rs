//! What a caller may ask of a request, beside its transcript.

use std::{fmt, sync::Arc, time::Duration};

use futures::future::BoxFuture;
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use crate::{error::ProviderError, id::SessionId, model::ThinkingLevel, secret::Secret};

/// Options of one request. All of them have defaults.
///
/// ```
/// use pi_ai::StreamOptions;
/// let options = StreamOptions { temperature: Some(0.2), ..StreamOptions::default() };
/// # assert!(options.max_tokens.is_none());
/// ```
#[derive(Clone, Debug, Default)]
pub struct StreamOptions {
    /// Aborts the request when it is cancelled.
    pub signal: CancellationToken,
    /// The key, instead of the provider's configured one. An empty one says that the server wants none.
    pub api_key: Option<Secret>,
    /// Environment values that take precedence over the process's, for providers that read some.
    pub env: IndexMap<String, String>,
    /// Headers to set (`Some`) or to leave out (`None`). Names are case-insensitive.
    pub headers: IndexMap<String, Option<String>>,
    /// Who asks, for providers that want to know.
    pub identity: Identity,
    /// Limits on waiting.
    pub timeouts: Timeouts,
    /// What happens after a failure that may pass.
    pub retry: RetryPolicy,
    /// Called along the request.
    pub hooks: ProviderHooks,
    /// Sampling temperature.
    pub temperature: Option<f64>,
    /// Further sampling parameters, as the wire names them.
    pub sampling_params: Option<Map<String, Value>>,
    /// The most tokens that the answer may have.
    pub max_tokens: Option<u64>,
    /// How long the prompt should stay cached at the provider.
    pub cache_retention: CacheRetention,
    /// Names the conversation to the provider, for caching and routing.
    pub session_id: Option<SessionId>,
    /// Whether state that a provider keeps between requests may be used.
    pub continuation: Continuation,
    /// Facts for the provider, such as `user_id`.
    pub metadata: Option<Map<String, Value>>,
    /// How hard to think. `None`: the caller does not care, which counts as off.
    pub reasoning: Option<ThinkingLevel>,
    /// Whether tools may be called.
    pub tool_choice: Option<ToolChoice>,
    /// Tokens to think with, by level, where the wire counts them.
    pub thinking_budgets: IndexMap<ThinkingLevel, u64>,
}

/// How long a prompt should stay cached at the provider.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CacheRetention {
    /// Not at all; cache keys and session affinity are left out too.
    None,
    /// The provider's usual time.
    #[default]
    Short,
    /// As long as the provider offers.
    Long,
}

/// Whether state that a provider keeps between requests may be used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Continuation {
    /// Where the wire has it.
    #[default]
    Allowed,
    /// Each request is sent whole.
    Disabled,
}

/// Whether tools may be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ToolChoice {
    /// The model decides.
    Auto,
    /// Not in this answer.
    None,
}

/// Who asks: what providers are told about the application. A field that is `None` is not sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The `user-agent` header.
    pub user_agent: Option<String>,
    /// The application's name, for providers that attribute requests.
    pub title: Option<String>,
    /// The application's home page.
    pub referer: Option<String>,
}

impl Default for Identity {
    fn default() -> Self {
        let (version, os, arch) = (env!("CARGO_PKG_VERSION"), std::env::consts::OS, std::env::consts::ARCH);
        Self {
            user_agent: Some(format!("pi/{version} ({os}; rust; {arch})")),
            title: Some("pi".into()),
            referer: Some("https://pi.dev".into()),
        }
    }
}

/// Limits on waiting. Each can be set apart from the others.
///
/// ```
/// use std::time::Duration;
/// use pi_ai::options::{Limit, Timeouts};
/// let patient = Timeouts { idle: Limit::After(Duration::from_secs(3600)), ..Timeouts::default() };
/// # assert_eq!(patient.first_byte, Limit::Usual);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timeouts {
    /// Until the connection stands. Usual: 30 s.
    pub connect: Limit,
    /// From the request until the first byte of the answer's body. Usual: 5 minutes; none on this machine or network,
    /// where a large model may read a long prompt for as long as it takes.
    pub first_byte: Limit,
    /// Between two bytes of the answer's body. Usual: 5 minutes; half an hour on this machine or network.
    pub idle: Limit,
}

/// A limit on a wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Limit {
    /// What is usual for the server.
    #[default]
    Usual,
    /// None: it may take for ever.
    Off,
    /// This long.
    After(Duration),
}

impl Limit {
    /// The limit as a time, when `usual` is the usual one. `None`: there is no limit.
    pub fn or_usual(self, usual: Option<Duration>) -> Option<Duration> {
        match self {
            Self::Usual => usual,
            Self::Off => None,
            Self::After(limit) => Some(limit),
        }
    }
}

/// How often and how long after one another a failed request is sent again, below the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Attempts after the first one.
    pub max_retries: u32,
    /// A provider that asks for a longer wait fails the request at once. `None`: any wait is accepted.
    pub max_delay: Option<Duration>,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self { max_retries: 0, max_delay: Some(Duration::from_secs(60)) }
    }
}

/// The head of a provider's response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResponseHead {
    /// The HTTP status.
    pub status: u16,
    /// The headers; names are lower case.
    pub headers: Headers,
}

/// What a raw stream event is about.
#[derive(Clone, Debug, PartialEq)]
pub struct RawStreamEvent {
    /// The event's name on the wire, where it has one.
    pub name: Option<String>,
    /// Its data, as the provider sent it.
    pub data: String,
}

/// A failed attempt that will be repeated.
#[derive(Clone, Debug)]
pub struct RetryNotice {
    /// The attempt that failed, from 1.
    pub attempt: u32,
    /// How long until the next one.
    pub delay: Duration,
    /// Why it failed.
    pub error: ProviderError,
}

/// Header names (lower case) and values, in order.
pub type Headers = Vec<(String, String)>;

/// A callback that is awaited; a failure fails the request.
pub type ProviderHook<T, R = ()> = Arc<dyn Fn(T) -> BoxFuture<'static, Result<R, ProviderError>> + Send + Sync>;

/// Called along a request, in this order, each awaited. A callback that fails, fails the request.
#[derive(Clone, Default)]
pub struct ProviderHooks {
    /// Sees the body before it is sent; `Some` replaces it.
    pub on_payload: Option<ProviderHook<Value, Option<Value>>>,
    /// Sees the headers before they are sent and gives those to send.
    pub on_headers: Option<ProviderHook<Headers, Headers>>,
    /// Sees each response's head.
    pub on_response: Option<ProviderHook<ResponseHead>>,
    /// Sees each raw event of the response.
    pub on_stream_event: Option<ProviderHook<RawStreamEvent>>,
    /// Learns of attempts that will be repeated.
    pub on_retry: Option<ProviderHook<RetryNotice>>,
}

impl fmt::Debug for ProviderHooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProviderHooks")
            .field("on_payload", &self.on_payload.is_some())
            .field("on_headers", &self.on_headers.is_some())
            .field("on_response", &self.on_response.is_some())
            .field("on_stream_event", &self.on_stream_event.is_some())
            .field("on_retry", &self.on_retry.is_some())
            .finish()
    }
}

/// Makes a [`ProviderHook`] from an async closure.
///
/// ```
/// use pi_ai::options::{ProviderHooks, ResponseHead, provider_hook};
/// let hooks = ProviderHooks {
///     on_response: Some(provider_hook(async |head: ResponseHead| {
///         println!("{}", head.status);
///         Ok(())
///     })),
///     ..ProviderHooks::default()
/// };
/// # let _ = hooks;
/// ```
pub fn provider_hook<T, R, F, Fut>(hook: F) -> ProviderHook<T, R>
where
    F: AsyncFn(T) -> Result<R, ProviderError> + FnOnce(T) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = Result<R, ProviderError>> + Send + 'static,
{
    Arc::new(move |argument| Box::pin(hook.clone()(argument)))
}
