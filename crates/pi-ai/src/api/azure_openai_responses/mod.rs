//! The wire `azure-openai-responses`: Responses as Azure serves them, under a deployment's name.

mod request;

use super::{
    Decoder, EncodeRequest, HttpRequest, Wire,
    openai_responses::{Dialect, ResponsesDecoder, grammar_mode},
};
use crate::{error::ProviderError, id::ApiId};

/// Responses at Azure.
#[derive(Clone, Copy, Debug, Default)]
pub struct AzureOpenAiResponses;

impl AzureOpenAiResponses {
    /// The name that models refer to.
    pub const ID: &'static str = "azure-openai-responses";
}

impl Wire for AzureOpenAiResponses {
    fn id(&self) -> ApiId {
        Self::ID.into()
    }

    fn encode(&self, request: &EncodeRequest<'_>) -> Result<HttpRequest, ProviderError> {
        request::encode(request)
    }

    fn decoder(&self, request: &EncodeRequest<'_>, _sent: &HttpRequest) -> Box<dyn Decoder> {
        let grammar_tools = grammar_mode(request.model);
        let dialect = Dialect { grammar_tools, effort: None, service_tiers: &[], codex: false };
        Box::new(ResponsesDecoder::new(request, dialect))
    }
}
