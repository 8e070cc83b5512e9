//! Events for a reader that nobody waits for.

use std::{
    collections::VecDeque,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Poll, Waker},
};

use futures::{Stream, stream};
use pi_ai::AssistantEvent;

use crate::event::AgentEvent;

/// Events between a run and a reader. What the reader has not taken yet is joined: adjacent deltas of one block become
/// one, and of adjacent partial results of one call the newest stays. So it is bounded by what the run produces, not
/// by how finely it arrives.
pub(crate) struct EventQueue<C>(Arc<Mutex<Waiting<C>>>);

struct Waiting<C> {
    events: VecDeque<AgentEvent<C>>,
    waker: Option<Waker>,
    closed: bool,
}

impl<C> Default for EventQueue<C> {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Waiting { events: VecDeque::new(), waker: None, closed: false })))
    }
}

impl<C> Clone for EventQueue<C> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<C> EventQueue<C> {
    pub(crate) fn push(&self, event: AgentEvent<C>) {
        let waker = {
            let mut waiting = self.lock();
            if waiting.closed {
                return;
            }
            let rest = match waiting.events.back_mut() {
                Some(last) => join(last, event),
                None => Some(event),
            };
            waiting.events.extend(rest);
            waiting.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Nothing more will come; what waits can still be read.
    pub(crate) fn close(&self) {
        let waker = {
            let mut waiting = self.lock();
            waiting.closed = true;
            waiting.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Closes the queue when it is dropped.
    pub(crate) fn closing(self) -> Closing<C> {
        Closing(self)
    }

    /// The reader's side. It keeps `guard` as long as it reads.
    pub(crate) fn into_stream<G>(self, guard: G) -> impl Stream<Item = AgentEvent<C>> + Send + Unpin + use<C, G>
    where
        C: Send + Sync,
        G: Send + Unpin,
    {
        stream::poll_fn(move |cx| {
            let _held = &guard;
            let mut waiting = self.lock();
            match waiting.events.pop_front() {
                Some(event) => Poll::Ready(Some(event)),
                None if waiting.closed => Poll::Ready(None),
                None => {
                    waiting.waker = Some(cx.waker().clone());
                    Poll::Pending
                }
            }
        })
    }

    fn lock(&self) -> MutexGuard<'_, Waiting<C>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<C> fmt::Debug for EventQueue<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} events waiting", self.lock().events.len())
    }
}

pub(crate) struct Closing<C>(EventQueue<C>);

impl<C> Drop for Closing<C> {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// Puts an event into the one before it, or gives it back.
fn join<C>(last: &mut AgentEvent<C>, event: AgentEvent<C>) -> Option<AgentEvent<C>> {
    match (last, &event) {
        (AgentEvent::MessageUpdate { event: last }, AgentEvent::MessageUpdate { event: next }) => {
            if !is_same_block(last, next) {
                return Some(event);
            }
            let (Some(grown), Some(delta)) = (delta_mut(Arc::make_mut(last)), delta_of(next)) else {
                return Some(event);
            };
            grown.push_str(delta);
            None
        }
        (
            AgentEvent::ToolExecutionUpdate { call: last_call, partial: last },
            AgentEvent::ToolExecutionUpdate { call, partial },
        ) if Arc::ptr_eq(last_call, call) => {
            last.clone_from(partial);
            None
        }
        _ => Some(event),
    }
}

fn is_same_block(a: &AssistantEvent, b: &AssistantEvent) -> bool {
    use AssistantEvent::{TextDelta, ThinkingDelta, ToolCallDelta};
    match (a, b) {
        (TextDelta { index: a, .. }, TextDelta { index: b, .. })
        | (ThinkingDelta { index: a, .. }, ThinkingDelta { index: b, .. })
        | (ToolCallDelta { index: a, .. }, ToolCallDelta { index: b, .. }) => a == b,
        _ => false,
    }
}

fn delta_of(event: &AssistantEvent) -> Option<&str> {
    use AssistantEvent::{TextDelta, ThinkingDelta, ToolCallDelta};
    match event {
        TextDelta { delta, .. } | ThinkingDelta { delta, .. } | ToolCallDelta { delta, .. } => Some(delta),
        _ => None,
    }
}

fn delta_mut(event: &mut AssistantEvent) -> Option<&mut String> {
    use AssistantEvent::{TextDelta, ThinkingDelta, ToolCallDelta};
    match event {
        TextDelta { delta, .. } | ThinkingDelta { delta, .. } | ToolCallDelta { delta, .. } => Some(delta),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use futures::{FutureExt, StreamExt};
    use pi_ai::ToolCall;

    use super::*;
    use crate::{message::NoCustom, tool::ToolOutput};

    fn update(event: AssistantEvent) -> AgentEvent {
        AgentEvent::MessageUpdate { event: Arc::new(event) }
    }

    fn text(index: usize, delta: &str) -> AgentEvent {
        update(AssistantEvent::TextDelta { index, delta: delta.into() })
    }

    fn names_and_deltas(queue: EventQueue<NoCustom>) -> Vec<String> {
        queue.close();
        let events = queue.into_stream(()).collect::<Vec<_>>().now_or_never().unwrap();
        events.iter().map(|event| event.text_delta().unwrap_or(event.name()).to_owned()).collect()
    }

    #[test]
    fn adjacent_deltas_of_a_block_become_one() {
        let queue = EventQueue::default();
        for event in [text(0, "a"), text(0, "b"), text(1, "c"), text(1, "d"), AgentEvent::TurnStart, text(1, "e")] {
            queue.push(event);
        }
        assert_eq!(names_and_deltas(queue), ["ab", "cd", "turn_start", "e"]);
    }

    #[test]
    fn joining_does_not_change_an_event_that_somebody_else_holds() {
        let queue = EventQueue::default();
        let held = text(0, "a");
        queue.push(held.clone());
        queue.push(text(0, "b"));
        assert_eq!(held.text_delta(), Some("a"));
        assert_eq!(names_and_deltas(queue), ["ab"]);
    }

    #[test]
    fn of_adjacent_partial_results_the_newest_stays() {
        let queue = EventQueue::<NoCustom>::default();
        let (one, two) = (Arc::new(ToolCall::default()), Arc::new(ToolCall::default()));
        for (call, text) in [(&one, "1"), (&one, "12"), (&two, "a"), (&one, "123")] {
            let partial = Arc::new(ToolOutput::text(text));
            queue.push(AgentEvent::ToolExecutionUpdate { call: call.clone(), partial });
        }
        queue.close();
        let events = queue.into_stream(()).collect::<Vec<_>>().now_or_never().unwrap();
        let texts: Vec<_> = events
            .iter()
            .map(|event| match event {
                AgentEvent::ToolExecutionUpdate { partial, .. } => partial.to_text(),
                other => other.name().to_owned(),
            })
            .collect();
        assert_eq!(texts, ["12", "a", "123"]);
    }
}
