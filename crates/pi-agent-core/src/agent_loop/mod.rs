//! The loop itself, without an agent around it: for those who keep transcript, queues and listeners themselves.
//!
//! [`Agent`](crate::Agent) is built on it and is what most programs want. The loop is one function over an explicit
//! state; it owns scheduling (turns, tool batches, steering, follow-up, continuation) and nothing else.

mod announce;
mod failure;
mod request;
mod run;
mod tool_calls;

use std::{fmt, sync::Arc, time::Duration};

use futures::{StreamExt, future::BoxFuture, stream::BoxStream};
use pi_ai::{
    CancellationToken, Clock, Model, ProviderId, Secret, StreamFn, StreamOptions, ThinkingLevel, time::SystemClock,
};

use crate::{
    agent::{AgentError, EventQueue, Prompt},
    event::{AgentEvent, ListenerContext, Streaming},
    hooks::{AgentHooks, AsyncHook, Converter, TransformContext},
    message::{AgentMessage, CustomMessage, NoCustom},
    observe::RequestObserver,
    tool::{ExecutionMode, ToolSet},
};

pub(crate) use run::{FirstPoll, LoopRun, Outcome, Pending};

/// Gives the key for a provider, right before a request. `None`: whatever the request's options or the provider have.
pub type KeySource = dyn Fn(ProviderId, CancellationToken) -> BoxFuture<'static, Option<Secret>> + Send + Sync;

/// Gives messages that wait for the run to take them in: those of the next batch, or none. What it gave is the run's: it
/// becomes part of what the run produced, also when the run fails before the next request.
pub type MessageSource<C> = dyn Fn() -> Vec<AgentMessage<C>> + Send + Sync;

/// How long code of others may take after an abort, if nothing else is said.
pub const DEFAULT_ABORT_GRACE: Duration = Duration::from_secs(5);

/// Everything that a run needs besides its messages and tools.
///
/// ```
/// use pi_agent_core::{NoCustom, agent_loop::LoopConfig};
/// use pi_ai::faux::FauxProvider;
/// let config: LoopConfig<NoCustom> = LoopConfig::new(FauxProvider::new([]), FauxProvider::model());
/// ```
pub struct LoopConfig<C = NoCustom> {
    /// Answers requests.
    pub stream: Arc<dyn StreamFn>,
    /// The model that is asked first; hooks may change it.
    pub model: Arc<Model>,
    /// How hard it thinks; hooks may change it.
    pub thinking_level: ThinkingLevel,
    /// The two hooks.
    pub pipeline: Pipeline<C>,
    /// The other hooks.
    pub hooks: Option<Arc<dyn AgentHooks<C>>>,
    /// What every request carries. Its signal and its thinking level are those of the run.
    pub options: StreamOptions,
    /// Asked for a key before every request.
    pub key_source: Option<Arc<KeySource>>,
    /// How the calls of one answer run, unless a tool says otherwise.
    pub tool_execution: ExecutionMode,
    /// Messages to take in after a turn and its tool calls.
    pub steering: Option<Arc<MessageSource<C>>>,
    /// Messages to take in when the run would end.
    pub follow_up: Option<Arc<MessageSource<C>>>,
    /// Sees what becomes of each message.
    pub observer: Option<Arc<dyn RequestObserver<C>>>,
    /// Tells the time for messages that the loop makes, and how long tools ran.
    pub clock: Arc<dyn Clock>,
    /// How long a tool, a hook or a stream may take after an abort before it is dropped.
    pub abort_grace: Duration,
}

/// The two hooks on the way to the model. Their order is fixed in the loop: first `transform`, then `convert`.
pub struct Pipeline<C> {
    /// Chooses the messages. Optional.
    pub transform: Option<Arc<dyn TransformContext<C>>>,
    /// Says what the model sees of each.
    pub convert: Converter<C>,
}

impl<C: CustomMessage> Default for Pipeline<C> {
    fn default() -> Self {
        Self { transform: None, convert: Converter::default() }
    }
}

impl<C> Clone for Pipeline<C> {
    fn clone(&self) -> Self {
        Self { transform: self.transform.clone(), convert: self.convert.clone() }
    }
}

impl<C> fmt::Debug for Pipeline<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pipeline")
            .field("transform", &self.transform.is_some())
            .field("convert", &self.convert)
            .finish()
    }
}

impl<C: CustomMessage> LoopConfig<C> {
    /// A configuration with defaults for everything else.
    pub fn new(stream: impl StreamFn, model: impl Into<Arc<Model>>) -> Self {
        Self {
            stream: Arc::new(stream),
            model: model.into(),
            thinking_level: ThinkingLevel::Off,
            pipeline: Pipeline::default(),
            hooks: None,
            options: StreamOptions::default(),
            key_source: None,
            tool_execution: ExecutionMode::Parallel,
            steering: None,
            follow_up: None,
            observer: None,
            clock: Arc::new(SystemClock),
            abort_grace: DEFAULT_ABORT_GRACE,
        }
    }
}

impl<C> Clone for LoopConfig<C> {
    fn clone(&self) -> Self {
        Self {
            stream: self.stream.clone(),
            model: self.model.clone(),
            thinking_level: self.thinking_level,
            pipeline: self.pipeline.clone(),
            hooks: self.hooks.clone(),
            options: self.options.clone(),
            key_source: self.key_source.clone(),
            tool_execution: self.tool_execution,
            steering: self.steering.clone(),
            follow_up: self.follow_up.clone(),
            observer: self.observer.clone(),
            clock: self.clock.clone(),
            abort_grace: self.abort_grace,
        }
    }
}

impl<C> fmt::Debug for LoopConfig<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoopConfig")
            .field("model", &self.model.id)
            .field("thinking_level", &self.thinking_level)
            .field("pipeline", &self.pipeline)
            .field("tool_execution", &self.tool_execution)
            .finish_non_exhaustive()
    }
}

/// What a run starts from.
#[derive(Debug)]
pub struct AgentContext<C = NoCustom> {
    /// The transcript.
    pub messages: Vec<AgentMessage<C>>,
    /// The tools that can be run. What the transcript declares is brought in line with them.
    pub tools: ToolSet,
}

impl<C> Default for AgentContext<C> {
    fn default() -> Self {
        Self { messages: Vec::new(), tools: ToolSet::default() }
    }
}

/// What is around a run: who keeps the transcript and the queues, and who listens.
pub(crate) trait Host<C: CustomMessage>: Send + Sync {
    /// The two hooks as they are now.
    fn pipeline(&self) -> Pipeline<C>;

    /// The next batch of messages that wait to steer; they stay queued.
    fn steering(&self) -> Vec<Pending<C>>;

    /// The next batch of messages that wait for the end; they stay queued.
    fn follow_up(&self) -> Vec<Pending<C>>;

    /// Whether a message of a batch is still wanted.
    fn still_wants(&self, pending: &Pending<C>) -> bool;

    /// Whether a message of a batch would be there still if it did not join the transcript.
    fn keeps(&self, pending: &Pending<C>) -> bool;

    /// A message is part of the transcript now, and leaves its queue.
    fn record(&self, message: &AgentMessage<C>, origin: Option<&Pending<C>>);

    /// The answer that is being streamed, for whoever asks for the state.
    fn set_streaming(&self, streaming: Option<Streaming>);

    /// Tells everybody, and waits for those who have to be waited for.
    fn emit(&self, event: AgentEvent<C>, context: &ListenerContext) -> impl Future<Output = ()> + Send;
}

/// Runs new messages. Events go to `emit`, one after the other, each awaited; gives what the run produced.
pub async fn run_agent_loop<C: CustomMessage>(
    prompts: impl Into<Prompt<C>>,
    context: AgentContext<C>,
    config: LoopConfig<C>,
    signal: CancellationToken,
    emit: impl AsyncHook<AgentEvent<C>, ListenerContext, ()>,
) -> Vec<AgentMessage<C>> {
    let prompts = prompts.into().into_messages(&*config.clock);
    run_with(prompts, context, config, signal, Arc::new(move |event, context| emit.run(event, context))).await
}

/// Goes on from a context without a new message, for example to try again.
///
/// # Errors
/// When there is nothing to go on from: no messages, or an answer at the end.
pub async fn run_agent_loop_continue<C: CustomMessage>(
    context: AgentContext<C>,
    config: LoopConfig<C>,
    signal: CancellationToken,
    emit: impl AsyncHook<AgentEvent<C>, ListenerContext, ()>,
) -> Result<Vec<AgentMessage<C>>, AgentError> {
    can_continue(&context.messages)?;
    let emit: Arc<Emit<C>> = Arc::new(move |event, context| emit.run(event, context));
    Ok(run_with(Vec::new(), context, config, signal, emit).await)
}

/// As [`run_agent_loop`], in a task of its own: the events as a stream that ends with the run. The run does not wait
/// for whoever reads; dropping the stream aborts it.
pub fn agent_loop<C: CustomMessage>(
    prompts: impl Into<Prompt<C>>,
    context: AgentContext<C>,
    config: LoopConfig<C>,
    signal: &CancellationToken,
) -> BoxStream<'static, AgentEvent<C>> {
    let prompts = prompts.into().into_messages(&*config.clock);
    spawn_into_queue(prompts, context, config, signal)
}

/// As [`run_agent_loop_continue`], in a task of its own; see [`agent_loop`].
///
/// # Errors
/// When there is nothing to go on from: no messages, or an answer at the end.
pub fn agent_loop_continue<C: CustomMessage>(
    context: AgentContext<C>,
    config: LoopConfig<C>,
    signal: &CancellationToken,
) -> Result<BoxStream<'static, AgentEvent<C>>, AgentError> {
    can_continue(&context.messages)?;
    Ok(spawn_into_queue(Vec::new(), context, config, signal))
}

fn can_continue<C>(messages: &[AgentMessage<C>]) -> Result<(), AgentError> {
    match messages.last() {
        None => Err(AgentError::NothingToContinue),
        Some(last) if last.as_assistant().is_some() => Err(AgentError::AlreadyAnswered),
        Some(_) => Ok(()),
    }
}

fn spawn_into_queue<C: CustomMessage>(
    prompts: Vec<AgentMessage<C>>,
    context: AgentContext<C>,
    config: LoopConfig<C>,
    signal: &CancellationToken,
) -> BoxStream<'static, AgentEvent<C>> {
    let signal = signal.child_token();
    let queue = EventQueue::default();
    let events = queue.clone().into_stream(signal.clone().drop_guard()).boxed();
    tokio::spawn(async move {
        let closing = queue.clone().closing();
        let emit: Arc<Emit<C>> = Arc::new(move |event, _context| {
            queue.push(event);
            Box::pin(std::future::ready(()))
        });
        run_with(prompts, context, config, signal, emit).await;
        drop(closing);
    });
    events
}

async fn run_with<C: CustomMessage>(
    prompts: Vec<AgentMessage<C>>,
    context: AgentContext<C>,
    config: LoopConfig<C>,
    signal: CancellationToken,
    emit: Arc<Emit<C>>,
) -> Vec<AgentMessage<C>> {
    let host = Alone {
        pipeline: config.pipeline.clone(),
        steering: config.steering.clone(),
        follow_up: config.follow_up.clone(),
        emit,
    };
    let prompts = prompts.into_iter().map(Pending::new).collect();
    LoopRun::new(&host, context, config, signal).run(prompts, FirstPoll::Steering).await.messages
}

type Emit<C> = dyn Fn(AgentEvent<C>, ListenerContext) -> BoxFuture<'static, ()> + Send + Sync;

/// A run without an agent around it.
struct Alone<C> {
    pipeline: Pipeline<C>,
    steering: Option<Arc<MessageSource<C>>>,
    follow_up: Option<Arc<MessageSource<C>>>,
    emit: Arc<Emit<C>>,
}

impl<C: CustomMessage> Host<C> for Alone<C> {
    fn pipeline(&self) -> Pipeline<C> {
        self.pipeline.clone()
    }

    fn steering(&self) -> Vec<Pending<C>> {
        self.steering.as_ref().map(|take| take().into_iter().map(Pending::new).collect()).unwrap_or_default()
    }

    fn follow_up(&self) -> Vec<Pending<C>> {
        self.follow_up.as_ref().map(|take| take().into_iter().map(Pending::new).collect()).unwrap_or_default()
    }

    fn still_wants(&self, _pending: &Pending<C>) -> bool {
        true
    }

    /// What its sources gave is theirs no more.
    fn keeps(&self, _pending: &Pending<C>) -> bool {
        false
    }

    fn record(&self, _message: &AgentMessage<C>, _origin: Option<&Pending<C>>) {}

    fn set_streaming(&self, _streaming: Option<Streaming>) {}

    async fn emit(&self, event: AgentEvent<C>, context: &ListenerContext) {
        if let Err(panic) = crate::contain::contain_async(|| (self.emit)(event, context.clone())).await {
            tracing::error!(panic = panic.0, "whoever takes the events panicked");
        }
    }
}
