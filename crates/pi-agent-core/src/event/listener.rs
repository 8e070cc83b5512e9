//! What a listener is given besides the event.

use std::{
    fmt,
    ops::Deref,
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
};

use futures::StreamExt;
use pi_ai::{AssistantEvent, AssistantMessage, AssistantStream, CancellationToken, ProviderError};

/// What a listener is given besides the event. Cloning it copies a pointer.
#[derive(Clone, Debug)]
pub struct ListenerContext(Arc<Surroundings>);

#[derive(Debug)]
struct Surroundings {
    signal: CancellationToken,
    streaming: Option<Streaming>,
}

impl ListenerContext {
    /// For whoever tells listeners of something outside a run: there is no answer to look at.
    pub fn outside(signal: CancellationToken) -> Self {
        Self(Arc::new(Surroundings { signal, streaming: None }))
    }

    /// While an answer is being streamed.
    pub(crate) fn during(signal: CancellationToken, streaming: Streaming) -> Self {
        Self(Arc::new(Surroundings { signal, streaming: Some(streaming) }))
    }

    /// Cancelled when the run is aborted.
    pub fn signal(&self) -> &CancellationToken {
        &self.0.signal
    }

    /// The answer so far, while one is being streamed. It is not a copy.
    ///
    /// Look at it and let it go: while it is held, the stream cannot go on.
    pub fn partial(&self) -> Option<PartialMessage<'_>> {
        self.0.streaming.as_ref()?.partial()
    }
}

/// A look at the answer that is being streamed. It cannot be held across an `.await`.
pub struct PartialMessage<'a>(RwLockReadGuard<'a, Option<AssistantStream>>);

impl Deref for PartialMessage<'_> {
    type Target = AssistantMessage;

    fn deref(&self) -> &AssistantMessage {
        match &*self.0 {
            Some(stream) => stream.partial(),
            None => unreachable!("a look is only given at a stream, and nobody takes the stream while it is held"),
        }
    }
}

impl fmt::Debug for PartialMessage<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

/// A stream that the loop polls and listeners look into. It is locked per poll and per look only.
#[derive(Clone)]
pub(crate) struct Streaming(Arc<RwLock<Option<AssistantStream>>>);

impl Streaming {
    pub(crate) fn new(stream: AssistantStream) -> Self {
        Self(Arc::new(RwLock::new(Some(stream))))
    }

    /// The next event.
    pub(crate) async fn next(&self) -> Option<AssistantEvent> {
        std::future::poll_fn(|cx| match &mut *self.write() {
            Some(stream) => stream.poll_next_unpin(cx),
            None => std::task::Poll::Ready(None),
        })
        .await
    }

    pub(crate) fn partial(&self) -> Option<PartialMessage<'_>> {
        let stream = self.0.read().unwrap_or_else(PoisonError::into_inner);
        stream.is_some().then_some(PartialMessage(stream))
    }

    /// Ends it: the message as it is, and why it failed.
    pub(crate) fn finish(&self) -> Option<(AssistantMessage, Option<ProviderError>)> {
        let stream = self.write().take()?;
        let error = stream.error().cloned();
        Some((stream.into_message(), error))
    }

    /// A source that panicked leaves the lock poisoned and the message as it was.
    fn write(&self) -> RwLockWriteGuard<'_, Option<AssistantStream>> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Streaming {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Printing a context while its message is looked at must not wait for itself.
        match self.0.try_read() {
            Ok(stream) => fmt::Debug::fmt(&*stream, f),
            Err(_) => f.write_str("(in use)"),
        }
    }
}
