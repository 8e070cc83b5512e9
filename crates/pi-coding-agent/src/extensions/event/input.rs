//! What people say, before a run begins.

use std::{fmt, path::PathBuf, sync::Arc};

use pi_ai::{ImageContent, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    agent_session::{CustomMessage, Delivery},
    extensions::{
        ExtensionError,
        outcome::{Outcome, answers, nothing_left, part},
    },
    messages::CustomContent,
    resources::SystemPromptOptions,
    tools::user_bash::UserCommandResult,
    workspace::Processes,
};

/// Somebody said something.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct InputEvent {
    /// The text, as it was said: commands of skills and templates still stand in it.
    pub text: String,
    /// Pictures.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<ImageContent>,
    /// Who said it.
    pub source: InputSource,
    /// When it will be said to the model, while another prompt is being answered.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "delivery")]
    pub streaming_behavior: Option<Delivery>,
}

impl InputEvent {
    pub(crate) fn new(
        text: String,
        images: Vec<ImageContent>,
        source: InputSource,
        streaming_behavior: Option<Delivery>,
    ) -> Self {
        Self { text, images, source, streaming_behavior }
    }
}

/// As programs write it.
fn delivery<S: serde::Serializer>(delivery: &Option<Delivery>, serializer: S) -> Result<S::Ok, S::Error> {
    let name = delivery.map(|delivery| match delivery {
        Delivery::Steer => "steer",
        Delivery::FollowUp => "followUp",
    });
    name.serialize(serializer)
}

/// Who said something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum InputSource {
    /// A person, or the program on a person's behalf.
    #[default]
    Interactive,
    /// A program that drives the session.
    Rpc,
    /// An extension.
    Extension,
}

/// What becomes of what was said.
#[derive(Clone, Debug, PartialEq)]
#[must_use = "a gate has to hand its decision on"]
pub enum InputDecision {
    /// It goes on as it is.
    Continue,
    /// Something else goes on.
    Transform {
        /// The new text.
        text: String,
        /// The new pictures; `None` leaves them.
        images: Option<Vec<ImageContent>>,
    },
    /// It is dealt with; the model does not see it.
    Handled,
}

impl InputDecision {
    /// Another text goes on.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Transform { text: text.into(), images: None }
    }
}

impl Outcome for InputDecision {
    fn from_json(mut answer: Value) -> Result<Self, ExtensionError> {
        let action: Option<String> = part(&mut answer, "action")?;
        match action.as_deref() {
            None | Some("continue") => Ok(Self::Continue),
            Some("handled") => Ok(Self::Handled),
            Some("transform") => {
                let text = part(&mut answer, "text")?;
                let text = text.ok_or_else(|| ExtensionError::new("a `transform` needs a `text`"))?;
                Ok(Self::Transform { text, images: part(&mut answer, "images")? })
            }
            Some(other) => {
                Err(ExtensionError::new(format!("`action` is `{other}`; expected continue, transform or handled")))
            }
        }
    }
}

/// A run is about to begin.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct BeforeAgentStartEvent {
    /// The prompt, as the options give it.
    pub system_prompt: String,
    /// What the prompt is made of.
    pub system_prompt_options: SystemPromptOptions,
    /// What it begins with.
    #[serde(flatten)]
    pub trigger: RunTrigger,
}

impl BeforeAgentStartEvent {
    pub(crate) fn new(system_prompt: String, options: SystemPromptOptions, trigger: RunTrigger) -> Self {
        Self { system_prompt, system_prompt_options: options, trigger }
    }
}

/// What a run begins with.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "messageType", rename_all = "camelCase")]
#[non_exhaustive]
pub enum RunTrigger {
    /// What a person said, with skills and templates put in.
    User {
        /// The text.
        prompt: String,
        /// Pictures.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        images: Vec<ImageContent>,
    },
    /// What an extension said.
    Custom {
        /// The message.
        message: CustomContent,
    },
}

/// What a handler adds to the beginning of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BeforeAgentStartOutcome {
    /// A message to say after the one that the run begins with.
    pub message: Option<CustomMessage>,
    /// The whole prompt, exactly, for this run. The transcript keeps its own.
    pub system_prompt: Option<String>,
    /// What the prompt is made of, for this run.
    pub system_prompt_options: Option<SystemPromptOptions>,
}

impl From<CustomMessage> for BeforeAgentStartOutcome {
    fn from(message: CustomMessage) -> Self {
        Self { message: Some(message), ..Self::default() }
    }
}

impl From<SystemPromptOptions> for BeforeAgentStartOutcome {
    fn from(options: SystemPromptOptions) -> Self {
        Self { system_prompt_options: Some(options), ..Self::default() }
    }
}

impl Outcome for BeforeAgentStartOutcome {
    fn from_json(mut answer: Value) -> Result<Self, ExtensionError> {
        let message = part::<Value>(&mut answer, "message")?.map(custom_message).transpose()?;
        let system_prompt = part(&mut answer, "systemPrompt")?;
        Ok(Self { message, system_prompt, system_prompt_options: part(&mut answer, "systemPromptOptions")? })
    }
}

/// Reads what an extension says.
pub(crate) fn custom_message(mut message: Value) -> Result<CustomMessage, ExtensionError> {
    if let Value::Object(fields) = &mut message {
        fields.entry("timestamp").or_insert_with(|| Value::from(Timestamp::default().as_millis()));
    }
    let content: CustomContent = serde_json::from_value(message)?;
    Ok(content.into())
}

/// The user runs a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct UserBashEvent {
    /// The command line.
    pub command: String,
    /// Whether the model will not see it.
    pub exclude_from_context: bool,
    /// Where it would run.
    pub cwd: PathBuf,
}

impl UserBashEvent {
    pub(crate) fn new(command: String, exclude_from_context: bool, cwd: PathBuf) -> Self {
        Self { command, exclude_from_context, cwd }
    }
}

/// Who runs the user's command.
#[derive(Clone)]
#[must_use = "a gate has to hand its decision on"]
pub enum UserBashDecision {
    /// The session, as usual.
    RunHere,
    /// The session, with these operations.
    RunWith(Arc<dyn Processes>),
    /// Nobody: this is what it came to.
    Ran(UserCommandResult),
}

impl fmt::Debug for UserBashDecision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RunHere => f.write_str("RunHere"),
            Self::RunWith(_) => f.write_str("RunWith"),
            Self::Ran(result) => f.debug_tuple("Ran").field(result).finish(),
        }
    }
}

impl Outcome for UserBashDecision {
    fn from_json(mut answer: Value) -> Result<Self, ExtensionError> {
        let result = part(&mut answer, "result")?;
        nothing_left(&answer)?;
        Ok(result.map_or(Self::RunHere, Self::Ran))
    }
}

answers! {
    InputDecision;
    BeforeAgentStartOutcome, from CustomMessage, SystemPromptOptions;
    UserBashDecision, from UserCommandResult;
}

impl From<UserCommandResult> for UserBashDecision {
    fn from(result: UserCommandResult) -> Self {
        Self::Ran(result)
    }
}
