//! The wire `anthropic-messages`: Anthropic's Messages, which a number of gateways speak too.

mod body;
mod compat;
mod oauth;
mod request;
mod response;
mod sessions;
mod threads;

use std::{fmt, sync::Arc};

use super::{Concession, Concessions, Decoder, EncodeRequest, HttpRequest, Wire, strict_limits::StrictLimits};
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
    strict_limits: StrictLimits,
}

impl AnthropicMessages {
    /// The name that models refer to.
    pub const ID: &'static str = "anthropic-messages";

    /// Forgets what is kept for a conversation.
    pub fn forget(&self, session: &SessionId) {
        self.sessions.forget(session);
        self.strict_limits.forget(session);
    }
}

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
        if options.session_id.as_ref().is_some_and(|session| self.strict_limits.are_exceeded(session)) {
            concessions.add(Concession::LenientTools);
        }
        concessions
    }

    fn concede(&self, request: &EncodeRequest<'_>, sent: &HttpRequest, refusal: &ProviderError) -> Option<Concession> {
        if let Some(concession) = threads::concession(&self.sessions, sent, refusal) {
            return Some(concession);
        }
        if StrictLimits::are_named_by(refusal) && request::has_preferred_strict_tools(request) {
            if let Some(session) = &request.options.session_id {
                self.strict_limits.exceed(session);
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
