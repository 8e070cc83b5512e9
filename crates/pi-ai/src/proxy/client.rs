//! The client over HTTP.

use std::sync::Arc;

use super::ProxyWire;
use crate::{
    context::TranscriptContext,
    model::Model,
    options::StreamOptions,
    secret::Secret,
    stream::{AssistantStream, StreamFn},
    transport::Transport,
};

/// Asks models through a server that holds the keys. An agent takes it in place of [`Models`](crate::Models).
///
/// ```
/// use pi_ai::proxy::ProxyClient;
/// let models = ProxyClient::new("https://agents.example.com").token("who I am");
/// # let _: &dyn pi_ai::StreamFn = &models;
/// ```
#[derive(Clone, Debug)]
pub struct ProxyClient {
    wire: ProxyWire,
    transport: Transport,
}

impl ProxyClient {
    /// A client of the server at this URL.
    pub fn new(base_url: impl Into<String>) -> Self {
        Self { wire: ProxyWire::new(base_url), transport: Transport::default() }
    }

    /// Proves who asks with this bearer token.
    #[must_use]
    pub fn token(mut self, token: impl Into<Secret>) -> Self {
        self.wire = self.wire.token(token);
        self
    }

    /// Sends over this transport.
    #[must_use]
    pub fn transport(mut self, transport: Transport) -> Self {
        self.transport = transport;
        self
    }
}

impl StreamFn for ProxyClient {
    fn stream(&self, model: &Arc<Model>, context: TranscriptContext, options: StreamOptions) -> AssistantStream {
        self.transport.stream(Arc::new(self.wire.clone()), model, context, options)
    }
}
