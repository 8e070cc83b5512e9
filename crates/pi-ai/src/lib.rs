//! Talk to language models: one message model, one stream of events, many providers.
//!
//! Three types are enough to begin with. [`Models`] is the registry: which models there are, who serves them and with
//! which key. [`Context`] is what is asked: messages, and optionally a prompt and tools. [`AssistantStream`] is the
//! answer: a stream of [`AssistantEvent`]s that also holds the message so far.
//!
//! ```no_run
//! use futures::StreamExt;
//! use pi_ai::{AssistantEvent, Context, Message, Models, StreamOptions};
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let models = Models::from_env();
//! let model = models.default_model().await?.ok_or("no provider has a key")?;
//! let question = Context::from(vec![Message::user("Why is the sky blue?")]);
//! let mut answer = models.ask(&model, question, StreamOptions::default());
//! while let Some(event) = answer.next().await {
//!     if let AssistantEvent::TextDelta { delta, .. } = event {
//!         print!("{delta}");
//!     }
//! }
//! println!("{} tokens", answer.partial().usage.total_tokens);
//! # Ok(()) }
//! ```
//!
//! The same, offline: whatever takes a [`StreamFn`] runs on a scripted provider, too.
//!
//! ```
//! use pi_ai::{Context, Message, StreamFn, StreamOptions, faux::{FauxProvider, FauxReply}};
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() {
//! let provider = FauxProvider::new([FauxReply::text("Light is scattered.")]);
//! let question = Context::from(vec![Message::user("Why is the sky blue?")]).normalize();
//! let answer = provider.stream(&FauxProvider::model(), question, StreamOptions::default()).result().await;
//! assert_eq!(answer.text(), "Light is scattered.");
//! # }
//! ```
//!
//! # The way of a request
//!
//! ```text
//! Context ── normalize ──> TranscriptContext ── Wire::encode ──> HttpRequest ── Transport ──> bytes
//! AssistantMessage <── fold ── AssistantEvent* <── Decoder <── frames <── Transport <── bytes
//! ```
//!
//! - [`message`] and [`transcript`]: what a conversation is. Prompt and tools are part of it, as system messages that
//!   may change them in the middle; [`TranscriptContext`] is the only door to a provider, and only
//!   [`Context::normalize`] opens it.
//! - [`api`]: the wires, each as pure encode and decode; [`replay`] repairs a transcript that began with another model.
//! - [`models`], [`catalog`] and [`transport`] (feature `http`): who serves what, with which key, and how bytes get
//!   there and back.
//! - [`stream`]: events and the message that they fold into. A failure is the last event of a stream, never an `Err`;
//!   [`ProviderError`] tells its class, what the provider said, and every cause.
//! - [`proxy`]: both ends of a wire of our own, for agents whose models sit behind a server that holds the keys.
//! - [`recovery`]: what to do with an answer that failed: try again, compact, or give up.
//!
//! # Features
//!
//! Without `http` (on by default) this is the message model, replay and streams, without a network in its tree.
//! `schemars` makes tool declarations from Rust types.
#![forbid(unsafe_code)]

pub mod api;
#[cfg(feature = "http")]
pub mod catalog;
pub mod context;
pub mod error;
pub mod faux;
pub mod id;
pub mod json;
pub mod message;
pub mod model;
#[cfg(feature = "http")]
pub mod models;
pub mod options;
pub mod proxy;
pub mod recovery;
pub mod replay;
pub mod schema;
pub mod secret;
pub mod stream;
#[cfg(feature = "http")]
mod telemetry;
#[doc(hidden)]
pub mod testing;
pub mod time;
pub mod tool;
pub mod transcript;
#[cfg(feature = "http")]
pub mod transport;
pub mod usage;

pub use context::{Context, TranscriptContext};
pub use error::{ErrorKind, ProviderError};
pub use id::{ApiId, IdSource, ModelId, ProviderId, SessionId, ToolCallId};
pub use message::{
    AssistantBlock, AssistantMessage, Content, ImageContent, InputBlock, Message, MessageIdentity, StopReason,
    SystemMessage, TextContent, ThinkingContent, ToolCall, ToolResultMessage, UserMessage,
};
pub use model::{Model, ThinkingLevel};
#[cfg(feature = "http")]
pub use models::Models;
pub use options::{CacheRetention, StreamOptions, ToolChoice};
pub use secret::Secret;
pub use stream::{AssistantEvent, AssistantStream, StreamFn, stream_fn};
pub use time::{Clock, Timestamp};
pub use tokio_util::sync::CancellationToken;
pub use tool::ToolDeclaration;
pub use usage::{Cost, Usage};
