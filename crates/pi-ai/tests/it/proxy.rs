//! Both ends of the proxy's wire, against each other and against what others send.

use std::sync::Arc;

use futures::StreamExt;
use indexmap::IndexMap;
use pi_ai::api::{Exchange, Progress};
use pi_ai::error::ErrorKind;
use pi_ai::faux::{FauxProvider, FauxReply};
use pi_ai::options::{Continuation, RetryPolicy};
use pi_ai::proxy::{ProxyModel, ProxyRequest, ProxyWire, event_stream};
use pi_ai::stream::MessageBuilder;
use pi_ai::transcript::TranscriptItem;
use pi_ai::{
    AssistantEvent, AssistantMessage, CacheRetention, Context, Message, Model, ProviderError, StopReason, StreamFn,
    StreamOptions, TextContent, ThinkingContent, ThinkingLevel, Timestamp, ToolCall, ToolChoice, ToolDeclaration,
};
use serde_json::json;

fn model() -> Arc<Model> {
    Arc::new(Model { id: "m".into(), name: "M".into(), provider: "acme".into(), api: "x".into(), ..Model::default() })
}

fn exchange(options: StreamOptions) -> Exchange {
    let context = Context {
        system_prompt: Some("be brief".into()),
        tools: vec![ToolDeclaration::new("read", "Reads.", json!({"type": "object"}))],
        ..Context::from(vec![Message::user("go")])
    };
    Exchange::new(Arc::new(ProxyWire::new("http://proxy/").token("t")), model(), context.normalize(), options)
}

/// What a client makes of a body that arrives in these pieces.
fn read<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> (AssistantMessage, Option<ProviderError>) {
    let exchange = exchange(StreamOptions::default());
    let mut answer = MessageBuilder::new(&model(), Timestamp::default());
    let mut reader = exchange.begin(&exchange.encode().unwrap(), &mut answer);
    for piece in pieces {
        reader.push(piece);
        while reader.advance(&mut answer) == Progress::Decoded {}
    }
    reader.finish();
    while reader.advance(&mut answer) == Progress::Decoded {}
    let error = answer.error().cloned();
    (answer.into_message(), error)
}

fn read_events(events: &[serde_json::Value]) -> (AssistantMessage, Option<ProviderError>) {
    let body: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    read([body.as_bytes()])
}

async fn frames(reply: FauxReply) -> Vec<Vec<u8>> {
    let context = Context::from(vec![Message::user("go")]).normalize();
    let answer = FauxProvider::new([reply]).stream(&FauxProvider::model(), context, StreamOptions::default());
    event_stream(answer).collect().await
}

/// What a message says, without who wrote it and when.
fn said(message: &AssistantMessage) -> AssistantMessage {
    AssistantMessage {
        api: "".into(),
        provider: "".into(),
        model: "".into(),
        timestamp: Timestamp::default(),
        duration_ms: None,
        ..message.clone()
    }
}

fn rich_message() -> AssistantMessage {
    let mut call = ToolCall::new("c1", "read", json!({"path": "é", "lines": [1, 2]}));
    call.thought_signature = Some("TS".into());
    AssistantMessage {
        content: vec![
            ThinkingContent { thinking: "hm\nhm".into(), thinking_signature: Some("SIG".into()), redacted: None }
                .into(),
            ThinkingContent {
                thinking: "[hidden]".into(),
                thinking_signature: Some("payload".into()),
                redacted: Some(true),
            }
            .into(),
            TextContent { text: "I shall read. 漢字".into(), text_signature: Some("ts".into()) }.into(),
            call.into(),
            ToolCall::new("c2", "list", json!({})).into(),
        ],
        stop_reason: StopReason::ToolUse,
        response_id: Some("r1".into()),
        provider_thinking_level: Some("high".into()),
        ..AssistantMessage::default()
    }
}

#[tokio::test]
async fn an_answer_arrives_as_it_left_however_its_bytes_are_cut() {
    let sent = FauxProvider::new([FauxReply::message(rich_message())]);
    let context = Context::from(vec![Message::user("go")]).normalize();
    let expected = sent.stream(&FauxProvider::model(), context, StreamOptions::default()).result().await;
    let body = frames(FauxReply::message(rich_message())).await.concat();
    let (whole, error) = read([&body[..]]);
    assert!(error.is_none(), "{error:?}");
    assert_eq!(said(&whole), said(&expected));
    assert_eq!((whole.provider.as_str(), whole.model.as_str()), ("acme", "m"));
    assert_eq!(read(body.chunks(1)).0, whole);
    for cut in 1..body.len() {
        let (before, after) = body.split_at(cut);
        assert_eq!(read([before, after]).0, whole, "cut at {cut}");
    }
}

#[tokio::test]
async fn a_failure_keeps_its_class_and_what_had_come() {
    let failure = ProviderError::new(ErrorKind::RateLimit, "acme is busy")
        .with_response(429, vec![("x-secret".into(), "s3".into())], "the body")
        .with_retry_after(std::time::Duration::from_secs(7));
    let body = frames(FauxReply::text("half").then_fail(failure)).await.concat();
    let text = String::from_utf8(body.clone()).unwrap();
    assert!(!text.contains("s3") && !text.contains("the body"), "what the provider sent stays with the server: {text}");
    let (message, error) = read([&body[..]]);
    let error = error.unwrap();
    assert_eq!((error.kind(), error.message()), (ErrorKind::RateLimit, "acme is busy"));
    assert_eq!(error.retry_after(), Some(std::time::Duration::from_secs(7)));
    assert_eq!((message.text().as_str(), message.stop_reason), ("half", StopReason::Error));
}

#[tokio::test]
async fn a_client_always_learns_how_an_answer_ended() {
    let cut = futures::stream::iter([AssistantEvent::Start, AssistantEvent::TextStart { index: 0 }]);
    let body = event_stream(cut).collect::<Vec<_>>().await.concat();
    let (message, error) = read([&body[..]]);
    assert_eq!((message.stop_reason, error.unwrap().kind()), (StopReason::Error, ErrorKind::Protocol));

    let start = json!({"type": "text_start", "contentIndex": 0});
    let (message, error) = read_events(&[start, json!({"type": "text_delta", "contentIndex": 0, "delta": "x"})]);
    assert_eq!((message.text().as_str(), error.unwrap().kind()), ("x", ErrorKind::Protocol));

    let (message, _) =
        read_events(&[json!({"type": "error", "reason": "aborted", "errorMessage": "stop", "usage": {}})]);
    assert_eq!(message.stop_reason, StopReason::Aborted);
    let (_, error) = read_events(&[json!({"type": "error", "reason": "error", "errorMessage": "overloaded"})]);
    assert_eq!(error.unwrap().kind(), ErrorKind::Overloaded);
}

#[test]
fn servers_of_others_may_say_less() {
    let events = [
        json!({"type": "start"}),
        json!({"type": "thinking_start", "contentIndex": 0}),
        json!({"type": "thinking_delta", "contentIndex": 0, "delta": "t"}),
        json!({"type": "thinking_end", "contentIndex": 0, "contentSignature": "s"}),
        json!({"type": "text_start", "contentIndex": 1}),
        json!({"type": "text_delta", "contentIndex": 1, "delta": "hi"}),
        json!({"type": "text_end", "contentIndex": 1}),
        json!({"type": "toolcall_start", "contentIndex": 2, "id": "c", "toolName": "read"}),
        json!({"type": "toolcall_delta", "contentIndex": 2, "delta": "{\"a\":1}"}),
        json!({"type": "toolcall_end", "contentIndex": 2}),
        json!({"type": "something_new", "contentIndex": 9}),
        json!({"type": "done", "reason": "toolUse", "usage": {"input": 3, "output": 4, "totalTokens": 7}}),
    ];
    // One line each, without blank lines between them, and none at the end.
    let lines: Vec<String> = events.iter().map(|event| format!("data: {event}")).collect();
    let (message, error) = read([lines.join("\n").as_bytes()]);
    assert!(error.is_none(), "{error:?}");
    assert_eq!(message.text(), "hi");
    let call = message.tool_calls().next().unwrap();
    assert_eq!((call.name.as_str(), &call.arguments["a"]), ("read", &json!(1)));
    assert_eq!((message.usage.total_tokens, message.stop_reason), (7, StopReason::ToolUse));
}

#[test]
fn events_out_of_order_are_an_error_and_not_a_hole() {
    let start = |index: u64| json!({"type": "text_start", "contentIndex": index});
    for events in [
        vec![start(1)],
        vec![start(4_000_000_000)],
        vec![start(0), json!({"type": "thinking_delta", "contentIndex": 0, "delta": "x"})],
        vec![start(0), json!({"type": "text_delta", "contentIndex": 1, "delta": "x"})],
        vec![start(0), json!({"type": "text_delta", "contentIndex": "__proto__", "delta": "x"})],
        vec![json!({"type": "done"})],
        vec![json!({"type": "done", "reason": "error"})],
    ] {
        let (_, error) = read_events(&events);
        assert_eq!(error.map(|error| error.kind()), Some(ErrorKind::Protocol), "{events:?}");
    }
}

#[test]
fn a_server_reads_what_a_client_sent() {
    let options = StreamOptions {
        temperature: Some(0.5),
        max_tokens: Some(9),
        reasoning: Some(ThinkingLevel::High),
        cache_retention: CacheRetention::Long,
        session_id: Some("s".into()),
        continuation: Continuation::Disabled,
        headers: IndexMap::from([("x-a".to_owned(), Some("1".to_owned())), ("x-b".to_owned(), None)]),
        metadata: json!({"user_id": "u"}).as_object().cloned(),
        sampling_params: json!({"top_p": 0.9}).as_object().cloned(),
        tool_choice: Some(ToolChoice::Auto),
        thinking_budgets: IndexMap::from([(ThinkingLevel::Low, 5)]),
        retry: RetryPolicy { max_delay: None, ..RetryPolicy::default() },
        api_key: Some("never to the proxy".into()),
        ..StreamOptions::default()
    };
    let sent = exchange(options.clone()).encode().unwrap();
    assert_eq!(sent.url, "http://proxy/api/stream");
    assert!(sent.headers.contains(&("authorization".into(), "Bearer t".into())));
    assert!(!String::from_utf8_lossy(&sent.body).contains("never to the proxy"));
    let ProxyRequest { model: asked, context, options: taken } = ProxyRequest::read(&sent.body).unwrap();
    assert_eq!(asked, ProxyModel::Whole(Box::new((*model()).clone())));
    let context = context.normalize();
    assert_eq!(context.messages().len(), 2);
    assert_eq!(context.messages()[0].as_system().unwrap().tools_added[0].name, "read");
    let signal = options.signal.clone();
    let expected = StreamOptions { api_key: None, signal: signal.clone(), ..options };
    assert_eq!(format!("{:?}", StreamOptions { signal, ..taken }), format!("{expected:?}"));
}

#[test]
fn a_server_takes_prompt_and_tools_beside_the_messages_and_a_model_by_its_id() {
    let body = json!({
        "model": "m",
        "context": {"systemPrompt": "p", "messages": [{"role": "user", "content": "go", "timestamp": 1}], "tools": []},
    });
    let request = ProxyRequest::read(body.to_string().as_bytes()).unwrap();
    assert_eq!(request.model.id().as_str(), "m");
    assert_eq!(request.context.normalize().messages().len(), 2);
    for bad in ["", "[]", "{}", r#"{"model": 1}"#, r#"{"model": "m", "context": {"messages": [{"role": "wizard"}]}}"#] {
        let error = ProxyRequest::read(bad.as_bytes()).unwrap_err();
        assert!(error.to_string().contains("{model, context, options}"), "{bad}: {error}");
    }
}
