//! A look at an agent.

use std::sync::Arc;

use pi_ai::{Model, SystemMessage, ThinkingLevel, ToolCallId, ToolDeclaration, transcript::TranscriptState};

use crate::{
    event::{PartialMessage, Streaming},
    message::{AgentMessage, NoCustom},
    tool::ToolSet,
};

/// An agent as it was at one moment: pointers only, and no lock is held.
///
/// The transcript owns the prompt: [`system_prompt`](Self::system_prompt) is derived from it, and there is no setter.
/// To change the prompt, prompt the agent with a [`SystemMessage`].
///
/// ```
/// # use pi_agent_core::Agent;
/// # use pi_ai::faux::FauxProvider;
/// let agent = Agent::builder(FauxProvider::new([])).system_prompt("You help.").build();
/// assert_eq!(agent.state().system_prompt(), "You help.");
/// ```
///
/// ```compile_fail,E0615
/// # use pi_agent_core::Agent;
/// # use pi_ai::faux::FauxProvider;
/// let agent = Agent::builder(FauxProvider::new([])).system_prompt("You help.").build();
/// agent.state().system_prompt = "You do not.";
/// ```
///
/// ```compile_fail,E0599
/// # use pi_agent_core::Agent;
/// # use pi_ai::faux::FauxProvider;
/// let agent = Agent::builder(FauxProvider::new([])).system_prompt("You help.").build();
/// agent.set_system_prompt("You do not.");
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct AgentState<C = NoCustom> {
    /// The transcript.
    pub messages: Arc<Vec<AgentMessage<C>>>,
    /// The model that the next run asks first.
    pub model: Arc<Model>,
    /// How hard it thinks.
    pub thinking_level: ThinkingLevel,
    /// The tools that can be run.
    pub tools: ToolSet,
    /// Whether a run is active. It is until the listeners of its last event are done.
    pub is_streaming: bool,
    /// The calls that are being run, oldest first.
    pub pending_tool_calls: Vec<ToolCallId>,
    /// Why the last answer failed; `None` from the start of a run until one does.
    pub error_message: Option<String>,
    pub(super) replayed: Arc<TranscriptState>,
    pub(super) streaming: Option<Streaming>,
}

impl<C> AgentState<C> {
    /// The prompt as it stands at the end of the transcript, sections included. Reading it costs nothing.
    pub fn system_prompt(&self) -> &str {
        self.replayed.prompt()
    }

    /// The one system message that says everything that holds at the end of the transcript.
    pub fn system_message(&self) -> Option<SystemMessage> {
        self.replayed.system_message()
    }

    /// The tools that the transcript declares. Before each request they are brought in line with
    /// [`tools`](Self::tools).
    pub fn declared_tools(&self) -> impl ExactSizeIterator<Item = &ToolDeclaration> {
        self.replayed.tools()
    }

    /// The answer that is being streamed, as it is by now. Look at it and let it go before looking again: while it is
    /// held, the stream cannot go on.
    pub fn streaming_message(&self) -> Option<PartialMessage<'_>> {
        self.streaming.as_ref()?.partial()
    }
}

impl<C> Clone for AgentState<C> {
    fn clone(&self) -> Self {
        Self {
            messages: self.messages.clone(),
            model: self.model.clone(),
            thinking_level: self.thinking_level,
            tools: self.tools.clone(),
            is_streaming: self.is_streaming,
            pending_tool_calls: self.pending_tool_calls.clone(),
            error_message: self.error_message.clone(),
            replayed: self.replayed.clone(),
            streaming: self.streaming.clone(),
        }
    }
}
