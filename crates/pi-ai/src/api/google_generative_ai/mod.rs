//! The wire `google-generative-ai`: Gemini's `streamGenerateContent`.
//!
//! Vertex speaks it at other addresses; its module brings head and address, the rest is shared.

mod body;
mod request;
mod response;
mod schema;

use super::{Decoder, EncodeRequest, HttpRequest, Wire};
use crate::{error::ProviderError, id::ApiId};

#[cfg(not(feature = "vertex"))]
use request::Budgets;
#[cfg(feature = "vertex")]
pub(super) use request::{Budgets, body};
pub(super) use response::GeminiDecoder;

/// Gemini.
#[derive(Clone, Copy, Debug, Default)]
pub struct GoogleGenerativeAi;

impl GoogleGenerativeAi {
    /// The name that models refer to.
    pub const ID: &'static str = "google-generative-ai";
}

impl Wire for GoogleGenerativeAi {
    fn id(&self) -> ApiId {
        Self::ID.into()
    }

    fn encode(&self, request: &EncodeRequest<'_>) -> Result<HttpRequest, ProviderError> {
        request::encode(request, Budgets::WithFlashLite)
    }

    fn decoder(&self, request: &EncodeRequest<'_>, _sent: &HttpRequest) -> Box<dyn Decoder> {
        Box::new(GeminiDecoder::new(request))
    }
}
