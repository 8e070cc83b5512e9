//! Wire protocols: how a transcript becomes a request, and how a response becomes events.
//!
//! A [`Wire`] is pure: no socket, clock or randomness of its own. One transport drives them all. What differs between
//! vendors of one wire is data in the model's [`compat`](crate::Model::compat), not a fork of the code.
//!
//! An application adds a protocol in one of two ways: as a [`Wire`], when it is HTTP with a streamed body, so that
//! transport, timeouts, retry and hooks come for nothing; or as a whole [`Api`], when it is anything else.

pub mod anthropic_messages;
#[cfg(feature = "bedrock")]
mod aws_event_stream;
pub mod azure_openai_responses;
#[cfg(feature = "bedrock")]
pub mod bedrock_converse_stream;
mod billing;
pub mod budget;
mod cache;
pub mod compat;
mod constraint;
pub mod decode;
pub mod errors;
mod exchange;
mod finish;
pub mod google_generative_ai;
#[cfg(feature = "vertex")]
pub mod google_vertex;
pub mod headers;
mod ids;
mod in_place;
mod json_text;
pub mod mistral_conversations;
#[cfg(feature = "codex")]
pub mod openai_codex_responses;
pub mod openai_completions;
pub mod openai_responses;
pub(crate) mod phrases;
pub mod pi_messages;
mod pieces;
mod reader;
pub mod retry;
pub mod sse;
mod strays;
mod strict_limits;
mod thinking;
mod tool_schema;

use std::{any::Any, fmt, sync::Arc};

pub use exchange::{Exchange, Next};
pub use reader::{BodyReader, Progress};

use crate::{
    context::TranscriptContext,
    error::{ErrorKind, ProviderError},
    id::{ApiId, SessionId},
    model::Model,
    options::{Headers, StreamOptions},
    stream::{AssistantStream, MessageBuilder},
    time::Timestamp,
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

    /// The decoder of one response to that request. `sent` is what was sent.
    fn decoder(&self, request: &EncodeRequest<'_>, sent: &HttpRequest) -> Box<dyn Decoder>;

    /// What is given up from the start, because the provider refused it before in this conversation.
    fn concessions(&self, _model: &Model, _options: &StreamOptions) -> Concessions {
        Concessions::default()
    }

    /// The last change before a request is sent, after the caller's hooks: for wires that keep something between
    /// requests. [`encode`](Self::encode) does not know of it.
    fn prepare(&self, _request: &EncodeRequest<'_>, http: HttpRequest) -> HttpRequest {
        http
    }

    /// Headers that hold only for a moment: a signature over the request. It is asked for before every attempt.
    ///
    /// # Errors
    /// When there is nothing to sign with.
    fn sign(
        &self,
        _request: &EncodeRequest<'_>,
        _http: &HttpRequest,
        _now: Timestamp,
    ) -> Result<Headers, ProviderError> {
        Ok(Headers::new())
    }

    /// The provider refused a request. Some refusals can be got around by giving something up: then the request is
    /// encoded again with that.
    fn concede(
        &self,
        _request: &EncodeRequest<'_>,
        _sent: &HttpRequest,
        _refusal: &ProviderError,
    ) -> Option<Concession> {
        None
    }

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
    /// What is given up, because the provider refuses it.
    pub concessions: &'a Concessions,
}

/// Something that a request goes without after the provider refused it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Concession {
    /// Tools that would like strict arguments are sent without.
    LenientTools,
    /// The conversation's thread at the provider is begun anew.
    NewThread,
    /// The conversation has no thread at the provider.
    NoThread,
    /// Pictures are replaced by notes that they were there.
    NoImages,
    /// Of a wire that an application adds.
    Other(String),
}

impl Concession {
    /// What the answer's diagnostics call it.
    pub fn diagnostic(&self) -> &str {
        match self {
            Self::LenientTools => "anthropic_strict_tools_fallback",
            Self::NewThread | Self::NoThread => "anthropic_thread_fallback",
            Self::NoImages => "refused_images_fallback",
            Self::Other(name) => name,
        }
    }
}

/// What a request goes without.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Concessions(Vec<Concession>);

impl Concessions {
    /// Whether this is given up.
    pub fn contains(&self, concession: &Concession) -> bool {
        self.0.contains(concession)
    }

    /// Gives something up; whether it was not before.
    pub fn add(&mut self, concession: Concession) -> bool {
        let is_new = !self.contains(&concession);
        if is_new {
            self.0.push(concession);
        }
        is_new
    }
}

/// A request as it goes to the transport. All of them are `POST`.
#[derive(Clone)]
pub struct HttpRequest {
    /// The whole URL.
    pub url: String,
    /// Names in lower case. They may hold keys.
    pub headers: Headers,
    /// The JSON body.
    pub body: Vec<u8>,
    /// What the wire wants to know again when the response comes.
    pub note: Note,
}

/// What a wire remembers of a request that it prepared.
#[derive(Clone, Default)]
pub struct Note(Option<Arc<dyn Any + Send + Sync>>);

impl Note {
    /// Remembers a value.
    pub fn new<T: Send + Sync + 'static>(value: T) -> Self {
        Self(Some(Arc::new(value)))
    }

    /// The value, when it is of this type.
    pub fn get<T: Send + Sync + 'static>(&self) -> Option<&T> {
        self.0.as_ref()?.downcast_ref()
    }
}

impl fmt::Debug for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Note(…)" } else { "Note" })
    }
}

impl fmt::Debug for HttpRequest {
    /// Without header values: they may hold keys.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
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
    /// `application/vnd.amazon.eventstream`.
    #[cfg(feature = "bedrock")]
    AwsEventStream,
}

impl Framing {
    /// Whether a good status alone says that the answer has begun; else its first event does.
    pub(crate) fn begins_with_status(self) -> bool {
        self == Self::ServerSentEvents
    }
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

/// Frames → events, written through a [`MessageBuilder`].
///
/// With server-sent events the transport has already written `Start`. A decoder of other frames writes it when the
/// first one comes.
pub trait Decoder: Send + 'static {
    /// Takes one frame.
    ///
    /// # Errors
    /// When the frame carries a failure or does not follow the protocol; the transport ends the answer with it, and
    /// what had come stays.
    fn frame(&mut self, frame: Frame<'_>, answer: &mut MessageBuilder) -> Result<Flow, ProviderError>;

    /// Whether all that the answer needs has come, although its terminator has not. Whoever reads waits only a moment
    /// more then: some servers never send one and keep the connection open.
    fn is_settled(&self) -> bool {
        false
    }

    /// The terminator or the end of the body came: completes open blocks and ends the answer with
    /// [`MessageBuilder::done`].
    ///
    /// # Errors
    /// When the answer is not complete (it broke off) or its stop reason is a failure.
    fn finish(&mut self, answer: &mut MessageBuilder) -> Result<(), ProviderError>;
}

/// The built-in wires, with what some of them keep between the requests of a conversation. Make one and keep it.
#[derive(Clone, Debug, Default)]
pub struct BuiltinWires {
    anthropic: Arc<anthropic_messages::AnthropicMessages>,
    #[cfg(feature = "bedrock")]
    bedrock: Arc<bedrock_converse_stream::BedrockConverseStream>,
}

impl BuiltinWires {
    /// The names of all wires that are built in.
    pub const IDS: &[&str] = &[
        openai_completions::OpenAiCompletions::ID,
        openai_responses::OpenAiResponses::ID,
        azure_openai_responses::AzureOpenAiResponses::ID,
        #[cfg(feature = "codex")]
        openai_codex_responses::OpenAiCodexResponses::ID,
        anthropic_messages::AnthropicMessages::ID,
        google_generative_ai::GoogleGenerativeAi::ID,
        #[cfg(feature = "vertex")]
        google_vertex::GoogleVertex::ID,
        mistral_conversations::MistralConversations::ID,
        #[cfg(feature = "bedrock")]
        bedrock_converse_stream::BedrockConverseStream::ID,
        pi_messages::PiMessages::ID,
    ];

    /// The wire of this name.
    ///
    /// # Errors
    /// When there is none, or its feature is off: the message names it.
    pub fn get(&self, id: &ApiId) -> Result<Arc<dyn Wire>, ProviderError> {
        Ok(match id.as_str() {
            openai_completions::OpenAiCompletions::ID => Arc::new(openai_completions::OpenAiCompletions),
            anthropic_messages::AnthropicMessages::ID => self.anthropic.clone(),
            #[cfg(feature = "bedrock")]
            bedrock_converse_stream::BedrockConverseStream::ID => self.bedrock.clone(),
            #[cfg(not(feature = "bedrock"))]
            "bedrock-converse-stream" => return Err(feature_off(id, "bedrock")),
            openai_responses::OpenAiResponses::ID => Arc::new(openai_responses::OpenAiResponses),
            azure_openai_responses::AzureOpenAiResponses::ID => Arc::new(azure_openai_responses::AzureOpenAiResponses),
            #[cfg(feature = "codex")]
            openai_codex_responses::OpenAiCodexResponses::ID => Arc::new(openai_codex_responses::OpenAiCodexResponses),
            #[cfg(not(feature = "codex"))]
            "openai-codex-responses" => return Err(feature_off(id, "codex")),
            mistral_conversations::MistralConversations::ID => Arc::new(mistral_conversations::MistralConversations),
            pi_messages::PiMessages::ID => Arc::new(pi_messages::PiMessages),
            google_generative_ai::GoogleGenerativeAi::ID => Arc::new(google_generative_ai::GoogleGenerativeAi),
            #[cfg(feature = "vertex")]
            google_vertex::GoogleVertex::ID => Arc::new(google_vertex::GoogleVertex),
            #[cfg(not(feature = "vertex"))]
            "google-vertex" => return Err(feature_off(id, "vertex")),
            _ => {
                let message = format!("There is no built-in API `{id}`. Check the model's `api`, or add one in code.");
                return Err(ProviderError::new(ErrorKind::InvalidRequest, message));
            }
        })
    }

    /// Forgets what is kept for a conversation, when it is over.
    pub fn forget(&self, session: &SessionId) {
        self.anthropic.forget(session);
        #[cfg(feature = "bedrock")]
        self.bedrock.forget(session);
    }
}

#[cfg(not(all(feature = "bedrock", feature = "codex", feature = "vertex")))]
fn feature_off(id: &ApiId, feature: &str) -> ProviderError {
    let message =
        format!("The API `{id}` is not built into this program: it was built without the feature `{feature}`.");
    ProviderError::new(ErrorKind::InvalidRequest, message)
}

/// The bytes of a body.
fn write_body(body: &impl serde::Serialize) -> Result<Vec<u8>, ProviderError> {
    serde_json::to_vec(body).map_err(|error| {
        ProviderError::new(ErrorKind::InvalidRequest, format!("The request could not be written as JSON: {error}"))
    })
}
