use fake_llm::{Alternation, LaterSystem, Rules, Script, Server, Signatures, UnknownFields, Wire};
use serde_json::{Value, json};

use crate::client::{Client, chat};

/// What is wrong with these messages, as `place: what`.
fn problems_under(wire: Wire, rules: Rules, messages: Value) -> Vec<String> {
    let body = json!({"model": "m", "stream": true, "max_tokens": 100, "messages": messages});
    problems_of(wire, rules, &body)
}

fn problems_of(wire: Wire, rules: Rules, body: &Value) -> Vec<String> {
    let violations = wire.check_body(body, &rules);
    violations.into_iter().map(|found| format!("{}: {}", found.at, found.what)).collect()
}

fn openai(messages: Value) -> Vec<String> {
    problems_under(Wire::OpenAiCompletions, Rules::default(), messages)
}

fn anthropic(messages: Value) -> Vec<String> {
    problems_under(Wire::AnthropicMessages, Rules::default(), messages)
}

fn openai_call(ids: &[&str]) -> Value {
    let calls: Vec<Value> = ids
        .iter()
        .map(|id| json!({"id": id, "type": "function", "function": {"name": "read", "arguments": "{}"}}))
        .collect();
    json!({"role": "assistant", "content": null, "tool_calls": calls})
}

fn openai_result(id: &str) -> Value {
    json!({"role": "tool", "tool_call_id": id, "content": "ok"})
}

fn anthropic_call(ids: &[&str]) -> Value {
    let calls: Vec<Value> =
        ids.iter().map(|id| json!({"type": "tool_use", "id": id, "name": "read", "input": {}})).collect();
    json!({"role": "assistant", "content": calls})
}

fn anthropic_result(id: &str) -> Value {
    json!({"type": "tool_result", "tool_use_id": id, "content": "ok"})
}

fn user() -> Value {
    json!({"role": "user", "content": "hi"})
}

const NONE: [&str; 0] = [];

#[test]
fn openai_calls_and_results_must_pair_up() {
    let fine = json!([user(), openai_call(&["a", "b"]), openai_result("b"), openai_result("a"), user()]);
    assert_eq!(openai(fine), NONE);
    assert_eq!(
        openai(json!([user(), openai_call(&["a", "b"]), openai_result("a"), user()])),
        ["messages[3]: the call `b` before this has no result"]
    );
    assert_eq!(
        openai(json!([user(), openai_call(&["a"])])),
        ["the end of messages: the call `a` before this has no result"]
    );
    assert_eq!(
        openai(json!([user(), openai_result("a")])),
        ["messages[1]: a result for `a`, which the message before it does not call"]
    );
    assert_eq!(
        openai(json!([user(), openai_call(&["a"]), openai_result("a"), openai_result("a")])),
        ["messages[3]: a second result for the call `a`"]
    );
    assert_eq!(openai(json!([user(), openai_call(&["a", "a"]), openai_result("a")])).len(), 2);
}

#[test]
fn anthropic_calls_and_results_must_pair_up() {
    let results = |ids: &[&str]| -> Value {
        let blocks: Vec<Value> = ids.iter().map(|id| anthropic_result(id)).collect();
        json!({"role": "user", "content": blocks})
    };
    assert_eq!(anthropic(json!([user(), anthropic_call(&["a", "b"]), results(&["b", "a"])])), NONE);
    // The service joins neighbours of one role, so results may be spread over two messages.
    assert_eq!(anthropic(json!([user(), anthropic_call(&["a", "b"]), results(&["b"]), results(&["a"])])), NONE);
    assert_eq!(
        anthropic(json!([user(), anthropic_call(&["a"]), user()])),
        ["messages[2]: the call `a` before this has no result"]
    );
    assert_eq!(
        anthropic(json!([user(), results(&["a"])])),
        ["messages[1].content[0]: a result for `a`, which the message before it does not call"]
    );
    assert_eq!(
        anthropic(json!([user(), anthropic_call(&["a"]), results(&["a", "a"])])),
        ["messages[2].content[1]: a second result for the call `a`"]
    );
    let late = json!({"role": "user", "content": [{"type": "text", "text": "x"}, anthropic_result("a")]});
    assert_eq!(
        anthropic(json!([user(), anthropic_call(&["a"]), late]))[0],
        "messages[2].content[1]: a tool result after other content"
    );
}

#[test]
fn responses_calls_and_outputs_must_pair_up() {
    let problems = |input: Value| {
        let body = json!({"model": "m", "stream": true, "store": false, "input": input});
        problems_of(Wire::OpenAiResponses, Rules::default(), &body)
    };
    let call = |id: &str| json!({"type": "function_call", "call_id": id, "name": "read", "arguments": "{}"});
    let output = |id: &str| json!({"type": "function_call_output", "call_id": id, "output": "ok"});
    assert_eq!(problems(json!([user(), call("a"), call("b"), output("b"), output("a"), user()])), NONE);
    assert_eq!(problems(json!([user(), call("a")])), ["the end of input: the call `a` before this has no result"]);
    assert_eq!(
        problems(json!([user(), call("a"), output("a"), output("a")])),
        ["input[3]: a second result for the call `a`"]
    );
    assert_eq!(
        problems(json!([user(), output("a")])),
        ["input[1]: a result for `a`, which the message before it does not call"]
    );
    let reasoning = json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"});
    assert_eq!(problems(json!([user(), reasoning, call("a"), output("a")])), NONE);
    assert_eq!(
        problems(json!([user(), reasoning, user()])),
        ["input[2]: the reasoning before this has no message or call after it"]
    );
    let plain = json!({"type": "reasoning", "id": "rs_1", "summary": []});
    assert_eq!(
        problems(json!([user(), plain, call("a"), output("a")])),
        ["input[1]: reasoning that is neither stored nor encrypted"]
    );
}

#[test]
fn google_calls_and_responses_must_pair_up() {
    let problems =
        |contents: Value| problems_of(Wire::GoogleGenerativeAi, Rules::default(), &json!({"contents": contents}));
    let turn = |role: &str, parts: Value| json!({"role": role, "parts": parts});
    let call = json!({"functionCall": {"id": "a", "name": "read", "args": {}}});
    let response = json!({"functionResponse": {"id": "a", "name": "read", "response": {"output": "ok"}}});
    let go = turn("user", json!([{"text": "go"}]));
    assert_eq!(problems(json!([go, turn("model", json!([call])), turn("user", json!([response]))])), NONE);
    assert_eq!(
        problems(json!([go, turn("model", json!([call])), go])),
        ["contents[2]: the call of `read` before this has no response"]
    );
    assert_eq!(
        problems(json!([go, turn("user", json!([response]))])),
        ["contents[1].parts[0]: a response for `read`, which the turn before it does not call"]
    );
    assert_eq!(
        problems(json!([turn("user", json!([call]))]))[0],
        "contents[0].parts[0]: a part with [\"functionCall\"] in a turn of `user`"
    );
}

#[test]
fn mistral_wants_ids_of_nine_characters() {
    let problems = |messages: Value| problems_under(Wire::MistralConversations, Rules::default(), messages);
    let call = |id: &str| openai_call(&[id]);
    assert_eq!(problems(json!([user(), call("abcdefghi"), openai_result("abcdefghi")])), NONE);
    assert_eq!(
        problems(json!([user(), call("call_1"), openai_result("call_1")])),
        ["messages[1].tool_calls[0].id: expected nine letters and digits"]
    );
    assert_eq!(
        problems(json!([user(), call("abcdefghi"), user()])),
        ["messages[2]: the call `abcdefghi` before this has no result"]
    );
}

#[test]
fn blocks_that_a_service_refuses_are_refused() {
    let thinking = json!({"role": "assistant", "content": [{"type": "thinking", "thinking": "hm"}]});
    assert_eq!(openai(json!([user(), thinking])).len(), 1);
    let unsigned = json!({"role": "assistant", "content": [{"type": "thinking", "thinking": "hm", "signature": ""}]});
    let messages = json!([user(), unsigned, user()]);
    assert_eq!(anthropic(messages.clone()), ["messages[1].content[0]: a thinking block without its signature"]);
    let lenient = Rules { signatures: Signatures::MayBeEmpty, ..Rules::default() };
    assert_eq!(problems_under(Wire::AnthropicMessages, lenient, messages), NONE);
    assert_eq!(anthropic(json!([{"role": "user", "content": [{"type": "text", "text": " "}]}])).len(), 1);
    assert_eq!(anthropic(json!([{"role": "user", "content": []}])).len(), 1);
    assert_eq!(anthropic(json!([user(), {"role": "assistant", "content": "x"}])).len(), 1);
    let bmp = json!({"type": "image", "source": {"type": "base64", "media_type": "image/bmp", "data": "Qk0="}});
    assert_eq!(anthropic(json!([{"role": "user", "content": [bmp]}])).len(), 1);
    let broken = json!({"id": "a", "type": "function", "function": {"name": "read", "arguments": "{\"pa"}});
    let call = json!({"role": "assistant", "tool_calls": [broken]});
    assert_eq!(
        openai(json!([user(), call, openai_result("a")])),
        ["messages[1].tool_calls[0].function.arguments: expected a JSON object as text"]
    );
}

#[test]
fn the_switches_switch() {
    let strict_turns = Rules { alternation: Alternation::Strict, ..Rules::default() };
    let two_users = json!([user(), user()]);
    for wire in [Wire::OpenAiCompletions, Wire::AnthropicMessages] {
        assert_eq!(problems_under(wire, Rules::default(), two_users.clone()), NONE);
        assert_eq!(
            problems_under(wire, strict_turns, two_users.clone()),
            ["messages[1]: two `user` messages in a row"]
        );
    }

    let late_system = json!([user(), {"role": "system", "content": "x"}, user()]);
    assert_eq!(openai(late_system.clone()), ["messages[1]: a system message after the first turn"]);
    let later_allowed = Rules { later_system: LaterSystem::Allowed, ..Rules::default() };
    assert_eq!(problems_under(Wire::OpenAiCompletions, later_allowed, late_system), NONE);

    let known_only = Rules { unknown_fields: UnknownFields::Refused, ..Rules::default() };
    let mut body = chat("hi");
    body["top_k"] = json!(3);
    body["messages"][0]["timestamp"] = json!(1);
    assert_eq!(problems_of(Wire::OpenAiCompletions, Rules::default(), &body), NONE);
    assert_eq!(
        problems_of(Wire::OpenAiCompletions, known_only, &body),
        ["body: unknown field `top_k`", "messages[0]: unknown field `timestamp`"]
    );
}

#[test]
fn tools_must_be_declared_as_the_service_wants_them() {
    let mut body = chat("hi");
    let tool = json!({"type": "function", "function": {"name": "a b", "parameters": {}}});
    body["tools"] = json!([tool, tool]);
    assert_eq!(
        problems_of(Wire::OpenAiCompletions, Rules::default(), &body),
        [
            "tools[0].function.name: expected at most 64 of [A-Za-z0-9_-], found `a b`",
            "tools[1].function.name: expected at most 64 of [A-Za-z0-9_-], found `a b`",
            "tools: `a b` twice",
        ]
    );
    let mut body = json!({"model": "m", "stream": true, "max_tokens": 1, "messages": [user()]});
    body["tools"] = json!([{"name": "a", "input_schema": {"type": "string"}}]);
    assert_eq!(problems_of(Wire::AnthropicMessages, Rules::default(), &body).len(), 1);
    let marked: Vec<Value> = (0..5)
        .map(|number| json!({"name": format!("t{number}"), "input_schema": {"type": "object"}, "cache_control": {"type": "ephemeral"}}))
        .collect();
    body["tools"] = json!(marked);
    assert_eq!(
        problems_of(Wire::AnthropicMessages, Rules::default(), &body),
        ["body: 5 cache markers, at most 4 are accepted"]
    );
}

#[test]
fn a_refused_request_gets_status_400_and_says_why() {
    let server = Server::start(Script::new(Wire::OpenAiCompletions).reply("never sent"));
    let mut body = chat("hi");
    body["messages"] = json!([user(), openai_result("a")]);
    let response = Client::connect(&server).post("/v1/chat/completions", &body);
    assert_eq!(response.status, 400);
    assert!(response.text().contains("which the message before it does not call"));
    assert_eq!(server.take_violations().len(), 1);
    assert_eq!(server.remaining(), 1);
}

#[test]
fn a_request_that_nobody_expected_is_a_violation() {
    let server = Server::start(Script::new(Wire::OpenAiCompletions));
    let mut client = Client::connect(&server);
    assert_eq!(client.post("/v1/chat/completions", &chat("hi")).status, 500);
    assert_eq!(client.post("/v1/elsewhere", &chat("hi")).status, 404);
    client.send("/v1/chat/completions", "\"\\ud800\"");
    assert_eq!(client.receive().status, 400);
    assert_eq!(server.take_violations().len(), 3);
}

#[test]
#[should_panic(expected = "what a service would refuse")]
fn a_violation_that_nobody_took_fails_the_test() {
    let server = Server::start(Script::new(Wire::AnthropicMessages));
    Client::connect(&server).post("/v1/messages", &json!({}));
}
