//! The entries of a session.

use std::sync::Arc;

use pi_ai::{Content, Message, ModelId, ProviderId, SystemMessage, ThinkingLevel, Timestamp, Usage};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::{
    messages::SessionMessage,
    session::{id::EntryId, line::is_json},
};

/// An entry of a session, read whole.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Its id.
    pub id: EntryId,
    /// The entry that it follows; `None` for a root.
    pub parent_id: Option<EntryId>,
    /// When it was made.
    pub timestamp: Timestamp,
    /// What it holds.
    pub body: EntryBody,
}

/// What an entry holds.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum EntryBody {
    /// A message of the conversation.
    Message(MessageEntry),
    /// The user chose a model.
    ModelChange(ModelChange),
    /// The user chose a thinking level.
    ThinkingLevelChange(ThinkingLevelChange),
    /// A request outside the conversation cost something.
    Usage(UsageEntry),
    /// The conversation before it was summarised.
    Compaction(Compaction),
    /// An earlier entry counts with other content from here on, or not at all.
    ContextEdit(ContextEdit),
    /// The conversation came back from another branch.
    BranchSummary(BranchSummary),
    /// State of an extension, never for the model.
    Custom(CustomEntry),
    /// What an extension said to the model.
    CustomMessage(CustomMessageEntry),
    /// A mark on an entry.
    Label(Label),
    /// The session's name.
    SessionInfo(SessionInfo),
    /// An entry of a type that this version does not know, or whose fields do not fit its type: all its fields.
    Unknown(Map<String, Value>),
    /// A damaged line. It holds its place in the tree and nothing else.
    Unreadable,
}

/// A message of the conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MessageEntry {
    /// The message.
    pub message: SessionMessage,
}

/// The user chose a model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelChange {
    /// Its provider.
    pub provider: ProviderId,
    /// Its name at the provider, or a virtual model's.
    pub model_id: ModelId,
}

/// The user chose a thinking level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ThinkingLevelChange {
    /// The level.
    pub thinking_level: ThinkingLevel,
}

/// A request outside the conversation, for the totals.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UsageEntry {
    /// What it was for, for example `cache_warm`.
    pub kind: String,
    /// Who answered.
    pub provider: ProviderId,
    /// The model that was asked.
    pub model: ModelId,
    /// Tokens and price.
    pub usage: Usage,
    /// A remark for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// The conversation before it was summarised; a part of it may be kept.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Compaction {
    /// What stands for the conversation before.
    #[serde(default)]
    pub summary: String,
    /// The entry from which the conversation before is kept; the compaction's own id when nothing is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_kept_entry_id: Option<EntryId>,
    /// The context's size before, in tokens.
    #[serde(default)]
    pub tokens_before: u64,
    /// What the summariser's caller wants to keep with it: the files that were read and changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
    /// What the summary cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Whether an extension wrote the summary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_hook: Option<bool>,
    /// The prompt and the tools that held, so that nothing before is needed.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "system_message")]
    pub system_message: Option<Arc<SystemMessage>>,
}

/// From here on an earlier entry counts with other content, or not at all.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ContextEdit {
    /// The entry.
    pub target_id: EntryId,
    /// Its content from here on; `None` leaves the entry out of the context.
    pub replacement: Option<Replacement>,
}

/// The content that a [`ContextEdit`] gives an entry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Replacement {
    /// The content.
    pub content: ReplacementContent,
}

/// Text or blocks. Which blocks are allowed depends on the entry's role, so they are kept as JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ReplacementContent {
    /// Plain text.
    Text(String),
    /// Content blocks.
    Blocks(Vec<Value>),
}

impl Replacement {
    /// A replacement by text.
    pub fn text(text: impl Into<String>) -> Self {
        Self { content: ReplacementContent::Text(text.into()) }
    }
}

/// The conversation came back from another branch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BranchSummary {
    /// The entry that the branch ended in, or `root`.
    pub from_id: EntryId,
    /// What happened there.
    #[serde(default)]
    pub summary: String,
    /// What the summariser's caller wants to keep with it: the files that were read and changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
    /// What the summary cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Whether an extension wrote the summary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_hook: Option<bool>,
}

/// State of an extension, never for the model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CustomEntry {
    /// The extension's name for this kind of entry.
    pub custom_type: String,
    /// The state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

/// What an extension said to the model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CustomMessageEntry {
    /// The extension's name for this kind of message.
    pub custom_type: String,
    /// What the model sees.
    #[serde(default = "no_blocks", deserialize_with = "content_or_no_blocks")]
    pub content: Content,
    /// Whether people see it.
    #[serde(default)]
    pub display: bool,
    /// What the extension keeps with it. It never goes to a model.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::messages::null_too")]
    pub details: Option<Value>,
}

/// A mark on an entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Label {
    /// The entry.
    pub target_id: EntryId,
    /// The mark; none or an empty one takes the mark away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
}

/// The session's name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionInfo {
    /// The name; none or an empty one takes the name away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

impl SessionInfo {
    /// The name as people see it: on one line, without blanks at its ends.
    pub(crate) fn new(name: &str) -> Self {
        let lines = name.split(['\r', '\n']).filter(|line| !line.is_empty());
        Self { name: Some(lines.collect::<Vec<_>>().join(" ").trim().to_owned()) }
    }

    pub(crate) fn shown(&self) -> Option<&str> {
        self.name.as_deref().map(str::trim).filter(|name| !name.is_empty())
    }
}

/// What kind of entry a line is, known without reading it whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EntryKind {
    /// A message of the conversation.
    Message(MessageRole),
    /// The user chose a model.
    ModelChange,
    /// The user chose a thinking level.
    ThinkingLevelChange,
    /// A request outside the conversation cost something.
    Usage,
    /// The conversation before it was summarised.
    Compaction,
    /// An earlier entry counts with other content from here on, or not at all.
    ContextEdit,
    /// The conversation came back from another branch.
    BranchSummary,
    /// State of an extension, never for the model.
    Custom,
    /// What an extension said to the model.
    CustomMessage,
    /// A mark on an entry.
    Label,
    /// The session's name.
    SessionInfo,
    /// A type that this version does not know.
    Unknown,
    /// A damaged line.
    Unreadable,
}

/// The role of a message entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MessageRole {
    /// Instructions and tools.
    System,
    /// What a person said.
    User,
    /// What the model said.
    Assistant,
    /// What a tool gave back.
    ToolResult,
    /// A shell command that the user ran.
    BashExecution,
    /// Any other role.
    Other,
}

impl MessageRole {
    pub(crate) fn of(role: &str) -> Self {
        match role {
            "system" => Self::System,
            "user" => Self::User,
            "assistant" => Self::Assistant,
            "toolResult" => Self::ToolResult,
            "bashExecution" => Self::BashExecution,
            _ => Self::Other,
        }
    }
}

/// Type names as they are written, for all but messages.
const TYPES: [(&str, EntryKind); 10] = [
    ("model_change", EntryKind::ModelChange),
    ("thinking_level_change", EntryKind::ThinkingLevelChange),
    ("usage", EntryKind::Usage),
    ("compaction", EntryKind::Compaction),
    ("context_edit", EntryKind::ContextEdit),
    ("branch_summary", EntryKind::BranchSummary),
    ("custom", EntryKind::Custom),
    ("custom_message", EntryKind::CustomMessage),
    ("label", EntryKind::Label),
    ("session_info", EntryKind::SessionInfo),
];

impl EntryKind {
    /// The kind of a type that is not `message`.
    pub(crate) fn of_type(name: &str) -> Self {
        TYPES.iter().find(|(known, _)| *known == name).map_or(Self::Unknown, |(_, kind)| *kind)
    }

    /// Whether an entry of this kind makes a session worth a file: the conversation has begun.
    pub(crate) fn begins_conversation(self) -> bool {
        matches!(self, Self::Message(MessageRole::User | MessageRole::Assistant))
    }
}

impl Serialize for Entry {
    /// As its line in a session file.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Line<'a> {
            r#type: &'a str,
            id: &'a EntryId,
            parent_id: Option<&'a EntryId>,
            timestamp: String,
            #[serde(flatten)]
            body: &'a EntryBody,
        }
        Line {
            r#type: self.body.type_name(),
            id: &self.id,
            parent_id: self.parent_id.as_ref(),
            timestamp: super::write_time(self.timestamp),
            body: &self.body,
        }
        .serialize(serializer)
    }
}

impl EntryBody {
    /// What kind of entry this is.
    pub fn kind(&self) -> EntryKind {
        match self {
            Self::Message(entry) => EntryKind::Message(MessageRole::of(&entry.message.role())),
            Self::ModelChange(_) => EntryKind::ModelChange,
            Self::ThinkingLevelChange(_) => EntryKind::ThinkingLevelChange,
            Self::Usage(_) => EntryKind::Usage,
            Self::Compaction(_) => EntryKind::Compaction,
            Self::ContextEdit(_) => EntryKind::ContextEdit,
            Self::BranchSummary(_) => EntryKind::BranchSummary,
            Self::Custom(_) => EntryKind::Custom,
            Self::CustomMessage(_) => EntryKind::CustomMessage,
            Self::Label(_) => EntryKind::Label,
            Self::SessionInfo(_) => EntryKind::SessionInfo,
            Self::Unknown(_) => EntryKind::Unknown,
            Self::Unreadable => EntryKind::Unreadable,
        }
    }

    /// The type as it is written.
    pub fn type_name(&self) -> &str {
        match self {
            Self::Message(_) => "message",
            Self::Unknown(fields) => fields.get("type").and_then(Value::as_str).unwrap_or_default(),
            Self::Unreadable => "",
            other => {
                let kind = other.kind();
                TYPES.iter().find(|(_, known)| *known == kind).map_or("", |(name, _)| name)
            }
        }
    }

    /// Reads the body of a line whose kind is known. `None` when the line is no JSON. A line of a known type whose
    /// fields do not fit becomes [`EntryBody::Unknown`].
    pub(crate) fn read(kind: EntryKind, line: &[u8]) -> Option<Self> {
        fn typed<T: for<'a> Deserialize<'a>>(line: &[u8], wrap: impl Fn(T) -> EntryBody) -> Option<EntryBody> {
            pi_ai::json::from_slice_lossy(line).ok().map(wrap)
        }
        let body = match kind {
            EntryKind::Message(_) => typed(line, Self::Message),
            EntryKind::ModelChange => typed(line, Self::ModelChange),
            EntryKind::ThinkingLevelChange => typed(line, Self::ThinkingLevelChange),
            EntryKind::Usage => typed(line, Self::Usage),
            EntryKind::Compaction => typed(line, Self::Compaction),
            EntryKind::ContextEdit => typed(line, Self::ContextEdit),
            EntryKind::BranchSummary => typed(line, Self::BranchSummary),
            EntryKind::Custom => typed(line, Self::Custom),
            EntryKind::CustomMessage => typed(line, Self::CustomMessage),
            EntryKind::Label => typed(line, Self::Label),
            EntryKind::SessionInfo => typed(line, Self::SessionInfo),
            EntryKind::Unreadable => return Some(Self::Unreadable),
            EntryKind::Unknown => None,
        };
        // JSON that nests too deep for a reader, or has a number that is too large for one, is not damaged: the line is
        // kept as it is.
        body.or_else(|| typed(line, Self::Unknown)).or_else(|| is_json(line).then(|| Self::Unknown(Default::default())))
    }
}

fn no_blocks() -> Content {
    Content::Blocks(Vec::new())
}

/// Older writers stored nothing as null.
fn content_or_no_blocks<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Content, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_else(no_blocks))
}

/// A system message with its role, as the file has it.
mod system_message {
    use super::*;

    pub(super) fn serialize<S: Serializer>(
        message: &Option<Arc<SystemMessage>>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        message.clone().map(Message::System).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Arc<SystemMessage>>, D::Error> {
        match Option::deserialize(deserializer)? {
            None => Ok(None),
            Some(Message::System(message)) => Ok(Some(message)),
            Some(other) => Err(serde::de::Error::custom(format_args!(
                "a checkpoint is a system message, found role `{}`",
                other.role()
            ))),
        }
    }
}
