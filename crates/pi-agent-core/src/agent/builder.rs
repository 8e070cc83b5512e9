//! Making an agent.

use std::{fmt, sync::Arc, time::Duration};

use pi_ai::{
    CancellationToken, Clock, Message, Model, ProviderId, Secret, SessionId, StreamFn, StreamOptions, SystemMessage,
    ThinkingLevel,
    options::{Identity, ProviderHooks},
};

use super::{
    Agent,
    queue::{Queue, QueueMode},
    shared::{Shared, Transcript},
};
use crate::{
    agent_loop::LoopConfig,
    hooks::{AgentHooks, AsyncHook, ConvertToLlm, Converter, TransformContext, transform_fn},
    message::{AgentMessage, CustomMessage, NoCustom},
    observe::RequestObserver,
    tool::{AgentTool, ExecutionMode},
};

/// Makes an [`Agent`]. Everything but the stream function has a default.
#[must_use]
pub struct AgentBuilder<C: CustomMessage = NoCustom> {
    config: LoopConfig<C>,
    system_prompt: String,
    messages: Vec<AgentMessage<C>>,
    tools: Vec<Arc<dyn AgentTool>>,
    steering_mode: QueueMode,
    follow_up_mode: QueueMode,
}

impl<C: CustomMessage> AgentBuilder<C> {
    pub(super) fn new(stream: impl StreamFn) -> Self {
        let unknown = Model {
            id: "unknown".into(),
            name: "unknown".to_owned(),
            api: "unknown".into(),
            provider: "unknown".into(),
            ..Model::default()
        };
        Self {
            config: LoopConfig::new(stream, unknown),
            system_prompt: String::new(),
            messages: Vec::new(),
            tools: Vec::new(),
            steering_mode: QueueMode::default(),
            follow_up_mode: QueueMode::default(),
        }
    }

    /// The prompt of a new transcript. A transcript that begins with a system message keeps its own.
    pub fn system_prompt(mut self, prompt: impl Into<String>) -> Self {
        self.system_prompt = prompt.into();
        self
    }

    /// A transcript to go on from.
    pub fn messages(mut self, messages: impl IntoIterator<Item = impl Into<AgentMessage<C>>>) -> Self {
        self.messages = messages.into_iter().map(Into::into).collect();
        self
    }

    /// Adds a tool.
    pub fn tool(mut self, tool: impl AgentTool) -> Self {
        self.tools.push(Arc::new(tool));
        self
    }

    /// Adds tools.
    pub fn tools(mut self, tools: impl IntoIterator<Item = Arc<dyn AgentTool>>) -> Self {
        self.tools.extend(tools);
        self
    }

    /// The model. Without one the stream function gets a placeholder named `unknown`.
    pub fn model(mut self, model: impl Into<Arc<Model>>) -> Self {
        self.config.model = model.into();
        self
    }

    /// How hard the model thinks.
    pub fn thinking_level(mut self, level: ThinkingLevel) -> Self {
        self.config.thinking_level = level;
        self
    }

    /// The first hook: which messages a request is made from. See [`TransformContext`].
    pub fn transform_context(
        self,
        hook: impl AsyncHook<Vec<AgentMessage<C>>, CancellationToken, Vec<AgentMessage<C>>>,
    ) -> Self {
        self.transform_context_with(transform_fn(hook))
    }

    /// The first hook as a struct or an `Arc<dyn TransformContext<C>>`.
    pub fn transform_context_with(mut self, hook: impl TransformContext<C>) -> Self {
        self.config.pipeline.transform = Some(Arc::new(hook));
        self
    }

    /// The second hook: what the model sees of each of the application's messages. See [`ConvertToLlm`].
    pub fn convert_to_llm<I: IntoIterator<Item = Message>>(
        self,
        hook: impl Fn(&C) -> I + Send + Sync + 'static,
    ) -> Self {
        self.convert_to_llm_with(hook)
    }

    /// The second hook as a struct or an `Arc<dyn ConvertToLlm<C>>`.
    pub fn convert_to_llm_with(mut self, hook: impl ConvertToLlm<C>) -> Self {
        self.config.pipeline.convert = Converter::each(hook);
        self
    }

    /// The second hook over the whole list, for a converter that has to wait or to see a message's neighbours.
    pub fn convert_list_to_llm(
        mut self,
        hook: impl AsyncHook<Vec<AgentMessage<C>>, CancellationToken, Vec<Message>>,
    ) -> Self {
        self.config.pipeline.convert = Converter::list(hook);
        self
    }

    /// The hooks around tool calls, requests and turns.
    pub fn hooks(mut self, hooks: impl AgentHooks<C>) -> Self {
        self.config.hooks = Some(Arc::new(hooks));
        self
    }

    /// What every request carries besides its transcript. Signal and thinking level are those of the run.
    pub fn stream_options(mut self, options: StreamOptions) -> Self {
        self.config.options = options;
        self
    }

    /// Names the conversation to the provider, for caching.
    pub fn session_id(mut self, session: impl Into<SessionId>) -> Self {
        self.config.options.session_id = Some(session.into());
        self
    }

    /// Who asks, for providers that want to know.
    pub fn identity(mut self, identity: Identity) -> Self {
        self.config.options.identity = identity;
        self
    }

    /// Called along each request: payload, response, raw events.
    pub fn provider_hooks(mut self, hooks: ProviderHooks) -> Self {
        self.config.options.hooks = hooks;
        self
    }

    /// Asked for the provider's key before every request, so that a key may expire during a run. `None`: whatever is
    /// configured otherwise.
    pub fn key_source(mut self, source: impl AsyncHook<ProviderId, CancellationToken, Option<Secret>>) -> Self {
        self.config.key_source = Some(Arc::new(move |provider, signal| source.run(provider, signal)));
        self
    }

    /// How the calls of one answer run, unless a tool says otherwise.
    pub fn tool_execution(mut self, mode: ExecutionMode) -> Self {
        self.config.tool_execution = mode;
        self
    }

    /// How many steering messages are taken in at a time.
    pub fn steering_mode(mut self, mode: QueueMode) -> Self {
        self.steering_mode = mode;
        self
    }

    /// How many follow-up messages are taken in at a time.
    pub fn follow_up_mode(mut self, mode: QueueMode) -> Self {
        self.follow_up_mode = mode;
        self
    }

    /// Sees what becomes of each message on its way to the model.
    pub fn observer(mut self, observer: impl RequestObserver<C>) -> Self {
        self.config.observer = Some(Arc::new(observer));
        self
    }

    /// Where the time comes from.
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.config.clock = Arc::new(clock);
        self
    }

    /// How long a tool, a hook or a stream may take after an abort before it is dropped: five seconds, if nothing is
    /// said.
    pub fn abort_grace(mut self, grace: Duration) -> Self {
        self.config.abort_grace = grace;
        self
    }

    /// Makes the agent. It does nothing until it is prompted.
    pub fn build(self) -> Agent<C> {
        let Self { config, system_prompt, mut messages, tools, steering_mode, follow_up_mode } = self;
        let tools = tools.into_iter().collect::<crate::ToolSet>();
        let has_a_prompt = messages.first().is_some_and(AgentMessage::is_system);
        let says_something = !system_prompt.is_empty() || !tools.is_empty();
        if says_something && !has_a_prompt {
            let head = SystemMessage { timestamp: config.clock.now(), ..SystemMessage::new(system_prompt) };
            messages.insert(0, head.with_tools(tools.declarations().cloned()).into());
        }
        let queues = [Queue::new(steering_mode), Queue::new(follow_up_mode)];
        Agent::from_shared(Shared::new(config, tools, Transcript::new(messages), queues))
    }
}

impl<C: CustomMessage> fmt::Debug for AgentBuilder<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentBuilder")
            .field("config", &self.config)
            .field("messages", &self.messages.len())
            .finish_non_exhaustive()
    }
}
