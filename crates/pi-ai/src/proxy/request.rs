//! The request: `{model, context, options}`.

use std::time::Duration;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    api::EncodeRequest,
    context::Context,
    error::{ErrorKind, ProviderError},
    id::{ModelId, SessionId},
    json::from_slice_lossy,
    message::Message,
    model::{Model, ThinkingLevel},
    options::{CacheRetention, Continuation, StreamOptions, ToolChoice},
    tool::ToolDeclaration,
};

/// How a request names its model.
#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum RequestModel<'a> {
    /// All that is known of it.
    Whole(&'a Model),
    /// Its id: the server knows it.
    Id(&'a ModelId),
}

#[derive(Serialize)]
struct Outgoing<'a> {
    model: RequestModel<'a>,
    context: OutgoingContext<'a>,
    options: Options,
}

#[derive(Serialize)]
struct OutgoingContext<'a> {
    messages: &'a [Message],
}

#[derive(Deserialize)]
struct Incoming {
    model: ProxyModel,
    #[serde(default)]
    context: IncomingContext,
    #[serde(default)]
    options: Options,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct IncomingContext {
    system_prompt: Option<String>,
    messages: Vec<Message>,
    tools: Option<Vec<ToolDeclaration>>,
}

/// What of the options crosses the wire: what the model is asked for, and nothing of how the client sends.
#[derive(Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Options {
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sampling_params: Option<Map<String, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<ThinkingLevel>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_retention: Option<CacheRetention>,
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<SessionId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    disable_continuation: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    headers: Option<IndexMap<String, Option<String>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<Map<String, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<ToolChoice>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_budgets: Option<IndexMap<ThinkingLevel, u64>>,
    /// 0 says that any wait is accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    max_retry_delay_ms: Option<u64>,
}

impl From<&StreamOptions> for Options {
    fn from(options: &StreamOptions) -> Self {
        let unless_empty = |is_empty: bool| (!is_empty).then_some(());
        let usual_delay = StreamOptions::default().retry.max_delay;
        let delay = options.retry.max_delay.map_or(0, |delay| u64::try_from(delay.as_millis()).unwrap_or(u64::MAX));
        Self {
            temperature: options.temperature,
            sampling_params: options.sampling_params.clone(),
            max_tokens: options.max_tokens,
            reasoning: options.reasoning.filter(|level| *level != ThinkingLevel::Off),
            cache_retention: Some(options.cache_retention),
            session_id: options.session_id.clone(),
            disable_continuation: (options.continuation == Continuation::Disabled).then_some(true),
            headers: unless_empty(options.headers.is_empty()).map(|()| options.headers.clone()),
            metadata: options.metadata.clone(),
            tool_choice: options.tool_choice,
            thinking_budgets: unless_empty(options.thinking_budgets.is_empty())
                .map(|()| options.thinking_budgets.clone()),
            max_retry_delay_ms: (options.retry.max_delay != usual_delay).then_some(delay),
        }
    }
}

impl From<Options> for StreamOptions {
    fn from(options: Options) -> Self {
        let mut taken = Self {
            temperature: options.temperature,
            sampling_params: options.sampling_params,
            max_tokens: options.max_tokens,
            reasoning: options.reasoning,
            cache_retention: options.cache_retention.unwrap_or_default(),
            session_id: options.session_id,
            headers: options.headers.unwrap_or_default(),
            metadata: options.metadata,
            tool_choice: options.tool_choice,
            thinking_budgets: options.thinking_budgets.unwrap_or_default(),
            ..Self::default()
        };
        if options.disable_continuation == Some(true) {
            taken.continuation = Continuation::Disabled;
        }
        if let Some(millis) = options.max_retry_delay_ms {
            taken.retry.max_delay = (millis > 0).then(|| Duration::from_millis(millis));
        }
        taken
    }
}

/// The bytes of a request.
pub(crate) fn body(request: &EncodeRequest<'_>, model: RequestModel<'_>) -> Result<Vec<u8>, ProviderError> {
    let context = OutgoingContext { messages: request.context.messages() };
    let outgoing = Outgoing { model, context, options: request.options.into() };
    serde_json::to_vec(&outgoing).map_err(|error| {
        ProviderError::new(ErrorKind::InvalidRequest, format!("The request could not be written as JSON: {error}"))
    })
}

/// A client's request, as the server reads it.
#[derive(Clone, Debug)]
pub struct ProxyRequest {
    /// The model that the client wants asked.
    pub model: ProxyModel,
    /// The conversation.
    pub context: Context,
    /// What the client asks for. Key, timeouts, hooks and signal are the server's to add.
    pub options: StreamOptions,
}

/// The model that a client wants asked.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum ProxyModel {
    /// By its id.
    Id(ModelId),
    /// With all that the client knows of it. Its address is a client's word: do not send a key there.
    Whole(Box<Model>),
}

impl ProxyModel {
    /// Its id.
    pub fn id(&self) -> &ModelId {
        match self {
            Self::Id(id) => id,
            Self::Whole(model) => &model.id,
        }
    }
}

/// A body is no request of a client: answer with status 400.
#[derive(Debug, thiserror::Error)]
#[error("the body is not a request of the form {{model, context, options}}: {0}")]
pub struct BadRequest(#[source] serde_json::Error);

impl ProxyRequest {
    /// Reads a body.
    ///
    /// # Errors
    /// When it is no such request.
    pub fn read(body: &[u8]) -> Result<Self, BadRequest> {
        let Incoming { model, context, options } = from_slice_lossy(body).map_err(BadRequest)?;
        let context = Context {
            system_prompt: context.system_prompt,
            messages: context.messages,
            tools: context.tools.unwrap_or_default(),
        };
        Ok(Self { model, context, options: options.into() })
    }
}
