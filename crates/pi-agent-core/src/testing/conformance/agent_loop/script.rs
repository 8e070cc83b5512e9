//! What a case says.

use pi_ai::{InputBlock, Model, ThinkingLevel, Usage};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::{AgentMessage, ExecutionMode, QueueMode};

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Case {
    pub(super) model: Model,
    /// [`ToolScript`]s by name. A JSON object keeps their order.
    pub(super) tools: Map<String, Value>,
    pub(super) initial: Initial,
    pub(super) options: Options,
    pub(super) responses: Vec<Response>,
    pub(super) steps: Vec<Step>,
    pub(super) during: Vec<During>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ToolScript {
    pub(super) parameters: Option<Value>,
    pub(super) execution_mode: Option<Execution>,
    pub(super) behavior: Behavior,
}

/// What a tool does when it is called.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Behavior {
    pub(super) text: Option<String>,
    pub(super) details: Option<Value>,
    #[serde(rename = "isError")]
    pub(super) is_error: Option<bool>,
    pub(super) terminate: Option<bool>,
    pub(super) delay_ms: Option<u64>,
    pub(super) updates: Vec<String>,
    pub(super) throw: Option<String>,
    pub(super) wait_abort: bool,
    pub(super) echo: bool,
    pub(super) no_content: bool,
    #[serde(rename = "structuredContent")]
    pub(super) structured_content: Option<Value>,
    pub(super) usage: Option<Usage>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Initial {
    pub(super) system_prompt: Option<String>,
    /// `None`: all tools.
    pub(super) tools: Option<Vec<String>>,
    pub(super) messages: Vec<AgentMessage>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Options {
    pub(super) tool_execution: Option<Execution>,
    pub(super) steering_mode: Option<Mode>,
    pub(super) follow_up_mode: Option<Mode>,
    pub(super) thinking_level: Option<ThinkingLevel>,
    /// By tool call.
    pub(super) before_tool_call: Map<String, Value>,
    /// By tool call.
    pub(super) after_tool_call: Map<String, Value>,
    /// One per call; null decides nothing.
    pub(super) finish_turn: Vec<Value>,
    /// One per call; null decides nothing.
    pub(super) prepare_request: Vec<Value>,
    /// One per call; null decides nothing.
    pub(super) prepare_next_turn: Vec<Value>,
    pub(super) transform_context: Option<String>,
    pub(super) convert_to_llm: Option<String>,
}

/// What a `before_tool_call` hook answers.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Before {
    pub(super) block: bool,
    pub(super) reason: Option<String>,
    pub(super) terminate: bool,
    pub(super) throw: Option<String>,
}

/// What an `after_tool_call` hook answers.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct After {
    pub(super) content: Option<Vec<InputBlock>>,
    pub(super) details: Option<Value>,
    pub(super) structured_content: Option<Value>,
    pub(super) is_error: Option<bool>,
    pub(super) usage: Option<Usage>,
    pub(super) terminate: Option<bool>,
    pub(super) throw: Option<String>,
}

/// What a hook that prepares a turn or a request answers.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Update {
    pub(super) context: Option<UpdatedContext>,
    pub(super) messages: Vec<AgentMessage>,
    /// Fields that replace those of the case's model.
    pub(super) model: Option<Value>,
    pub(super) thinking_level: Option<ThinkingLevel>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct UpdatedContext {
    pub(super) messages: Option<Vec<AgentMessage>>,
    pub(super) tools: Option<Vec<String>>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Execution {
    #[default]
    Parallel,
    Sequential,
}

impl From<Execution> for ExecutionMode {
    fn from(execution: Execution) -> Self {
        match execution {
            Execution::Parallel => Self::Parallel,
            Execution::Sequential => Self::Sequential,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Mode {
    #[default]
    OneAtATime,
    All,
}

impl From<Mode> for QueueMode {
    fn from(mode: Mode) -> Self {
        match mode {
            Mode::OneAtATime => Self::OneAtATime,
            Mode::All => Self::All,
        }
    }
}

/// What the model answers to one request.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Response {
    pub(super) content: Vec<pi_ai::AssistantBlock>,
    #[serde(rename = "stopReason")]
    pub(super) stop_reason: Option<pi_ai::StopReason>,
    #[serde(rename = "errorMessage")]
    pub(super) error_message: Option<String>,
    pub(super) hang: bool,
    pub(super) fail_before_start: bool,
    pub(super) throws: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Step {
    Prompt(Prompt),
    Continue(bool),
    Append(Vec<AgentMessage>),
    Reset(bool),
    #[serde(untagged)]
    Action(Action),
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Prompt {
    Text(String),
    Messages(Vec<AgentMessage>),
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Action {
    Steer(String),
    FollowUp(String),
    SetTools(Vec<String>),
    Abort(bool),
    Clear(bool),
}

/// What happens when an event is heard.
#[derive(Debug, Deserialize)]
pub(super) struct During {
    pub(super) on: String,
    #[serde(default = "first")]
    pub(super) nth: usize,
    #[serde(rename = "do")]
    pub(super) actions: Vec<Action>,
}

fn first() -> usize {
    1
}
