//! Who is told what happens in a session.

use std::{
    fmt,
    panic::AssertUnwindSafe,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use futures::{FutureExt, future::BoxFuture};
use pi_agent_core::{AgentEvent, AsyncHook, ListenerContext};

use super::event::SessionEvent;

type Listener = Arc<dyn Fn(SessionEvent, ListenerContext) -> BoxFuture<'static, ()> + Send + Sync>;

/// Listeners in the order of their subscription. Each is awaited before the next one is told, and all of them before
/// the session goes on.
#[derive(Clone, Default)]
pub(super) struct Listeners {
    list: Arc<Mutex<List>>,
}

#[derive(Default)]
struct List {
    next: u64,
    /// Copied when it changes, so that telling costs no copy.
    listeners: Arc<Vec<Subscribed>>,
}

#[derive(Clone)]
struct Subscribed {
    number: u64,
    interest: Interest,
    listener: Listener,
}

/// What a listener wants to be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Interest {
    Everything,
    /// Everything but the growth of an answer.
    Steps,
}

/// A listener's place in a session; dropping it ends the subscription.
#[must_use = "dropping a subscription ends it"]
pub struct Subscription {
    list: Weak<Mutex<List>>,
    number: u64,
}

impl Subscription {
    /// Keeps listening as long as the session lives.
    pub fn detach(mut self) {
        self.list = Weak::new();
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        if let Some(list) = self.list.upgrade() {
            let mut list = lock(&list);
            Arc::make_mut(&mut list.listeners).retain(|other| other.number != self.number);
        }
    }
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Subscription").field(&self.number).finish()
    }
}

impl Listeners {
    pub(super) fn subscribe(
        &self,
        interest: Interest,
        listener: impl AsyncHook<SessionEvent, ListenerContext, ()>,
    ) -> Subscription {
        let mut list = lock(&self.list);
        let number = list.next;
        list.next += 1;
        let listener: Listener = Arc::new(move |event, context| listener.run(event, context));
        Arc::make_mut(&mut list.listeners).push(Subscribed { number, interest, listener });
        Subscription { list: Arc::downgrade(&self.list), number }
    }

    /// Ends every subscription.
    pub(super) fn clear(&self) {
        let listeners = std::mem::take(&mut lock(&self.list).listeners);
        // Outside of the lock, because a listener's captures may end something that subscribed.
        drop(listeners);
    }

    /// Whether there is anybody to tell.
    pub(super) fn is_empty(&self) -> bool {
        lock(&self.list).listeners.is_empty()
    }

    /// Whether anybody wants to be told of every growth of an answer.
    pub(super) fn hear_growth(&self) -> bool {
        lock(&self.list).listeners.iter().any(|listener| listener.interest == Interest::Everything)
    }

    /// Tells everybody. A listener that panics is dropped and reported, and the others are told all the same.
    pub(super) async fn tell(&self, event: SessionEvent, context: &ListenerContext) {
        let listeners = lock(&self.list).listeners.clone();
        let is_growth = matches!(event, SessionEvent::Agent(AgentEvent::MessageUpdate { .. }));
        for Subscribed { number, interest, listener } in listeners.iter() {
            if is_growth && *interest == Interest::Steps {
                continue;
            }
            let (event, context) = (event.clone(), context.clone());
            // The call builds the future inside the guarded block, because that may panic too.
            let told = AssertUnwindSafe(async move { listener(event, context).await }).catch_unwind().await;
            if told.is_err() {
                tracing::error!("a listener of the session panicked and is no longer told");
                Arc::make_mut(&mut lock(&self.list).listeners).retain(|other| other.number != *number);
            }
        }
    }
}

impl fmt::Debug for Listeners {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} listeners", lock(&self.list).listeners.len())
    }
}

fn lock(list: &Mutex<List>) -> MutexGuard<'_, List> {
    list.lock().unwrap_or_else(PoisonError::into_inner)
}
