//! An agent here, its models behind a server of one's own: both ends of the wire between them.
//!
//! A program in a browser, on a phone or at a customer's must not hold the keys of providers. It sends each request to
//! a server that does, and the server streams the events of the answer back. Both ends are pure; they need neither a
//! web framework nor, on the server, the `http` feature.
//!
//! The client is [`ProxyClient`] (feature `http`), a [`StreamFn`](crate::StreamFn) like any other, or [`ProxyWire`]
//! for whoever has a transport of their own.
//!
//! The server reads a [`ProxyRequest`] from the body, asks a model *of its own choice*, and answers with
//! [`event_stream`]:
//!
//! ```
//! use futures::{Stream, StreamExt};
//! use pi_ai::{StreamFn, proxy::{self, ProxyRequest}};
//!
//! fn handle(body: &[u8], models: &impl StreamFn) -> Result<impl Stream<Item = Vec<u8>>, proxy::BadRequest> {
//!     let request = ProxyRequest::read(body)?;
//!     // Look the model up among those that are offered: the address in a client's own description of it is not to be
//!     // trusted with a key.
//!     # let model = std::sync::Arc::new(pi_ai::Model { id: request.model.id().clone(), ..Default::default() });
//!     let answer = models.stream(&model, request.context.normalize(), request.options);
//!     Ok(proxy::event_stream(answer)) // status 200, content type `proxy::CONTENT_TYPE`
//! }
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), proxy::BadRequest> {
//! # let faux = pi_ai::faux::FauxProvider::new([pi_ai::faux::FauxReply::text("hello")]);
//! # let body = br#"{"model":"m","context":{"messages":[]},"options":{}}"#;
//! # let frames = handle(body, &faux)?.collect::<Vec<_>>().await;
//! # assert!(frames.concat().ends_with(b"\n\n"));
//! # Ok(()) }
//! ```
//!
//! When the client goes away, drop the stream: that aborts the request to the provider.

#[cfg(feature = "http")]
mod client;
mod event;
mod request;
mod response;

#[cfg(feature = "http")]
pub use client::ProxyClient;
pub use event::{EventEncoder, event_stream};
pub use request::{BadRequest, ProxyModel, ProxyRequest};
pub(crate) use request::{RequestModel, body};
pub(crate) use response::EventDecoder;

use crate::{
    api::{Decoder, EncodeRequest, HttpRequest, Note, Wire, headers::HeaderMap},
    error::{ErrorKind, ProviderError},
    id::ApiId,
    secret::Secret,
};

/// The type of the body that [`event_stream`] makes.
pub const CONTENT_TYPE: &str = "text/event-stream";

/// Where the server takes requests, below its base URL.
pub const PATH: &str = "/api/stream";

/// The client's side: sends the whole model, so that the server need not know it by name.
#[derive(Clone, Debug)]
pub struct ProxyWire {
    base_url: String,
    token: Option<Secret>,
}

impl ProxyWire {
    /// Requests go to [`PATH`] below this URL.
    pub fn new(base_url: impl Into<String>) -> Self {
        Self { base_url: base_url.into(), token: None }
    }

    /// Requests prove who asks with this bearer token.
    #[must_use]
    pub fn token(mut self, token: impl Into<Secret>) -> Self {
        self.token = Some(token.into());
        self
    }
}

impl Wire for ProxyWire {
    fn id(&self) -> ApiId {
        "pi-proxy".into()
    }

    fn encode(&self, request: &EncodeRequest<'_>) -> Result<HttpRequest, ProviderError> {
        let base = self.base_url.trim().trim_end_matches('/');
        if base.is_empty() {
            return Err(ProviderError::new(ErrorKind::InvalidRequest, "The proxy has no URL."));
        }
        let mut head = HeaderMap::default();
        head.set("content-type", "application/json");
        head.set("accept", CONTENT_TYPE);
        if let Some(token) = &self.token {
            head.set("authorization", format!("Bearer {}", token.expose()));
        }
        Ok(HttpRequest {
            url: format!("{base}{PATH}"),
            headers: head.into_headers(),
            body: body(request, RequestModel::Whole(request.model))?,
            note: Note::default(),
        })
    }

    fn decoder(&self, request: &EncodeRequest<'_>, _sent: &HttpRequest) -> Box<dyn Decoder> {
        Box::new(EventDecoder::new(request))
    }
}
