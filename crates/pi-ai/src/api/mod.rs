//! Wire protocols: how a transcript becomes a request, and how a response becomes events.
//!
//! A [`Wire`] is pure: no socket, clock or randomness of its own. One transport drives them all. What differs between
//! vendors of one wire is data in the model's [`compat`](crate::Model::compat), not a fork of the code.
//!
//! An application adds a protocol in one of two ways: as a [`Wire`], when it is HTTP with a streamed body, so that
//! transport, timeouts, retry and hooks come for nothing; or as a whole [`Api`], when it is anything else.

mod billing;
pub mod budget;
mod cache;
pub mod compat;
mod constraint;
pub mod decode;
pub mod errors;
pub mod headers;
mod ids;
mod json_text;
pub mod openai_completions;
pub(crate) mod phrases;
mod reader;
pub mod retry;
pub mod sse;
mod thinking;
mod tool_schema;

use std::sync::Arc;

pub use reader::{BodyReader, Progress};

use crate::{
    context::TranscriptContext,
    error::{ErrorKind, ProviderError},
    id::ApiId,
    model::Model,
    options::{Headers, StreamOptions},
    stream::{AssistantStream, MessageBuilder},
};

/// A way to reach models: transcript in, events out. The built-in ones are [`Wire`]s behind the HTTP transport.
pub trait Api: Send + Sync + 'static {
    /// The name that models refer to.
    fn id(&self) -> ApiId;

    /// Asks the model. A failure is the stream's last event; nothing is sent before the stream is polled.
    fn stream(&self, model: &Arc<Model>, context: TranscriptContext, options: StreamOptions) -> AssistantStream;
}

/// A protocol over HTTP, as pure functions.
pub trait Wire: Send + Sync + 'static {
    /// The name that models refer to.
    fn id(&self) -> ApiId;

    /// Transcript and options → request.
    ///
    /// # Errors
    /// When the request cannot be expressed on this wire, or something that it needs (a key, a base URL) is missing.
    fn encode(&self, request: &EncodeRequest<'_>) -> Result<HttpRequest, ProviderError>;

    /// The decoder of one response to that request.
    fn decoder(&self, request: &EncodeRequest<'_>) -> Box<dyn Decoder>;

    /// How the response's body is cut into frames.
    fn framing(&self) -> Framing {
        Framing::ServerSentEvents
    }
}

/// Everything that an encoder may look at.
#[derive(Clone, Copy, Debug)]
pub struct EncodeRequest<'a> {
    /// The model that is asked.
    pub model: &'a Model,
    /// The transcript.
    pub context: &'a TranscriptContext,
    /// The options; the key is in them.
    pub options: &'a StreamOptions,
}

/// A request as it goes to the transport. All of them are `POST`.
#[derive(Clone, PartialEq, Eq)]
pub struct HttpRequest {
    /// The whole URL.
    pub url: String,
    /// Names in lower case. They may hold keys.
    pub headers: Headers,
    /// The JSON body.
    pub body: Vec<u8>,
}

impl std::fmt::Debug for HttpRequest {
    /// Without header values: they may hold keys.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<_> = self.headers.iter().map(|(name, _)| name).collect();
        f.debug_struct("HttpRequest")
            .field("url", &self.url)
            .field("headers", &names)
            .field("body_bytes", &self.body.len())
            .finish()
    }
}

/// How a response's body is cut into frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Framing {
    /// `text/event-stream`.
    ServerSentEvents,
}

/// One complete event of a response's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// The event's name, where it has one.
    pub name: Option<&'a str>,
    /// Its data.
    pub data: &'a str,
}

/// Whether an answer goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// There is more to come.
    More,
    /// The protocol's terminator came: the answer is complete, and the connection is dropped.
    Complete,
}

/// Frames → events, written through a [`MessageBuilder`]. The transport has already written `Start`.
pub trait Decoder: Send + 'static {
    /// Takes one frame.
    ///
    /// # Errors
    /// When the frame carries a failure or does not follow the protocol; the transport ends the answer with it, and
    /// what had come stays.
    fn frame(&mut self, frame: Frame<'_>, answer: &mut MessageBuilder) -> Result<Flow, ProviderError>;

    /// The terminator or the end of the body came: completes open blocks and ends the answer with
    /// [`MessageBuilder::done`].
    ///
    /// # Errors
    /// When the answer is not complete (it broke off) or its stop reason is a failure.
    fn finish(&mut self, answer: &mut MessageBuilder) -> Result<(), ProviderError>;
}

/// The built-in wire of this name.
///
/// # Errors
/// When there is none, or its feature is off: the message names it.
pub fn builtin_wire(id: &ApiId) -> Result<Arc<dyn Wire>, ProviderError> {
    Ok(match id.as_str() {
        openai_completions::OpenAiCompletions::ID => Arc::new(openai_completions::OpenAiCompletions),
        _ => {
            let message = format!("There is no built-in API `{id}`. Check the model's `api`, or add one in code.");
            return Err(ProviderError::new(ErrorKind::InvalidRequest, message));
        }
    })
}

/// The bytes of a body.
fn write_body(body: &impl serde::Serialize) -> Result<Vec<u8>, ProviderError> {
    serde_json::to_vec(body).map_err(|error| {
        ProviderError::new(ErrorKind::InvalidRequest, format!("The request could not be written as JSON: {error}"))
    })
}
