//! Telling extensions what the loop does. They learn of it before the session's listeners.

use std::sync::Arc;

use pi_agent_core::{AgentEvent, ListenerContext};
use pi_ai::{AssistantMessage, ToolResultMessage};

use super::Inner;
use crate::{
    extensions::{
        EventKind,
        event::{
            self, AgentEndEvent, AgentStartEvent, MessageStartEvent, MessageUpdateEvent, ToolExecutionEndEvent,
            ToolExecutionStartEvent, ToolExecutionUpdateEvent, TurnStartEvent,
        },
    },
    messages::CodingMessage,
};

/// Where a run is.
#[derive(Debug, Default)]
pub(super) struct TurnCount {
    /// The current turn of the run, from 0.
    pub(super) index: u64,
    /// Whether the extensions know that it is over.
    pub(super) end_is_told: bool,
}

impl Inner {
    /// Tells the extensions. A message that is complete went through them before it was taken into the transcript.
    pub(super) async fn tell_extensions(&self, event: &AgentEvent<CodingMessage>, context: &ListenerContext) {
        let (extensions, signal) = (&self.extensions, context.signal());
        match event {
            AgentEvent::AgentStart => {
                self.state().run.turn = TurnCount::default();
                extensions.notify(event::AgentStart, signal, AgentStartEvent::default).await;
            }
            AgentEvent::AgentEnd { messages } => {
                extensions.notify(event::AgentEnd, signal, || AgentEndEvent::new(messages.clone())).await;
            }
            AgentEvent::TurnStart => {
                let index = self.state().run.turn.index;
                let payload = || TurnStartEvent::new(index, self.clock.now());
                extensions.notify(event::TurnStart, signal, payload).await;
            }
            AgentEvent::TurnEnd { message, tool_results } => {
                let is_told = self.state().run.turn.end_is_told;
                if !is_told {
                    self.end_turn_for_extensions(message, tool_results, signal).await;
                }
                let mut state = self.state();
                state.run.turn.end_is_told = false;
                state.run.turn.index += 1;
            }
            AgentEvent::MessageStart { message } => {
                extensions.notify(event::MessageStart, signal, || MessageStartEvent::new(message.clone())).await;
            }
            AgentEvent::MessageUpdate { event } => {
                let payload = || MessageUpdateEvent::new(event.clone(), context.clone());
                extensions.notify(event::MessageUpdate, signal, payload).await;
            }
            AgentEvent::ToolExecutionStart { call } => {
                extensions.notify(event::ToolExecutionStart, signal, || ToolExecutionStartEvent::new(call)).await;
            }
            AgentEvent::ToolExecutionUpdate { call, partial } => {
                let payload = || ToolExecutionUpdateEvent::new(call, partial.clone());
                extensions.notify(event::ToolExecutionUpdate, signal, payload).await;
            }
            AgentEvent::ToolExecutionEnd { call, output, is_error, duration } => {
                let took = duration.map(|took| u64::try_from(took.as_millis()).unwrap_or(u64::MAX));
                let payload = || ToolExecutionEndEvent::new(call, output.clone(), *is_error, took);
                extensions.notify(event::ToolExecutionEnd, signal, payload).await;
            }
            _ => {}
        }
    }

    /// A turn is over: the extensions may add to the session, and go on. Whether one wants to.
    pub(super) async fn end_turn_for_extensions(
        &self,
        message: &Arc<AssistantMessage>,
        results: &[Arc<ToolResultMessage>],
        signal: &pi_ai::CancellationToken,
    ) -> bool {
        self.state().run.turn.end_is_told = true;
        if !self.extensions.has_handlers(EventKind::TurnEnd) {
            return false;
        }
        self.turn_end_boundary(message, results, signal).await
    }
}
