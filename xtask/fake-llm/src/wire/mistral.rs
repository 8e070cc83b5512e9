//! Mistral chat: the shape of OpenAI chat completions with rules of its own.

use serde_json::{Value, json};

use super::{Asked, Check, Dialect, Pairing};
use crate::answer::{Answer, Part, Stop, Usage};
use crate::reply::Step;
use crate::request::Request;
use crate::rules::{Alternation, LaterSystem};

/// The exact length of a call's id.
const CALL_ID_LENGTH: usize = 9;

/// The longest tool name the service takes.
const TOOL_NAME_LIMIT: usize = 64;

const TOP_FIELDS: &[&str] = &[
    "frequency_penalty",
    "max_tokens",
    "messages",
    "metadata",
    "model",
    "n",
    "parallel_tool_calls",
    "prediction",
    "presence_penalty",
    "prompt_cache_key",
    "prompt_mode",
    "random_seed",
    "reasoning_effort",
    "response_format",
    "safe_prompt",
    "stop",
    "stream",
    "temperature",
    "tool_choice",
    "tools",
    "top_p",
];

pub(crate) struct Mistral;

impl Dialect for Mistral {
    fn name(&self) -> &'static str {
        "mistral-conversations"
    }

    fn base_path(&self) -> &'static str {
        ""
    }

    fn owns(&self, path: &str) -> bool {
        path.ends_with("/chat/completions")
    }

    fn steps(&self, answer: &Answer, asked: &Asked<'_>) -> Vec<Step> {
        let id = answer.id.clone().unwrap_or_else(|| format!("cmpl-{}", asked.serial));
        let model = answer.model.as_deref().unwrap_or(asked.model);
        let head = json!({"id": id, "object": "chat.completion.chunk", "created": 1_700_000_000, "model": model});
        let mut encoder = Encoder { head, steps: Vec::with_capacity(answer.parts.len() + 3) };
        encoder.run(answer, asked);
        encoder.steps
    }

    fn error_body(&self, status: u16, message: &str) -> Value {
        json!({"object": "error", "message": message, "type": "invalid_request_error", "param": null, "code": status.to_string()})
    }

    fn check_head(&self, request: &Request, check: &mut Check) {
        let bearer = request.header("authorization").is_none_or(|value| value.starts_with("Bearer "));
        check.require(bearer, "head", "`authorization` is not a bearer token");
    }

    fn check(&self, body: &Value, check: &mut Check) {
        check.fields(body, TOP_FIELDS, "body");
        check.text(&body["model"], "model");
        check.require(body["stream"] == true, "stream", "expected true: this server only streams");
        let mut names = Vec::new();
        for (index, tool) in body["tools"].as_array().map_or(&[][..], Vec::as_slice).iter().enumerate() {
            let at = format!("tools[{index}].function");
            names.extend(check.identifier(&tool["function"]["name"], TOOL_NAME_LIMIT, &format!("{at}.name")));
            check.object(&tool["function"]["parameters"], &format!("{at}.parameters"));
        }
        check.unique(&names, "tools");
        check_messages(check.list(&body["messages"], "messages"), check);
    }
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
            "system" => {
                let late = previous.is_some() && check.rules.later_system == LaterSystem::Refused;
                check.require(!late, &at, "a system message after the first turn");
                check_content(message, &["text"], &at, check);
                continue;
            }
            "user" => check_content(message, &["text", "image_url", "document_url"], &at, check),
            "assistant" => check_assistant(message, &at, &mut pairing, check),
            "tool" => {
                check_content(message, &["text", "image_url"], &at, check);
                if let Some(id) = check.text(&message["tool_call_id"], &format!("{at}.tool_call_id")) {
                    pairing.result(id, &at, check);
                }
            }
            other => check.fail(&at, format!("unknown role `{other}`")),
        }
        if check.rules.alternation == Alternation::Strict && role != "tool" && previous == Some(role) {
            check.fail(&at, format!("two `{role}` messages in a row"));
        }
        previous = Some(role);
    }
    pairing.close("the end of messages", check);
    let prefix = messages.last().is_some_and(|message| message["prefix"] == true);
    let answered = previous == Some("assistant") && !prefix;
    check.require(!answered, "the end of messages", "the last turn is neither the user's nor a tool's");
}

fn check_assistant(message: &Value, at: &str, pairing: &mut Pairing, check: &mut Check) {
    let calls = message.get("tool_calls").filter(|calls| !calls.is_null());
    if message["content"].is_null() || message["content"] == "" {
        check.require(calls.is_some(), at, "neither content nor tool calls");
    } else {
        check_content(message, &["text", "thinking"], at, check);
    }
    let Some(calls) = calls else { return };
    let mut ids = Vec::new();
    for (index, call) in check.list(calls, &format!("{at}.tool_calls")).iter().enumerate() {
        let at = format!("{at}.tool_calls[{index}]");
        if let Some(id) = check.text(&call["id"], &format!("{at}.id")) {
            let accepted = id.len() == CALL_ID_LENGTH && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
            check.require(accepted, &format!("{at}.id"), "expected nine letters and digits");
            ids.push(id.to_owned());
        }
        check.identifier(&call["function"]["name"], TOOL_NAME_LIMIT, &format!("{at}.function.name"));
        let arguments = &call["function"]["arguments"];
        let parsed = arguments.as_str().map(serde_json::from_str::<Value>);
        let object = arguments.is_object() || matches!(parsed, Some(Ok(Value::Object(_))));
        check.require(object, &format!("{at}.function.arguments"), "expected a JSON object");
    }
    pairing.calls(ids, at, check);
}

fn check_content(message: &Value, types: &[&str], at: &str, check: &mut Check) {
    if message["content"].is_string() {
        return;
    }
    for (index, block) in check.list(&message["content"], &format!("{at}.content")).iter().enumerate() {
        let found = block["type"].as_str().unwrap_or_default();
        if !types.contains(&found) {
            check.fail(
                &format!("{at}.content[{index}]"),
                format!("a block of type `{found}`, expected one of {types:?}"),
            );
        }
    }
}

/// Writes the chunks of an answer.
struct Encoder {
    head: Value,
    steps: Vec<Step>,
}

impl Encoder {
    fn run(&mut self, answer: &Answer, asked: &Asked<'_>) {
        self.chunk(json!({"role": "assistant", "content": ""}), None, None);
        let mut calls = 0;
        for part in &answer.parts {
            match part {
                Part::Text(text) => self.chunk(json!({"content": text}), None, None),
                Part::Thinking(text) => {
                    let thinking = json!({"type": "thinking", "thinking": [{"type": "text", "text": text}]});
                    self.chunk(json!({"content": [thinking]}), None, None);
                }
                Part::Wait(wait) => self.steps.push(Step::Wait(wait.clone())),
                // Calls come whole on this wire.
                Part::ToolCall(call) => {
                    let id = call.id.clone().unwrap_or_else(|| format!("c{:04}{calls:04}", asked.serial % 10_000));
                    let function = json!({"name": call.name, "arguments": call.arguments});
                    let call = json!({"id": id, "index": calls, "function": function});
                    calls += 1;
                    self.chunk(json!({"tool_calls": [call]}), None, None);
                }
            }
        }
        self.chunk(json!({"content": ""}), finish_reason(answer.effective_stop()), Some(answer.effective_usage()));
        self.steps.push(Step::Bytes(b"data: [DONE]\n\n".to_vec()));
    }

    fn chunk(&mut self, delta: Value, finish_reason: Option<String>, usage: Option<Usage>) {
        let mut chunk = self.head.clone();
        chunk["choices"] = json!([{"index": 0, "delta": delta, "finish_reason": finish_reason}]);
        if let Some(usage) = usage {
            let prompt = usage.input + usage.cache_read + usage.cache_write;
            chunk["usage"] = json!({
                "prompt_tokens": prompt, "completion_tokens": usage.output, "total_tokens": prompt + usage.output,
                "prompt_tokens_details": {"cached_tokens": usage.cache_read},
            });
        }
        self.steps.push(Step::Bytes(format!("data: {chunk}\n\n").into_bytes()));
    }
}

fn finish_reason(stop: Stop) -> Option<String> {
    let reason = match stop {
        Stop::EndTurn => "stop",
        Stop::ToolUse => "tool_calls",
        Stop::Length => "length",
        Stop::Refusal => "error",
        Stop::Raw(reason) => return Some(reason),
        Stop::Missing => return None,
    };
    Some(reason.to_owned())
}
