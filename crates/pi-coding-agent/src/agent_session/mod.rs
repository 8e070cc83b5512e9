//! A conversation that runs: an agent, its session on disk, and what happens around both.
//!
//! The session is the authority. Before each request the messages are taken from its projection, and a message is
//! stored before any listener learns that it ended. A prompt sets off one or more runs of the loop (a retry or a
//! recovery is a run of its own) and settles when nothing automatic remains.

mod bash;
mod boundary;
mod compaction;
mod custom;
mod cycle;
mod deferred;
mod error;
mod event;
mod extensions;
mod follow;
mod hooks;
mod lifetime;
mod listeners;
mod model;
mod navigate;
mod prompt;
mod provider_hooks;
mod queue;
mod record;
mod report;
mod resources;
mod retry;
mod structured;
mod system_prompt;
mod tools;
mod transform;

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use pi_agent_core::{Agent, AsyncHook};
use pi_ai::{AssistantMessage, CancellationToken, Clock, Message, MessageIdentity, StreamFn, models::Models};
use tokio::sync::watch;
use tokio_util::sync::DropGuard;

pub use bash::ForModel;
pub use custom::{CustomMessage, Display};
pub use cycle::{Direction, ScopedModel};
pub use error::AgentSessionError;
pub use event::{CompactionOutcome, RetryOutcome, SessionEvent, Settled, SummarySource, WillRetry};
pub use extensions::{MessageTiming, UserMessageTiming};
use listeners::Interest;
pub use listeners::Subscription;
pub use navigate::{LeaveBehind, Navigated};
pub use pi_agent_core::ListenerContext;
pub use prompt::{SessionPrompt, SessionReply, SessionRun};
pub use queue::{Delivery, Queued};
pub use tools::SessionTool;

use crate::{
    extensions::{
        ExtensionRunner,
        event::{self as extension_event, SessionInfoChangedEvent},
    },
    messages::{CodingMessage, SessionMessage},
    resources::{SettingsManager, SystemPromptOptions},
    sdk::SessionStart,
    session::SessionManager,
    tool_selection::ToolSelection,
    tools::session_facts::SessionFacts,
    workspace::Workspace,
};

/// A conversation that runs. Clones are handles of one session; the last one that is dropped aborts what is running.
///
/// Made by [`create_agent_session`](crate::sdk::create_agent_session).
#[derive(Clone)]
pub struct AgentSession {
    inner: Arc<Inner>,
    _last_handle: Arc<DropGuard>,
}

pub(crate) struct Inner {
    this: Weak<Inner>,
    agent: Agent<CodingMessage>,
    manager: SessionManager,
    stream: Arc<dyn StreamFn>,
    /// The registry of models, unless the application answers by itself.
    models: Option<Models>,
    settings: Arc<SettingsManager>,
    resources: SessionResources,
    extensions: ExtensionRunner,
    workspace: Workspace,
    tool_selection: ToolSelection,
    /// The tools that are there without extensions.
    own_tools: Vec<SessionTool>,
    clock: Arc<dyn Clock>,
    commands: lifetime::Commands,
    model_notice: Option<String>,
    start: SessionStart,
    listeners: listeners::Listeners,
    activity: watch::Sender<Activity>,
    lifetime: CancellationToken,
    state: Mutex<State>,
}

/// What changes while the session lives.
struct State {
    selection: model::Selection,
    tools: tools::ToolRegistry,
    /// What the system prompt should say; the transcript says what it said last.
    prompt: SystemPromptOptions,
    queued: queue::QueuedTexts,
    deferred: deferred::Deferred,
    /// Whether a prompt is answered by a value of a type.
    answer_is_typed: bool,
    /// The models to choose from; none means all that have a key.
    scope: Vec<ScopedModel>,
    /// What the current prompt did so far.
    run: record::RunRecord,
    /// What extensions said that has to wait.
    said: extensions::Said,
}

/// What a session is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Activity {
    /// Nothing.
    #[default]
    Idle,
    /// It answers a prompt.
    Running,
    /// It summarises the conversation.
    Compacting,
    /// Nothing any more: it was disposed of.
    Ended,
}

/// What a session is made of.
pub(crate) struct Parts {
    pub(crate) manager: SessionManager,
    pub(crate) stream: Arc<dyn StreamFn>,
    pub(crate) models: Option<Models>,
    pub(crate) scope: Vec<ScopedModel>,
    /// Why the session's own model does not answer.
    pub(crate) model_notice: Option<String>,
    pub(crate) start: SessionStart,
    pub(crate) settings: Arc<SettingsManager>,
    pub(crate) resources: SessionResources,
    pub(crate) extensions: ExtensionRunner,
    pub(crate) workspace: Workspace,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) selection: model::Selection,
    pub(crate) tools: Vec<SessionTool>,
    pub(crate) tool_selection: ToolSelection,
    pub(crate) prompt: SystemPromptOptions,
}

pub(crate) use model::{Recorded, Selection};
pub(crate) use resources::{PromptSource, SessionResources};

impl AgentSession {
    pub(crate) fn new(parts: Parts) -> Self {
        let Parts {
            manager,
            stream,
            models,
            scope,
            model_notice,
            start,
            settings,
            resources,
            extensions,
            workspace,
            clock,
            selection,
            tools: known,
            tool_selection,
            mut prompt,
        } = parts;
        resources.add_to(&mut prompt);
        let mut tools = tools::ToolRegistry::default();
        tools.register(known.iter().cloned());
        tools.register(extensions.tools());
        tools.activate_for(&tool_selection, manager.context().messages.as_slice());
        let lifetime = CancellationToken::new();
        let last_handle = Arc::new(lifetime.clone().drop_guard());
        let inner = Arc::new_cyclic(|weak: &Weak<Inner>| Inner {
            this: weak.clone(),
            agent: hooks::build_agent(weak.clone(), &manager, &stream, &settings, &clock, &selection, &tools),
            manager,
            stream,
            models,
            model_notice,
            start,
            settings,
            resources,
            extensions,
            workspace,
            tool_selection,
            own_tools: known,
            clock,
            commands: lifetime::Commands::default(),
            listeners: listeners::Listeners::default(),
            activity: watch::channel(Activity::Idle).0,
            lifetime,
            state: Mutex::new(State {
                selection,
                tools,
                prompt,
                queued: queue::QueuedTexts::default(),
                deferred: deferred::Deferred::default(),
                answer_is_typed: false,
                scope,
                run: record::RunRecord::default(),
                said: extensions::Said::default(),
            }),
        });
        record::follow(&inner);
        Self { inner, _last_handle: last_handle }
    }

    /// Is told what happens, in order, and awaited before the session goes on.
    pub fn subscribe(&self, listener: impl AsyncHook<SessionEvent, ListenerContext, ()>) -> Subscription {
        self.inner.listeners.subscribe(Interest::Everything, listener)
    }

    /// Like [`subscribe`](Self::subscribe), but is not told of each word: answers are seen when they are whole. Costs
    /// nothing while an answer is streamed.
    pub fn subscribe_to_steps(&self, listener: impl AsyncHook<SessionEvent, ListenerContext, ()>) -> Subscription {
        self.inner.listeners.subscribe(Interest::Steps, listener)
    }

    /// The session on disk.
    pub fn session_manager(&self) -> &SessionManager {
        &self.inner.manager
    }

    /// How the session came to be.
    pub fn start_of_session(&self) -> &SessionStart {
        &self.inner.start
    }

    /// The settings.
    pub fn settings(&self) -> &Arc<SettingsManager> {
        &self.inner.settings
    }

    /// The conversation as the next request is built from it.
    pub fn messages(&self) -> Vec<SessionMessage> {
        self.inner.manager.context().messages
    }

    /// The last message of the conversation, when it is one of the model's.
    pub fn last_message(&self) -> Option<Message> {
        self.inner.manager.with(|session| session.projection().messages().last()?.as_llm().cloned())
    }

    /// The last answer that came to the prompt that is being answered or was answered last, also when it was left out
    /// of the conversation or could not be stored.
    pub fn last_answer(&self) -> Option<Arc<AssistantMessage>> {
        self.inner.state().run.received.clone()
    }

    /// What the session is doing.
    pub fn activity(&self) -> Activity {
        *self.inner.activity.borrow()
    }

    /// Gives the session a name.
    ///
    /// # Errors
    /// When it cannot be stored.
    pub async fn set_name(&self, name: &str) -> Result<(), AgentSessionError> {
        self.inner.manager.append_session_info(name).await?;
        let name = self.inner.manager.name();
        let payload = || SessionInfoChangedEvent::new(name.clone());
        self.inner.extensions.notify(extension_event::SessionInfoChanged, &self.inner.lifetime, payload).await;
        self.inner.tell(SessionEvent::SessionInfoChanged { name }).await;
        Ok(())
    }

    /// Aborts what is running. Queued messages stay.
    pub fn abort(&self) {
        self.inner.state().run.cancel();
        self.inner.agent.abort();
    }
}

/// A handle that does not keep a session alive.
#[derive(Clone)]
pub struct WeakAgentSession {
    inner: Weak<Inner>,
    last_handle: Weak<DropGuard>,
}

impl AgentSession {
    /// A handle that does not keep the session alive: for listeners and tools, which the session holds itself.
    pub fn downgrade(&self) -> WeakAgentSession {
        WeakAgentSession { inner: Arc::downgrade(&self.inner), last_handle: Arc::downgrade(&self._last_handle) }
    }
}

impl WeakAgentSession {
    /// The session, if it is still there.
    pub fn upgrade(&self) -> Option<AgentSession> {
        Some(AgentSession { inner: self.inner.upgrade()?, _last_handle: self.last_handle.upgrade()? })
    }

    /// What tools may know of the session.
    pub fn facts(&self) -> Option<SessionFacts> {
        Some(self.inner.upgrade()?.facts())
    }
}

impl fmt::Debug for WeakAgentSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WeakAgentSession")
    }
}

impl fmt::Debug for AgentSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentSession")
            .field("session", &self.inner.manager)
            .field("activity", &self.activity())
            .finish_non_exhaustive()
    }
}

impl Inner {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells the listeners of something outside a run of the loop.
    async fn tell(&self, event: SessionEvent) {
        let signal = self.state().run.signal.clone();
        self.listeners.tell(event, &ListenerContext::outside(signal)).await;
    }

    /// Tells the listeners which texts wait.
    async fn tell_queue(&self) {
        let (steering, follow_up) = self.state().queued.texts();
        self.tell(SessionEvent::QueueUpdate { steering, follow_up }).await;
    }

    /// Forgets a queued message that is being said. Whether it was queued.
    fn queued_was_said(&self, identity: MessageIdentity) -> bool {
        self.state().queued.said(identity)
    }
}
