//! The wire `anthropic-messages`: Anthropic's Messages, which a number of gateways speak too.

mod body;
mod compat;
mod oauth;
mod request;
mod response;
mod sessions;
mod threads;

use std::{fmt, sync::Arc};

use super::{Concession, Concessions, Decoder, EncodeRequest, HttpRequest, Wire};
use crate::{
    error::ProviderError,
    id::{ApiId, SessionId},
    model::Model,
    options::StreamOptions,
};
use sessions::Sessions;

/// Messages. It keeps, per conversation, where its thread at the provider stands and what the provider refused.
#[derive(Default)]
pub struct AnthropicMessages {
    sessions: Arc<Sessions>,
}

impl AnthropicMessages {
    /// The name that models refer to.
    pub const ID: &'static str = "anthropic-messages";

    /// Forgets what is kept for a conversation.
    pub fn forget(&self, session: &SessionId) {
        self.sessions.forget(session);
    }
}

/// How Anthropic says that the strict tools of a request are too many or too large together.
const STRICT_LIMITS: [&str; 3] = [
    "The compiled grammar is too large",
    "Too many strict tools (",
    "Schemas contains too many parameters with union types (",
];

impl Wire for AnthropicMessages {
    fn id(&self) -> ApiId {
        Self::ID.into()
    }

    fn encode(&self, request: &EncodeRequest<'_>) -> Result<HttpRequest, ProviderError> {
        request::encode(request)
    }

    fn decoder(&self, request: &EncodeRequest<'_>, sent: &HttpRequest) -> Box<dyn Decoder> {
        let access = oauth::Access::of_request(request);
        let recorder = threads::Recorder::new(&self.sessions, request, sent, access);
        Box::new(response::MessageDecoder::new(request, access, recorder))
    }

    fn prepare(&self, request: &EncodeRequest<'_>, http: HttpRequest) -> HttpRequest {
        threads::apply(&self.sessions, request, http)
    }

    fn concessions(&self, _model: &Model, options: &StreamOptions) -> Concessions {
        let mut concessions = Concessions::default();
        if options.session_id.as_ref().is_some_and(|session| self.sessions.refuses_strict_tools(session)) {
            concessions.add(Concession::LenientTools);
        }
        concessions
    }

    fn concede(&self, request: &EncodeRequest<'_>, sent: &HttpRequest, refusal: &ProviderError) -> Option<Concession> {
        if let Some(concession) = threads::concession(&self.sessions, sent, refusal) {
            return Some(concession);
        }
        let body = refusal.body().unwrap_or_default();
        let over_limits = refusal.status() == Some(400) && STRICT_LIMITS.iter().any(|limit| body.contains(limit));
        if over_limits && request::has_preferred_strict_tools(request) {
            if let Some(session) = &request.options.session_id {
                self.sessions.refuse_strict_tools(session);
            }
            return Some(Concession::LenientTools);
        }
        None
    }
}

impl fmt::Debug for AnthropicMessages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnthropicMessages").finish_non_exhaustive()
    }
}
