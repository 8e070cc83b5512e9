//! The wire `bedrock-converse-stream`: the Converse API of Amazon Bedrock, with a bearer key or signed requests.
//!
//! Everything that it needs to know of the account comes in with the options: the key, or the variables
//! `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_SESSION_TOKEN` and `AWS_REGION` in
//! [`env`](crate::StreamOptions::env). A signature holds for minutes, so each attempt is signed anew.

mod access;
mod body;
mod family;
mod request;
mod response;

use std::fmt;

use super::{Concession, Concessions, Decoder, EncodeRequest, Framing, HttpRequest, Wire, strict_limits::StrictLimits};
use crate::{
    error::ProviderError,
    id::{ApiId, SessionId},
    model::Model,
    options::{Headers, StreamOptions},
    time::Timestamp,
};

/// Converse. It keeps which conversations had their strict tools refused.
#[derive(Default)]
pub struct BedrockConverseStream {
    strict_limits: StrictLimits,
}

impl BedrockConverseStream {
    /// The name that models refer to.
    pub const ID: &'static str = "bedrock-converse-stream";

    /// Forgets what is kept for a conversation.
    pub fn forget(&self, session: &SessionId) {
        self.strict_limits.forget(session);
    }
}

/// That tools which would like strict arguments are sent without.
fn lenient_tools() -> Concession {
    Concession::Other("bedrock_strict_tools_fallback".to_owned())
}

impl Wire for BedrockConverseStream {
    fn id(&self) -> ApiId {
        Self::ID.into()
    }

    fn encode(&self, request: &EncodeRequest<'_>) -> Result<HttpRequest, ProviderError> {
        request::encode(request)
    }

    fn decoder(&self, request: &EncodeRequest<'_>, _sent: &HttpRequest) -> Box<dyn Decoder> {
        Box::new(response::ConverseDecoder::new(request))
    }

    fn sign(&self, request: &EncodeRequest<'_>, http: &HttpRequest, now: Timestamp) -> Result<Headers, ProviderError> {
        access::sign(request, http, now)
    }

    fn concessions(&self, _model: &Model, options: &StreamOptions) -> Concessions {
        let mut concessions = Concessions::default();
        if options.session_id.as_ref().is_some_and(|session| self.strict_limits.are_exceeded(session)) {
            concessions.add(lenient_tools());
        }
        concessions
    }

    fn concede(&self, request: &EncodeRequest<'_>, _sent: &HttpRequest, refusal: &ProviderError) -> Option<Concession> {
        if !StrictLimits::are_named_by(refusal) || !request::has_preferred_strict_tools(request) {
            return None;
        }
        if let Some(session) = &request.options.session_id {
            self.strict_limits.exceed(session);
        }
        Some(lenient_tools())
    }

    fn framing(&self) -> Framing {
        Framing::AwsEventStream
    }
}

impl fmt::Debug for BedrockConverseStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BedrockConverseStream").finish_non_exhaustive()
    }
}
