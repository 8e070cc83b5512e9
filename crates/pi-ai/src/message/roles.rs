//! The payload of each of the four roles.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::content::{AssistantBlock, Content, InputBlock, ToolCall, blocks_or_text};
use crate::{
    id::{ApiId, ModelId, ProviderId, ToolCallId},
    model::ThinkingLevel,
    time::Timestamp,
    tool::{ToolDeclaration, ToolReference},
    usage::Usage,
};

/// Instructions and tools. The first one of a transcript is its prompt; each later one changes it: content appends,
/// sections patch by name (`None` removes), tools are deltas.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SystemMessage {
    /// The text that this message adds to the prompt.
    #[serde(deserialize_with = "null_as_empty_text")]
    pub content: Content,
    /// Named sections that this message sets (`Some`) or removes (`None`), in order.
    #[serde(skip_serializing_if = "IndexMap::is_empty", deserialize_with = "null_as_default")]
    pub sections: IndexMap<String, Option<String>>,
    /// Tools that the model may call from here on.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_as_default")]
    pub tools_added: Vec<ToolDeclaration>,
    /// Tools that are gone from here on.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_as_default")]
    pub tools_removed: Vec<ToolReference>,
    /// When it was made.
    pub timestamp: Timestamp,
}

/// What a person (or an application on their behalf) said.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct UserMessage {
    /// Text and pictures. A stored message without any has none.
    #[serde(default = "no_blocks")]
    pub content: Content,
    /// When it was made.
    pub timestamp: Timestamp,
}

/// What the model said, and how the request ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AssistantMessage {
    /// Text, reasoning and tool calls, in order.
    #[serde(deserialize_with = "blocks_or_text")]
    pub content: Vec<AssistantBlock>,
    /// The wire that was used.
    pub api: ApiId,
    /// The provider that answered.
    pub provider: ProviderId,
    /// The model that was asked.
    pub model: ModelId,
    /// The model that answered, when it says another name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_model: Option<String>,
    /// The provider's id of the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_id: Option<String>,
    /// The effort that a provider applies inside the conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider_thinking_level: Option<String>,
    /// The level that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thinking_level: Option<ThinkingLevel>,
    /// What the wire wants to be known about the request, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diagnostics: Option<Value>,
    /// Tokens and price.
    pub usage: Usage,
    /// Why the answer ended.
    pub stop_reason: StopReason,
    /// The handle of an answer that is to be fetched later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deferred: Option<Value>,
    /// What went wrong, when the answer ended in error or was aborted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
    /// The provider's own word for why it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw_stop_reason: Option<String>,
    /// Whether the provider says that the turn ends here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_turn: Option<bool>,
    /// How long the request took.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// When the request began.
    pub timestamp: Timestamp,
}

/// Why an answer ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum StopReason {
    /// It has not ended: the message is still being streamed. Never stored.
    Pending,
    /// The model was done.
    #[default]
    Stop,
    /// The token limit was reached.
    Length,
    /// The model waits for tool results.
    ToolUse,
    /// The request failed.
    Error,
    /// The caller aborted it.
    Aborted,
    /// The answer is to be fetched later.
    Deferred,
    /// A reason that this version does not know.
    #[serde(other)]
    Unknown,
}

/// What a tool gave back.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ToolResultMessage {
    /// The call that this answers.
    pub tool_call_id: ToolCallId,
    /// The tool's name.
    pub tool_name: String,
    /// What the model sees.
    #[serde(deserialize_with = "blocks_or_text")]
    pub content: Vec<InputBlock>,
    /// What the program and the screen see. It never goes to a model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
    /// Tokens and price of requests that the tool made itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Calls that the tool made to other tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nested_calls: Option<Value>,
    /// Whether the tool failed.
    pub is_error: bool,
    /// How long it ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// When it was made.
    pub timestamp: Timestamp,
}

impl SystemMessage {
    /// A message that adds text to the prompt.
    pub fn new(content: impl Into<Content>) -> Self {
        Self { content: content.into(), ..Self::default() }
    }

    /// Sets a named section.
    #[must_use]
    pub fn section(mut self, name: impl Into<String>, text: impl Into<String>) -> Self {
        self.sections.insert(name.into(), Some(text.into()));
        self
    }

    /// Removes a named section.
    #[must_use]
    pub fn without_section(mut self, name: impl Into<String>) -> Self {
        self.sections.insert(name.into(), None);
        self
    }

    /// Adds tools.
    #[must_use]
    pub fn with_tools(mut self, tools: impl IntoIterator<Item = ToolDeclaration>) -> Self {
        self.tools_added.extend(tools);
        self
    }
}

impl AssistantMessage {
    /// The text blocks, joined without a separator.
    pub fn text(&self) -> String {
        self.content.iter().filter_map(AssistantBlock::as_text).collect()
    }

    /// The tool calls, in order.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.content.iter().filter_map(AssistantBlock::as_tool_call)
    }

    /// Whether the request failed or was aborted.
    pub fn is_failed(&self) -> bool {
        matches!(self.stop_reason, StopReason::Error | StopReason::Aborted)
    }
}

fn no_blocks() -> Content {
    Content::Blocks(Vec::new())
}

fn null_as_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// Older writers stored an empty prompt as null.
fn null_as_empty_text<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Content, D::Error> {
    null_as_default(deserializer)
}
