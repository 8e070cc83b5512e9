//! One suite for all wires, over real sockets, against a server that refuses what the real service would.
//!
//! Each test runs on every wire that is built in. The server checks each request: every call has its result, no result
//! is an orphan, no block is one that its wire does not have. What breaks a rule fails the test.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use fake_llm::{Answer as Said, End, Gate, Outcome, Pieces, Reply, Script, Server, Stop, ToolCall as SaidCall, Usage};
use futures::StreamExt;
use pi_ai::{
    AssistantBlock, AssistantEvent, AssistantMessage, CancellationToken, Content, Context, ErrorKind, InputBlock,
    Message, Model, ProviderError, StopReason, StreamFn, StreamOptions, SystemMessage, ThinkingContent, ThinkingLevel,
    Timestamp, ToolCall, ToolDeclaration, ToolResultMessage,
    models::{Models, Provider},
    options::{Limit, RetryPolicy, Timeouts},
    proxy::ProxyClient,
    stream::MessageFold,
};
use serde_json::json;

/// A wire, and the server that plays it.
#[derive(Clone, Copy)]
struct Wire {
    api: &'static str,
    server: fake_llm::Wire,
    /// What the model's base URL has below the server's address.
    path: &'static str,
    /// Whether the wire says where a message ends, so that a server need not close its connection to say so.
    has_terminator: bool,
}

fn wires() -> Vec<Wire> {
    use fake_llm::Wire as Played;
    let wire = |api, server, path| Wire { api, server, path, has_terminator: true };
    vec![
        wire("openai-completions", Played::OpenAiCompletions, "/v1"),
        wire("openai-responses", Played::OpenAiResponses, "/v1"),
        wire("azure-openai-responses", Played::OpenAiResponses, "/openai/v1"),
        #[cfg(feature = "codex")]
        wire("openai-codex-responses", Played::OpenAiResponses, "/backend-api"),
        wire("anthropic-messages", Played::AnthropicMessages, ""),
        Wire { has_terminator: false, ..wire("google-generative-ai", Played::GoogleGenerativeAi, "/v1beta") },
        #[cfg(feature = "vertex")]
        Wire { has_terminator: false, ..wire("google-vertex", Played::GoogleGenerativeAi, "/v1beta") },
        wire("mistral-conversations", Played::MistralConversations, ""),
        #[cfg(feature = "bedrock")]
        wire("bedrock-converse-stream", Played::BedrockConverseStream, ""),
        wire("pi-messages", Played::PiMessages, "/v1"),
        wire(PROXY, Played::PiMessages, ""),
    ]
}

const PROVIDER: &str = "local";

/// Not a built-in wire: the client of a server of one's own.
const PROXY: &str = "proxy";

/// A key that each wire can read: ChatGPT's names the account inside.
fn key() -> String {
    let claims = json!({"https://api.openai.com/auth": {"chatgpt_account_id": "acc"}}).to_string();
    let encode = |text: &str| base64::Engine::encode(&base64::engine::general_purpose::URL_SAFE_NO_PAD, text);
    format!("{}.{}.sig", encode("{}"), encode(&claims))
}

/// A server of one wire, and who asks it.
struct Setup {
    wire: Wire,
    server: Server,
    models: Arc<dyn StreamFn>,
    model: Arc<Model>,
}

impl Setup {
    fn new(wire: Wire, script: impl FnOnce(Script) -> Script) -> Self {
        let server = Server::start(script(Script::new(wire.server)));
        let base_url = server.url(wire.path);
        let model = Model {
            id: "m".into(),
            reasoning: true,
            max_tokens: 4000,
            context_window: 100_000,
            input: vec![pi_ai::model::InputKind::Text, pi_ai::model::InputKind::Image],
            ..Model::default()
        };
        if wire.api == PROXY {
            let models = Arc::new(ProxyClient::new(base_url).token("t"));
            let model = Arc::new(Model { api: "somewhere-else".into(), provider: "local".into(), ..model });
            return Self { wire, server, models, model };
        }
        let provider = Provider::new(PROVIDER, base_url).api(wire.api).api_key(&key()).model(model);
        let models = Models::builder().provider(provider).build();
        let model = models.find(PROVIDER, "m").unwrap();
        Self { wire, server, models: Arc::new(models), model }
    }

    fn stream(&self, context: Context, options: StreamOptions) -> pi_ai::AssistantStream {
        self.models.stream(&self.model, context.normalize(), options)
    }

    async fn ask(&self, context: Context, options: StreamOptions) -> Outcomes {
        finish(self.wire, &self.model, self.stream(context, options)).await
    }
}

/// What a stream came to.
struct Outcomes {
    message: AssistantMessage,
    error: Option<ProviderError>,
    events: Vec<AssistantEvent>,
}

impl Outcomes {
    fn started(&self) -> bool {
        self.events.iter().any(|event| matches!(event, AssistantEvent::Start))
    }
}

/// Reads a stream to its end and holds its events to the laws of every stream.
async fn finish(wire: Wire, model: &Model, mut stream: pi_ai::AssistantStream) -> Outcomes {
    let mut events = Vec::new();
    let reading = async {
        while let Some(event) = stream.next().await {
            events.push(event);
        }
    };
    let api = wire.api;
    tokio::time::timeout(Duration::from_secs(10), reading).await.unwrap_or_else(|_| panic!("{api}: the stream hangs"));
    let error = stream.error().cloned();
    let message = stream.into_message();
    check_events(api, &events);
    let mut fold = MessageFold::new(model, message.timestamp);
    events.iter().for_each(|event| fold.apply(event));
    let mut folded = fold.into_message();
    if message.is_failed() {
        // A signature that has come when an answer fails is told by no event.
        folded.content.clone_from(&message.content);
    }
    assert_eq!(folded, message, "{api}: the events do not add up to the message");
    Outcomes { message, error, events }
}

/// Start, then blocks that begin in order, grow and end once, then one last event. A lone error needs no start.
fn check_events(api: &str, events: &[AssistantEvent]) {
    use AssistantEvent as Event;
    let (last, before) = events.split_last().unwrap_or_else(|| panic!("{api}: no event"));
    assert!(last.is_terminal(), "{api}: the last event is {last:?}");
    let mut open: Vec<&str> = Vec::new();
    for (number, event) in before.iter().enumerate() {
        let kind = match event {
            Event::Start => {
                assert_eq!(number, 0, "{api}: a start in the middle");
                continue;
            }
            Event::TextStart { .. } | Event::TextDelta { .. } | Event::TextEnd { .. } => "text",
            Event::ThinkingStart { .. } | Event::ThinkingDelta { .. } | Event::ThinkingEnd { .. } => "thinking",
            Event::ToolCallStart { .. } | Event::ToolCallDelta { .. } | Event::ToolCallEnd { .. } => "call",
            other => panic!("{api}: {other:?} before the end"),
        };
        assert!(number > 0, "{api}: no start before {event:?}");
        let index = event.index().unwrap();
        match event {
            Event::TextStart { .. } | Event::ThinkingStart { .. } | Event::ToolCallStart { .. } => {
                assert_eq!(index, open.len(), "{api}: blocks begin in order");
                open.push(kind);
            }
            Event::TextEnd { .. } | Event::ThinkingEnd { .. } | Event::ToolCallEnd { .. } => {
                assert_eq!(open[index], kind, "{api}: {event:?}");
                open[index] = "ended";
            }
            _ => assert_eq!(open[index], kind, "{api}: {event:?}"),
        }
    }
    if matches!(last, Event::Done { .. }) {
        assert!(!before.is_empty(), "{api}: done without a start");
        assert!(open.iter().all(|state| *state == "ended"), "{api}: a block of a finished answer is open");
    }
}

fn question() -> Context {
    Context { system_prompt: Some("be brief".into()), ..Context::from(vec![Message::user("hi")]) }
}

fn with_tools(messages: Vec<Message>) -> Context {
    let parameters = json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]});
    Context {
        system_prompt: Some("be brief".into()),
        tools: vec![
            ToolDeclaration::new("read", "Reads a file.", parameters.clone()),
            ToolDeclaration::new("list", "Lists a folder.", parameters),
        ],
        ..Context::from(messages)
    }
}

fn result(call: &ToolCall, content: Vec<InputBlock>) -> Message {
    ToolResultMessage {
        tool_call_id: call.id.clone(),
        tool_name: call.name.clone(),
        content,
        ..ToolResultMessage::default()
    }
    .into()
}

fn retrying(max_retries: u32) -> StreamOptions {
    StreamOptions { retry: RetryPolicy { max_retries, ..RetryPolicy::default() }, ..StreamOptions::default() }
}

#[tokio::test]
async fn an_answer_streams_and_is_whole_at_the_end() {
    for wire in wires() {
        let usage = Usage { input: 90, output: 20, cache_read: 10, ..Usage::default() };
        let said = Said::new().thinking("Let me ").thinking("see.").text("Grüße, ").text("🦀 你好").usage(usage);
        let setup = Setup::new(wire, |script| script.reply(said));
        let answer = setup.ask(question(), StreamOptions::default()).await;
        let (api, message) = (wire.api, &answer.message);
        assert!(answer.error.is_none(), "{api}: {:?}", answer.error);
        assert_eq!((message.text().as_str(), message.stop_reason), ("Grüße, 🦀 你好", StopReason::Stop), "{api}");
        let thinking = message.content.iter().find_map(AssistantBlock::as_thinking).unwrap();
        assert_eq!(thinking.thinking, "Let me see.", "{api}");
        let deltas = answer.events.iter().filter(|event| matches!(event, AssistantEvent::TextDelta { .. })).count();
        assert_eq!(deltas, 2, "{api}: text comes as it is said");
        let counted = (message.usage.input, message.usage.output, message.usage.cache_read);
        assert_eq!(counted, (90, 20, 10), "{api}");
        assert_eq!((message.provider.as_str(), message.model.as_str()), ("local", "m"), "{api}");
        let request = setup.server.request(0).await;
        let proofs = ["authorization", "x-api-key", "api-key", "x-goog-api-key"];
        assert!(proofs.iter().any(|name| request.header(name).is_some()), "{api}");
    }
}

#[tokio::test]
async fn an_answer_does_not_depend_on_how_its_bytes_arrive() {
    for wire in wires() {
        let said = || Said::new().thinking("hm").text("Grüße, 🦀").tool_call("read", json!({"path": "ä\n"}));
        let mut whole = None;
        for pieces in [Pieces::Bulk, Pieces::Every(1), Pieces::Every(7), Pieces::Events] {
            let setup = Setup::new(wire, |script| script.reply(Reply::from(said()).pieces(pieces)));
            let mut answer = setup.ask(with_tools(vec![Message::user("go")]), StreamOptions::default()).await;
            assert!(answer.error.is_none(), "{}: {:?}", wire.api, answer.error);
            (answer.message.timestamp, answer.message.duration_ms) = (Timestamp::default(), None);
            // Some wires have no ids of their own for calls: they are made from the time.
            for block in &mut answer.message.content {
                if let AssistantBlock::ToolCall(call) = block {
                    call.id = "call".into();
                }
            }
            assert_eq!(*whole.get_or_insert_with(|| answer.message.clone()), answer.message, "{}", wire.api);
        }
    }
}

#[tokio::test]
async fn parallel_calls_come_as_they_were_made_and_their_results_go_back() {
    for wire in wires() {
        let calls = Said::new()
            .text("I look.")
            .call(SaidCall::new("read", json!({"path": "a \"b\""})).fragments(4))
            .call(SaidCall::new("list", json!({"path": "."})));
        let setup = Setup::new(wire, |script| script.reply(calls).reply("It says hello."));
        let mut messages = vec![Message::user("go")];
        let first = setup.ask(with_tools(messages.clone()), StreamOptions::default()).await;
        let api = wire.api;
        assert!(first.error.is_none(), "{api}: {:?}", first.error);
        assert_eq!(first.message.stop_reason, StopReason::ToolUse, "{api}");
        let made: Vec<ToolCall> = first.message.tool_calls().cloned().collect();
        let shown: Vec<_> = made.iter().map(|call| (call.name.as_str(), &call.arguments["path"])).collect();
        assert_eq!(shown, [("read", &json!("a \"b\"")), ("list", &json!("."))], "{api}");
        messages.push(first.message.clone().into());
        messages.push(result(&made[1], vec![]));
        messages.push(result(&made[0], vec![InputBlock::text("hello"), InputBlock::image("aGVsbG8=", "image/png")]));
        let second = setup.ask(with_tools(messages), StreamOptions::default()).await;
        assert!(second.error.is_none(), "{api}: {:?}", second.error);
        assert_eq!(second.message.text(), "It says hello.", "{api}");
        let request = setup.server.request(1).await;
        let sent = String::from_utf8_lossy(&serde_json::to_vec(request.json()).unwrap()).into_owned();
        assert!(sent.contains("hello") && sent.contains("aGVsbG8="), "{api}: {sent}");
    }
}

/// A conversation that went wrong in every way that one can.
fn a_conversation_with_scars() -> Vec<Message> {
    let by = |api: &str, content: Vec<AssistantBlock>, stop_reason| -> Message {
        AssistantMessage {
            content,
            api: api.into(),
            provider: "elsewhere".into(),
            model: "other".into(),
            stop_reason,
            ..AssistantMessage::default()
        }
        .into()
    };
    let long = format!("call|{}:x", "y".repeat(450));
    let call = |id: &str| ToolCall::new(id, "read", json!({"path": "a", "": {"": 1}}));
    let thinking = || -> AssistantBlock {
        ThinkingContent { thinking: "hm".into(), thinking_signature: Some("{\"id\":\"rs\"}".into()), redacted: None }
            .into()
    };
    vec![
        Message::user("go"),
        Message::user(""),
        by("openai-responses", vec![thinking(), call(&long).into(), call("b").into()], StopReason::ToolUse),
        SystemMessage::default().section("later", "a note between call and result").into(),
        result(&call("b"), vec![]),
        result(&call("nobody"), vec![InputBlock::text("an orphan")]),
        Message::user("the first call was never answered"),
        by("anthropic-messages", vec![thinking()], StopReason::Aborted),
        by("google-generative-ai", vec![call("c").into()], StopReason::Error),
        result(&call("c"), vec![InputBlock::text("of a failed turn")]),
        Message::user(Content::from(vec![InputBlock::text(" "), InputBlock::image("aGVsbG8=", "image/png")])),
        by("anthropic-messages", vec![thinking()], StopReason::Stop),
        by("mistral-conversations", vec![AssistantBlock::text("  "), call("d").into()], StopReason::ToolUse),
        ToolResultMessage {
            is_error: true,
            ..match result(&call("d"), vec![InputBlock::image("aGVsbG8=", "image/png")]) {
                Message::ToolResult(message) => (*message).clone(),
                _ => ToolResultMessage::default(),
            }
        }
        .into(),
        by("anthropic-messages", vec![call("e").into()], StopReason::ToolUse),
    ]
}

#[tokio::test]
async fn a_conversation_of_other_models_with_every_scar_goes_on() {
    for wire in wires().into_iter().filter(|wire| wire.server != fake_llm::Wire::PiMessages) {
        let setup = Setup::new(wire, |script| script.reply("Well."));
        let answer = setup.ask(with_tools(a_conversation_with_scars()), StreamOptions::default()).await;
        assert!(answer.error.is_none(), "{}: {:?}", wire.api, answer.error);
        assert_eq!(answer.message.text(), "Well.", "{}", wire.api);
        let sent = setup.server.request(0).await.json().to_string();
        assert!(!sent.contains("an orphan") && !sent.contains("of a failed turn"), "{}: {sent}", wire.api);
    }
}

#[tokio::test]
async fn thinking_goes_back_to_the_model_that_thought_it() {
    for wire in wires() {
        let setup =
            Setup::new(wire, |script| script.reply(Said::new().thinking("I weigh it.").text("Yes.")).reply("Sure."));
        let options = || StreamOptions { reasoning: Some(ThinkingLevel::Low), ..StreamOptions::default() };
        let first = setup.ask(question(), options()).await;
        assert!(first.error.is_none(), "{}: {:?}", wire.api, first.error);
        let messages = vec![Message::user("hi"), first.message.into(), Message::user("really?")];
        let second = setup.ask(Context::from(messages), options()).await;
        assert!(second.error.is_none(), "{}: {:?}", wire.api, second.error);
        assert_eq!(second.message.text(), "Sure.", "{}", wire.api);
    }
}

#[tokio::test]
async fn a_refusal_is_one_error_with_its_class_status_and_words() {
    for wire in wires() {
        for (status, kind) in [
            (400, ErrorKind::InvalidRequest),
            (401, ErrorKind::Auth),
            (429, ErrorKind::RateLimit),
            (500, ErrorKind::Overloaded),
            (529, ErrorKind::Overloaded),
        ] {
            let setup = Setup::new(wire, |script| script.reply(Reply::error(status, "the reason why")));
            let answer = setup.ask(question(), StreamOptions::default()).await;
            let error = answer.error.as_ref().unwrap();
            assert_eq!((error.kind(), error.status()), (kind, Some(status)), "{}", wire.api);
            assert!(error.message().contains("the reason why"), "{}: {}", wire.api, error.message());
            assert!(error.body().unwrap().contains("the reason why"), "{}", wire.api);
            assert_eq!(answer.message.stop_reason, StopReason::Error, "{}", wire.api);
            assert!(!answer.started() && answer.events.len() == 1, "{}: {:?}", wire.api, answer.events);
        }
    }
}

#[tokio::test]
async fn a_fault_that_passes_is_tried_again() {
    for wire in wires() {
        let busy = || Reply::error(529, "overloaded").header("retry-after-ms", "1");
        let setup = Setup::new(wire, |script| script.reply(busy()).reply(busy()).reply("at last"));
        let answer = setup.ask(question(), retrying(2)).await;
        assert!(answer.error.is_none(), "{}: {:?}", wire.api, answer.error);
        assert_eq!((answer.message.text().as_str(), setup.server.requests().len()), ("at last", 3), "{}", wire.api);
    }
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_an_error_and_keeps_what_came() {
    for wire in wires() {
        for end in [End::Close, End::Reset] {
            let said = Said::new().text("the beginning").text(" and the rest");
            let whole = Said::new().text("the beginning").text(" and the rest").stop(Stop::Missing);
            for reply in [Reply::from(said).cut_after_events(4).end(end), Reply::from(whole).end(end)] {
                let setup = Setup::new(wire, |script| script.reply(reply));
                let answer = setup.ask(question(), StreamOptions::default()).await;
                let Some(error) = &answer.error else {
                    // Four events may be all of a short answer.
                    assert_eq!(answer.message.text(), "the beginning and the rest", "{}", wire.api);
                    continue;
                };
                assert!(error.kind().is_transient(), "{}: {error:?}", wire.api);
                assert_eq!(answer.message.stop_reason, StopReason::Error, "{}", wire.api);
                assert!(answer.message.text().starts_with("the beginning"), "{}: {:?}", wire.api, answer.message);
            }
        }
    }
}

#[tokio::test]
async fn a_call_that_was_cut_does_not_look_finished() {
    for wire in wires() {
        let call = SaidCall::new("read", json!({"path": "a rather long path that is sent in pieces"})).fragments(6);
        let reply = Reply::from(Said::new().text("I look.").call(call)).cut_after_events(7);
        let setup = Setup::new(wire, |script| script.reply(reply));
        let answer = setup.ask(with_tools(vec![Message::user("go")]), StreamOptions::default()).await;
        if answer.message.stop_reason == StopReason::ToolUse {
            // The wire sends calls whole, and this one came.
            let call = answer.message.tool_calls().next().unwrap();
            assert!(call.arguments["path"].as_str().unwrap().ends_with("pieces"), "{}", wire.api);
        } else {
            assert_eq!(answer.message.stop_reason, StopReason::Error, "{}", wire.api);
        }
    }
}

#[tokio::test]
async fn a_cancelled_answer_ends_at_once_and_the_socket_closes() {
    for wire in wires() {
        let gate = Gate::new();
        let said = Said::new().text("some").text(" text").wait_for(&gate).text("never");
        let setup = Setup::new(wire, |script| script.reply(Reply::from(said).pieces(Pieces::Events)));
        let signal = CancellationToken::new();
        let options = StreamOptions { signal: signal.clone(), ..StreamOptions::default() };
        let mut stream = setup.stream(question(), options);
        let reading = async {
            while stream.partial().text() != "some text" {
                stream.next().await.unwrap();
            }
        };
        tokio::time::timeout(Duration::from_secs(10), reading).await.expect("the text comes");
        signal.cancel();
        let begun = Instant::now();
        let message = stream.result().await;
        assert!(begun.elapsed() < Duration::from_secs(5), "{}", wire.api);
        assert_eq!((message.stop_reason, message.text().as_str()), (StopReason::Aborted, "some text"), "{}", wire.api);
        assert_eq!(setup.server.finished(0).await.outcome, Outcome::ClientLeft, "{}", wire.api);
    }
}

#[tokio::test]
async fn a_cancelled_wait_for_the_first_byte_ends_at_once() {
    for wire in wires() {
        let gate = Gate::new();
        let setup = Setup::new(wire, |script| script.reply(Reply::from("late").hold(&gate)));
        let signal = CancellationToken::new();
        let options = StreamOptions { signal: signal.clone(), ..StreamOptions::default() };
        let stream = setup.stream(question(), options);
        let cancel = async {
            setup.server.request(0).await;
            signal.cancel();
        };
        let (answer, ()) = tokio::join!(finish(wire, &setup.model, stream), cancel);
        assert_eq!(answer.message.stop_reason, StopReason::Aborted, "{}", wire.api);
        assert_eq!(setup.server.finished(0).await.outcome, Outcome::ClientLeft, "{}", wire.api);
    }
}

#[tokio::test]
async fn a_slow_answer_is_waited_for_and_a_silent_one_is_given_up() {
    const IDLE: Duration = Duration::from_millis(400);
    let options = || StreamOptions {
        timeouts: Timeouts { idle: Limit::After(IDLE), ..Timeouts::default() },
        ..StreamOptions::default()
    };
    for wire in wires() {
        // All pauses together are longer than the limit; each of them is not.
        let pause = || IDLE / 4;
        let slow = ["a", "b", "c", "d", "e", "f"].iter().fold(Said::new(), |said, text| said.text(*text).wait(pause()));
        let setup = Setup::new(wire, |script| script.reply(Reply::from(slow).pieces(Pieces::Events)));
        let answer = setup.ask(question(), options()).await;
        assert!(answer.error.is_none(), "{}: {:?}", wire.api, answer.error);
        assert_eq!(answer.message.text(), "abcdef", "{}", wire.api);

        let gate = Gate::new();
        let silent = Said::new().text("a").text("b").wait_for(&gate).text("never");
        let setup = Setup::new(wire, |script| script.reply(Reply::from(silent).pieces(Pieces::Events)));
        let answer = setup.ask(question(), options()).await;
        assert_eq!(answer.error.unwrap().kind(), ErrorKind::Timeout, "{}", wire.api);
        assert_eq!(answer.message.text(), "ab", "{}", wire.api);
    }
}

#[tokio::test]
async fn a_server_that_never_closes_keeps_nobody_waiting() {
    for wire in wires() {
        let setup = Setup::new(wire, |script| script.reply(Reply::from("done").end(End::StayOpen)));
        let begun = Instant::now();
        let answer = setup.ask(question(), StreamOptions::default()).await;
        assert!(answer.error.is_none(), "{}: {:?}", wire.api, answer.error);
        assert_eq!((answer.message.text().as_str(), answer.message.stop_reason), ("done", StopReason::Stop));
        let limit = Duration::from_secs(if wire.has_terminator { 1 } else { 5 });
        assert!(begun.elapsed() < limit, "{}: {:?}", wire.api, begun.elapsed());
        assert_eq!(setup.server.finished(0).await.outcome, Outcome::ClientLeft, "{}: the socket is dropped", wire.api);
    }
}

#[tokio::test]
async fn a_limit_is_told_from_an_end() {
    for wire in wires() {
        let setup = Setup::new(wire, |script| script.reply(Said::new().text("and then").stop(Stop::Length)));
        let answer = setup.ask(question(), StreamOptions::default()).await;
        assert!(answer.error.is_none(), "{}: {:?}", wire.api, answer.error);
        assert_eq!(answer.message.stop_reason, StopReason::Length, "{}", wire.api);

        let setup = Setup::new(wire, |script| script.reply(Said::new().text("No").stop(Stop::Refusal)));
        let answer = setup.ask(question(), StreamOptions::default()).await;
        assert_eq!(answer.message.stop_reason, StopReason::Error, "{}: a refusal is no answer", wire.api);
    }
}
