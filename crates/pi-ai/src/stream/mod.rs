//! An answer as a stream of events, with the message so far beside it.

mod builder;
mod event;
mod fold;

use std::{
    fmt,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll, ready},
};

use futures::{Stream, StreamExt};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

pub use builder::MessageBuilder;
pub use event::{AssistantEvent, BlockEnd, Completion};
pub use fold::MessageFold;

use crate::{
    context::TranscriptContext,
    error::{ErrorKind, ProviderError},
    message::AssistantMessage,
    model::Model,
    options::StreamOptions,
    time::Timestamp,
};

/// What the agent loop calls: a transcript in, a stream out.
///
/// It never fails by itself: a failure is the stream's last event. [`Models`](crate::Models) and
/// [`FauxProvider`](crate::faux::FauxProvider) implement it; a closure does through [`stream_fn`].
pub trait StreamFn: Send + Sync + 'static {
    /// Asks the model. Nothing is sent before the stream is polled.
    fn stream(&self, model: &Arc<Model>, context: TranscriptContext, options: StreamOptions) -> AssistantStream;
}

impl<T: StreamFn + ?Sized> StreamFn for Arc<T> {
    fn stream(&self, model: &Arc<Model>, context: TranscriptContext, options: StreamOptions) -> AssistantStream {
        (**self).stream(model, context, options)
    }
}

/// Makes a [`StreamFn`] from a closure.
pub fn stream_fn<F>(stream: F) -> impl StreamFn
where
    F: Fn(&Arc<Model>, TranscriptContext, StreamOptions) -> AssistantStream + Send + Sync + 'static,
{
    struct Closure<F>(F);
    impl<F> StreamFn for Closure<F>
    where
        F: Fn(&Arc<Model>, TranscriptContext, StreamOptions) -> AssistantStream + Send + Sync + 'static,
    {
        fn stream(&self, model: &Arc<Model>, context: TranscriptContext, options: StreamOptions) -> AssistantStream {
            (self.0)(model, context, options)
        }
    }
    Closure(stream)
}

/// Where the events of a stream come from.
pub trait Source: Send + 'static {
    /// Makes progress and writes what came into `answer`. Ready means: look at the answer, then poll again unless it
    /// has ended. A source that can give no more must have ended the answer; one that has not ends it in error.
    fn poll_advance(&mut self, cx: &mut Context<'_>, answer: &mut MessageBuilder) -> Poll<Advance>;
}

/// What a [`Source`] has to say after a poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advance {
    /// Poll again.
    More,
    /// Nothing more will come.
    Exhausted,
}

/// A stream of [`AssistantEvent`]s that also holds the message so far.
///
/// It ends after `Done` or `Error`. It is aborted by its [`CancellationToken`], at once and whatever its source is
/// doing, or by being dropped.
///
/// ```
/// # use pi_ai::{AssistantStream, AssistantEvent, Model, StopReason, Timestamp, stream::BlockEnd};
/// # use futures::StreamExt;
/// # async fn demo(mut stream: AssistantStream) {
/// while let Some(event) = stream.next().await {
///     if let AssistantEvent::TextDelta { delta, .. } = event {
///         print!("{delta}");
///     }
/// }
/// println!("{:?}", stream.partial().stop_reason);
/// # }
/// ```
#[must_use = "nothing is sent before the stream is polled"]
pub struct AssistantStream {
    answer: MessageBuilder,
    /// Never locked: it makes the stream `Sync`, so that several can look at the message so far.
    source: Option<Mutex<Box<dyn Source>>>,
    cancelled: Pin<Box<WaitForCancellationFutureOwned>>,
    signal: CancellationToken,
}

impl AssistantStream {
    /// A stream whose source writes through a [`MessageBuilder`].
    pub fn from_source(answer: MessageBuilder, signal: CancellationToken, source: impl Source) -> Self {
        let source: Box<dyn Source> = Box::new(source);
        let cancelled = Box::pin(signal.clone().cancelled_owned());
        Self { answer, source: Some(Mutex::new(source)), cancelled, signal }
    }

    /// A stream from events that were made elsewhere. Events that end without `Done` or `Error` make an error.
    pub fn from_events(
        model: &Model,
        timestamp: Timestamp,
        signal: CancellationToken,
        events: impl Stream<Item = AssistantEvent> + Send + 'static,
    ) -> Self {
        struct Events(Pin<Box<dyn Stream<Item = AssistantEvent> + Send>>);
        impl Source for Events {
            fn poll_advance(&mut self, cx: &mut Context<'_>, answer: &mut MessageBuilder) -> Poll<Advance> {
                Poll::Ready(match ready!(self.0.poll_next_unpin(cx)) {
                    Some(AssistantEvent::Start) => {
                        answer.start();
                        Advance::More
                    }
                    Some(event) => {
                        answer.write(event);
                        Advance::More
                    }
                    None => Advance::Exhausted,
                })
            }
        }
        Self::from_source(MessageBuilder::new(model, timestamp), signal, Events(Box::pin(events)))
    }

    /// A stream that is a lone error: the request could not even be made.
    pub fn failed(model: &Model, timestamp: Timestamp, error: ProviderError) -> Self {
        let mut answer = MessageBuilder::new(model, timestamp);
        answer.fail(error);
        let signal = CancellationToken::new();
        Self { answer, source: None, cancelled: Box::pin(signal.clone().cancelled_owned()), signal }
    }

    /// The message so far; the whole one after the last event.
    pub fn partial(&self) -> &AssistantMessage {
        self.answer.message()
    }

    /// Why the answer ended in error.
    pub fn error(&self) -> Option<&ProviderError> {
        self.answer.error()
    }

    /// Runs to the end and gives the message. A failure is in it: see
    /// [`stop_reason`](AssistantMessage::stop_reason).
    pub async fn result(mut self) -> AssistantMessage {
        while self.next().await.is_some() {}
        self.answer.into_message()
    }

    /// The message as it is, without waiting for more.
    pub fn into_message(self) -> AssistantMessage {
        self.answer.into_message()
    }
}

impl Stream for AssistantStream {
    type Item = AssistantEvent;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<AssistantEvent>> {
        let this = &mut *self;
        loop {
            if let Some(event) = this.answer.pop_event() {
                return Poll::Ready(Some(event));
            }
            if this.answer.has_ended() {
                this.source = None;
                return Poll::Ready(None);
            }
            if this.signal.is_cancelled() {
                // Dropping the source closes its socket.
                this.source = None;
                this.answer.fail(ProviderError::aborted());
                continue;
            }
            let advance = match &mut this.source {
                Some(source) => {
                    source.get_mut().unwrap_or_else(PoisonError::into_inner).poll_advance(cx, &mut this.answer)
                }
                None => Poll::Ready(Advance::Exhausted),
            };
            match advance {
                Poll::Ready(Advance::More) => {}
                Poll::Ready(Advance::Exhausted) => {
                    this.source = None;
                    this.answer.fail(ProviderError::new(
                        ErrorKind::Protocol,
                        "The answer broke off: the stream ended without a final event.",
                    ));
                }
                Poll::Pending => {
                    // Registers for the wake-up; the loop above notices the cancellation.
                    ready!(this.cancelled.as_mut().poll(cx));
                }
            }
        }
    }
}

impl fmt::Debug for AssistantStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AssistantStream").field("partial", self.partial()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::message::{AssistantBlock, StopReason};

    fn hello() -> Vec<AssistantEvent> {
        let mut answer = MessageBuilder::new(&Model::default(), Timestamp::default());
        answer.start();
        let text = answer.start_text();
        answer.push_text(text, "hel");
        answer.push_text(text, "lo");
        answer.end_text(text, BlockEnd::default());
        answer.done(StopReason::Stop);
        std::iter::from_fn(|| answer.pop_event()).collect()
    }

    fn stream(
        events: impl Stream<Item = AssistantEvent> + Send + 'static,
        signal: &CancellationToken,
    ) -> AssistantStream {
        AssistantStream::from_events(&Model::default(), Timestamp::default(), signal.clone(), events)
    }

    #[tokio::test]
    async fn the_message_so_far_grows_with_each_event() {
        let mut stream = stream(futures::stream::iter(hello()), &CancellationToken::new());
        let mut seen = Vec::new();
        while let Some(event) = stream.next().await {
            if matches!(event, AssistantEvent::TextDelta { .. }) {
                seen.push(stream.partial().text());
            }
        }
        assert_eq!(seen, ["hel", "hello"]);
        assert_eq!(stream.partial().stop_reason, StopReason::Stop);
        assert_eq!(stream.into_message().content, [AssistantBlock::text("hello")]);
    }

    #[tokio::test]
    async fn events_without_an_end_are_an_error_that_keeps_the_text() {
        let cut = hello().into_iter().take(4);
        let message = stream(futures::stream::iter(cut), &CancellationToken::new()).result().await;
        assert_eq!(message.text(), "hello");
        assert_eq!(message.stop_reason, StopReason::Error);
        assert!(message.error_message.is_some());
    }

    #[tokio::test]
    async fn aborting_ends_a_stream_whose_source_hangs() {
        let signal = CancellationToken::new();
        let hanging = futures::stream::iter(hello().into_iter().take(3)).chain(futures::stream::pending());
        let running = tokio::spawn(stream(hanging, &signal).result());
        signal.cancel();
        let message = tokio::time::timeout(Duration::from_secs(10), running).await.unwrap().unwrap();
        assert_eq!(message.stop_reason, StopReason::Aborted);
    }

    #[test]
    fn several_threads_can_look_at_a_stream() {
        fn shareable<T: Send + Sync>() {}
        shareable::<AssistantStream>();
    }

    #[test]
    fn events_that_do_not_fit_change_nothing() {
        let mut fold = MessageFold::new(&Model::default(), Timestamp::default());
        fold.apply(&AssistantEvent::TextDelta { index: 7, delta: "x".into() });
        fold.apply(&AssistantEvent::TextStart { index: 3 });
        fold.apply(&AssistantEvent::ToolCallDelta { index: 0, delta: "{".into() });
        assert!(fold.message().content.is_empty());
    }
}
