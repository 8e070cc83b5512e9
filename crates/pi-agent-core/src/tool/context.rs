//! What a running tool may do besides returning.

use std::{
    collections::VecDeque,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

use pi_ai::{CancellationToken, ToolCallId};

use super::ToolOutput;

/// What a running tool is given besides its arguments.
#[derive(Clone, Debug)]
pub struct ToolContext {
    /// The call.
    pub call_id: ToolCallId,
    /// Cancelled when the run is aborted.
    pub signal: CancellationToken,
    updates: PartialResults,
}

impl ToolContext {
    /// A context of no run, for calling a tool by hand. Its updates go nowhere.
    pub fn new(call_id: impl Into<ToolCallId>, signal: CancellationToken) -> Self {
        Self { call_id: call_id.into(), signal, updates: PartialResults::default() }
    }

    /// Shows what there is so far. It never blocks; after the call has ended it does nothing.
    ///
    /// Listeners get every update in order, as long as they keep up: of more than 64 that wait, the newest replaces the
    /// one before it.
    pub fn update(&self, partial: impl Into<ToolOutput>) {
        self.updates.push(partial.into());
    }

    pub(crate) fn reporting(call_id: ToolCallId, signal: CancellationToken, updates: PartialResults) -> Self {
        updates.lock().open = true;
        Self { call_id, signal, updates }
    }
}

/// Partial results between a tool and the loop.
#[derive(Clone, Default)]
pub(crate) struct PartialResults(Arc<Mutex<Waiting>>);

#[derive(Default)]
struct Waiting {
    /// Whether anybody takes what is pushed.
    open: bool,
    results: VecDeque<ToolOutput>,
    waker: Option<Waker>,
}

impl PartialResults {
    const LIMIT: usize = 64;

    fn push(&self, partial: ToolOutput) {
        let waker = {
            let mut waiting = self.lock();
            if !waiting.open {
                return;
            }
            if waiting.results.len() >= Self::LIMIT {
                waiting.results.pop_back();
            }
            waiting.results.push_back(partial);
            waiting.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// The next one, or pending until there is one.
    pub(crate) fn poll_next(&self, cx: &mut Context<'_>) -> Poll<ToolOutput> {
        let mut waiting = self.lock();
        match waiting.results.pop_front() {
            Some(partial) => Poll::Ready(partial),
            None => {
                waiting.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }

    /// What waits now.
    pub(crate) fn take(&self) -> Vec<ToolOutput> {
        self.lock().results.drain(..).collect()
    }

    /// The call has ended: takes no more, and gives what is left.
    pub(crate) fn close(&self) -> VecDeque<ToolOutput> {
        let mut waiting = self.lock();
        waiting.open = false;
        waiting.waker = None;
        std::mem::take(&mut waiting.results)
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for PartialResults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} waiting", self.lock().results.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn updates_after_the_end_of_a_call_are_ignored() {
        let updates = PartialResults::default();
        let context = ToolContext::reporting("c".into(), CancellationToken::new(), updates.clone());
        context.update("one");
        assert_eq!(updates.close(), [ToolOutput::text("one")]);
        context.update("two");
        assert_eq!(updates.close(), []);
    }

    #[test]
    fn of_too_many_updates_the_first_and_the_newest_stay() {
        let updates = PartialResults::default();
        let context = ToolContext::reporting("c".into(), CancellationToken::new(), updates.clone());
        (0..1000).for_each(|n| context.update(n.to_string()));
        let left = updates.close();
        assert_eq!(left.len(), PartialResults::LIMIT);
        assert_eq!(left.front(), Some(&ToolOutput::text("0")));
        assert_eq!(left.back(), Some(&ToolOutput::text("999")));
    }
}
