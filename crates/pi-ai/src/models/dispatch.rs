//! From a model's wire to whoever speaks it.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context as TaskContext, Poll, ready},
};

use futures::{Stream, future::BoxFuture};

use super::Models;
use crate::{
    api::{Api, Wire},
    context::{Context, TranscriptContext},
    error::ProviderError,
    model::Model,
    options::StreamOptions,
    stream::{Advance, AssistantEvent, AssistantStream, MessageBuilder, Source, StreamFn},
    telemetry::Telemetry,
    transport::HttpSource,
};

/// Who speaks a wire.
#[derive(Clone)]
pub(super) enum Speaker {
    /// The transport does, with this wire.
    Wire(Arc<dyn Wire>),
    /// An API of the application.
    Api(Arc<dyn Api>),
}

impl Models {
    /// Asks a model. As [`StreamFn::stream`], for a context that is not normalized yet.
    pub fn ask(&self, model: &Arc<Model>, context: impl Into<Context>, options: StreamOptions) -> AssistantStream {
        self.stream(model, context.into().normalize(), options)
    }
}

impl StreamFn for Models {
    fn stream(&self, model: &Arc<Model>, context: TranscriptContext, options: StreamOptions) -> AssistantStream {
        let now = self.shared.clock.now();
        let speaker = match self.speaker(&model.api) {
            Ok(speaker) => speaker,
            Err(error) => return AssistantStream::failed(model, now, error),
        };
        let signal = options.signal.clone();
        let answer = MessageBuilder::new(model, now).timed();
        let telemetry = Telemetry::new(model, &options);
        let (models, asked) = (self.clone(), model.clone());
        let preparing = Box::pin(async move { models.prepare(&asked, options).await });
        match speaker {
            Speaker::Wire(wire) => {
                let source = HttpSource::new(self.shared.transport.clone(), wire, context, preparing);
                AssistantStream::from_source(answer, signal, telemetry.around(source))
            }
            Speaker::Api(api) => {
                let opening = Box::pin(async move {
                    let (model, options) = preparing.await?;
                    Ok(api.stream(&model, context, options))
                });
                AssistantStream::from_source(answer, signal, telemetry.around(Relayed::Opening(opening)))
            }
        }
    }
}

/// The events of an application's own stream.
enum Relayed {
    Opening(BoxFuture<'static, Result<AssistantStream, ProviderError>>),
    Streaming(Box<AssistantStream>),
}

impl Source for Relayed {
    fn poll_advance(&mut self, cx: &mut TaskContext<'_>, answer: &mut MessageBuilder) -> Poll<Advance> {
        match self {
            Self::Opening(opening) => match ready!(opening.as_mut().poll(cx)) {
                Ok(stream) => *self = Self::Streaming(Box::new(stream)),
                Err(error) => answer.fail(error),
            },
            Self::Streaming(stream) => match ready!(Pin::new(&mut **stream).poll_next(cx)) {
                Some(AssistantEvent::Start) => answer.start(),
                Some(event) => answer.write(event),
                None => return Poll::Ready(Advance::Exhausted),
            },
        }
        Poll::Ready(Advance::More)
    }
}
