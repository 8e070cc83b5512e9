//! A scripted provider, for tests of whatever is built on this crate. It needs no network feature.

use std::{
    collections::VecDeque,
    fmt,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context as TaskContext, Poll, ready},
    time::Duration,
};

use crate::{
    context::TranscriptContext,
    error::{ErrorKind, ProviderError},
    id::SessionId,
    message::{AssistantBlock, AssistantMessage, Message, StopReason, TextContent, ThinkingContent, ToolCall},
    model::{InputKind, Model},
    options::{CacheRetention, StreamOptions},
    stream::{Advance, AssistantEvent, AssistantStream, BlockEnd, Completion, MessageBuilder, Source, StreamFn},
    time::{Clock, SystemClock, Timestamp},
    usage::Usage,
};

/// Plays prepared answers in order and records what it was asked.
///
/// Clones share one script. When the script is used up, a request fails with an error that says so.
///
/// ```
/// use std::sync::Arc;
/// use pi_ai::{Context, Message, StreamFn, StreamOptions, faux::{FauxProvider, FauxReply}};
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let provider = FauxProvider::new([FauxReply::text("hello")]);
/// let context = Context::from(vec![Message::user("hi")]).normalize();
/// let answer = provider.stream(&FauxProvider::model(), context, StreamOptions::default()).result().await;
/// assert_eq!(answer.text(), "hello");
/// assert_eq!(provider.requests().len(), 1);
/// # }
/// ```
#[derive(Clone)]
pub struct FauxProvider {
    shared: Arc<Mutex<Shared>>,
    clock: Arc<dyn Clock>,
    tokens_per_second: Option<f64>,
}

#[derive(Default)]
struct Shared {
    script: VecDeque<Step>,
    requests: Vec<FauxRequest>,
    /// What each conversation sent last, for the cache's accounting.
    prompts: std::collections::HashMap<SessionId, String>,
    calls: u64,
}

impl Shared {
    fn number_calls(&mut self, message: &mut AssistantMessage) {
        for block in &mut message.content {
            if let AssistantBlock::ToolCall(call) = block
                && call.id.is_empty()
            {
                self.calls += 1;
                call.id = format!("call_{}", self.calls).into();
            }
        }
    }
}

type Step = Box<dyn FnOnce(&FauxRequest) -> FauxReply + Send>;

/// A request that the provider got.
#[derive(Clone, Debug)]
pub struct FauxRequest {
    /// The model that was asked.
    pub model: Arc<Model>,
    /// The transcript.
    pub context: TranscriptContext,
    /// The options.
    pub options: StreamOptions,
}

/// A prepared answer.
#[derive(Clone, Debug)]
pub struct FauxReply {
    message: AssistantMessage,
    ending: Ending,
}

#[derive(Clone, Debug)]
enum Ending {
    /// Streams everything and ends.
    Whole,
    /// Streams everything and then nothing more, until the request is aborted.
    Hang,
    /// Streams everything and then fails.
    Fail(ProviderError),
    /// Fails before it begins.
    FailAtOnce(ProviderError),
}

impl FauxReply {
    /// An answer of one text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::blocks([AssistantBlock::text(text)])
    }

    /// An answer that calls one tool. The provider numbers calls without an id: `call_1`, `call_2`, …
    pub fn tool_call(name: &str, arguments: serde_json::Value) -> Self {
        Self::blocks([ToolCall::new("", name, arguments).into()])
    }

    /// An answer of these blocks. It ends in `toolUse` when it has a tool call, else in `stop`.
    pub fn blocks(content: impl IntoIterator<Item = AssistantBlock>) -> Self {
        let content: Vec<_> = content.into_iter().collect();
        let calls = content.iter().any(|block| block.as_tool_call().is_some());
        let stop_reason = if calls { StopReason::ToolUse } else { StopReason::Stop };
        Self::message(AssistantMessage { content, stop_reason, ..AssistantMessage::default() })
    }

    /// An answer that becomes this message. Usage that is not set is estimated.
    pub fn message(message: AssistantMessage) -> Self {
        let ending = match message.stop_reason {
            StopReason::Error => {
                let text = message.error_message.as_deref().unwrap_or("The request failed.");
                Ending::Fail(ProviderError::new(ErrorKind::Other, text))
            }
            StopReason::Aborted => Ending::Fail(ProviderError::aborted()),
            _ => Ending::Whole,
        };
        Self { message, ending }
    }

    /// A request that fails before anything comes.
    pub fn error(error: ProviderError) -> Self {
        Self { message: AssistantMessage::default(), ending: Ending::FailAtOnce(error) }
    }

    /// Ends in this way instead.
    #[must_use]
    pub fn stop_reason(mut self, reason: StopReason) -> Self {
        self.message.stop_reason = reason;
        self
    }

    /// Streams its blocks and then says nothing more until the request is aborted.
    #[must_use]
    pub fn hang(mut self) -> Self {
        self.ending = Ending::Hang;
        self
    }

    /// Streams its blocks and then fails.
    #[must_use]
    pub fn then_fail(mut self, error: ProviderError) -> Self {
        self.ending = Ending::Fail(error);
        self
    }
}

impl FauxProvider {
    /// A provider with these answers.
    pub fn new(replies: impl IntoIterator<Item = FauxReply>) -> Self {
        let provider = Self { shared: Arc::default(), clock: Arc::new(SystemClock), tokens_per_second: None };
        provider.append(replies);
        provider
    }

    /// The model that it serves: `faux/faux-1`, with text and pictures, a window of 128,000 tokens and answers of up
    /// to 16,384.
    pub fn model() -> Arc<Model> {
        Arc::new(Model {
            id: "faux-1".into(),
            name: "Faux 1".into(),
            api: "faux".into(),
            provider: "faux".into(),
            input: vec![InputKind::Text, InputKind::Image],
            context_window: 128_000,
            max_tokens: 16_384,
            ..Model::default()
        })
    }

    /// Streams at about this speed instead of at once.
    #[must_use]
    pub fn tokens_per_second(mut self, speed: f64) -> Self {
        self.tokens_per_second = Some(speed);
        self
    }

    /// Reads the time here.
    #[must_use]
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Adds answers to the end of the script.
    pub fn append(&self, replies: impl IntoIterator<Item = FauxReply>) {
        let steps = replies.into_iter().map(|reply| Box::new(move |_: &FauxRequest| reply) as Step);
        self.lock().script.extend(steps);
    }

    /// Adds an answer that depends on the request.
    pub fn append_with(&self, reply: impl FnOnce(&FauxRequest) -> FauxReply + Send + 'static) {
        self.lock().script.push_back(Box::new(reply));
    }

    /// What it was asked so far.
    pub fn requests(&self) -> Vec<FauxRequest> {
        self.lock().requests.clone()
    }

    /// How many answers are left.
    pub fn pending(&self) -> usize {
        self.lock().script.len()
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for FauxProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shared = self.lock();
        f.debug_struct("FauxProvider")
            .field("pending", &shared.script.len())
            .field("requests", &shared.requests.len())
            .finish_non_exhaustive()
    }
}

impl StreamFn for FauxProvider {
    fn stream(&self, model: &Arc<Model>, context: TranscriptContext, options: StreamOptions) -> AssistantStream {
        let request = FauxRequest { model: model.clone(), context, options };
        let step = {
            let mut shared = self.lock();
            shared.requests.push(request.clone());
            shared.script.pop_front()
        };
        let now = self.clock.now();
        let Some(step) = step else {
            let error = ProviderError::new(ErrorKind::Other, "No more faux responses queued");
            return AssistantStream::failed(model, now, error);
        };
        // Outside the lock: the step may look at the provider.
        let mut reply = step(&request);
        let signal = request.options.signal.clone();
        if let Ending::FailAtOnce(error) = reply.ending {
            return AssistantStream::failed(model, now, error);
        }
        self.lock().number_calls(&mut reply.message);
        if reply.message.usage == Usage::default() {
            reply.message.usage = self.estimate_usage(&request, &reply.message);
        }
        reply.message.usage.price(&model.cost);
        let playback = Playback::new(model, reply, self.tokens_per_second);
        AssistantStream::from_source(MessageBuilder::new(model, now), signal, playback)
    }
}

impl FauxProvider {
    /// Four characters to a token. With a session id, what the conversation sent before counts as read from a cache.
    fn estimate_usage(&self, request: &FauxRequest, reply: &AssistantMessage) -> Usage {
        let prompt = request.context.messages().iter().map(described).collect::<Vec<_>>().join("\n");
        let tokens = |characters: usize| characters.div_ceil(4) as u64;
        let output = tokens(reply.content.iter().map(|block| described_block(block).chars().count()).sum());
        let mut usage = Usage { output, ..Usage::default() };
        let all = tokens(prompt.chars().count());
        match (&request.options.session_id, request.options.cache_retention) {
            (Some(session), retention) if retention != CacheRetention::None => {
                let previous = self.lock().prompts.insert(session.clone(), prompt.clone()).unwrap_or_default();
                let shared = previous.chars().zip(prompt.chars()).take_while(|(a, b)| a == b).count();
                usage.cache_read = tokens(shared).min(all);
                usage.cache_write = all - usage.cache_read;
            }
            _ => usage.input = all,
        }
        usage.total_tokens = usage.all_input() + output;
        usage
    }
}

fn described(message: &Message) -> String {
    serde_json::to_string(message).unwrap_or_default()
}

fn described_block(block: &AssistantBlock) -> String {
    match block {
        AssistantBlock::Text(text) => text.text.clone(),
        AssistantBlock::Thinking(thinking) => thinking.thinking.clone(),
        AssistantBlock::ToolCall(call) => {
            format!("{}{}", call.name, serde_json::to_string(&call.arguments).unwrap_or_default())
        }
        AssistantBlock::Unknown(_) => String::new(),
    }
}

/// Plays events that were made before.
struct Playback {
    events: VecDeque<AssistantEvent>,
    at_end: AtEnd,
    pause_per_event: Option<Duration>,
    pause: Option<Pin<Box<tokio::time::Sleep>>>,
}

enum AtEnd {
    Exhausted,
    Hang,
}

impl Playback {
    fn new(model: &Model, reply: FauxReply, tokens_per_second: Option<f64>) -> Self {
        let FauxReply { message, ending } = reply;
        let mut answer = MessageBuilder::new(model, Timestamp::default());
        answer.start();
        for block in &message.content {
            write_block(&mut answer, block);
        }
        answer.complete(|completion| *completion = Completion::of(&message));
        let at_end = match ending {
            Ending::Hang => AtEnd::Hang,
            Ending::Whole => {
                answer.done(message.stop_reason);
                AtEnd::Exhausted
            }
            Ending::Fail(error) | Ending::FailAtOnce(error) => {
                answer.fail(error);
                AtEnd::Exhausted
            }
        };
        let pause_per_event = tokens_per_second
            .filter(|speed| *speed > 0.0)
            .map(|speed| Duration::try_from_secs_f64(TOKENS_PER_PIECE / speed).unwrap_or(Duration::from_secs(1)));
        Self { events: std::iter::from_fn(|| answer.pop_event()).collect(), at_end, pause_per_event, pause: None }
    }
}

impl Source for Playback {
    fn poll_advance(&mut self, cx: &mut TaskContext<'_>, answer: &mut MessageBuilder) -> Poll<Advance> {
        if let Some(pause) = &mut self.pause {
            ready!(pause.as_mut().poll(cx));
            self.pause = None;
        }
        match self.events.pop_front() {
            Some(AssistantEvent::Start) => answer.start(),
            Some(event) => {
                self.pause = self.pause_per_event.map(|pause| Box::pin(tokio::time::sleep(pause)));
                answer.write(event);
            }
            None => {
                return match self.at_end {
                    AtEnd::Exhausted => Poll::Ready(Advance::Exhausted),
                    // Whoever aborts wakes the stream.
                    AtEnd::Hang => Poll::Pending,
                };
            }
        }
        Poll::Ready(Advance::More)
    }
}

const TOKENS_PER_PIECE: f64 = 4.0;

fn write_block(answer: &mut MessageBuilder, block: &AssistantBlock) {
    match block {
        AssistantBlock::Text(TextContent { text, text_signature }) => {
            let index = answer.start_text();
            pieces(text).for_each(|piece| answer.push_text(index, piece));
            answer.end_text(index, BlockEnd { signature: text_signature.clone(), ..BlockEnd::default() });
        }
        AssistantBlock::Thinking(thinking) if thinking.redacted == Some(true) => {
            let index = answer.start_thinking(thinking.clone());
            answer.end_thinking(index, BlockEnd::default());
        }
        AssistantBlock::Thinking(ThinkingContent { thinking, thinking_signature, .. }) => {
            let index = answer.start_thinking(ThinkingContent::default());
            pieces(thinking).for_each(|piece| answer.push_thinking(index, piece));
            answer.end_thinking(index, BlockEnd { signature: thinking_signature.clone(), ..BlockEnd::default() });
        }
        AssistantBlock::ToolCall(call) => {
            let index = answer.start_tool_call(ToolCall { arguments: Default::default(), ..call.clone() });
            let text = serde_json::to_string(&call.arguments).unwrap_or_default();
            pieces(&text).for_each(|piece| answer.push_arguments(index, piece));
            answer.end_tool_call_with(index, call.clone());
        }
        AssistantBlock::Unknown(_) => {}
    }
}

/// Pieces of about four tokens, cut between characters.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let end = rest.char_indices().nth(16).map_or(rest.len(), |(at, _)| at);
        let (piece, after) = rest.split_at(end);
        rest = after;
        (!piece.is_empty()).then_some(piece)
    })
}

#[cfg(test)]
mod tests {
    use futures::StreamExt;
    use serde_json::json;

    use super::*;
    use crate::Context;

    fn ask(provider: &FauxProvider, options: StreamOptions) -> AssistantStream {
        provider.stream(&FauxProvider::model(), Context::from(vec![Message::user("hi")]).normalize(), options)
    }

    #[tokio::test]
    async fn a_scripted_tool_call_streams_its_arguments() {
        let provider = FauxProvider::new([FauxReply::tool_call("read", json!({"path": "some/longer/path.txt"}))]);
        let mut stream = ask(&provider, StreamOptions::default());
        let mut text = String::new();
        while let Some(event) = stream.next().await {
            if let AssistantEvent::ToolCallDelta { delta, .. } = event {
                text += &delta;
            }
        }
        assert_eq!(text, r#"{"path":"some/longer/path.txt"}"#);
        assert_eq!(stream.partial().stop_reason, StopReason::ToolUse);
        assert!(stream.partial().usage.total_tokens > 0);
    }

    #[tokio::test]
    async fn a_used_up_script_says_so() {
        let message = ask(&FauxProvider::new([]), StreamOptions::default()).result().await;
        assert_eq!(message.error_message.as_deref(), Some("No more faux responses queued"));
    }

    #[tokio::test]
    async fn the_second_request_of_a_conversation_reads_from_the_cache() {
        let provider = FauxProvider::new([FauxReply::text("one"), FauxReply::text("two")]);
        let options = StreamOptions { session_id: Some("s".into()), ..StreamOptions::default() };
        let first = ask(&provider, options.clone()).result().await.usage;
        let second = ask(&provider, options).result().await.usage;
        assert_eq!((first.input, first.cache_read), (0, 0));
        assert_eq!((second.cache_read, second.cache_write), (first.cache_write, 0));
    }

    #[tokio::test]
    async fn a_hanging_answer_ends_when_it_is_aborted() {
        let provider = FauxProvider::new([FauxReply::text("partial").hang()]);
        let options = StreamOptions::default();
        let signal = options.signal.clone();
        let mut stream = ask(&provider, options);
        while let Some(event) = stream.next().await {
            if matches!(event, AssistantEvent::TextEnd { .. }) {
                signal.cancel();
            }
        }
        assert_eq!(stream.partial().stop_reason, StopReason::Aborted);
        assert_eq!(stream.partial().text(), "partial");
    }
}
