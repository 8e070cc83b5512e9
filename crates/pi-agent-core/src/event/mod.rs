//! What happens in a run, and who is told.

mod json;
mod listener;

use std::{sync::Arc, time::Duration};

use pi_ai::{AssistantEvent, AssistantMessage, ToolCall, ToolResultMessage};

pub use listener::{ListenerContext, PartialMessage};

pub(crate) use listener::Streaming;

use crate::{
    message::{AgentMessage, NoCustom},
    tool::ToolOutput,
};

/// One step of a run. Cloning copies pointers.
///
/// A run is `AgentStart`, turns, `AgentEnd`. A turn is `TurnStart`, messages that go in, one answer (start, updates,
/// end), the answer's tool calls (start, updates, end) and their results as messages, `TurnEnd`. Every start has its
/// end, whatever fails, and `AgentEnd` is the last event.
#[derive(Debug)]
#[non_exhaustive]
pub enum AgentEvent<C = NoCustom> {
    /// A run begins.
    AgentStart,
    /// A turn begins.
    TurnStart,
    /// A message begins. Of an answer that is being streamed this is the beginning; all other messages are complete.
    MessageStart {
        /// The message.
        message: AgentMessage<C>,
    },
    /// An answer grows. The message so far is [`ListenerContext::partial`].
    MessageUpdate {
        /// What is new. Never a start or an end of the whole answer.
        event: Arc<AssistantEvent>,
    },
    /// A message is complete and part of the transcript.
    MessageEnd {
        /// The message.
        message: AgentMessage<C>,
    },
    /// A tool call begins.
    ToolExecutionStart {
        /// The call, as the model made it.
        call: Arc<ToolCall>,
    },
    /// A tool shows what it has so far.
    ToolExecutionUpdate {
        /// The call.
        call: Arc<ToolCall>,
        /// What there is so far.
        partial: Arc<ToolOutput>,
    },
    /// A tool call is over.
    ToolExecutionEnd {
        /// The call.
        call: Arc<ToolCall>,
        /// What it gave.
        output: Arc<ToolOutput>,
        /// Whether it failed.
        is_error: bool,
        /// How long the tool ran; `None` when it did not.
        duration: Option<Duration>,
    },
    /// A turn is over.
    TurnEnd {
        /// The answer.
        message: Arc<AssistantMessage>,
        /// The results of its tool calls, in the order of the calls.
        tool_results: Arc<[Arc<ToolResultMessage>]>,
    },
    /// The run is over.
    AgentEnd {
        /// What it produced. When the run failed outside of an answer (in a hook, say), the message that says so.
        messages: Arc<[AgentMessage<C>]>,
    },
}

impl<C> AgentEvent<C> {
    /// The event's name, as it is written.
    pub fn name(&self) -> &'static str {
        match self {
            Self::AgentStart => "agent_start",
            Self::TurnStart => "turn_start",
            Self::MessageStart { .. } => "message_start",
            Self::MessageUpdate { .. } => "message_update",
            Self::MessageEnd { .. } => "message_end",
            Self::ToolExecutionStart { .. } => "tool_execution_start",
            Self::ToolExecutionUpdate { .. } => "tool_execution_update",
            Self::ToolExecutionEnd { .. } => "tool_execution_end",
            Self::TurnEnd { .. } => "turn_end",
            Self::AgentEnd { .. } => "agent_end",
        }
    }

    /// The text that an answer grows by, when it does.
    pub fn text_delta(&self) -> Option<&str> {
        match self {
            Self::MessageUpdate { event } => match &**event {
                AssistantEvent::TextDelta { delta, .. } => Some(delta),
                _ => None,
            },
            _ => None,
        }
    }
}

impl<C> Clone for AgentEvent<C> {
    fn clone(&self) -> Self {
        match self {
            Self::AgentStart => Self::AgentStart,
            Self::TurnStart => Self::TurnStart,
            Self::MessageStart { message } => Self::MessageStart { message: message.clone() },
            Self::MessageUpdate { event } => Self::MessageUpdate { event: event.clone() },
            Self::MessageEnd { message } => Self::MessageEnd { message: message.clone() },
            Self::ToolExecutionStart { call } => Self::ToolExecutionStart { call: call.clone() },
            Self::ToolExecutionUpdate { call, partial } => {
                Self::ToolExecutionUpdate { call: call.clone(), partial: partial.clone() }
            }
            Self::ToolExecutionEnd { call, output, is_error, duration } => Self::ToolExecutionEnd {
                call: call.clone(),
                output: output.clone(),
                is_error: *is_error,
                duration: *duration,
            },
            Self::TurnEnd { message, tool_results } => {
                Self::TurnEnd { message: message.clone(), tool_results: tool_results.clone() }
            }
            Self::AgentEnd { messages } => Self::AgentEnd { messages: messages.clone() },
        }
    }
}
