//! The agent's world: messages with your own roles, the loop, two hooks in a fixed order, tools and events.
#![forbid(unsafe_code)]

pub mod agent;
pub mod agent_loop;
mod contain;
pub mod event;
pub mod hooks;
pub mod message;
pub mod observe;
pub mod prelude;
mod prune;
#[doc(hidden)]
pub mod testing;
pub mod tool;

pub use agent::{Agent, AgentBuilder, AgentError, AgentState, Prompt, QueueMode, Reply, Run, Subscription, WeakAgent};
pub use event::{AgentEvent, ListenerContext};
pub use hooks::{AgentHooks, AsyncHook, ConvertToLlm, Converter, KeepModelRoles, TransformContext, transform_fn};
pub use message::{AgentMessage, CustomMessage, NoCustom, UnknownMessage};
pub use observe::{RequestId, RequestObserver, Stage};
pub use prune::KeepRecent;
pub use tool::{
    AgentTool, ExecutionMode, ReplayPolicy, Tool, ToolArguments, ToolContext, ToolError, ToolOutput, ToolSet,
};

pub use pi_ai::CancellationToken;
