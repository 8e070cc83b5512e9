//! Runs, turns and messages.

use std::{fmt, sync::Arc};

use pi_agent_core::ListenerContext;
use pi_ai::{AssistantEvent, AssistantMessage, Timestamp};
use serde::{Serialize, Serializer, ser::SerializeStruct};
use serde_json::Value;

use crate::{
    extensions::{
        ExtensionError,
        outcome::{Outcome, answers, part},
    },
    messages::SessionMessage,
    modes::json,
};

/// A run of the loop begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct AgentStartEvent {}

/// A run of the loop is over.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct AgentEndEvent {
    /// What it added to the transcript.
    pub messages: Arc<[SessionMessage]>,
}

impl AgentEndEvent {
    pub(crate) fn new(messages: Arc<[SessionMessage]>) -> Self {
        Self { messages }
    }
}

/// Nothing automatic remains.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct AgentSettledEvent {
    /// Whether it was aborted.
    pub aborted: bool,
}

impl AgentSettledEvent {
    pub(crate) fn new(aborted: bool) -> Self {
        Self { aborted }
    }
}

/// A turn begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TurnStartEvent {
    /// Which turn of the run, from 0.
    pub turn_index: u64,
    /// When.
    pub timestamp: Timestamp,
}

impl TurnStartEvent {
    pub(crate) fn new(turn_index: u64, timestamp: Timestamp) -> Self {
        Self { turn_index, timestamp }
    }
}

/// A message begins.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct MessageStartEvent {
    /// The message; of an answer that is streamed, its beginning.
    pub message: SessionMessage,
}

impl MessageStartEvent {
    pub(crate) fn new(message: SessionMessage) -> Self {
        Self { message }
    }
}

/// An answer grows.
#[derive(Clone)]
#[non_exhaustive]
pub struct MessageUpdateEvent {
    /// What is new.
    pub event: Arc<AssistantEvent>,
    context: ListenerContext,
}

impl MessageUpdateEvent {
    pub(crate) fn new(event: Arc<AssistantEvent>, context: ListenerContext) -> Self {
        Self { event, context }
    }

    /// Looks at the answer so far. It is not a copy, and the stream waits until the look is over. `None`: there is
    /// nothing any more.
    pub fn with_partial<T>(&self, look: impl FnOnce(&AssistantMessage) -> T) -> Option<T> {
        self.context.partial().map(|partial| look(&partial))
    }
}

/// What is new and the latest usage, as the JSON mode prints it; never the whole answer again.
impl Serialize for MessageUpdateEvent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let partial = self.context.partial();
        let partial = partial.as_deref();
        let mut fields = serializer.serialize_struct("message_update", 2)?;
        fields.serialize_field("usage", &partial.map(|partial| &partial.usage))?;
        fields.serialize_field("assistantMessageEvent", &json::Update::of(&self.event, partial))?;
        fields.end()
    }
}

impl fmt::Debug for MessageUpdateEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MessageUpdateEvent").field("event", &self.event).finish_non_exhaustive()
    }
}

/// A message is complete and about to be stored.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct MessageEndEvent {
    /// The message.
    pub message: SessionMessage,
}

impl MessageEndEvent {
    pub(crate) fn new(message: SessionMessage) -> Self {
        Self { message }
    }
}

/// What is stored.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum MessageOutcome {
    /// The message as it is.
    #[default]
    Unchanged,
    /// This one instead; it must have the same role.
    Replaced(SessionMessage),
}

impl From<SessionMessage> for MessageOutcome {
    fn from(message: SessionMessage) -> Self {
        Self::Replaced(message)
    }
}

impl Outcome for MessageOutcome {
    fn from_json(mut answer: Value) -> Result<Self, ExtensionError> {
        Ok(part(&mut answer, "message")?.map_or(Self::Unchanged, Self::Replaced))
    }
}

answers! {
    MessageOutcome, from SessionMessage;
}
