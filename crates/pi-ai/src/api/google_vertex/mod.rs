//! The wire `google-vertex`: Gemini as Vertex serves it, by project and location, or with a key.

mod request;

use super::{Decoder, EncodeRequest, HttpRequest, Wire, google_generative_ai::GeminiDecoder};
use crate::{error::ProviderError, id::ApiId};

/// Gemini at Vertex.
#[derive(Clone, Copy, Debug, Default)]
pub struct GoogleVertex;

impl GoogleVertex {
    /// The name that models refer to.
    pub const ID: &'static str = "google-vertex";
}

impl Wire for GoogleVertex {
    fn id(&self) -> ApiId {
        Self::ID.into()
    }

    fn encode(&self, request: &EncodeRequest<'_>) -> Result<HttpRequest, ProviderError> {
        request::encode(request)
    }

    fn decoder(&self, request: &EncodeRequest<'_>, _sent: &HttpRequest) -> Box<dyn Decoder> {
        Box::new(GeminiDecoder::new(request))
    }
}
