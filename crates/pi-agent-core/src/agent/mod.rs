//! The agent: a handle around transcript, queues, listeners and at most one run.

mod builder;
mod error;
mod events;
mod prompt;
mod queue;
mod reply;
mod settings;
mod shared;
mod state;

use std::{
    fmt,
    sync::{Arc, Weak},
};

use futures::Stream;
use pi_ai::{CancellationToken, StreamFn};
use tokio_util::sync::DropGuard;

pub use builder::AgentBuilder;
pub use error::AgentError;
pub use prompt::Prompt;
pub use queue::QueueMode;
pub use reply::{Reply, Run};
pub use state::AgentState;

pub(crate) use events::EventQueue;

use crate::{
    agent_loop::{AgentContext, FirstPoll, LoopRun, Pending},
    event::{AgentEvent, ListenerContext},
    hooks::AsyncHook,
    message::{AgentMessage, CustomMessage, NoCustom},
};
use shared::{AgentHost, Hears, ListenerId, Shared, Transcript};

/// A conversation with a model that can run tools. Cloning copies a handle; when the last one is dropped, a run that is
/// active is aborted.
///
/// It has to be used inside a tokio runtime whose timers are on.
///
/// ```
/// use pi_agent_core::Agent;
/// use pi_ai::faux::{FauxProvider, FauxReply};
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), pi_agent_core::AgentError> {
/// let agent = Agent::builder(FauxProvider::new([FauxReply::text("4")])).system_prompt("You count.").build();
/// assert_eq!(agent.prompt("2 + 2?").await?.into_text()?, "4");
/// assert_eq!(agent.state().messages.len(), 3);
/// # Ok(()) }
/// ```
pub struct Agent<C: CustomMessage = NoCustom> {
    shared: Arc<Shared<C>>,
    /// Ends the agent's lifetime with the last handle. A run holds `shared`, but no handle.
    handles: Arc<DropGuard>,
}

impl Agent {
    /// An agent without custom roles.
    pub fn builder(stream: impl StreamFn) -> AgentBuilder {
        AgentBuilder::new(stream)
    }

    /// An agent whose transcript also holds the application's roles `C`.
    pub fn with_roles<C: CustomMessage>(stream: impl StreamFn) -> AgentBuilder<C> {
        AgentBuilder::new(stream)
    }
}

impl<C: CustomMessage> Agent<C> {
    fn from_shared(shared: Shared<C>) -> Self {
        let handles = Arc::new(shared.lifetime.clone().drop_guard());
        Self { shared: Arc::new(shared), handles }
    }

    /// Starts a run with new messages. It begins at once, in a task of its own; the returned [`Run`] is its result.
    ///
    /// While a run is active the new one is refused: it resolves to [`AgentError::Busy`].
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn prompt(&self, prompt: impl Into<Prompt<C>>) -> Run<C> {
        let messages = self.stamped(prompt.into());
        self.start(|_| Ok((messages.into_iter().map(Pending::new).collect(), FirstPoll::Steering)))
    }

    /// Goes on from the transcript as it is, for example after a failure. When it ends with an answer, the next batch
    /// of queued messages is the prompt: steering before follow-up.
    ///
    /// The run is refused when there is nothing to go on from.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn continue_run(&self) -> Run<C> {
        self.start(|mutable| {
            let messages = &mutable.transcript.messages;
            let last = messages.last().filter(|_| !messages.iter().all(AgentMessage::is_system));
            let last = last.ok_or(AgentError::NothingToContinue)?;
            if last.as_assistant().is_none() {
                return Ok((Vec::new(), FirstPoll::Steering));
            }
            let steering = mutable.steering.next_batch();
            if !steering.is_empty() {
                return Ok((steering.into_iter().map(Pending::queued).collect(), FirstPoll::Skip));
            }
            let follow_up = mutable.follow_up.next_batch();
            match follow_up.is_empty() {
                true => Err(AgentError::AlreadyAnswered),
                false => Ok((follow_up.into_iter().map(Pending::queued).collect(), FirstPoll::Steering)),
            }
        })
    }

    fn stamped(&self, prompt: Prompt<C>) -> Vec<AgentMessage<C>> {
        let clock = self.shared.lock().config.clock.clone();
        prompt.into_messages(&*clock)
    }

    fn start(
        &self,
        prompts: impl FnOnce(&shared::Mutable<C>) -> Result<(Vec<Pending<C>>, FirstPoll), AgentError>,
    ) -> Run<C> {
        let signal = self.shared.lifetime.child_token();
        let (prompts, first_poll, context, config) = {
            let mut mutable = self.shared.lock();
            if mutable.run.signal.is_some() {
                return Run::refused(AgentError::Busy);
            }
            let (prompts, first_poll) = match prompts(&mutable) {
                Ok(prompts) => prompts,
                Err(error) => return Run::refused(error),
            };
            mutable.run = shared::CurrentRun { signal: Some(signal.clone()), ..Default::default() };
            self.shared.busy.send_replace(true);
            let messages = Vec::clone(&mutable.transcript.messages);
            let context = AgentContext { messages, tools: mutable.tools.clone() };
            (prompts, first_poll, context, mutable.config.clone())
        };
        let host = AgentHost { shared: self.shared.clone() };
        let idle_again = IdleAgain(self.shared.clone());
        let for_run = signal.clone();
        let task = tokio::spawn(async move {
            let outcome = LoopRun::new(&host, context, config, for_run).run(prompts, first_poll).await;
            drop(idle_again);
            outcome
        });
        Run::running(task, signal)
    }

    /// Aborts the active run, if there is one. Its events are completed, and what is queued stays queued.
    pub fn abort(&self) {
        if let Some(signal) = &self.shared.lock().run.signal {
            signal.cancel();
        }
    }

    /// Waits until no run is active and all listeners have heard its last event. Returns at once when none is.
    pub async fn wait_for_idle(&self) {
        let mut busy = self.shared.busy.subscribe();
        // The sender lives in `shared`, which this handle holds.
        let _ = busy.wait_for(|busy| !busy).await;
    }

    /// Forgets the conversation: what stays is one system message with the prompt and the tools as they stand, and the
    /// queues are empty.
    ///
    /// # Errors
    /// While a run is active.
    pub fn reset(&self) -> Result<(), AgentError> {
        let mut guard = self.shared.lock();
        let mutable = &mut *guard;
        if mutable.run.signal.is_some() {
            return Err(AgentError::Busy);
        }
        let head = mutable.transcript.replayed.system_message();
        let transcript = Transcript::new(head.into_iter().map(AgentMessage::from).collect());
        let forgotten = std::mem::replace(&mut mutable.transcript, transcript);
        let cleared = (mutable.steering.clear(), mutable.follow_up.clear());
        mutable.run = shared::CurrentRun::default();
        drop(guard);
        drop((forgotten, cleared));
        Ok(())
    }

    /// Queues messages that the run takes in after the current answer and all its tool calls. Tools that run are not
    /// interrupted. Without an active run they wait for the next one.
    pub fn steer(&self, messages: impl Into<Prompt<C>>) {
        let messages = self.stamped(messages.into());
        self.shared.lock().steering.push(messages);
    }

    /// Queues messages that the run takes in when it would otherwise end.
    pub fn follow_up(&self, messages: impl Into<Prompt<C>>) {
        let messages = self.stamped(messages.into());
        self.shared.lock().follow_up.push(messages);
    }

    /// Takes back all steering messages that are not yet part of the transcript.
    pub fn clear_steering_queue(&self) -> Vec<AgentMessage<C>> {
        self.shared.lock().steering.clear()
    }

    /// Takes back all follow-up messages that are not yet part of the transcript.
    pub fn clear_follow_up_queue(&self) -> Vec<AgentMessage<C>> {
        self.shared.lock().follow_up.clear()
    }

    /// Takes back everything that is queued: steering messages first.
    pub fn clear_all_queues(&self) -> Vec<AgentMessage<C>> {
        let mut mutable = self.shared.lock();
        let mut cleared = mutable.steering.clear();
        cleared.extend(mutable.follow_up.clear());
        cleared
    }

    /// Whether anything is queued.
    pub fn has_queued_messages(&self) -> bool {
        let mutable = self.shared.lock();
        !(mutable.steering.is_empty() && mutable.follow_up.is_empty())
    }

    /// Everything that is queued: steering messages, and follow-up messages.
    pub fn queued_messages(&self) -> (Vec<AgentMessage<C>>, Vec<AgentMessage<C>>) {
        let mutable = self.shared.lock();
        (mutable.steering.iter().cloned().collect(), mutable.follow_up.iter().cloned().collect())
    }

    /// The batch that a run would take in next, steering before follow-up. It stays queued.
    pub fn peek_queued(&self) -> Vec<AgentMessage<C>> {
        let mutable = self.shared.lock();
        let steering = mutable.steering.next_batch();
        if steering.is_empty() { mutable.follow_up.next_batch() } else { steering }
    }

    /// Calls a listener with every event. Listeners are awaited one after the other, in the order in which they
    /// subscribed, before the run goes on: when `MessageEnd` has been heard, the message is stored, say. A slow one
    /// slows the run, and one that hangs holds up its end, after an abort too: one that waits for something outside looks
    /// at [`ListenerContext::signal`]. Use [`events`](Self::events) to watch without being waited for.
    ///
    /// A listener that panics hears no more; the run is not affected. One that holds this agent keeps it alive: give it
    /// a [`WeakAgent`].
    ///
    /// ```
    /// # use pi_agent_core::{Agent, AgentEvent};
    /// # use pi_ai::faux::{FauxProvider, FauxReply};
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), pi_agent_core::AgentError> {
    /// # let agent = Agent::builder(FauxProvider::new([FauxReply::text("hello")])).build();
    /// let subscription = agent.subscribe(async |event: AgentEvent, context| {
    ///     if let (Some(_), Some(so_far)) = (event.text_delta(), context.partial()) {
    ///         println!("{}", so_far.text());
    ///     }
    /// });
    /// agent.prompt("hi").await?;
    /// # drop(subscription); Ok(()) }
    /// ```
    pub fn subscribe(&self, listener: impl AsyncHook<AgentEvent<C>, ListenerContext, ()>) -> Subscription {
        self.add(Hears::Awaited(Box::new(move |event, context| listener.run(event, context))))
    }

    /// All events from now on, as a stream that the run does not wait for. For a slow reader, adjacent deltas of one
    /// block are joined, and of adjacent partial results of one call the newest stays. It goes on over runs and ends
    /// with the agent, which it does not keep alive.
    pub fn events(&self) -> impl Stream<Item = AgentEvent<C>> + Send + Unpin + use<C> {
        let queue = EventQueue::default();
        let subscription = self.add(Hears::Queued(queue.clone()));
        queue.into_stream(subscription)
    }

    fn add(&self, hears: Hears<C>) -> Subscription {
        let id = self.shared.add_listener(hears);
        let shared = Arc::downgrade(&self.shared);
        Subscription { unsubscribe: Some(Box::new(move || unsubscribe(&shared, id))) }
    }

    /// The agent as it is now.
    pub fn state(&self) -> AgentState<C> {
        let mutable = self.shared.lock();
        AgentState {
            messages: mutable.transcript.messages.clone(),
            model: mutable.config.model.clone(),
            thinking_level: mutable.config.thinking_level,
            tools: mutable.tools.clone(),
            is_streaming: mutable.run.signal.is_some(),
            pending_tool_calls: mutable.run.pending_tool_calls.clone(),
            error_message: mutable.run.error_message.clone(),
            replayed: mutable.transcript.replayed.clone(),
            streaming: mutable.run.streaming.clone(),
        }
    }

    /// Cancelled when the active run is aborted; `None` when there is none.
    pub fn signal(&self) -> Option<CancellationToken> {
        self.shared.lock().run.signal.clone()
    }

    /// A handle that does not keep the agent alive.
    pub fn downgrade(&self) -> WeakAgent<C> {
        WeakAgent { shared: Arc::downgrade(&self.shared), handles: Arc::downgrade(&self.handles) }
    }
}

fn unsubscribe<C: CustomMessage>(shared: &Weak<Shared<C>>, id: ListenerId) {
    if let Some(shared) = shared.upgrade() {
        shared.remove_listener(id);
    }
}

impl<C: CustomMessage> Clone for Agent<C> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone(), handles: self.handles.clone() }
    }
}

impl<C: CustomMessage> fmt::Debug for Agent<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state();
        f.debug_struct("Agent")
            .field("model", &state.model.id)
            .field("messages", &state.messages.len())
            .field("tools", &state.tools)
            .field("is_streaming", &state.is_streaming)
            .finish_non_exhaustive()
    }
}

/// A handle that does not keep the agent alive: for listeners and tools of the same agent.
pub struct WeakAgent<C: CustomMessage = NoCustom> {
    shared: Weak<Shared<C>>,
    handles: Weak<DropGuard>,
}

impl<C: CustomMessage> WeakAgent<C> {
    /// A full handle, as long as there is another one.
    pub fn upgrade(&self) -> Option<Agent<C>> {
        Some(Agent { handles: self.handles.upgrade()?, shared: self.shared.upgrade()? })
    }
}

impl<C: CustomMessage> Clone for WeakAgent<C> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone(), handles: self.handles.clone() }
    }
}

impl<C: CustomMessage> fmt::Debug for WeakAgent<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WeakAgent")
    }
}

/// A subscription. It ends when it is dropped, unless it is [detached](Self::detach).
#[must_use = "a subscription ends when it is dropped: keep it, or call `detach`"]
pub struct Subscription {
    unsubscribe: Option<Box<dyn FnOnce() + Send>>,
}

impl Subscription {
    /// Lets the listener hear as long as the agent lives.
    pub fn detach(mut self) {
        self.unsubscribe = None;
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        if let Some(unsubscribe) = self.unsubscribe.take() {
            unsubscribe();
        }
    }
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Subscription")
    }
}

/// Makes the agent idle again when its run ends, even when the runtime drops the run.
struct IdleAgain<C: CustomMessage>(Arc<Shared<C>>);

impl<C: CustomMessage> Drop for IdleAgain<C> {
    fn drop(&mut self) {
        let run = &mut self.0.lock().run;
        run.signal = None;
        run.streaming = None;
        run.pending_tool_calls.clear();
        // Under the lock, so that it cannot come after the beginning of another run.
        self.0.busy.send_replace(false);
    }
}
