//! The wire `pi-messages`: the messages and events of this crate, as a gateway speaks them that knows its models by
//! name. It is the [proxy's](crate::proxy) wire with a key and another path.

use super::{
    Decoder, EncodeRequest, HttpRequest, Note, Wire,
    headers::{self, HeaderMap},
};
use crate::{
    error::ProviderError,
    id::ApiId,
    proxy::{self, EventDecoder, RequestModel},
};

/// Our own messages.
#[derive(Clone, Copy, Debug, Default)]
pub struct PiMessages;

impl PiMessages {
    /// The name that models refer to.
    pub const ID: &'static str = "pi-messages";
}

impl Wire for PiMessages {
    fn id(&self) -> ApiId {
        Self::ID.into()
    }

    fn encode(&self, request: &EncodeRequest<'_>) -> Result<HttpRequest, ProviderError> {
        let key = headers::key(request, &["authorization"])?;
        let mut head = HeaderMap::for_model(request);
        if let Some(key) = key {
            head.set("authorization", format!("Bearer {key}"));
        }
        head.set("accept", proxy::CONTENT_TYPE);
        head.add_model(request.model);
        head.add_request(request);
        Ok(HttpRequest {
            url: headers::url(request.model, "/messages")?,
            headers: head.into_headers(),
            body: proxy::body(request, RequestModel::Id(&request.model.id))?,
            note: Note::default(),
        })
    }

    fn decoder(&self, request: &EncodeRequest<'_>, _sent: &HttpRequest) -> Box<dyn Decoder> {
        Box::new(EventDecoder::new(request))
    }
}
