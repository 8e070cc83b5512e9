//! One request and its answer, as a source that is polled.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use futures::future::BoxFuture;
use tokio::{
    task::coop,
    time::{Instant, Sleep},
};

use super::{
    Transport,
    failure::Wait,
    send::{Body, Call, Open, Outgoing, Unopened},
};
use crate::{
    api::{BodyReader, Exchange, Progress, Wire, errors, retry},
    context::TranscriptContext,
    error::{ErrorKind, ProviderError},
    model::Model,
    options::{RawStreamEvent, StreamOptions},
    stream::{Advance, Completion, MessageBuilder, Source},
};

/// The most of a body that is no event stream that is kept, to say what it is.
const MAX_STRAY_BYTES: usize = 64 * 1024;

/// How long a server that has said why the answer ends may take for its last counts and the terminator.
const AFTERTHOUGHT: Duration = Duration::from_secs(1);

/// A request on its way and the answer to it. Dropping it closes the connection.
pub(crate) struct HttpSource(Phase);

enum Phase {
    Opening(BoxFuture<'static, Result<Open, Unopened>>),
    Answering(Box<Answering>),
    Ended,
}

/// The body of a response, as it comes.
struct Answering {
    call: Call,
    sent: Outgoing,
    reader: BodyReader,
    body: Body,
    clock: SilenceClock,
    begun: Begun,
    /// The connection broke; what had come before is decoded first.
    broken: Option<ProviderError>,
    /// The next event, while the caller's hook looks at it.
    looking: Option<(BoxFuture<'static, Result<(), ProviderError>>, RawStreamEvent)>,
}

/// What the body's first bytes said.
enum Begun {
    NotYet,
    EventStream,
    /// Something else, which is collected to be told.
    Stray(Vec<u8>),
}

/// The request as it is to be sent, once it is known.
pub(crate) type Preparing = BoxFuture<'static, Result<(Arc<Model>, StreamOptions), ProviderError>>;

impl HttpSource {
    /// A request that begins when it is polled.
    pub(crate) fn new(
        transport: Transport,
        wire: Arc<dyn Wire>,
        context: TranscriptContext,
        preparing: Preparing,
    ) -> Self {
        Self(Phase::Opening(Box::pin(async move {
            let (model, options) = preparing.await.map_err(|error| Unopened { exchange: None, error })?;
            let exchange = Exchange::new(wire, model, context, options);
            Call { transport, exchange }.open(None).await
        })))
    }

    /// Ends the answer in error, or tries again when nothing has come yet and repetitions are left.
    fn failed(&mut self, error: ProviderError, answer: &mut MessageBuilder) {
        match std::mem::replace(&mut self.0, Phase::Ended) {
            Phase::Answering(answering) if answering.may_repeat(&error) && answer.message().content.is_empty() => {
                // The failed attempt leaves nothing behind.
                answer.complete(|completion| *completion = Completion::default());
                let Answering { call, sent, .. } = *answering;
                self.0 = Phase::Opening(Box::pin(call.open(Some((sent, error)))));
            }
            _ => answer.fail(error),
        }
    }
}

impl Source for HttpSource {
    fn poll_advance(&mut self, cx: &mut Context<'_>, answer: &mut MessageBuilder) -> Poll<Advance> {
        match &mut self.0 {
            Phase::Opening(opening) => match ready!(opening.as_mut().poll(cx)) {
                Ok(open) => self.0 = Phase::Answering(Box::new(Answering::new(open, answer))),
                Err(Unopened { exchange, error }) => {
                    self.0 = Phase::Ended;
                    match exchange {
                        Some(exchange) => exchange.fail(error, answer),
                        None => answer.fail(error),
                    }
                }
            },
            Phase::Answering(answering) => match ready!(answering.poll_step(cx, answer)) {
                Ok(Progress::Ended) => {
                    // Most often the end of the body has come, too. Seeing it lets the connection be used again.
                    let _ = answering.body.as_mut().poll_next(cx);
                    self.0 = Phase::Ended;
                }
                Ok(_) => {}
                Err(error) => self.failed(error, answer),
            },
            Phase::Ended => return Poll::Ready(Advance::Exhausted),
        }
        Poll::Ready(Advance::More)
    }
}

impl Answering {
    fn new(open: Open, answer: &mut MessageBuilder) -> Self {
        let Open { call, sent, body, sent_at } = open;
        let reader = call.exchange.begin(&sent.http, answer);
        let clock = SilenceClock::new(sent_at);
        Self { call, sent, reader, body, clock, begun: Begun::NotYet, broken: None, looking: None }
    }

    fn may_repeat(&self, error: &ProviderError) -> bool {
        let exchange = &self.call.exchange;
        exchange.repetitions() < exchange.options().retry.max_retries && retry::is_retryable(error)
    }

    /// Decodes the next frame, reading as much of the body as it needs.
    fn poll_step(
        &mut self,
        cx: &mut Context<'_>,
        answer: &mut MessageBuilder,
    ) -> Poll<Result<Progress, ProviderError>> {
        // A long body must not keep other tasks waiting.
        let turn = ready!(coop::poll_proceed(cx));
        loop {
            match ready!(self.poll_decode(cx, answer)) {
                Ok(Progress::Starved) => {}
                Ok(Progress::Decoded) => {
                    turn.made_progress();
                    return Poll::Ready(Ok(Progress::Decoded));
                }
                Ok(Progress::Ended) => return Poll::Ready(Ok(Progress::Ended)),
                // The cause says more than what it led to.
                Err(error) if error.kind() == ErrorKind::Protocol => {
                    return Poll::Ready(Err(self.broken.take().unwrap_or(error)));
                }
                Err(error) => return Poll::Ready(Err(error)),
            }
            match self.body.as_mut().poll_next(cx) {
                Poll::Ready(Some(Ok(bytes))) => {
                    self.clock.byte_came();
                    self.take(bytes)?;
                }
                Poll::Ready(Some(Err(error))) => {
                    self.broken = Some(self.sent.target.broken(error));
                    self.end()?;
                }
                Poll::Ready(None) => self.end()?,
                Poll::Pending if self.reader.is_settled() => {
                    ready!(self.clock.poll_silence(cx, None, Some(AFTERTHOUGHT)));
                    self.end()?;
                }
                Poll::Pending => {
                    let limits = self.sent.limits;
                    let (wait, limit) = ready!(self.clock.poll_silence(cx, limits.first_byte, limits.idle));
                    return Poll::Ready(Err(self.sent.target.silent(wait, limit)));
                }
            }
        }
    }

    /// Decodes the next event that has come. A hook sees it first.
    fn poll_decode(
        &mut self,
        cx: &mut Context<'_>,
        answer: &mut MessageBuilder,
    ) -> Poll<Result<Progress, ProviderError>> {
        let Some(on_event) = &self.call.exchange.options().hooks.on_stream_event else {
            return Poll::Ready(self.reader.try_advance(answer));
        };
        let (hook, event) = match &mut self.looking {
            Some(looking) => looking,
            none => match self.reader.take_frame()? {
                Some(event) => none.insert((on_event(event.clone()), event)),
                None => return Poll::Ready(self.reader.try_advance(answer)),
            },
        };
        ready!(hook.as_mut().poll(cx))?;
        let progress = self.reader.decode(event, answer);
        self.looking = None;
        Poll::Ready(progress)
    }

    fn take(&mut self, bytes: Bytes) -> Result<(), ProviderError> {
        match &mut self.begun {
            Begun::EventStream => {}
            Begun::NotYet => match bytes.iter().find(|byte| !byte.is_ascii_whitespace()) {
                // No line of an event stream begins so: it is an error in JSON, or a page of something in between.
                Some(b'{' | b'[' | b'<') => {
                    self.begun = Begun::Stray(Vec::new());
                    return self.take(bytes);
                }
                Some(_) => self.begun = Begun::EventStream,
                None => {}
            },
            Begun::Stray(collected) => {
                let room = MAX_STRAY_BYTES - collected.len();
                collected.extend_from_slice(&bytes[..bytes.len().min(room)]);
                return match collected.len() {
                    MAX_STRAY_BYTES => Err(self.stray()),
                    _ => Ok(()),
                };
            }
        }
        self.reader.push(&bytes);
        Ok(())
    }

    /// The body ended.
    fn end(&mut self) -> Result<(), ProviderError> {
        if let Begun::Stray(_) = self.begun {
            return Err(self.stray());
        }
        self.reader.finish();
        Ok(())
    }

    /// What came instead of an event stream.
    fn stray(&self) -> ProviderError {
        let Begun::Stray(collected) = &self.begun else { return self.sent.target.not_a_stream("") };
        let text = String::from_utf8_lossy(collected);
        let text = text.trim();
        if text.starts_with('{') && text.contains("\"error\"") {
            return errors::from_event(&self.call.exchange.model().provider, text);
        }
        let beginning = match text.char_indices().nth(300) {
            Some((at, _)) => format!("{}…", &text[..at]),
            None => text.to_owned(),
        };
        self.sent.target.not_a_stream(&beginning)
    }
}

/// How long nothing has come. The timer is set anew only when it rings, so that a byte costs no more than reading the
/// time.
struct SilenceClock {
    last: Instant,
    wait: Wait,
    timer: Option<Pin<Box<Sleep>>>,
}

impl SilenceClock {
    fn new(sent_at: Instant) -> Self {
        Self { last: sent_at, wait: Wait::FirstByte, timer: None }
    }

    fn byte_came(&mut self) {
        self.last = Instant::now();
        if self.wait == Wait::FirstByte {
            self.wait = Wait::Idle;
            // It was set for another limit.
            self.timer = None;
        }
    }

    /// Ready when it has been silent for too long.
    fn poll_silence(
        &mut self,
        cx: &mut Context<'_>,
        first_byte: Option<Duration>,
        idle: Option<Duration>,
    ) -> Poll<(Wait, Duration)> {
        let limit = match self.wait {
            Wait::FirstByte => first_byte,
            Wait::Idle => idle,
        };
        let Some(limit) = limit else { return Poll::Pending };
        let end = self.last + limit;
        let timer = self.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(end)));
        if timer.deadline() > end {
            timer.as_mut().reset(end);
        }
        loop {
            ready!(timer.as_mut().poll(cx));
            if Instant::now() >= end {
                return Poll::Ready((self.wait, limit));
            }
            timer.as_mut().reset(end);
        }
    }
}
