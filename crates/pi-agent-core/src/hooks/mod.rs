//! Where an application takes part: the two hooks on the way to the model, and the hooks around tools and turns.

mod agent_hooks;
mod async_hook;
mod convert;
mod transform;

pub use agent_hooks::{
    AfterBlock, AfterToolCall, AgentHooks, BeforeToolCall, HookError, NextTurn, Permission, PrepareRequest,
    RequestUpdate, ToolResultPatch, Turn, TurnDecision,
};
pub use async_hook::AsyncHook;
pub use convert::{ConvertToLlm, Converter, KeepModelRoles, ListConverter};
pub use transform::{TransformContext, transform_fn};
