//! The agent's world: messages with your own roles, the loop, two hooks in a fixed order, tools and events.
#![forbid(unsafe_code)]

pub mod hooks;
pub mod message;
pub mod tool;

pub use hooks::{AsyncHook, ConvertToLlm, Converter, KeepModelRoles, TransformContext, transform_fn};
pub use message::{AgentMessage, CustomMessage, NoCustom, UnknownMessage};
pub use tool::{AgentTool, ExecutionMode, ReplayPolicy, Tool, ToolArguments, ToolContext, ToolError, ToolOutput};

pub use pi_ai::CancellationToken;
