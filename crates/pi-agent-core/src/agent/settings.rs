//! What can be changed while an agent lives.

use std::sync::Arc;

use pi_ai::{
    AssistantMessage, CancellationToken, Message, Model, ProviderId, Secret, StreamOptions, ThinkingLevel, ToolCall,
};

use super::{Agent, QueueMode, shared::Transcript};
use crate::{
    agent_loop::KeySource,
    hooks::{AgentHooks, AsyncHook, ConvertToLlm, Converter, TransformContext, transform_fn},
    message::{AgentMessage, CustomMessage},
    tool::{AgentTool, ExecutionMode, RunToolCall, ToolCallOutcome, ToolOutput, ToolSet, run_tool_call},
};

/// Settings. The two hooks count from the next request on, everything else from the next run on: a run works with what
/// it began with, and its own hooks may change that.
impl<C: CustomMessage> Agent<C> {
    /// Replaces the first hook.
    pub fn set_transform_context(
        &self,
        hook: impl AsyncHook<Vec<AgentMessage<C>>, CancellationToken, Vec<AgentMessage<C>>>,
    ) {
        self.set_transform_context_with(transform_fn(hook));
    }

    /// Replaces the first hook by a struct or an `Arc<dyn TransformContext<C>>`.
    pub fn set_transform_context_with(&self, hook: impl TransformContext<C>) {
        let hook: Arc<dyn TransformContext<C>> = Arc::new(hook);
        self.shared.replace(|agent| &mut agent.config.pipeline.transform, Some(hook));
    }

    /// Takes the first hook away.
    pub fn clear_transform_context(&self) {
        self.shared.replace(|agent| &mut agent.config.pipeline.transform, None);
    }

    /// Replaces the second hook.
    pub fn set_convert_to_llm<I: IntoIterator<Item = Message>>(&self, hook: impl Fn(&C) -> I + Send + Sync + 'static) {
        self.set_convert_to_llm_with(hook);
    }

    /// Replaces the second hook by a struct or an `Arc<dyn ConvertToLlm<C>>`.
    pub fn set_convert_to_llm_with(&self, hook: impl ConvertToLlm<C>) {
        self.shared.replace(|agent| &mut agent.config.pipeline.convert, Converter::each(hook));
    }

    /// Replaces the second hook by one over the whole list.
    pub fn set_convert_list_to_llm(&self, hook: impl AsyncHook<Vec<AgentMessage<C>>, CancellationToken, Vec<Message>>) {
        self.shared.replace(|agent| &mut agent.config.pipeline.convert, Converter::list(hook));
    }

    /// Replaces the tools. The model is told before the next run's first request.
    pub fn set_tools(&self, tools: impl IntoIterator<Item = Arc<dyn AgentTool>>) {
        self.shared.replace(|agent| &mut agent.tools, tools.into_iter().collect());
    }

    /// Replaces the transcript. A run that is active goes on with its own, and adds to this one.
    pub fn set_messages(&self, messages: impl IntoIterator<Item = AgentMessage<C>>) {
        self.shared.replace(|agent| &mut agent.transcript, Transcript::new(messages.into_iter().collect()));
    }

    /// Replaces the model.
    pub fn set_model(&self, model: impl Into<Arc<Model>>) {
        self.shared.replace(|agent| &mut agent.config.model, model.into());
    }

    /// Says how hard the model thinks.
    pub fn set_thinking_level(&self, level: ThinkingLevel) {
        self.shared.lock().config.thinking_level = level;
    }

    /// Replaces the hooks around tool calls, requests and turns.
    pub fn set_hooks(&self, hooks: impl AgentHooks<C>) {
        let hooks: Arc<dyn AgentHooks<C>> = Arc::new(hooks);
        self.shared.replace(|agent| &mut agent.config.hooks, Some(hooks));
    }

    /// Replaces what every request carries besides its transcript.
    pub fn set_stream_options(&self, options: StreamOptions) {
        self.shared.replace(|agent| &mut agent.config.options, options);
    }

    /// What every request carries besides its transcript.
    pub fn stream_options(&self) -> StreamOptions {
        self.shared.lock().config.options.clone()
    }

    /// Replaces where keys come from.
    pub fn set_key_source(&self, source: impl AsyncHook<ProviderId, CancellationToken, Option<Secret>>) {
        let source: Arc<KeySource> = Arc::new(move |provider, signal| source.run(provider, signal));
        self.shared.replace(|agent| &mut agent.config.key_source, Some(source));
    }

    /// Says how the calls of one answer run.
    pub fn set_tool_execution(&self, mode: ExecutionMode) {
        self.shared.lock().config.tool_execution = mode;
    }

    /// Says how many steering messages are taken in at a time. It counts at once.
    pub fn set_steering_mode(&self, mode: QueueMode) {
        self.shared.lock().steering.mode = mode;
    }

    /// Says how many follow-up messages are taken in at a time. It counts at once.
    pub fn set_follow_up_mode(&self, mode: QueueMode) {
        self.shared.lock().follow_up.mode = mode;
    }

    /// Runs one call with the agent's tools and hooks, without events and without a message in the transcript: for
    /// tools that call other tools. See [`run_tool_call`].
    pub async fn run_tool_call(
        &self,
        call: &ToolCall,
        assistant_message: &AssistantMessage,
        signal: CancellationToken,
        on_update: impl FnMut(ToolOutput),
    ) -> ToolCallOutcome {
        let (config, tools, messages): (_, ToolSet, _) = {
            let mutable = self.shared.lock();
            (mutable.config.clone(), mutable.tools.clone(), mutable.transcript.messages.clone())
        };
        let options = RunToolCall {
            assistant_message,
            messages: &messages,
            tools: &tools,
            hooks: config.hooks.as_deref(),
            clock: &*config.clock,
            signal,
            abort_grace: config.abort_grace,
        };
        run_tool_call(call, options, on_update).await
    }
}
