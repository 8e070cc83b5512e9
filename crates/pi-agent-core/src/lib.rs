//! The agent's world: messages with your own roles, the loop, two hooks in a fixed order, tools and events.
//!
//! This crate is for people who build their own agent: their own roles, tools, storage and screen. It knows no
//! provider, no file system, no shell and no terminal; a model is a [`StreamFn`](pi_ai::StreamFn).
//!
//! Three types carry it. An [`Agent`] is a conversation: prompt it and await the [`Run`]. An [`AgentMessage`] is what a
//! conversation is made of: what a model understands, the roles that your program adds, and roles that nobody here
//! knows. A [`Tool`] is what the model can call.
//!
//! ```
//! use pi_agent_core::prelude::*;
//! use pi_ai::faux::{FauxProvider, FauxReply};
//! use schemars::JsonSchema;
//! use serde::Deserialize;
//!
//! #[derive(Deserialize, JsonSchema)]
//! struct Weather {
//!     /// For example `Oslo`.
//!     city: String,
//! }
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), AgentError> {
//! // A scripted model; `pi_ai::Models` reaches real ones.
//! let model = FauxProvider::new([
//!     FauxReply::tool_call("weather", serde_json::json!({"city": "Oslo"})),
//!     FauxReply::text("Take a coat."),
//! ]);
//! let agent = Agent::builder(model)
//!     .system_prompt("You give advice on clothes.")
//!     .tool(Tool::new("weather", "Tells the weather.", async |ask: Weather, _context| {
//!         Ok(format!("-3 °C in {}", ask.city))
//!     }))
//!     .build();
//! assert_eq!(agent.prompt("I fly to Oslo.").await?.into_text()?, "Take a coat.");
//! # Ok(()) }
//! ```
//!
//! # From the transcript to the model
//!
//! A transcript is a record: it keeps everything that happened, for people and for programs. A request is what the
//! model is to see of it. Before every request the loop goes the same way, in this order:
//!
//! 1. Tools that were added or taken away are announced in a system message, which joins the transcript.
//! 2. [`TransformContext`], if there is one: the list of messages becomes the list for this request. Here messages are
//!    left out or put in.
//! 3. [`ConvertToLlm`], always: each message becomes what the model sees of it. Here your roles are translated or
//!    dropped. Nothing else makes a [`Message`](pi_ai::Message) out of them.
//! 4. [`Context::normalize`](pi_ai::Context::normalize), and the stream function.
//!
//! The hooks change requests, never the transcript. `docs/message-pipeline.md` in the repository tells more, with a
//! table of what to look at when a message does not arrive.
//!
//! ```
//! use pi_agent_core::prelude::*;
//! use pi_ai::faux::{FauxProvider, FauxReply};
//! use serde::{Deserialize, Serialize};
//!
//! // Two roles of one's own: two serde lines and an empty impl.
//! #[derive(Debug, Serialize, Deserialize)]
//! #[serde(tag = "role", rename_all = "camelCase")]
//! enum Role {
//!     Notification { text: String },
//!     AuditNote { text: String },
//! }
//! impl CustomMessage for Role {}
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), AgentError> {
//! let model = FauxProvider::new([FauxReply::text("I will have a look.")]);
//! let agent = Agent::with_roles::<Role>(model.clone())
//!     // Which messages: the last ten.
//!     .transform_context(async |messages: Vec<AgentMessage<Role>>, _signal| {
//!         let oldest = messages.len().saturating_sub(10);
//!         messages.into_iter().skip(oldest).collect()
//!     })
//!     // What of each: one role is translated, the other is for people only. A role that is added to the enum later
//!     // does not compile until it is decided here.
//!     .convert_to_llm(|message| match message {
//!         Role::Notification { text } => Some(Message::user(format!("[notification] {text}"))),
//!         Role::AuditNote { .. } => None,
//!     })
//!     .build();
//!
//! let mail = Role::Notification { text: "new mail".into() };
//! let note = Role::AuditNote { text: "mail arrived at 10:42".into() };
//! agent.prompt([mail, note]).await?;
//!
//! assert_eq!(agent.state().messages.len(), 3); // both messages and the answer
//! assert_eq!(model.requests()[0].context.messages(), [Message::user("[notification] new mail")]);
//! # Ok(()) }
//! ```
//!
//! The prompt is part of the transcript, too: its system messages add up to it. There is no setter; prompt the agent
//! with a [`SystemMessage`](pi_ai::SystemMessage) to change it, a section at a time.
//!
//! ```
//! # use pi_agent_core::prelude::*;
//! # use pi_ai::faux::{FauxProvider, FauxReply};
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), AgentError> {
//! # let agent = Agent::builder(FauxProvider::new([FauxReply::text("ok")])).system_prompt("You help.").build();
//! let change = SystemMessage::default().section("tone", "Be brief.");
//! agent.prompt([change.into(), Message::user("go on")]).await?;
//! assert_eq!(agent.state().system_prompt(), "You help.\n\nBe brief.");
//! # Ok(()) }
//! ```
//!
//! # Watching and taking part
//!
//! [`Agent::subscribe`] calls a listener with every [`AgentEvent`] and waits for it, so that what it stores is stored
//! when the run goes on. [`Agent::events`] is a stream that the run does not wait for. [`AgentHooks`] decide: whether a
//! tool call may run, what of its result stays, how a run goes on. [`Agent::steer`] and [`Agent::follow_up`] queue
//! messages while a run is active.
//!
//! ```
//! use futures::StreamExt;
//! # use pi_agent_core::prelude::*;
//! # use pi_ai::faux::{FauxProvider, FauxReply};
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), AgentError> {
//! # let agent = Agent::builder(FauxProvider::new([FauxReply::text("one two three")])).build();
//! let mut events = agent.events();
//! let run = agent.prompt("count"); // has begun already
//! while let Some(event) = events.next().await {
//!     match event {
//!         AgentEvent::AgentEnd { .. } => break,
//!         event => print!("{}", event.text_delta().unwrap_or_default()),
//!     }
//! }
//! assert_eq!(run.await?.into_text()?, "one two three");
//! # Ok(()) }
//! ```
//!
//! # What holds, whatever happens
//!
//! Every event that starts something is followed by the one that ends it, and `agent_end` is the last. Listeners hear
//! events in the order in which they subscribed. Every tool call of an answer that did not fail has one result, in the
//! order of the calls. A panic is contained: in a tool or a tool hook it is that call's error result, in one of the two
//! hooks or the stream function an error turn; a listener that panics is detached. After an abort, nothing is waited
//! for without end.
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
