//! What most programs need: `use pi_agent_core::prelude::*;`

pub use pi_ai::{CancellationToken, Message, Model, StreamFn, SystemMessage, ThinkingLevel, ToolDeclaration};

pub use crate::{
    Agent, AgentError, AgentEvent, AgentHooks, AgentMessage, AgentTool, AsyncHook, CustomMessage, ListenerContext,
    NoCustom, Prompt, QueueMode, Reply, Run, Tool, ToolArguments, ToolContext, ToolError, ToolOutput,
};
