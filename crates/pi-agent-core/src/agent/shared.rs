//! What all handles of an agent share, and its side of a run.

use std::{
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use futures::future::BoxFuture;
use pi_ai::{CancellationToken, MessageIdentity, ToolCallId, transcript::TranscriptState};
use tokio::sync::watch;

use super::{events::EventQueue, queue::Queue};
use crate::{
    agent_loop::{Host, LoopConfig, Pending, Pipeline},
    contain::contain_async,
    event::{AgentEvent, ListenerContext, Streaming},
    message::{AgentMessage, CustomMessage},
    tool::ToolSet,
};

/// What all handles of an agent share.
pub(super) struct Shared<C: CustomMessage> {
    mutable: Mutex<Mutable<C>>,
    /// Whether a run is active.
    pub(super) busy: watch::Sender<bool>,
    /// Cancelled with the last handle.
    pub(super) lifetime: CancellationToken,
    next_subscription: AtomicU64,
}

/// What changes. It is locked for moments only, never across an await.
pub(super) struct Mutable<C: CustomMessage> {
    pub(super) config: LoopConfig<C>,
    pub(super) tools: ToolSet,
    pub(super) transcript: Transcript<C>,
    pub(super) steering: Queue<C>,
    pub(super) follow_up: Queue<C>,
    listeners: Arc<[Arc<Listener<C>>]>,
    pub(super) run: CurrentRun,
}

/// The messages, and what they add up to.
pub(super) struct Transcript<C> {
    pub(super) messages: Arc<Vec<AgentMessage<C>>>,
    pub(super) replayed: Arc<TranscriptState>,
}

/// What is known of the run that is active, or was last.
#[derive(Default)]
pub(super) struct CurrentRun {
    /// Aborts the active run.
    pub(super) signal: Option<CancellationToken>,
    pub(super) streaming: Option<Streaming>,
    pub(super) pending_tool_calls: Vec<ToolCallId>,
    pub(super) error_message: Option<String>,
}

/// A subscription's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ListenerId(u64);

struct Listener<C> {
    id: ListenerId,
    /// Whether it still wants to hear.
    active: AtomicBool,
    hears: Hears<C>,
}

pub(super) type ListenerFn<C> = dyn Fn(AgentEvent<C>, ListenerContext) -> BoxFuture<'static, ()> + Send + Sync;

pub(super) enum Hears<C> {
    /// The run waits for it.
    Awaited(Box<ListenerFn<C>>),
    /// The run does not wait.
    Queued(EventQueue<C>),
}

impl<C> Transcript<C> {
    pub(super) fn new(messages: Vec<AgentMessage<C>>) -> Self {
        Self { replayed: Arc::new(messages.iter().collect()), messages: Arc::new(messages) }
    }

    fn push(&mut self, message: AgentMessage<C>) {
        if message.is_system() {
            Arc::make_mut(&mut self.replayed).push(&message);
        }
        // Copies the pointers when a snapshot is alive.
        Arc::make_mut(&mut self.messages).push(message);
    }
}

impl<C: CustomMessage> Shared<C> {
    pub(super) fn new(
        mut config: LoopConfig<C>,
        tools: ToolSet,
        transcript: Transcript<C>,
        queues: [Queue<C>; 2],
    ) -> Self {
        // An agent's queues are its own.
        (config.steering, config.follow_up) = (None, None);
        let [steering, follow_up] = queues;
        let mutable = Mutable {
            config,
            tools,
            transcript,
            steering,
            follow_up,
            listeners: Arc::new([]),
            run: CurrentRun::default(),
        };
        Self {
            mutable: Mutex::new(mutable),
            busy: watch::Sender::new(false),
            lifetime: CancellationToken::new(),
            next_subscription: AtomicU64::new(0),
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Mutable<C>> {
        self.mutable.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a new value in a place. The old one is dropped when the lock is released: it may be code of others.
    pub(super) fn replace<T>(&self, place: impl FnOnce(&mut Mutable<C>) -> &mut T, value: T) {
        let old = std::mem::replace(place(&mut self.lock()), value);
        drop(old);
    }

    pub(super) fn add_listener(&self, hears: Hears<C>) -> ListenerId {
        let id = ListenerId(self.next_subscription.fetch_add(1, Ordering::Relaxed));
        let listener = Arc::new(Listener { id, active: AtomicBool::new(true), hears });
        let mut mutable = self.lock();
        mutable.listeners = mutable.listeners.iter().cloned().chain([listener]).collect();
        id
    }

    pub(super) fn remove_listener(&self, id: ListenerId) {
        let mut mutable = self.lock();
        let Some(leaving) = mutable.listeners.iter().find(|listener| listener.id == id) else { return };
        leaving.active.store(false, Ordering::Relaxed);
        mutable.listeners = mutable.listeners.iter().filter(|listener| listener.id != id).cloned().collect();
    }

    async fn tell(&self, listener: &Listener<C>, event: AgentEvent<C>, context: ListenerContext) {
        if !listener.active.load(Ordering::Relaxed) {
            return;
        }
        match &listener.hears {
            Hears::Queued(queue) => queue.push(event),
            Hears::Awaited(hear) => {
                if let Err(panic) = contain_async(|| hear(event, context)).await {
                    self.remove_listener(listener.id);
                    tracing::error!(panic = panic.0, "a listener panicked; it will hear no more events");
                }
            }
        }
    }

    fn queue_of(&self, message: MessageIdentity) -> bool {
        let mutable = self.lock();
        mutable.steering.contains(message) || mutable.follow_up.contains(message)
    }
}

impl<C: CustomMessage> Drop for Shared<C> {
    /// Whoever reads events learns that there will be no more.
    fn drop(&mut self) {
        let mutable = self.mutable.get_mut().unwrap_or_else(PoisonError::into_inner);
        for listener in mutable.listeners.iter() {
            if let Hears::Queued(queue) = &listener.hears {
                queue.close();
            }
        }
    }
}

impl<C: CustomMessage> fmt::Debug for Shared<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("busy", &*self.busy.borrow()).finish_non_exhaustive()
    }
}

/// An agent's side of a run.
pub(super) struct AgentHost<C: CustomMessage> {
    pub(super) shared: Arc<Shared<C>>,
}

impl<C: CustomMessage> Host<C> for AgentHost<C> {
    fn pipeline(&self) -> Pipeline<C> {
        self.shared.lock().config.pipeline.clone()
    }

    fn steering(&self) -> Vec<Pending<C>> {
        self.shared.lock().steering.next_batch().into_iter().map(Pending::queued).collect()
    }

    fn follow_up(&self) -> Vec<Pending<C>> {
        self.shared.lock().follow_up.next_batch().into_iter().map(Pending::queued).collect()
    }

    fn still_wants(&self, pending: &Pending<C>) -> bool {
        pending.queued.is_none_or(|message| self.shared.queue_of(message))
    }

    fn keeps(&self, pending: &Pending<C>) -> bool {
        pending.queued.is_some()
    }

    fn record(&self, message: &AgentMessage<C>, origin: Option<&Pending<C>>) {
        let mut mutable = self.shared.lock();
        mutable.transcript.push(message.clone());
        if let Some(queued) = origin.and_then(|pending| pending.queued) {
            match mutable.steering.contains(queued) {
                true => mutable.steering.remove(queued),
                false => mutable.follow_up.remove(queued),
            }
        }
    }

    fn set_streaming(&self, streaming: Option<Streaming>) {
        self.shared.lock().run.streaming = streaming;
    }

    async fn emit(&self, event: AgentEvent<C>, context: &ListenerContext) {
        let listeners = {
            let mut mutable = self.shared.lock();
            mutable.run.note(&event);
            mutable.listeners.clone()
        };
        for listener in listeners.iter() {
            self.shared.tell(listener, event.clone(), context.clone()).await;
        }
    }
}

impl CurrentRun {
    fn note<C>(&mut self, event: &AgentEvent<C>) {
        match event {
            AgentEvent::ToolExecutionStart { call } => self.pending_tool_calls.push(call.id.clone()),
            AgentEvent::ToolExecutionEnd { call, .. } => self.pending_tool_calls.retain(|id| *id != call.id),
            AgentEvent::TurnEnd { message, .. } if message.error_message.is_some() => {
                self.error_message.clone_from(&message.error_message);
            }
            _ => {}
        }
    }
}
