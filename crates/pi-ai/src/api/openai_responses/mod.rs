//! The wire `openai-responses`: OpenAI's Responses, without state at the provider (`store: false`).
//!
//! Azure and ChatGPT speak it in a dialect of their own; their modules bring head and settings, the rest is shared.

mod body;
mod input;
mod request;
mod response;
mod tools;

use super::{Decoder, EncodeRequest, HttpRequest, Wire};
use crate::{error::ProviderError, id::ApiId};

pub(super) use body::body;
pub(super) use input::{InputSettings, ToolCallIds};
pub(super) use request::{MIN_OUTPUT_TOKENS, reasoning_fields};
pub(super) use response::{Dialect, ResponsesDecoder};
pub(super) use tools::{Strictness, ToolSettings, grammar_mode};

/// Responses. What differs between servers is in the model's compat switches.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpenAiResponses;

impl OpenAiResponses {
    /// The name that models refer to.
    pub const ID: &'static str = "openai-responses";
}

impl Wire for OpenAiResponses {
    fn id(&self) -> ApiId {
        Self::ID.into()
    }

    fn encode(&self, request: &EncodeRequest<'_>) -> Result<HttpRequest, ProviderError> {
        request::encode(request)
    }

    fn decoder(&self, request: &EncodeRequest<'_>, _sent: &HttpRequest) -> Box<dyn Decoder> {
        let dialect = Dialect {
            grammar_tools: tools::grammar_mode(request.model),
            effort: request::managed_effort(request),
            service_tiers: &[("flex", 0.5), ("priority", 2.0), ("fast", 2.0)],
            codex: false,
        };
        Box::new(ResponsesDecoder::new(request, dialect))
    }
}
