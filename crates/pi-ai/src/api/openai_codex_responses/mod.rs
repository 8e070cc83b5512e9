//! The wire `openai-codex-responses`: Responses as ChatGPT serves them to a subscription, over events, with compressed
//! bodies.

mod request;

use super::{
    Decoder, EncodeRequest, HttpRequest, Wire,
    openai_responses::{Dialect, ResponsesDecoder, grammar_mode},
};
use crate::{error::ProviderError, id::ApiId};

/// Responses at ChatGPT.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpenAiCodexResponses;

impl OpenAiCodexResponses {
    /// The name that models refer to.
    pub const ID: &'static str = "openai-codex-responses";
}

impl Wire for OpenAiCodexResponses {
    fn id(&self) -> ApiId {
        Self::ID.into()
    }

    fn encode(&self, request: &EncodeRequest<'_>) -> Result<HttpRequest, ProviderError> {
        request::encode(request)
    }

    fn prepare(&self, _request: &EncodeRequest<'_>, http: HttpRequest) -> HttpRequest {
        request::compress(http)
    }

    fn decoder(&self, request: &EncodeRequest<'_>, _sent: &HttpRequest) -> Box<dyn Decoder> {
        let dialect = Dialect {
            grammar_tools: grammar_mode(request.model),
            effort: request::managed_effort(request),
            service_tiers: &[("flex", 0.5), ("priority", 2.0)],
            codex: true,
        };
        Box::new(ResponsesDecoder::new(request, dialect))
    }
}
