//! The wire `mistral-conversations`: Mistral's own chat completions.

mod body;
mod request;
mod response;

use super::{Decoder, EncodeRequest, HttpRequest, Wire};
use crate::{error::ProviderError, id::ApiId};

/// Mistral.
#[derive(Clone, Copy, Debug, Default)]
pub struct MistralConversations;

impl MistralConversations {
    /// The name that models refer to.
    pub const ID: &'static str = "mistral-conversations";
}

impl Wire for MistralConversations {
    fn id(&self) -> ApiId {
        Self::ID.into()
    }

    fn encode(&self, request: &EncodeRequest<'_>) -> Result<HttpRequest, ProviderError> {
        request::encode(request)
    }

    fn decoder(&self, request: &EncodeRequest<'_>, _sent: &HttpRequest) -> Box<dyn Decoder> {
        Box::new(response::MistralDecoder::new(request))
    }
}

/// Ids of calls have exactly so many letters and digits.
const ID_LENGTH: usize = 9;

/// An id in that form: itself, when it has it, else one that stands for it.
fn tool_call_id(id: &str) -> String {
    let plain: String = id.chars().filter(char::is_ascii_alphanumeric).collect();
    if plain.len() == ID_LENGTH {
        return plain;
    }
    let hash = super::ids::short_hash(if plain.is_empty() { id } else { &plain });
    format!("{:0>ID_LENGTH$}", super::ids::clipped(&hash, ID_LENGTH))
}
