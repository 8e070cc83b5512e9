//! One request: the two hooks in their order, the stream function, and the answer as it comes.

use std::{pin::Pin, sync::Arc};

use futures::future::{self, Either};
use pi_ai::{
    AssistantEvent, AssistantMessage, CancellationToken, Context, ErrorKind, Message, ProviderError, StopReason,
    StreamOptions, ThinkingLevel, TranscriptContext,
};

use tokio::time::Instant;

use super::{Host, failure::Failure, run::LoopRun};
use crate::{
    contain::{Fault, Patience, contain, contain_async},
    event::{AgentEvent, Streaming},
    message::{AgentMessage, CustomMessage},
    observe::{RequestId, Stage},
};

impl<C: CustomMessage, H: Host<C>> LoopRun<'_, C, H> {
    /// From the run's messages to what the stream function gets. The order of the two hooks is fixed here and nowhere
    /// else.
    async fn request_context(&mut self) -> Result<TranscriptContext, Failure> {
        self.requests += 1;
        let request = RequestId(self.requests);
        let pipeline = self.host.pipeline();

        let mut messages = self.messages.clone();
        if let Some(transform) = &pipeline.transform {
            let transformed = self.patience.run(|| transform.transform_context(messages, &self.patience.signal)).await;
            messages = transformed.map_err(|fault| Failure::fault("the hook `transform_context`", fault))?;
        }
        let before = self.watch.is_on().then(|| messages.clone());
        if let Some(after) = &before {
            self.watch.see(request, Stage::Transformed { before: &self.messages, after });
        }

        let mut origins = self.watch.is_on().then(Vec::new);
        let signal = &self.patience.signal;
        let converted = self.patience.run(|| pipeline.convert.convert(messages, signal, origins.as_mut())).await;
        let converted = converted.map_err(|fault| Failure::fault("the hook `convert_to_llm`", fault))?;
        if let Some(before) = &before {
            let origins = origins.as_deref().filter(|_| matches!(pipeline.convert, crate::hooks::Converter::Each(_)));
            self.watch.see(request, Stage::Converted { before, after: &converted, origins });
        }
        if converted.is_empty() {
            return Err(Failure::new(
                ErrorKind::InvalidRequest,
                "There is nothing to send: after `transform_context` and `convert_to_llm` the request has no messages.",
            ));
        }

        let context = Context::from(converted).normalize();
        self.watch.see(request, Stage::Normalized(&context));
        Ok(context)
    }

    /// What the request carries besides its transcript.
    async fn request_options(&self) -> Result<StreamOptions, Failure> {
        let mut options = self.config.options.clone();
        options.signal = self.patience.signal.clone();
        options.reasoning = Some(self.config.thinking_level).filter(|level| *level != ThinkingLevel::Off);
        if let Some(keys) = &self.config.key_source {
            let provider = self.config.model.provider.clone();
            let key = self.patience.run(|| keys(provider, self.patience.signal.clone())).await;
            let key = key.map_err(|fault| Failure::fault("the key source", fault))?;
            options.api_key = key.or(options.api_key);
        }
        Ok(options)
    }

    /// Makes a request and takes the answer into the transcript.
    pub(super) async fn answer(&mut self) -> Result<Arc<AssistantMessage>, Failure> {
        let context = self.request_context().await?;
        let options = self.request_options().await?;
        // An abort before the request began is the stream function's to answer, with an answer of its own. One that came
        // while the request was made ends it here: nothing is sent.
        if self.patience.signal.is_cancelled() && !self.aborted_before_request {
            return Err(Failure::aborted());
        }
        let stream = contain(|| self.config.stream.stream(&self.config.model, context, options));
        let streaming = Streaming::new(stream.map_err(Failure::stream_panicked)?);
        self.set_streaming(Some(streaming.clone()));
        let (started, broken) = self.forward(&streaming).await;
        self.set_streaming(None);

        let (mut message, mut cause) = streaming.finish().ok_or_else(Failure::aborted)?;
        if message.stop_reason == StopReason::Pending {
            let error = broken.unwrap_or_else(|| {
                ProviderError::new(ErrorKind::Protocol, "The answer broke off: the stream gave no final event.")
            });
            message.stop_reason = match error.kind() {
                ErrorKind::Aborted => StopReason::Aborted,
                _ => StopReason::Error,
            };
            message.error_message = Some(error.message().to_owned());
            cause = Some(error);
        }
        // The level that was asked for, whichever stream function answered.
        message.thinking_level = Some(self.config.thinking_level);
        let message = Arc::new(message);
        let answer = AgentMessage::Llm(Message::Assistant(message.clone()));
        if !started {
            self.emit(AgentEvent::MessageStart { message: answer.clone() }).await;
        }
        let message = match self.finish_message(answer, None).await {
            AgentMessage::Llm(Message::Assistant(message)) => message,
            _ => message,
        };
        self.cause = cause.filter(|_| message.is_failed());
        Ok(message)
    }

    /// Hands on what comes. Gives whether the answer had a beginning, and why it has no end of its own.
    async fn forward(&self, streaming: &Streaming) -> (bool, Option<ProviderError>) {
        let mut started = false;
        let mut abort = Abort::default();
        let mut aborted = std::pin::pin!(self.patience.signal.cancelled());
        loop {
            let event = match self.next_event(streaming, aborted.as_mut(), &mut abort).await {
                Ok(Some(event)) if !event.is_terminal() => event,
                Ok(_) => return (started, None),
                Err(Fault::Overdue) => return (started, Some(ProviderError::aborted())),
                Err(Fault::Panicked(panic)) => {
                    return (started, Some(Failure::stream_panicked(panic).0));
                }
            };
            if !started {
                started = true;
                let so_far = streaming.partial().map(|partial| partial.clone()).unwrap_or_default();
                let message = AgentMessage::Llm(Message::Assistant(Arc::new(so_far)));
                self.emit(AgentEvent::MessageStart { message }).await;
            }
            if !matches!(event, AssistantEvent::Start) {
                self.emit(AgentEvent::MessageUpdate { event: Arc::new(event) }).await;
            }
        }
    }

    /// The next event. After an abort a stream has the grace period to end by itself.
    async fn next_event(
        &self,
        streaming: &Streaming,
        aborted: Pin<&mut impl Future<Output = ()>>,
        abort: &mut Abort,
    ) -> Result<Option<AssistantEvent>, Fault> {
        let Patience { signal, grace } = &self.patience;
        let mut next = std::pin::pin!(contain_async(|| streaming.next()));
        if !abort.is_noticed(signal)
            && let Either::Left((event, _)) = future::select(next.as_mut(), aborted).await
        {
            return event.map_err(Fault::Panicked);
        }
        let deadline = *abort.deadline.get_or_insert_with(|| Instant::now() + *grace);
        // A stream that always has something more is never waited for, so the time is looked at first.
        if Instant::now() >= deadline {
            return Err(Fault::Overdue);
        }
        match tokio::time::timeout_at(deadline, next).await {
            Ok(event) => event.map_err(Fault::Panicked),
            Err(_) => Err(Fault::Overdue),
        }
    }
}

/// What is known of an abort while an answer is streamed.
#[derive(Default)]
struct Abort {
    /// When patience ends.
    deadline: Option<Instant>,
    events: u32,
}

impl Abort {
    /// Looking at the signal takes a lock, and whoever waits is woken by it. So it is looked at now and then only, for
    /// a stream that always has something more and is never waited for.
    const EVENTS_BETWEEN_LOOKS: u32 = 32;

    fn is_noticed(&mut self, signal: &CancellationToken) -> bool {
        let look = self.events.is_multiple_of(Self::EVENTS_BETWEEN_LOOKS);
        self.events = self.events.wrapping_add(1);
        self.deadline.is_some() || (look && signal.is_cancelled())
    }
}
