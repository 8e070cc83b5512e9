//! The coding agent's own message roles, and what the model sees of them.

use pi_agent_core::{AgentMessage, ConvertToLlm, CustomMessage};
use pi_ai::{AssistantBlock, Content, InputBlock, Message, Timestamp, UserMessage};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::session::EntryId;

/// A message of a coding session: the model's four roles, the coding agent's four, or one that is kept for others.
pub type SessionMessage = AgentMessage<CodingMessage>;

/// The roles that the coding agent adds to the model's four.
///
/// Exhaustive on purpose: a new role that [`CodingConverter`] does not handle does not compile.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "camelCase")]
pub enum CodingMessage {
    /// A shell command that the user ran.
    BashExecution(BashExecution),
    /// What an extension said.
    Custom(CustomContent),
    /// What happened on a branch that the conversation came back from.
    BranchSummary(BranchSummaryMessage),
    /// What stands for the messages that were compacted away.
    CompactionSummary(CompactionSummaryMessage),
}

impl CustomMessage for CodingMessage {
    fn role(&self) -> std::borrow::Cow<'_, str> {
        match self {
            Self::BashExecution(_) => "bashExecution",
            Self::Custom(_) => "custom",
            Self::BranchSummary(_) => "branchSummary",
            Self::CompactionSummary(_) => "compactionSummary",
        }
        .into()
    }
}

/// A shell command that the user ran, not the model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BashExecution {
    /// The command line.
    pub command: String,
    /// What it printed, cut to a size that fits a conversation.
    pub output: String,
    /// Its exit code; `None` when it did not exit by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i64>,
    /// Whether the user stopped it.
    pub cancelled: bool,
    /// Whether [`output`](Self::output) is only a part.
    pub truncated: bool,
    /// Where the whole output lies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub full_output_path: Option<String>,
    /// Whether the model must not see it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exclude_from_context: Option<bool>,
    /// When it was run.
    pub timestamp: Timestamp,
}

/// What an extension said; the model sees it as the user's words.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CustomContent {
    /// The extension's name for this kind of message.
    #[serde(default)]
    pub custom_type: String,
    /// What the model sees.
    #[serde(default = "no_blocks", deserialize_with = "content_or_no_blocks")]
    pub content: Content,
    /// Whether people see it.
    #[serde(default)]
    pub display: bool,
    /// What the extension keeps with it. It never goes to a model.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "null_too")]
    pub details: Option<Value>,
    /// When it was made.
    #[serde(default)]
    pub timestamp: Timestamp,
}

/// What happened on a branch that the conversation came back from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BranchSummaryMessage {
    /// The summary.
    #[serde(default)]
    pub summary: String,
    /// The entry that the branch ended in, or `root`.
    pub from_id: EntryId,
    /// When it was made.
    #[serde(default)]
    pub timestamp: Timestamp,
}

/// What stands for the messages that were compacted away.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CompactionSummaryMessage {
    /// The summary.
    #[serde(default)]
    pub summary: String,
    /// The context's size before, in tokens.
    #[serde(default)]
    pub tokens_before: u64,
    /// When it was made.
    #[serde(default)]
    pub timestamp: Timestamp,
}

/// When a session message was made; `None` for a role that is not known.
pub fn message_time(message: &SessionMessage) -> Option<Timestamp> {
    match message {
        AgentMessage::Llm(message) => Some(message.timestamp()),
        AgentMessage::Custom(custom) => Some(match &**custom {
            CodingMessage::BashExecution(bash) => bash.timestamp,
            CodingMessage::Custom(custom) => custom.timestamp,
            CodingMessage::BranchSummary(summary) => summary.timestamp,
            CodingMessage::CompactionSummary(summary) => summary.timestamp,
        }),
        AgentMessage::Unknown(_) => None,
    }
}

/// The text of a message, as a search or an editor wants it: text blocks joined by blanks, without thinking, tool calls
/// and pictures.
pub fn message_text(message: &SessionMessage) -> String {
    let joined = |texts: &mut dyn Iterator<Item = &str>| texts.collect::<Vec<_>>().join(" ");
    let content_text = |content: &Content| match content {
        Content::Text(text) => text.clone(),
        Content::Blocks(blocks) => joined(&mut blocks.iter().filter_map(InputBlock::as_text)),
    };
    match message {
        AgentMessage::Llm(Message::System(message)) => content_text(&message.content),
        AgentMessage::Llm(Message::User(message)) => content_text(&message.content),
        AgentMessage::Llm(Message::Assistant(message)) => {
            joined(&mut message.content.iter().filter_map(AssistantBlock::as_text))
        }
        AgentMessage::Llm(Message::ToolResult(message)) => {
            joined(&mut message.content.iter().filter_map(InputBlock::as_text))
        }
        AgentMessage::Custom(custom) => match &**custom {
            CodingMessage::BashExecution(bash) => bash.command.clone(),
            CodingMessage::Custom(custom) => content_text(&custom.content),
            CodingMessage::BranchSummary(summary) => summary.summary.clone(),
            CodingMessage::CompactionSummary(summary) => summary.summary.clone(),
        },
        AgentMessage::Unknown(_) => String::new(),
    }
}

/// What the model sees of the coding agent's roles. Unknown roles are kept from it.
///
/// ```
/// use pi_agent_core::ConvertToLlm;
/// use pi_coding_agent::messages::{BashExecution, CodingConverter, CodingMessage};
/// let ran = BashExecution { command: "ls".into(), output: "src".into(), ..BashExecution::default() };
/// let hidden = BashExecution { exclude_from_context: Some(true), ..ran.clone() };
/// assert_eq!(CodingConverter.convert(&CodingMessage::BashExecution(ran)).len(), 1);
/// assert_eq!(CodingConverter.convert(&CodingMessage::BashExecution(hidden)).len(), 0);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct CodingConverter;

impl CodingConverter {
    /// What the model sees of a list.
    pub fn convert_all(self, messages: &[SessionMessage]) -> Vec<Message> {
        let converted = messages.iter().map(|message| match message {
            AgentMessage::Llm(message) => self.convert_model(message.clone()).into_iter().collect(),
            AgentMessage::Custom(custom) => self.convert(custom),
            AgentMessage::Unknown(unknown) => self.convert_unknown(unknown),
        });
        converted.flat_map(Vec::into_iter).collect()
    }
}

impl ConvertToLlm<CodingMessage> for CodingConverter {
    fn convert(&self, message: &CodingMessage) -> Vec<Message> {
        match message {
            CodingMessage::BashExecution(bash) if bash.exclude_from_context == Some(true) => Vec::new(),
            CodingMessage::BashExecution(bash) => user_text(bash_text(bash), bash.timestamp),
            CodingMessage::Custom(custom) => match &custom.content {
                Content::Text(text) => user_text(text.clone(), custom.timestamp),
                blocks => user(blocks.clone(), custom.timestamp),
            },
            CodingMessage::BranchSummary(branch) => user_text(
                summary_text(
                    "The conversation went back from another branch. This is what happened there:",
                    &branch.summary,
                ),
                branch.timestamp,
            ),
            CodingMessage::CompactionSummary(compaction) => user_text(
                summary_text("A summary stands in for the conversation up to this point:", &compaction.summary),
                compaction.timestamp,
            ),
        }
    }
}

fn user(content: Content, timestamp: Timestamp) -> Vec<Message> {
    vec![UserMessage { content, timestamp }.into()]
}

fn user_text(text: String, timestamp: Timestamp) -> Vec<Message> {
    user([InputBlock::text(text)].into(), timestamp)
}

fn summary_text(lead: &str, summary: &str) -> String {
    format!("{lead}\n\n<summary>\n{summary}\n</summary>")
}

/// A command and its output for the model: what ran, what it printed, and how it ended when that is worth a word.
pub fn bash_text(bash: &BashExecution) -> String {
    let mut text = format!("The user ran `{}`", bash.command);
    if bash.output.is_empty() {
        text += "; it printed nothing.";
    } else {
        let fence = fence_for(&bash.output);
        text += &format!(":\n{fence}\n{}\n{fence}", bash.output);
    }
    if bash.cancelled {
        text += "\n\nThe user stopped the command.";
    } else if let Some(code @ (..=-1 | 1..)) = bash.exit_code {
        text += &format!("\n\nIt failed with exit code {code}.");
    }
    if let (true, Some(path)) = (bash.truncated, &bash.full_output_path) {
        text += &format!("\n\nThis is a part of the output; all of it is in {path}");
    }
    text
}

/// A fence that no run of backticks in the text can close.
pub(crate) fn fence_for(text: &str) -> String {
    let longest = text.split(|character| character != '`').map(str::len).max().unwrap_or_default();
    "`".repeat((longest + 1).max(3))
}

fn no_blocks() -> Content {
    Content::Blocks(Vec::new())
}

/// A value that is there may be `null`; that is not the same as none.
pub(crate) fn null_too<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// Older writers stored nothing as null.
fn content_or_no_blocks<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Content, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_else(no_blocks))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn stored_messages_of_our_roles_survive_a_round_trip() {
        for line in [
            r#"{"role":"bashExecution","command":"ls","output":"a","exitCode":0,"cancelled":false,"truncated":false,"timestamp":1}"#,
            r#"{"role":"custom","customType":"note","content":"x","display":true,"details":{"k":1},"timestamp":1}"#,
            r#"{"role":"branchSummary","summary":"s","fromId":"a","timestamp":1}"#,
            r#"{"role":"compactionSummary","summary":"s","tokensBefore":5,"timestamp":1}"#,
        ] {
            let message: SessionMessage = serde_json::from_str(line).unwrap();
            assert!(message.as_custom().is_some(), "{line}");
            assert_eq!(serde_json::to_string(&message).unwrap(), line);
        }
    }

    #[test]
    fn an_extension_message_without_content_is_empty() {
        for content in [json!({}), json!({"content": null})] {
            let mut stored = json!({"role": "custom", "customType": "x"});
            stored.as_object_mut().unwrap().extend(content.as_object().unwrap().clone());
            let message: SessionMessage = serde_json::from_value(stored).unwrap();
            let Some(CodingMessage::Custom(custom)) = message.as_custom() else { panic!("{message:?}") };
            assert_eq!(custom.content, no_blocks());
        }
    }

    #[test]
    fn output_cannot_close_its_fence() {
        let bash = BashExecution { command: "cat x".into(), output: "```\nx\n````".into(), ..Default::default() };
        assert!(bash_text(&bash).ends_with(":\n`````\n```\nx\n````\n`````"));
    }

    #[test]
    fn the_exit_code_is_told_only_when_the_command_failed_by_itself() {
        let told = |exit_code, cancelled| {
            let bash = BashExecution { exit_code, cancelled, output: "x".into(), ..Default::default() };
            bash_text(&bash).contains("exit code")
        };
        assert!(told(Some(2), false) && told(Some(-9), false));
        assert!(!told(Some(0), false) && !told(None, false) && !told(Some(130), true));
    }
}
