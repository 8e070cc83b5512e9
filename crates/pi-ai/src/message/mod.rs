//! The model's message: four roles, and nothing else.

mod content;
mod roles;

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, de};

pub use content::{
    AssistantBlock, Content, ImageContent, InputBlock, TextContent, ThinkingContent, ToolCall, UnknownBlock,
};
pub use roles::{AssistantMessage, StopReason, SystemMessage, ToolResultMessage, UserMessage};

use crate::{
    json::tagged::{Tagged, deserialize_tagged},
    time::Timestamp,
};

/// A message that a model understands. Exactly four roles: a role that no provider knows cannot be represented.
///
/// Payloads are [`Arc`]s: cloning a transcript copies pointers, and [`Message::identity`] tells whether two lists hold
/// the same message. The enum is exhaustive on purpose, so that a `match` over the roles is checked by the compiler.
///
/// ```
/// use pi_ai::Message;
/// let message: Message = serde_json::from_str(r#"{"role":"user","content":"hi","timestamp":1}"#)?;
/// assert_eq!(message.role(), "user");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "role", rename_all = "camelCase")]
pub enum Message {
    /// Instructions and tools.
    System(Arc<SystemMessage>),
    /// What a person said.
    User(Arc<UserMessage>),
    /// What the model said.
    Assistant(Arc<AssistantMessage>),
    /// What a tool gave back.
    ToolResult(Arc<ToolResultMessage>),
}

/// Which message a pointer points to: equal for two handles of one message, as long as one of them is alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MessageIdentity(usize);

impl MessageIdentity {
    /// The identity of what an [`Arc`] points to.
    pub fn of<T: ?Sized>(payload: &Arc<T>) -> Self {
        Self(Arc::as_ptr(payload).addr())
    }
}

impl Message {
    /// The four roles, as they are written.
    pub const ROLES: [&'static str; 4] = ["system", "user", "assistant", "toolResult"];

    /// A system message that adds text to the prompt.
    pub fn system(content: impl Into<Content>) -> Self {
        SystemMessage::new(content).into()
    }

    /// A user message without a time: whoever stores it may set one.
    pub fn user(content: impl Into<Content>) -> Self {
        UserMessage { content: content.into(), timestamp: Timestamp::default() }.into()
    }

    /// The role, as it is written.
    pub fn role(&self) -> &'static str {
        match self {
            Self::System(_) => "system",
            Self::User(_) => "user",
            Self::Assistant(_) => "assistant",
            Self::ToolResult(_) => "toolResult",
        }
    }

    /// When the message was made.
    pub fn timestamp(&self) -> Timestamp {
        match self {
            Self::System(message) => message.timestamp,
            Self::User(message) => message.timestamp,
            Self::Assistant(message) => message.timestamp,
            Self::ToolResult(message) => message.timestamp,
        }
    }

    /// Whether this is a system message.
    pub fn is_system(&self) -> bool {
        matches!(self, Self::System(_))
    }

    /// The payload of a user message.
    pub fn as_user(&self) -> Option<&UserMessage> {
        match self {
            Self::User(message) => Some(message),
            _ => None,
        }
    }

    /// The payload of an assistant message.
    pub fn as_assistant(&self) -> Option<&AssistantMessage> {
        match self {
            Self::Assistant(message) => Some(message),
            _ => None,
        }
    }

    /// The payload of a tool result.
    pub fn as_tool_result(&self) -> Option<&ToolResultMessage> {
        match self {
            Self::ToolResult(message) => Some(message),
            _ => None,
        }
    }

    /// Which message this is, by pointer.
    pub fn identity(&self) -> MessageIdentity {
        match self {
            Self::System(message) => MessageIdentity::of(message),
            Self::User(message) => MessageIdentity::of(message),
            Self::Assistant(message) => MessageIdentity::of(message),
            Self::ToolResult(message) => MessageIdentity::of(message),
        }
    }

    /// Reads the payload of a role whose tag was already read; `None` when it is none of the four.
    ///
    /// # Errors
    /// When the payload does not have that role's shape.
    pub fn with_role<'de, D: Deserializer<'de>>(role: &str, payload: D) -> Result<Option<Self>, D::Error> {
        Ok(Some(match role {
            "system" => Self::System(Arc::deserialize(payload)?),
            "user" => Self::User(Arc::deserialize(payload)?),
            "assistant" => Self::Assistant(Arc::deserialize(payload)?),
            "toolResult" => Self::ToolResult(Arc::deserialize(payload)?),
            _ => return Ok(None),
        }))
    }
}

macro_rules! from_payload {
    ($($payload:ident => $variant:ident),*) => {$(
        impl From<$payload> for Message {
            fn from(payload: $payload) -> Self {
                Self::$variant(Arc::new(payload))
            }
        }
    )*};
}

from_payload!(
    SystemMessage => System, UserMessage => User, AssistantMessage => Assistant, ToolResultMessage => ToolResult
);

impl<'de> Tagged<'de> for Message {
    const TAG: &'static str = "role";
    const EXPECTING: &'static str = "a message with a `role`";

    fn from_tag<D: Deserializer<'de>>(role: &str, payload: D) -> Result<Self, D::Error> {
        Self::with_role(role, payload)?.ok_or_else(|| de::Error::unknown_variant(role, &Self::ROLES))
    }
}

impl<'de> Deserialize<'de> for Message {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserialize_tagged(deserializer)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_unknown_role_is_refused_by_name() {
        let error = serde_json::from_value::<Message>(json!({"role": "note", "content": "x"})).unwrap_err();
        assert!(error.to_string().contains("note"), "{error}");
    }

    #[test]
    fn messages_survive_a_round_trip_byte_for_byte() {
        for line in [
            r#"{"role":"system","content":"p","sections":{"a":"A","b":null},"toolsRemoved":[{"name":"x"}],"timestamp":1}"#,
            r#"{"role":"user","content":[{"type":"text","text":"hi"},{"type":"image","data":"AA==","mimeType":"image/png"}],"timestamp":1}"#,
            r#"{"role":"assistant","content":[{"type":"thinking","thinking":"t","thinkingSignature":"s","redacted":true}],"api":"a","provider":"p","model":"m","usage":{"input":1,"output":2,"cacheRead":0,"cacheWrite":0,"totalTokens":3,"cost":{"input":0,"output":0.5,"cacheRead":0,"cacheWrite":0,"total":0.5}},"stopReason":"toolUse","timestamp":1}"#,
            r#"{"role":"toolResult","toolCallId":"c","toolName":"read","content":[],"details":{"z":1,"a":2},"isError":false,"timestamp":1}"#,
        ] {
            let message: Message = serde_json::from_str(line).unwrap();
            assert_eq!(serde_json::to_string(&message).unwrap(), line);
        }
    }
}
