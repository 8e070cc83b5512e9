//! The model's world: messages, transcript replay and provider streaming.
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
