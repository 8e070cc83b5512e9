//! What a model can call.

mod call;
mod context;
mod output;
mod set;
mod typed;

use std::sync::Arc;

use async_trait::async_trait;
use pi_ai::ToolDeclaration;
use serde_json::{Map, Value};

pub use call::{RunToolCall, ToolCallOutcome, run_tool_call};
pub use context::ToolContext;
pub use output::{ToolError, ToolOutput};
pub use set::ToolSet;
pub use typed::Tool;

pub(crate) use call::{CallSurroundings, Prepared, Progress};

/// The arguments of a call: a JSON object.
pub type ToolArguments = Map<String, Value>;

/// A tool that the agent can run. Most tools are a [`Tool`], made from an async closure; implement the trait for one
/// that has state of its own.
///
/// A tool knows nothing of an application's roles: the same tool serves every agent.
#[async_trait]
pub trait AgentTool: Send + Sync + 'static {
    /// What the model is told about the tool.
    fn declaration(&self) -> &ToolDeclaration;

    /// The tool's name for people.
    fn label(&self) -> &str {
        &self.declaration().name
    }

    /// Whether it may run beside other calls of the same message.
    fn execution_mode(&self) -> ExecutionMode {
        ExecutionMode::Parallel
    }

    /// Whether a call may be made again, for example when a recorded session is played back.
    fn replay_policy(&self) -> ReplayPolicy {
        ReplayPolicy::Never
    }

    /// JSON Schema of [`ToolOutput::structured_content`], for callers that are programs.
    fn output_schema(&self) -> Option<&Value> {
        None
    }

    /// Repairs what models get wrong in the arguments, before they are checked against the schema.
    fn prepare_arguments(&self, arguments: ToolArguments) -> ToolArguments {
        arguments
    }

    /// Runs a call. The arguments fit the schema, unless a `before_tool_call` hook changed them afterwards.
    ///
    /// When [`ToolContext::signal`] is cancelled, stop what was started and return: what was already done is a useful
    /// result. A tool that does not return is dropped after a grace period.
    ///
    /// # Errors
    /// The error's text is what the model is told. A panic counts as an error of that call.
    async fn execute(&self, arguments: ToolArguments, context: ToolContext) -> Result<ToolOutput, ToolError>;
}

#[async_trait]
impl<T: AgentTool + ?Sized> AgentTool for Arc<T> {
    fn declaration(&self) -> &ToolDeclaration {
        (**self).declaration()
    }

    fn label(&self) -> &str {
        (**self).label()
    }

    fn execution_mode(&self) -> ExecutionMode {
        (**self).execution_mode()
    }

    fn replay_policy(&self) -> ReplayPolicy {
        (**self).replay_policy()
    }

    fn output_schema(&self) -> Option<&Value> {
        (**self).output_schema()
    }

    fn prepare_arguments(&self, arguments: ToolArguments) -> ToolArguments {
        (**self).prepare_arguments(arguments)
    }

    async fn execute(&self, arguments: ToolArguments, context: ToolContext) -> Result<ToolOutput, ToolError> {
        (**self).execute(arguments, context).await
    }
}

/// How the calls of one message run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExecutionMode {
    /// Beside one another.
    #[default]
    Parallel,
    /// One after the other, in the order of the message. One such tool among the calls makes all of them wait.
    Sequential,
}

/// Whether a call may be made again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReplayPolicy {
    /// Once is once: the call changes something.
    #[default]
    Never,
    /// Making it again does no harm.
    Safe,
}
