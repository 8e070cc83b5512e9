//! The two places where a run can be gone on with, and the session added to.

use std::sync::Arc;

use pi_ai::{AssistantMessage, Content, Message, ToolResultMessage, Usage};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;

use crate::{
    extensions::{
        ExtensionError,
        outcome::{Outcome, answers, part},
    },
    messages::SessionMessage,
    session::{EntryId, Replacement},
};

/// A turn is over, and everything of it is stored.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TurnEndEvent {
    /// Which turn of the run, from 0.
    pub turn_index: u64,
    /// The answer.
    #[serde(serialize_with = "answer")]
    pub message: Arc<AssistantMessage>,
    /// The results of its tool calls, in the order of the calls.
    #[serde(serialize_with = "results")]
    pub tool_results: Arc<[Arc<ToolResultMessage>]>,
    /// The entry of the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_entry_id: Option<EntryId>,
    /// The entries of the results.
    pub tool_result_entry_ids: Vec<EntryId>,
    /// What handlers agreed on so far.
    #[serde(flatten)]
    pub boundary: Boundary,
}

impl TurnEndEvent {
    pub(crate) fn new(
        turn_index: u64,
        message: Arc<AssistantMessage>,
        tool_results: Arc<[Arc<ToolResultMessage>]>,
        message_entry_id: Option<EntryId>,
        tool_result_entry_ids: Vec<EntryId>,
        boundary: Boundary,
    ) -> Self {
        Self { turn_index, message, tool_results, message_entry_id, tool_result_entry_ids, boundary }
    }
}

fn answer<S: Serializer>(message: &Arc<AssistantMessage>, serializer: S) -> Result<S::Ok, S::Error> {
    Message::Assistant(message.clone()).serialize(serializer)
}

fn results<S: Serializer>(results: &Arc<[Arc<ToolResultMessage>]>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(results.iter().map(|result| Message::ToolResult(result.clone())))
}

/// Nothing automatic remains: no retry, no recovery, no queued message.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct AgentBeforeSettleEvent {
    /// What handlers agreed on so far.
    #[serde(flatten)]
    pub boundary: Boundary,
}

impl AgentBeforeSettleEvent {
    pub(crate) fn new(boundary: Boundary) -> Self {
        Self { boundary }
    }
}

/// What handlers of a boundary agreed on so far.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Boundary {
    /// Entries that will be appended.
    pub entries: Vec<EntryDraft>,
    /// Whether at least one more request will be made.
    #[serde(rename = "continue")]
    pub goes_on: bool,
    /// What the next request would be made from.
    pub context: Arc<BoundaryContext>,
    /// How the turn or the run went.
    pub outcome: ActivityOutcome,
}

/// What the next request would be made from, with the entries that will be appended.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct BoundaryContext {
    /// The messages.
    pub context_messages: Vec<SessionMessage>,
    /// What the model would see of them.
    pub llm_messages: Vec<Message>,
    /// Texts that wait to be said: steering, then follow-up.
    pub pending_messages: Vec<String>,
    /// Whether a request could be made: there is something that the model has not answered yet.
    pub can_continue: bool,
}

impl BoundaryContext {
    pub(crate) fn new(
        context_messages: Vec<SessionMessage>,
        llm_messages: Vec<Message>,
        pending_messages: Vec<String>,
        can_continue: bool,
    ) -> Self {
        Self { context_messages, llm_messages, pending_messages, can_continue }
    }
}

/// How a turn or a run went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum ActivityOutcome {
    /// To its end.
    #[default]
    Completed,
    /// It was aborted.
    Aborted,
    /// It failed.
    Error,
}

/// An entry that an extension wants appended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
#[non_exhaustive]
pub enum EntryDraft {
    /// State of the extension, never for the model.
    Custom {
        /// The extension's name for this kind of entry.
        custom_type: String,
        /// The state.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        data: Option<Value>,
    },
    /// Something to say to the model.
    CustomMessage {
        /// The extension's name for this kind of message.
        custom_type: String,
        /// What the model sees.
        content: Content,
        /// Whether people see it.
        #[serde(default)]
        display: bool,
        /// What the extension keeps with it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        details: Option<Value>,
    },
    /// Other content for an earlier entry, or none.
    ContextEdit {
        /// The entry.
        target_id: EntryId,
        /// Its content from here on; `None` leaves the entry out of the context.
        replacement: Option<Replacement>,
    },
    /// A summary in the place of the conversation before.
    Compaction {
        /// The summary.
        summary: String,
        /// The first entry that stays; `None` when nothing does.
        first_kept_entry_id: Option<EntryId>,
        /// What the extension keeps with it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        details: Option<Value>,
        /// What it cost.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        usage: Option<Usage>,
    },
}

/// What a handler of a boundary wants.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BoundaryOutcome {
    /// The entries to append, in the place of those agreed on so far. `None` leaves them.
    pub entries: Option<Vec<EntryDraft>>,
    /// Whether at least one more request is made; one that is made anyway will do. `None` leaves it.
    pub goes_on: Option<bool>,
}

impl From<Vec<EntryDraft>> for BoundaryOutcome {
    fn from(entries: Vec<EntryDraft>) -> Self {
        Self { entries: Some(entries), goes_on: None }
    }
}

impl Outcome for BoundaryOutcome {
    fn from_json(mut answer: Value) -> Result<Self, ExtensionError> {
        Ok(Self { entries: part(&mut answer, "entries")?, goes_on: part(&mut answer, "continue")? })
    }
}

answers! {
    BoundaryOutcome, from Vec<EntryDraft>;
}
