//! Tool calls.

use std::sync::Arc;

use pi_agent_core::{
    ToolArguments, ToolOutput,
    hooks::{AfterBlock, ToolResultPatch},
};
use pi_ai::{InputBlock, ToolCall as Call, ToolCallId, Usage};
use serde::Serialize;
use serde_json::Value;

use crate::extensions::{
    ExtensionError,
    outcome::{Outcome, answers, nothing_left, part},
};

/// A tool call begins.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolExecutionStartEvent {
    /// The call.
    pub tool_call_id: ToolCallId,
    /// The tool.
    pub tool_name: String,
    /// Its arguments, as the model made them.
    pub args: ToolArguments,
}

impl ToolExecutionStartEvent {
    pub(crate) fn new(call: &Call) -> Self {
        Self { tool_call_id: call.id.clone(), tool_name: call.name.clone(), args: call.arguments.clone() }
    }
}

/// A tool shows what it has so far.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolExecutionUpdateEvent {
    /// The call.
    pub tool_call_id: ToolCallId,
    /// The tool.
    pub tool_name: String,
    /// Its arguments, as the model made them.
    pub args: ToolArguments,
    /// What there is so far.
    pub partial_result: Arc<ToolOutput>,
}

impl ToolExecutionUpdateEvent {
    pub(crate) fn new(call: &Call, partial_result: Arc<ToolOutput>) -> Self {
        let ToolExecutionStartEvent { tool_call_id, tool_name, args } = ToolExecutionStartEvent::new(call);
        Self { tool_call_id, tool_name, args, partial_result }
    }
}

/// A tool call is over.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolExecutionEndEvent {
    /// The call.
    pub tool_call_id: ToolCallId,
    /// The tool.
    pub tool_name: String,
    /// What it gave.
    pub result: Arc<ToolOutput>,
    /// Whether it failed.
    pub is_error: bool,
    /// How long it ran, in milliseconds; `None` when it did not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
}

impl ToolExecutionEndEvent {
    pub(crate) fn new(call: &Call, result: Arc<ToolOutput>, is_error: bool, duration_ms: Option<u64>) -> Self {
        Self { tool_call_id: call.id.clone(), tool_name: call.name.clone(), result, is_error, duration_ms }
    }
}

/// Whether a call may run.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolCallEvent {
    /// The call.
    pub tool_call_id: ToolCallId,
    /// The tool.
    pub tool_name: String,
    /// Its arguments, checked, with the changes of earlier handlers.
    pub input: ToolArguments,
}

impl ToolCallEvent {
    pub(crate) fn new(call: &Call, input: ToolArguments) -> Self {
        Self { tool_call_id: call.id.clone(), tool_name: call.name.clone(), input }
    }
}

/// Whether a call may run. There is no default: a gate has to decide.
#[derive(Clone, Debug, PartialEq)]
#[must_use = "a gate has to hand its decision on"]
pub enum ToolCallDecision {
    /// It may.
    Allow,
    /// It may, with these arguments. They are not checked against the tool's schema again.
    AllowWith(ToolArguments),
    /// It may not.
    Block {
        /// What the model is told. `None`: that the call was blocked.
        reason: Option<String>,
        /// How the run goes on.
        then: AfterBlock,
    },
}

impl ToolCallDecision {
    /// The call may not run, and the model is told why.
    pub fn block(reason: impl Into<String>) -> Self {
        Self::Block { reason: Some(reason.into()), then: AfterBlock::Continue }
    }
}

impl Outcome for ToolCallDecision {
    fn from_json(mut answer: Value) -> Result<Self, ExtensionError> {
        let block = part(&mut answer, "block")?.unwrap_or(false);
        let terminate = part(&mut answer, "terminate")?.unwrap_or(false);
        let input = part(&mut answer, "input")?;
        let reason = part(&mut answer, "reason")?;
        nothing_left(&answer)?;
        Ok(match (block, input) {
            (true, _) => {
                Self::Block { reason, then: if terminate { AfterBlock::Terminate } else { AfterBlock::Continue } }
            }
            (false, Some(input)) => Self::AllowWith(input),
            (false, None) => Self::Allow,
        })
    }
}

/// What a call gave.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolResultEvent {
    /// The call.
    pub tool_call_id: ToolCallId,
    /// The tool.
    pub tool_name: String,
    /// The arguments that it got.
    pub input: ToolArguments,
    /// What the model sees.
    pub content: Vec<InputBlock>,
    /// What the program and the screen see.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
    /// The result for callers that are programs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub structured_content: Option<Value>,
    /// Whether it failed.
    pub is_error: bool,
    /// What requests of the tool used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
}

impl ToolResultEvent {
    pub(crate) fn new(call: &Call, input: &ToolArguments, output: &ToolOutput, is_error: bool) -> Self {
        Self {
            tool_call_id: call.id.clone(),
            tool_name: call.name.clone(),
            input: input.clone(),
            content: output.content.clone(),
            details: output.details.clone(),
            structured_content: output.structured_content.clone(),
            is_error,
            usage: output.usage.clone(),
        }
    }

    /// What the model sees, as text.
    pub fn text(&self) -> String {
        self.content.iter().filter_map(InputBlock::as_text).collect::<Vec<_>>().join("\n")
    }

    /// Takes over what a handler changed.
    pub(crate) fn apply(&mut self, patch: &ToolResultPatch) {
        if let Some(content) = &patch.content {
            self.content.clone_from(content);
            self.structured_content = None;
        }
        let replace = |old: &mut Option<Value>, new: &Option<Value>| {
            if new.is_some() {
                old.clone_from(new);
            }
        };
        replace(&mut self.structured_content, &patch.structured_content);
        replace(&mut self.details, &patch.details);
        if patch.usage.is_some() {
            self.usage.clone_from(&patch.usage);
        }
        self.is_error = patch.is_error.unwrap_or(self.is_error);
    }
}

/// What a handler changes about a result. Fields that are set replace those of the result.
pub type ToolResultOutcome = ToolResultPatch;

impl Outcome for ToolResultOutcome {
    fn from_json(mut answer: Value) -> Result<Self, ExtensionError> {
        Ok(Self {
            content: part(&mut answer, "content")?,
            details: part(&mut answer, "details")?,
            structured_content: part(&mut answer, "structuredContent")?,
            is_error: part(&mut answer, "isError")?,
            usage: part(&mut answer, "usage")?,
            terminate: None,
        })
    }
}

answers! {
    ToolCallDecision;
    ToolResultOutcome;
}
