use fake_llm::{Answer, Gate, Pieces, Reply, Script, Server, Stop, ToolCall, Usage, Wire};
use serde_json::{Value, json};

use crate::client::{Client, chat, message};

/// The JSON of each `data:` line.
fn events(body: &str) -> Vec<Value> {
    let data = body.lines().filter_map(|line| line.strip_prefix("data: "));
    data.filter_map(|data| serde_json::from_str(data).ok()).collect()
}

#[test]
fn an_openai_client_reads_text_calls_and_usage() {
    let answer = Answer::new()
        .thinking("hm")
        .text("Hel")
        .text("lo")
        .call(ToolCall::new("read", json!({"path": "ä.txt"})).fragments(3))
        .usage(Usage { input: 7, output: 5, cache_read: 3, ..Usage::default() });
    let server = Server::start(Script::new(Wire::OpenAiCompletions).reply(answer));
    let response = Client::connect(&server).post("/v1/chat/completions", &chat("hi"));
    assert_eq!(response.status, 200);
    assert_eq!(response.header("content-type"), Some("text/event-stream"));
    assert!(response.text().ends_with("data: [DONE]\n\n"));
    let events = events(&response.text());
    let joined =
        |pointer: &str| -> String { events.iter().filter_map(|event| event.pointer(pointer)?.as_str()).collect() };
    assert_eq!(joined("/choices/0/delta/reasoning_content"), "hm");
    assert_eq!(joined("/choices/0/delta/content"), "Hello");
    assert_eq!(joined("/choices/0/delta/tool_calls/0/id"), "call_0_0");
    assert_eq!(joined("/choices/0/delta/tool_calls/0/function/name"), "read");
    assert_eq!(joined("/choices/0/delta/tool_calls/0/function/arguments"), r#"{"path":"ä.txt"}"#);
    assert_eq!(joined("/choices/0/finish_reason"), "tool_calls");
    let usage = &events.last().unwrap()["usage"];
    assert_eq!(usage["prompt_tokens"], 10);
    assert_eq!(usage["prompt_tokens_details"]["cached_tokens"], 3);
    assert_eq!(usage["total_tokens"], 15);
}

#[test]
fn an_anthropic_client_reads_blocks_in_order() {
    let answer = Answer::new().thinking("hm").text("Hello").tool_call("read", json!({"path": "a"})).stop(Stop::Length);
    let server = Server::start(Script::new(Wire::AnthropicMessages).reply(answer));
    let response = Client::connect(&server).post("/v1/messages?beta=true", &message("hi"));
    let events = events(&response.text());
    let outline: Vec<String> = events
        .iter()
        .map(|event| {
            let kind = event["type"].as_str().unwrap();
            let inner = event["content_block"]["type"].as_str().or(event["delta"]["type"].as_str());
            match (event["index"].as_u64(), inner) {
                (Some(index), Some(inner)) => format!("{index} {kind} {inner}"),
                (Some(index), None) => format!("{index} {kind}"),
                _ => kind.to_owned(),
            }
        })
        .collect();
    assert_eq!(
        outline,
        [
            "message_start",
            "0 content_block_start thinking",
            "0 content_block_delta thinking_delta",
            "0 content_block_delta signature_delta",
            "0 content_block_stop",
            "1 content_block_start text",
            "1 content_block_delta text_delta",
            "1 content_block_stop",
            "2 content_block_start tool_use",
            "2 content_block_delta input_json_delta",
            "2 content_block_stop",
            "message_delta",
            "message_stop",
        ]
    );
    assert_eq!(events[0]["message"]["model"], "m");
    assert_eq!(events[11]["delta"]["stop_reason"], "max_tokens");
    assert_eq!(events[11]["usage"]["output_tokens"], 20);
}

#[test]
fn a_provider_error_has_the_wire_s_own_body_and_headers() {
    let limited = || Reply::error(429, "slow down").header("retry-after", "2");
    let server = Server::start(Script::any_wire().replies([limited(), limited()]));
    let mut client = Client::connect(&server);
    let openai = client.post("/v1/chat/completions", &chat("hi"));
    assert_eq!((openai.status, openai.header("retry-after")), (429, Some("2")));
    let body: Value = serde_json::from_str(&openai.text()).unwrap();
    assert_eq!(body["error"]["message"], "slow down");
    let anthropic = client.post("/v1/messages", &message("hi"));
    let body: Value = serde_json::from_str(&anthropic.text()).unwrap();
    assert_eq!(body["error"]["type"], "rate_limit_error");
}

#[test]
fn replies_go_out_in_order_and_conditional_ones_use_up_none() {
    let script = Script::new(Wire::OpenAiCompletions)
        .when(|request| request.last_text() == "title?", "A title")
        .replies(["one", "two"])
        .otherwise("more");
    let server = Server::start(script);
    let mut client = Client::connect(&server);
    let mut ask = |text: &str| -> String {
        let response = client.post("/v1/chat/completions", &chat(text));
        let contents = events(&response.text()).into_iter();
        contents.filter_map(|event| Some(event.pointer("/choices/0/delta/content")?.as_str()?.to_owned())).collect()
    };
    let texts = ["a", "title?", "b", "c", "d"].map(&mut ask);
    assert_eq!(texts, ["one", "A title", "two", "more", "more"]);
    assert_eq!(server.remaining(), 0);
    server.push("pushed");
    assert_eq!(ask("e"), "pushed");
}

#[test]
fn a_body_arrives_in_exactly_the_pieces_asked_for() {
    let raw = Reply::raw(200, "text/event-stream", "data: ä\n\n").pieces(Pieces::At(vec![1, 7]));
    let per_event = Reply::data_events(["1", "2"]).pieces(Pieces::Events);
    let server = Server::start(Script::new(Wire::OpenAiCompletions).replies([raw, per_event]));
    let mut client = Client::connect(&server);
    let cut = client.post("/v1/chat/completions", &chat("hi"));
    // The second cut is inside the two bytes of `ä`.
    assert_eq!(cut.chunks, ["d", "ata: \u{fffd}", "\u{fffd}\n\n"]);
    let whole = client.post("/v1/chat/completions", &chat("hi"));
    assert_eq!(whole.chunks, ["data: 1\n\n", "data: 2\n\n"]);
}

#[test]
fn what_follows_a_gate_waits_until_the_test_opens_it() {
    let gate = Gate::new();
    let answer = Answer::new().text("before").wait_for(&gate).text("after");
    let server = Server::start(Script::new(Wire::OpenAiCompletions).reply(answer));
    let mut client = Client::connect(&server);
    client.send("/v1/chat/completions", &chat("hi").to_string());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let pending = runtime.block_on(server.request(0));
    assert_eq!(pending.outcome, fake_llm::Outcome::Pending);
    gate.open();
    let response = client.receive();
    assert!(response.text().contains("after"));
    assert_eq!(runtime.block_on(server.finished(0)).outcome, fake_llm::Outcome::Sent);
}

#[test]
fn a_huge_answer_is_encoded_once_and_streamed_in_large_pieces() {
    let deltas = (0..50_000).map(|number| format!("{number} "));
    let server = Server::start(Script::new(Wire::OpenAiCompletions).otherwise(Answer::new().text_deltas(deltas)));
    let mut client = Client::connect(&server);
    let first = client.post("/v1/chat/completions", &chat("hi"));
    let second = client.post("/v1/chat/completions", &chat("hi"));
    assert_eq!(first.text(), second.text());
    assert_eq!(events(&first.text()).len(), 50_003);
    assert!(first.chunks.iter().all(|chunk| chunk.len() <= 16 * 1024));
}

/// What a client of each wire reads out of the same answer: texts, thinking, call arguments, the stop reason.
#[test]
fn one_answer_can_be_told_on_every_wire() {
    let answer = || Answer::new().thinking("hm").text("Hel").text("lo").tool_call("read", json!({"path": "a"}));
    let responses = json!({"model": "m", "stream": true, "input": [{"role": "user", "content": "hi"}]});
    let google = json!({"contents": [{"role": "user", "parts": [{"text": "hi"}]}]});
    let cases = [
        (
            Wire::OpenAiResponses,
            "/v1/responses",
            responses,
            [
                ("/delta", "hmHello{\"path\":\"a\"}"),
                ("/response/status", "in_progresscompleted"),
                ("/response/output/2/name", "read"),
                ("/response/model", "mm"),
            ],
        ),
        (
            Wire::GoogleGenerativeAi,
            "/v1beta/models/m:streamGenerateContent?alt=sse",
            google,
            [
                ("/candidates/0/content/parts/0/text", "hmHello"),
                ("/candidates/0/content/parts/0/functionCall/args/path", "a"),
                ("/candidates/0/finishReason", "STOP"),
                ("/modelVersion", "mmmmm"),
            ],
        ),
        (
            Wire::MistralConversations,
            "/v1/chat/completions",
            chat("hi"),
            [
                ("/choices/0/delta/content/0/thinking/0/text", "hm"),
                ("/choices/0/delta/content", "Hello"),
                ("/choices/0/delta/tool_calls/0/function/arguments", "{\"path\":\"a\"}"),
                ("/choices/0/finish_reason", "tool_calls"),
            ],
        ),
    ];
    for (wire, path, body, expected) in cases {
        let server = Server::start(Script::new(wire).reply(answer()));
        let response = Client::connect(&server).post(path, &body);
        assert_eq!(response.status, 200, "{wire:?}: {}", response.text());
        let events = events(&response.text());
        for (pointer, text) in expected {
            let found: String = events.iter().filter_map(|event| event.pointer(pointer)?.as_str()).collect();
            assert_eq!(found, text, "{wire:?} {pointer}");
        }
        assert_eq!(server.requests()[0].wire, Some(wire));
        assert_eq!(server.requests()[0].last_text(), "hi");
    }
}
