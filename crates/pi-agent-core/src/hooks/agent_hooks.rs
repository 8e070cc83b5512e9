//! The hooks around tool calls, requests and turns.

use std::{error::Error, fmt, sync::Arc};

use async_trait::async_trait;
use pi_ai::{
    AssistantMessage, CancellationToken, InputBlock, Model, ThinkingLevel, ToolCall, ToolResultMessage, Usage,
};
use serde_json::Value;

use crate::{
    message::AgentMessage,
    tool::{ToolArguments, ToolOutput, ToolSet},
};

/// Everything an application may decide along a run. Each method has a default that decides nothing.
///
/// A panic counts as an error: in the two tool hooks it becomes that call's error result, in the others the run ends
/// with an error turn. When the run is aborted, return soon: a hook that does not is dropped after a grace period.
///
/// ```
/// use pi_agent_core::hooks::{AgentHooks, BeforeToolCall, HookError, Permission};
/// use pi_agent_core::NoCustom;
///
/// struct AskFirst;
///
/// #[async_trait::async_trait]
/// impl AgentHooks<NoCustom> for AskFirst {
///     async fn before_tool_call(&self, call: &mut BeforeToolCall<'_, NoCustom>) -> Result<Permission, HookError> {
///         Ok(match call.call.name.as_str() {
///             "delete" => Permission::block("Nothing is deleted here. Say what you would delete instead."),
///             _ => Permission::Allow,
///         })
///     }
/// }
/// ```
#[async_trait]
pub trait AgentHooks<C: Send + Sync + 'static>: Send + Sync + 'static {
    /// Decides whether a call may run. Its arguments were checked against the tool's schema and may be changed here;
    /// they are not checked again.
    ///
    /// # Errors
    /// The error's text becomes the call's error result.
    async fn before_tool_call(&self, _call: &mut BeforeToolCall<'_, C>) -> Result<Permission, HookError> {
        Ok(Permission::Allow)
    }

    /// Changes what a call gave. Fields that are set replace those of the result.
    ///
    /// # Errors
    /// The error's text becomes the call's error result.
    async fn after_tool_call(&self, _call: &AfterToolCall<'_, C>) -> Result<ToolResultPatch, HookError> {
        Ok(ToolResultPatch::default())
    }

    /// A message is complete and about to become part of the transcript. What is given back takes its place, for
    /// everything that follows: the calls of an answer that run are those of the replacement.
    ///
    /// A replacement has the role of the message, and that of a tool's result answers the same call; any other is left
    /// out, which the log says. So is one of a hook that panics: what was said must not get lost.
    async fn complete_message(
        &self,
        _message: &AgentMessage<C>,
        _signal: &CancellationToken,
    ) -> Option<AgentMessage<C>> {
        None
    }

    /// Runs before every request and may replace what it is made from, for this and the later requests of the run.
    ///
    /// # Errors
    /// The run ends with an error turn.
    async fn prepare_request(&self, _request: &PrepareRequest<'_, C>) -> Result<RequestUpdate<C>, HookError> {
        Ok(RequestUpdate::default())
    }

    /// Runs when a turn is over and says how the run goes on.
    ///
    /// # Errors
    /// The run ends with an error turn.
    async fn finish_turn(&self, _turn: &Turn<'_, C>) -> Result<TurnDecision, HookError> {
        Ok(TurnDecision::Natural)
    }

    /// Runs before a turn that follows another one; may take long (a compaction).
    ///
    /// # Errors
    /// The run ends with an error turn.
    async fn prepare_next_turn(&self, _last: &Turn<'_, C>) -> Result<NextTurn<C>, HookError> {
        Ok(NextTurn::default())
    }
}

#[async_trait]
impl<C: Send + Sync + 'static, T: AgentHooks<C> + ?Sized> AgentHooks<C> for Arc<T> {
    async fn before_tool_call(&self, call: &mut BeforeToolCall<'_, C>) -> Result<Permission, HookError> {
        (**self).before_tool_call(call).await
    }

    async fn after_tool_call(&self, call: &AfterToolCall<'_, C>) -> Result<ToolResultPatch, HookError> {
        (**self).after_tool_call(call).await
    }

    async fn complete_message(&self, message: &AgentMessage<C>, signal: &CancellationToken) -> Option<AgentMessage<C>> {
        (**self).complete_message(message, signal).await
    }

    async fn prepare_request(&self, request: &PrepareRequest<'_, C>) -> Result<RequestUpdate<C>, HookError> {
        (**self).prepare_request(request).await
    }

    async fn finish_turn(&self, turn: &Turn<'_, C>) -> Result<TurnDecision, HookError> {
        (**self).finish_turn(turn).await
    }

    async fn prepare_next_turn(&self, last: &Turn<'_, C>) -> Result<NextTurn<C>, HookError> {
        (**self).prepare_next_turn(last).await
    }
}

/// A call that is about to run.
#[derive(Debug)]
pub struct BeforeToolCall<'a, C> {
    /// The answer that the call is part of.
    pub assistant_message: &'a AssistantMessage,
    /// The call, as the model made it.
    pub call: &'a ToolCall,
    /// The arguments, coerced and checked; what is put here is what the tool gets.
    pub arguments: ToolArguments,
    /// The transcript so far.
    pub messages: &'a [AgentMessage<C>],
    /// The tools of the run.
    pub tools: &'a ToolSet,
    /// Cancelled when the run is aborted.
    pub signal: &'a CancellationToken,
}

/// A call that has run.
#[derive(Debug)]
pub struct AfterToolCall<'a, C> {
    /// The answer that the call is part of.
    pub assistant_message: &'a AssistantMessage,
    /// The call, as the model made it.
    pub call: &'a ToolCall,
    /// The arguments that the tool got.
    pub arguments: &'a ToolArguments,
    /// What it gave.
    pub output: &'a ToolOutput,
    /// Whether it failed.
    pub is_error: bool,
    /// The transcript so far.
    pub messages: &'a [AgentMessage<C>],
    /// The tools of the run.
    pub tools: &'a ToolSet,
    /// Cancelled when the run is aborted.
    pub signal: &'a CancellationToken,
}

/// Whether a call may run. There is no default: a gate has to decide.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a gate has to hand its decision on"]
pub enum Permission {
    /// It may.
    Allow,
    /// It may not.
    Block {
        /// What the model is told. `None`: that the call was blocked.
        reason: Option<String>,
        /// How the run goes on.
        then: AfterBlock,
    },
}

/// How a run goes on after a call was blocked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AfterBlock {
    /// The model is told and answers.
    #[default]
    Continue,
    /// The run may end here. It does when every call of the message says so.
    Terminate,
}

impl Permission {
    /// Blocks the call and tells the model why.
    pub fn block(reason: impl Into<String>) -> Self {
        Self::Block { reason: Some(reason.into()), then: AfterBlock::Continue }
    }

    /// Blocks the call, and the run may end here.
    pub fn block_and_terminate(reason: impl Into<String>) -> Self {
        Self::Block { reason: Some(reason.into()), then: AfterBlock::Terminate }
    }
}

/// What replaces the fields of a call's result. There is no deep merge.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolResultPatch {
    /// Replaces the content. Without new structured content the old one is dropped, since it may no longer fit.
    pub content: Option<Vec<InputBlock>>,
    /// Replaces the details.
    pub details: Option<Value>,
    /// Replaces the structured content.
    pub structured_content: Option<Value>,
    /// Says whether the call failed.
    pub is_error: Option<bool>,
    /// Replaces the usage.
    pub usage: Option<Usage>,
    /// Says whether the run may end here.
    pub terminate: Option<bool>,
}

impl ToolResultPatch {
    pub(crate) fn apply(self, output: &mut ToolOutput, is_error: &mut bool) {
        if let Some(content) = self.content {
            output.content = content;
            output.structured_content = None;
        }
        if self.structured_content.is_some() {
            output.structured_content = self.structured_content;
        }
        if self.details.is_some() {
            output.details = self.details;
        }
        if self.usage.is_some() {
            output.usage = self.usage;
        }
        if self.terminate.is_some() {
            output.terminate = self.terminate;
        }
        *is_error = self.is_error.unwrap_or(*is_error);
    }
}

/// A request that is about to be made.
#[derive(Debug)]
pub struct PrepareRequest<'a, C> {
    /// The transcript, before the two hooks.
    pub messages: &'a [AgentMessage<C>],
    /// The tools of the run.
    pub tools: &'a ToolSet,
    /// The model that will be asked.
    pub model: &'a Arc<Model>,
    /// How hard it will think.
    pub thinking_level: ThinkingLevel,
    /// Cancelled when the run is aborted.
    pub signal: &'a CancellationToken,
}

/// What replaces parts of a run, from this request on. `None` keeps what there is.
#[derive(Debug)]
pub struct RequestUpdate<C> {
    /// The messages that requests are made from. The agent's transcript does not change.
    pub messages: Option<Vec<AgentMessage<C>>>,
    /// The tools.
    pub tools: Option<ToolSet>,
    /// The model.
    pub model: Option<Arc<Model>>,
    /// How hard the model thinks.
    pub thinking_level: Option<ThinkingLevel>,
}

impl<C> Default for RequestUpdate<C> {
    fn default() -> Self {
        Self { messages: None, tools: None, model: None, thinking_level: None }
    }
}

/// A turn that is over: an answer and the results of its tool calls.
#[derive(Debug)]
pub struct Turn<'a, C> {
    /// The answer.
    pub message: &'a Arc<AssistantMessage>,
    /// The results, in the order of the calls.
    pub tool_results: &'a [Arc<ToolResultMessage>],
    /// The messages that requests are made from.
    pub messages: &'a [AgentMessage<C>],
    /// The tools of the run.
    pub tools: &'a ToolSet,
    /// What the run produced so far.
    pub new_messages: &'a [AgentMessage<C>],
    /// Cancelled when the run is aborted.
    pub signal: &'a CancellationToken,
}

/// How a run goes on after a turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TurnDecision {
    /// As it would by itself: on with tool results and queued messages, else it ends.
    #[default]
    Natural,
    /// At least one more request. One that is made anyway will do.
    Continue,
    /// It ends at once; the queues are left alone.
    End,
}

/// What happens before a turn that follows another one.
#[derive(Debug)]
pub struct NextTurn<C> {
    /// What replaces parts of the run.
    pub update: RequestUpdate<C>,
    /// Messages to add to the transcript, before queued ones.
    pub add_messages: Vec<AgentMessage<C>>,
}

impl<C> Default for NextTurn<C> {
    fn default() -> Self {
        Self { update: RequestUpdate::default(), add_messages: Vec::new() }
    }
}

/// Why a hook failed. Every error converts with `?`.
///
/// It is not itself a [`std::error::Error`], so that the conversion from all of those can exist.
pub struct HookError(Box<dyn Error + Send + Sync>);

impl HookError {
    /// A failure with a text.
    pub fn new(message: impl Into<String>) -> Self {
        Self(message.into().into())
    }
}

impl<E: Error + Send + Sync + 'static> From<E> for HookError {
    fn from(error: E) -> Self {
        Self(Box::new(error))
    }
}

impl fmt::Debug for HookError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl fmt::Display for HookError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn new_content_drops_structured_content_that_may_no_longer_fit() {
        let given = || ToolOutput::text("old").structured(json!({"n": 1})).details(json!({"k": {"deep": 1}}));
        let patched = |patch: ToolResultPatch| {
            let (mut output, mut is_error) = (given(), false);
            patch.apply(&mut output, &mut is_error);
            (output, is_error)
        };
        let content = Some(vec![InputBlock::text("new")]);

        let (output, _) = patched(ToolResultPatch { content: content.clone(), ..Default::default() });
        assert_eq!((output.to_text().as_str(), output.structured_content), ("new", None));

        let structured_content = Some(json!({"n": 2}));
        let (output, _) = patched(ToolResultPatch { content, structured_content, ..Default::default() });
        assert_eq!(output.structured_content, Some(json!({"n": 2})));

        let patch = ToolResultPatch { details: Some(json!({"k": {}})), is_error: Some(true), ..Default::default() };
        let (output, is_error) = patched(patch);
        assert_eq!(output, ToolOutput { details: Some(json!({"k": {}})), ..given() });
        assert!(is_error);
    }
}
