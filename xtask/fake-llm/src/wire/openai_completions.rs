//! OpenAI chat completions.

use serde_json::{Value, json};

use super::check::kind;
use super::{Asked, Check, Dialect, Pairing};
use crate::answer::{Answer, Part, Stop, Usage};
use crate::reply::Step;
use crate::request::Request;
use crate::rules::{Alternation, LaterSystem};

/// The longest tool name the service takes.
const TOOL_NAME_LIMIT: usize = 64;

const TOP_FIELDS: &[&str] = &[
    "audio",
    "frequency_penalty",
    "logit_bias",
    "logprobs",
    "max_completion_tokens",
    "max_tokens",
    "messages",
    "metadata",
    "modalities",
    "model",
    "n",
    "parallel_tool_calls",
    "prediction",
    "presence_penalty",
    "prompt_cache_key",
    "prompt_cache_retention",
    "reasoning_effort",
    "response_format",
    "safety_identifier",
    "seed",
    "service_tier",
    "stop",
    "store",
    "stream",
    "stream_options",
    "temperature",
    "tool_choice",
    "tools",
    "top_logprobs",
    "top_p",
    "user",
    "verbosity",
    "web_search_options",
];

pub(crate) struct OpenAiCompletions;

impl Dialect for OpenAiCompletions {
    fn name(&self) -> &'static str {
        "openai-completions"
    }

    fn base_path(&self) -> &'static str {
        "/v1"
    }

    fn owns(&self, path: &str) -> bool {
        path.ends_with("/chat/completions")
    }

    fn steps(&self, answer: &Answer, asked: &Asked<'_>) -> Vec<Step> {
        Encoder::new(answer, asked).run(answer, asked)
    }

    fn error_body(&self, status: u16, message: &str) -> Value {
        let kind = match status {
            400..=499 => "invalid_request_error",
            _ => "server_error",
        };
        json!({"error": {"message": message, "type": kind, "param": null, "code": null}})
    }

    fn check_head(&self, request: &Request, check: &mut Check) {
        let bearer = request.header("authorization").is_none_or(|value| value.starts_with("Bearer "));
        check.require(bearer, "head", "`authorization` is not a bearer token");
    }

    fn check(&self, body: &Value, check: &mut Check) {
        check.fields(body, TOP_FIELDS, "body");
        check.text(&body["model"], "model");
        check.require(body["stream"] == true, "stream", "expected true: this server only streams");
        let limits = ["max_tokens", "max_completion_tokens"];
        for limit in limits.into_iter().filter(|limit| body.get(*limit).is_some()) {
            let positive = body[limit].as_u64().is_some_and(|tokens| tokens > 0);
            check.require(positive, limit, "expected a positive integer");
        }
        check_tools(body, check);
        check_messages(check.list(&body["messages"], "messages"), check);
    }
}

fn check_tools(body: &Value, check: &mut Check) {
    let Some(tools) = body.get("tools") else {
        let choice = body.get("tool_choice").is_none();
        return check.require(choice, "tool_choice", "a choice without `tools`");
    };
    check_tool_list(tools, "tools", check);
}

fn check_tool_list(tools: &Value, at: &str, check: &mut Check) {
    let mut names = Vec::new();
    let Some(tools) = tools.as_array() else {
        return check.fail(at, format!("expected a list, found {}", kind(tools)));
    };
    for (index, tool) in tools.iter().enumerate() {
        let at = format!("{at}[{index}]");
        match tool["type"].as_str() {
            Some("function") => {
                let function = &tool["function"];
                names.extend(check.identifier(&function["name"], TOOL_NAME_LIMIT, &format!("{at}.function.name")));
                check.object(&function["parameters"], &format!("{at}.function.parameters"));
                let known = ["name", "description", "parameters", "strict"];
                check.fields(function, &known, &format!("{at}.function"));
            }
            Some("custom") => {
                names.extend(check.identifier(&tool["custom"]["name"], TOOL_NAME_LIMIT, &format!("{at}.custom.name")));
            }
            _ => check.fail(&at, "expected the type `function` or `custom`"),
        }
        check.fields(tool, &["type", "function", "custom"], &at);
    }
    check.unique(&names, at);
}

fn check_messages(messages: &[Value], check: &mut Check) {
    let mut pairing = Pairing::default();
    let mut previous = None;
    for (index, message) in messages.iter().enumerate() {
        let at = format!("messages[{index}]");
        let role = message["role"].as_str().unwrap_or_default();
        if role != "tool" {
            pairing.close(&at, check);
        }
        match role {
            "system" | "developer" => check_system(message, previous, &at, check),
            "user" => check_user(message, &at, check),
            "assistant" => check_assistant(message, &at, &mut pairing, check),
            "tool" => check_result(message, &at, &mut pairing, check),
            other => check.fail(&at, format!("unknown role `{other}`")),
        }
        check_turn(role, previous, &at, check);
        if !matches!(role, "system" | "developer") {
            previous = Some(role);
        }
    }
    pairing.close("the end of messages", check);
}

fn check_turn(role: &str, previous: Option<&str>, at: &str, check: &mut Check) {
    if check.rules.alternation == Alternation::Free {
        return;
    }
    match (previous, role) {
        (None, "assistant" | "tool") => check.fail(at, "the first turn is not the user's"),
        (Some("user"), "user") | (Some("assistant"), "assistant") => {
            check.fail(at, format!("two `{role}` messages in a row"));
        }
        _ => {}
    }
}

fn check_system(message: &Value, previous: Option<&str>, at: &str, check: &mut Check) {
    if previous.is_some() && check.rules.later_system == LaterSystem::Refused {
        check.fail(at, "a system message after the first turn");
    }
    check.fields(message, &["role", "content", "name"], at);
    // Vendors with later tool additions send a system message that holds tools only.
    match message.get("tools") {
        Some(tools) if previous.is_some() => check_tool_list(tools, &format!("{at}.tools"), check),
        _ => check_content(message, &["text"], at, check),
    }
}

fn check_user(message: &Value, at: &str, check: &mut Check) {
    check.fields(message, &["role", "content", "name"], at);
    check_content(message, &["text", "image_url", "input_audio", "file"], at, check);
}

fn check_assistant(message: &Value, at: &str, pairing: &mut Pairing, check: &mut Check) {
    let known = ["role", "content", "name", "refusal", "audio", "tool_calls"];
    check.fields(message, &known, at);
    let calls = message.get("tool_calls");
    match &message["content"] {
        Value::Null => check.require(calls.is_some(), at, "neither content nor tool calls"),
        Value::String(text) if text.is_empty() => {
            check.require(calls.is_some(), at, "empty content and no tool calls");
        }
        _ => check_content(message, &["text", "refusal"], at, check),
    }
    let Some(calls) = calls else { return };
    let mut ids = Vec::new();
    for (index, call) in check.list(calls, &format!("{at}.tool_calls")).iter().enumerate() {
        let at = format!("{at}.tool_calls[{index}]");
        ids.extend(check.text(&call["id"], &format!("{at}.id")).map(str::to_owned));
        match call["type"].as_str() {
            Some("function") => {
                check.identifier(&call["function"]["name"], TOOL_NAME_LIMIT, &format!("{at}.function.name"));
                let arguments = &call["function"]["arguments"];
                let parsed = arguments.as_str().map(serde_json::from_str::<Value>);
                let object = matches!(parsed, Some(Ok(Value::Object(_))));
                check.require(object, &format!("{at}.function.arguments"), "expected a JSON object as text");
            }
            Some("custom") => {
                check.identifier(&call["custom"]["name"], TOOL_NAME_LIMIT, &format!("{at}.custom.name"));
            }
            _ => check.fail(&at, "expected the type `function` or `custom`"),
        }
    }
    pairing.calls(ids, at, check);
}

fn check_result(message: &Value, at: &str, pairing: &mut Pairing, check: &mut Check) {
    check.fields(message, &["role", "content", "tool_call_id"], at);
    check_content(message, &["text"], at, check);
    if let Some(id) = check.text(&message["tool_call_id"], &format!("{at}.tool_call_id")) {
        pairing.result(id, at, check);
    }
}

/// Text, or a list of blocks of these types.
fn check_content(message: &Value, types: &[&str], at: &str, check: &mut Check) {
    let content = &message["content"];
    if content.is_string() {
        return;
    }
    for (index, block) in check.list(content, &format!("{at}.content")).iter().enumerate() {
        let at = format!("{at}.content[{index}]");
        let found = block["type"].as_str().unwrap_or_default();
        if !types.contains(&found) {
            check.fail(&at, format!("a block of type `{found}`, expected one of {types:?}"));
            continue;
        }
        match found {
            "text" => check.require(block["text"].is_string(), &at, "a text block without `text`"),
            "image_url" => check_image(&block["image_url"]["url"], &at, check),
            _ => {}
        }
    }
}

fn check_image(url: &Value, at: &str, check: &mut Check) {
    let url = url.as_str().unwrap_or_default();
    let accepted = url.starts_with("data:image/") && url.contains(";base64,") || url.starts_with("https://");
    check.require(accepted, at, "an image that is neither a base64 data URL nor https");
}

/// Writes the events of an answer.
struct Encoder {
    /// What every event begins with, up to its choices.
    prefix: String,
    steps: Vec<Step>,
    calls: usize,
}

impl Encoder {
    fn new(answer: &Answer, asked: &Asked<'_>) -> Self {
        let id = match &answer.id {
            Some(id) => id.clone(),
            None => format!("chatcmpl-{}", asked.serial),
        };
        let model = answer.model.as_deref().unwrap_or(asked.model);
        let head = json!({"id": id, "object": "chat.completion.chunk", "created": 1_700_000_000, "model": model});
        let mut prefix = head.to_string();
        prefix.pop();
        Self { prefix, steps: Vec::with_capacity(answer.parts.len() + 4), calls: 0 }
    }

    fn run(mut self, answer: &Answer, asked: &Asked<'_>) -> Vec<Step> {
        self.delta(&json!({"role": "assistant", "content": ""}));
        for part in &answer.parts {
            match part {
                Part::Text(text) => self.delta(&json!({"content": text})),
                Part::Thinking(text) => self.delta(&json!({"reasoning_content": text})),
                Part::Wait(wait) => self.steps.push(Step::Wait(wait.clone())),
                Part::ToolCall(call) => {
                    let index = self.calls;
                    self.calls += 1;
                    let id = match &call.id {
                        Some(id) => id.clone(),
                        None => format!("call_{}_{index}", asked.serial),
                    };
                    let function = json!({"name": call.name, "arguments": ""});
                    let head = json!({"index": index, "id": id, "type": "function", "function": function});
                    self.delta(&json!({"tool_calls": [head]}));
                    for piece in call.argument_pieces() {
                        let piece = json!({"index": index, "function": {"arguments": piece}});
                        self.delta(&json!({"tool_calls": [piece]}));
                    }
                }
            }
        }
        if let Some(reason) = finish_reason(answer.effective_stop()) {
            self.choice(&json!({}), &Value::String(reason));
        }
        let usage = usage(&answer.effective_usage());
        let last = format!(r#"{},"choices":[],"usage":{usage}}}"#, self.prefix);
        self.event(&last);
        self.event("[DONE]");
        self.steps
    }

    fn delta(&mut self, delta: &Value) {
        self.choice(delta, &Value::Null);
    }

    fn choice(&mut self, delta: &Value, finish_reason: &Value) {
        let data =
            format!(r#"{},"choices":[{{"index":0,"delta":{delta},"finish_reason":{finish_reason}}}]}}"#, self.prefix);
        self.event(&data);
    }

    fn event(&mut self, data: &str) {
        self.steps.push(Step::Bytes(format!("data: {data}\n\n").into_bytes()));
    }
}

fn finish_reason(stop: Stop) -> Option<String> {
    let reason = match stop {
        Stop::EndTurn => "stop",
        Stop::ToolUse => "tool_calls",
        Stop::Length => "length",
        Stop::Refusal => "content_filter",
        Stop::Raw(reason) => return Some(reason),
        Stop::Missing => return None,
    };
    Some(reason.to_owned())
}

fn usage(usage: &Usage) -> Value {
    let prompt = usage.input + usage.cache_read + usage.cache_write;
    json!({
        "prompt_tokens": prompt,
        "completion_tokens": usage.output,
        "total_tokens": prompt + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read, "cache_write_tokens": usage.cache_write},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
    })
}
