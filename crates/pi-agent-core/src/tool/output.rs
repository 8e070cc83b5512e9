//! What a tool gives back.

use std::{error::Error, fmt};

use pi_ai::{InputBlock, Usage};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// What a tool gives back. Text converts into one:
///
/// ```
/// use pi_agent_core::ToolOutput;
/// let output = ToolOutput::text("3 files").details(["a", "b", "c"]);
/// assert_eq!(output, ToolOutput { details: Some(serde_json::json!(["a", "b", "c"])), ..ToolOutput::from("3 files") });
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ToolOutput {
    /// What the model sees.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub content: Vec<InputBlock>,
    /// What the program and the screen see. It never goes to a model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
    /// The result for callers that are programs: it fits [`AgentTool::output_schema`](super::AgentTool::output_schema).
    /// It does not become part of the transcript.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub structured_content: Option<Value>,
    /// Tokens and price of requests that the tool made itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// `Some(true)`: the call failed, and this is what is known about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_error: Option<bool>,
    /// `Some(true)`: the run may end here. It does when every call of the message says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub terminate: Option<bool>,
}

impl ToolOutput {
    /// One text block.
    pub fn text(text: impl Into<String>) -> Self {
        Self::blocks([InputBlock::text(text)])
    }

    /// Text and pictures.
    pub fn blocks(content: impl IntoIterator<Item = InputBlock>) -> Self {
        Self { content: content.into_iter().collect(), ..Self::default() }
    }

    /// Adds details for the program and the screen. What cannot be written as JSON is left out.
    #[must_use]
    pub fn details(mut self, details: impl Serialize) -> Self {
        self.details = serde_json::to_value(details).ok();
        self
    }

    /// Adds the result for callers that are programs. What cannot be written as JSON is left out.
    #[must_use]
    pub fn structured(mut self, content: impl Serialize) -> Self {
        self.structured_content = serde_json::to_value(content).ok();
        self
    }

    /// Adds what requests of the tool used.
    #[must_use]
    pub fn usage(mut self, usage: Usage) -> Self {
        self.usage = Some(usage);
        self
    }

    /// Marks the call as failed.
    #[must_use]
    pub fn failed(mut self) -> Self {
        self.is_error = Some(true);
        self
    }

    /// Says that the run may end here.
    #[must_use]
    pub fn terminate(mut self) -> Self {
        self.terminate = Some(true);
        self
    }

    /// What a failed call gives: its text, and details that are empty, so that whoever reads details finds an object.
    pub(crate) fn error(text: impl Into<String>) -> Self {
        Self { details: Some(Value::Object(Map::new())), ..Self::text(text) }
    }

    /// The text blocks, a line break between two.
    pub fn to_text(&self) -> String {
        self.content.iter().filter_map(InputBlock::as_text).collect::<Vec<_>>().join("\n")
    }
}

impl From<String> for ToolOutput {
    fn from(text: String) -> Self {
        Self::text(text)
    }
}

impl From<&str> for ToolOutput {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl From<()> for ToolOutput {
    fn from((): ()) -> Self {
        Self::default()
    }
}

impl From<Vec<InputBlock>> for ToolOutput {
    fn from(content: Vec<InputBlock>) -> Self {
        Self::blocks(content)
    }
}

/// Why a call failed: its text is what the model is told. Every error converts with `?`.
///
/// It is not itself a [`std::error::Error`], so that the conversion from all of those can exist.
pub struct ToolError(Box<dyn Error + Send + Sync>);

impl ToolError {
    /// A failure with a text for the model: what was expected, what was found, what to do.
    pub fn new(message: impl Into<String>) -> Self {
        Self(message.into().into())
    }
}

impl<E: Error + Send + Sync + 'static> From<E> for ToolError {
    fn from(error: E) -> Self {
        Self(Box::new(error))
    }
}

impl fmt::Debug for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}
