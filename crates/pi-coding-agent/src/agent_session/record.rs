//! Storing what the loop says, and telling the listeners.

use std::sync::Arc;

use pi_agent_core::{AgentEvent, ListenerContext};
use pi_ai::{AssistantMessage, CancellationToken, Message};

use super::{Inner, SessionEvent, follow::TurnCount, retry::Attempts};
use crate::{
    compaction::RecoveryAttempt,
    extensions::EventKind,
    messages::{CodingMessage, SessionMessage},
    resources::SystemPromptOptions,
    session::{EntryId, SessionError},
};

/// What the current prompt did so far.
#[derive(Debug, Default)]
pub(super) struct RunRecord {
    /// Aborts the whole of it: runs, waits and summaries.
    pub(super) signal: CancellationToken,
    /// The last answer and its results, as they are stored.
    pub(super) last_turn: StoredTurn,
    /// How often the current turn was tried again.
    pub(super) attempts: Attempts,
    /// Whether a request that was too large was recovered from.
    pub(super) recovery: RecoveryAttempt,
    /// The last answer, whatever became of it.
    pub(super) received: Option<Arc<AssistantMessage>>,
    /// Why the session could not be written; ends the run.
    pub(super) failure: Option<SessionError>,
    /// What the prompt is made of for this run, when an extension changed it.
    pub(super) prompt: Option<SystemPromptOptions>,
    pub(super) turn: TurnCount,
}

/// A turn as it is stored.
#[derive(Clone, Debug, Default)]
pub(super) struct StoredTurn {
    pub(super) answer: Option<(EntryId, Arc<AssistantMessage>)>,
    pub(super) results: Vec<EntryId>,
}

impl StoredTurn {
    /// Its entries, the answer first.
    pub(super) fn entries(&self) -> Vec<EntryId> {
        let answer = self.answer.iter().map(|(id, _)| id.clone());
        answer.chain(self.results.iter().cloned()).collect()
    }
}

impl RunRecord {
    /// A new prompt begins. Only what a person says, or a good answer, allows another recovery.
    pub(super) fn begin(&mut self, signal: CancellationToken) {
        *self = Self { signal, recovery: self.recovery, ..Self::default() };
    }

    pub(super) fn cancel(&self) {
        self.signal.cancel();
    }
}

/// Follows the agent for as long as the session lives.
pub(super) fn follow(inner: &Arc<Inner>) {
    let weak = Arc::downgrade(inner);
    let subscription =
        inner.agent.subscribe(async move |event: AgentEvent<CodingMessage>, context: ListenerContext| {
            if let Some(inner) = weak.upgrade()
                && !inner.is_for_nobody(&event)
            {
                inner.take(event, &context).await;
            }
        });
    subscription.detach();
}

impl Inner {
    /// A delta that nobody wants to be told. Nothing is stored of one, and there are very many.
    fn is_for_nobody(&self, event: &AgentEvent<CodingMessage>) -> bool {
        matches!(event, AgentEvent::MessageUpdate { .. })
            && !self.extensions.has_handlers(EventKind::MessageUpdate)
            && !self.listeners.hear_growth()
    }

    /// Boxed in its parts, so that a delta does not pay for the room that the rest takes.
    async fn take(&self, event: AgentEvent<CodingMessage>, context: &ListenerContext) {
        match event {
            AgentEvent::MessageUpdate { .. } if !self.extensions.has_handlers(EventKind::MessageUpdate) => {
                Box::pin(self.listeners.tell(SessionEvent::Agent(event), context)).await;
            }
            event => Box::pin(self.take_and_store(event, context)).await,
        }
    }

    async fn take_and_store(&self, event: AgentEvent<CodingMessage>, context: &ListenerContext) {
        self.tell_extensions(&event, context).await;
        if let AgentEvent::MessageStart { message } = &event
            && matches!(message.as_llm(), Some(Message::User(_)))
        {
            self.state().run.recovery = RecoveryAttempt::Open;
        }
        match &event {
            AgentEvent::MessageStart { message } if self.queued_was_said(message.identity()) => {
                self.tell_queue().await;
            }
            AgentEvent::MessageEnd { message } => self.store(message.clone()).await,
            AgentEvent::TurnEnd { .. } => self.end_turn().await,
            _ => {}
        }
        let is_turn_end = matches!(event, AgentEvent::TurnEnd { .. });
        let answer = match &event {
            AgentEvent::MessageEnd { message } => match message.as_llm() {
                Some(Message::Assistant(answer)) => Some(answer.clone()),
                _ => None,
            },
            _ => None,
        };
        let event = match event {
            AgentEvent::AgentEnd { messages } => SessionEvent::AgentEnd { messages, will_retry: self.will_retry() },
            event => SessionEvent::Agent(event),
        };
        self.listeners.tell(event, context).await;
        if is_turn_end {
            // The turn's results are stored, so that nothing comes between them and their calls.
            match self.add_deferred_messages().await {
                Ok(true) => self.end_turn().await,
                Ok(false) => {}
                Err(error) => self.fail(error),
            }
        }
        if let Some(answer) = answer {
            self.note_answer(&answer).await;
        }
    }

    /// Appends a message. When that fails, the run is aborted and the prompt ends with the reason: nothing that was
    /// not stored may be taken for said.
    async fn store(&self, message: SessionMessage) {
        if let Some(Message::Assistant(answer)) = message.as_llm() {
            self.state().run.received = Some(answer.clone());
        }
        if self.state().run.failure.is_some() {
            return;
        }
        match self.manager.append_message(message.clone()).await {
            Ok(appended) => {
                let mut state = self.state();
                match message.as_llm() {
                    Some(Message::Assistant(answer)) => {
                        let answer = Some((appended.id, answer.clone()));
                        state.run.last_turn = StoredTurn { answer, results: Vec::new() };
                    }
                    Some(Message::ToolResult(_)) => state.run.last_turn.results.push(appended.id),
                    _ => {}
                }
            }
            Err(error) => self.fail(error),
        }
    }

    async fn end_turn(&self) {
        if let Err(error) = self.manager.end_turn().await {
            self.fail(error);
        }
    }

    pub(super) fn fail(&self, error: SessionError) {
        let mut state = self.state();
        state.run.failure.get_or_insert(error);
        state.run.cancel();
        drop(state);
        self.agent.abort();
    }
}
