//! Anthropic messages.

use serde_json::{Value, json};

use super::{Asked, Check, Dialect, Pairing};
use crate::answer::{Answer, Part, Stop, ToolCall};
use crate::reply::Step;
use crate::request::Request;
use crate::rules::{Alternation, LaterSystem, Signatures};

/// The longest tool name and call id the service takes.
const NAME_LIMIT: usize = 128;

/// How many cache markers a request may have.
const CACHE_MARKERS: usize = 4;

/// The smallest thinking budget, in tokens.
const SMALLEST_BUDGET: u64 = 1024;

const IMAGE_TYPES: &[&str] = &["image/jpeg", "image/png", "image/gif", "image/webp"];

const TOP_FIELDS: &[&str] = &[
    "cache_control",
    "container",
    "context_management",
    "fallbacks",
    "inference_geo",
    "max_tokens",
    "mcp_servers",
    "messages",
    "metadata",
    "model",
    "output_config",
    "service_tier",
    "speed",
    "stop_sequences",
    "stream",
    "system",
    "temperature",
    "thinking",
    "thread",
    "tool_choice",
    "tools",
    "top_k",
    "top_p",
];

pub(crate) struct AnthropicMessages;

impl Dialect for AnthropicMessages {
    fn name(&self) -> &'static str {
        "anthropic-messages"
    }

    fn base_path(&self) -> &'static str {
        ""
    }

    fn owns(&self, path: &str) -> bool {
        path.ends_with("/messages")
    }

    fn steps(&self, answer: &Answer, asked: &Asked<'_>) -> Vec<Step> {
        let mut encoder = Encoder::default();
        encoder.run(answer, asked);
        encoder.steps
    }

    fn error_body(&self, status: u16, message: &str) -> Value {
        let kind = match status {
            400 => "invalid_request_error",
            401 => "authentication_error",
            403 => "permission_error",
            404 => "not_found_error",
            413 => "request_too_large",
            429 => "rate_limit_error",
            529 => "overloaded_error",
            _ => "api_error",
        };
        json!({"type": "error", "error": {"type": kind, "message": message}})
    }

    fn check_head(&self, request: &Request, check: &mut Check) {
        let version = request.header("anthropic-version").is_some();
        check.require(version, "head", "no `anthropic-version` header");
    }

    fn check(&self, body: &Value, check: &mut Check) {
        check.fields(body, TOP_FIELDS, "body");
        check.text(&body["model"], "model");
        check.require(body["stream"] == true, "stream", "expected true: this server only streams");
        let limit = body["max_tokens"].as_u64().unwrap_or_default();
        check.require(limit > 0, "max_tokens", "expected a positive integer");
        check_thinking(body, limit, check);
        check_system(&body["system"], check);
        check_tools(body, check);
        check_cache_markers(body, check);
        // A continued thread sends only what is new, so its beginning and its calls are elsewhere.
        let continued = body["thread"]["type"] == "continue";
        check_messages(check.list(&body["messages"], "messages"), continued, check);
    }
}

fn check_thinking(body: &Value, limit: u64, check: &mut Check) {
    if body["thinking"]["type"] != "enabled" {
        return;
    }
    let budget = body["thinking"]["budget_tokens"].as_u64().unwrap_or_default();
    let fits = (SMALLEST_BUDGET..limit).contains(&budget);
    check.require(fits, "thinking.budget_tokens", "expected at least 1024 and less than `max_tokens`");
    let temperature = body.get("temperature").is_none_or(|temperature| temperature.as_f64() == Some(1.0));
    check.require(temperature, "temperature", "only 1 goes with thinking");
}

fn check_system(system: &Value, check: &mut Check) {
    match system {
        Value::Null | Value::String(_) => {}
        Value::Array(blocks) => {
            for (index, block) in blocks.iter().enumerate() {
                check_text_block(block, &format!("system[{index}]"), check);
            }
        }
        _ => check.fail("system", "expected a string or a list of text blocks"),
    }
}

fn check_tools(body: &Value, check: &mut Check) {
    let Some(tools) = body.get("tools") else {
        let choice = body.get("tool_choice").is_none();
        return check.require(choice, "tool_choice", "a choice without `tools`");
    };
    let mut names = Vec::new();
    for (index, tool) in tools.as_array().map_or(&[][..], Vec::as_slice).iter().enumerate() {
        let at = format!("tools[{index}]");
        check_tool(tool, &at, check);
        names.extend(tool["name"].as_str());
    }
    check.unique(&names, "tools");
}

fn check_tool(tool: &Value, at: &str, check: &mut Check) {
    check.identifier(&tool["name"], NAME_LIMIT, &format!("{at}.name"));
    let server_side = tool["type"].as_str().is_some_and(|kind| kind != "custom");
    let object = tool["input_schema"]["type"] == "object";
    check.require(object || server_side, &format!("{at}.input_schema"), "expected a schema of type `object`");
}

/// Counts the cache markers wherever they stand.
fn check_cache_markers(body: &Value, check: &mut Check) {
    fn count(value: &Value) -> usize {
        match value {
            Value::Array(list) => list.iter().map(count).sum(),
            Value::Object(object) => {
                let own = usize::from(object.get("cache_control").is_some_and(|marker| !marker.is_null()));
                // Schemas and arguments may hold a field of that name without meaning it.
                let inner = object.iter().filter(|(name, _)| !matches!(name.as_str(), "input" | "input_schema"));
                own + inner.map(|(_, value)| count(value)).sum::<usize>()
            }
            _ => 0,
        }
    }
    let found = count(body);
    if found > CACHE_MARKERS {
        check.fail("body", format!("{found} cache markers, at most {CACHE_MARKERS} are accepted"));
    }
}

fn check_messages(messages: &[Value], continued: bool, check: &mut Check) {
    let mut pairing = Pairing::default();
    let mut previous: Option<&str> = None;
    // In the run of user messages that follows a call, whether something else than results was seen.
    let mut results_over = false;
    for (index, message) in messages.iter().enumerate() {
        let at = format!("messages[{index}]");
        let role = message["role"].as_str().unwrap_or_default();
        if role != "user" {
            pairing.close(&at, check);
            results_over = false;
        }
        check_turn(role, previous, continued, &at, check);
        match role {
            "user" => {
                if continued && index == 0 {
                    check_user_blocks(message, &at, check);
                } else {
                    check_results(message, &at, &mut pairing, &mut results_over, check);
                    check_user_blocks(message, &at, check);
                }
            }
            "assistant" => check_assistant(message, &at, &mut pairing, check),
            "system" => check_later_system(message, &at, check),
            other => check.fail(&at, format!("unknown role `{other}`")),
        }
        if role != "system" {
            previous = Some(role);
        }
    }
    pairing.close("the end of messages", check);
    check.require(previous != Some("assistant"), "the end of messages", "the last turn is not the user's");
}

fn check_turn(role: &str, previous: Option<&str>, continued: bool, at: &str, check: &mut Check) {
    match (previous, role) {
        (None, "assistant") if !continued => check.fail(at, "the first turn is not the user's"),
        (Some(before), now) if before == now && check.rules.alternation == Alternation::Strict => {
            check.fail(at, format!("two `{role}` messages in a row"));
        }
        _ => {}
    }
}

/// The results in a user message: they come first, one for each call.
fn check_results(message: &Value, at: &str, pairing: &mut Pairing, results_over: &mut bool, check: &mut Check) {
    let blocks = message["content"].as_array().map_or(&[][..], Vec::as_slice);
    for (index, block) in blocks.iter().enumerate() {
        let at = format!("{at}.content[{index}]");
        if block["type"] != "tool_result" {
            *results_over = true;
            continue;
        }
        check.require(!(*results_over && pairing.is_open()), &at, "a tool result after other content");
        if let Some(id) = check.text(&block["tool_use_id"], &format!("{at}.tool_use_id")) {
            pairing.result(id, &at, check);
        }
    }
    if message["content"].is_string() {
        *results_over = true;
    }
    if *results_over && pairing.is_open() {
        pairing.close(at, check);
    }
}

fn check_user_blocks(message: &Value, at: &str, check: &mut Check) {
    for_each_block(message, at, check, |block, at, check| match block["type"].as_str() {
        Some("text") => check_text_block(block, at, check),
        Some("image") => check_image(block, at, check),
        Some("document") => {}
        Some("tool_result") => check_result_content(&block["content"], at, check),
        other => check.fail(at, format!("a block of type `{}` in a user message", other.unwrap_or_default())),
    });
}

fn check_result_content(content: &Value, at: &str, check: &mut Check) {
    match content {
        Value::Null | Value::String(_) => {}
        Value::Array(blocks) => {
            for (index, block) in blocks.iter().enumerate() {
                let at = format!("{at}.content[{index}]");
                match block["type"].as_str() {
                    Some("text") => check_text_block(block, &at, check),
                    Some("image") => check_image(block, &at, check),
                    other => check.fail(&at, format!("a block of type `{}` in a result", other.unwrap_or_default())),
                }
            }
        }
        _ => check.fail(at, "expected a string or a list of blocks"),
    }
}

fn check_assistant(message: &Value, at: &str, pairing: &mut Pairing, check: &mut Check) {
    let mut ids = Vec::new();
    for_each_block(message, at, check, |block, at, check| match block["type"].as_str() {
        Some("text") => check_text_block(block, at, check),
        Some("thinking") => check_signature(block, at, check),
        Some("redacted_thinking") => {
            check.text(&block["data"], &format!("{at}.data"));
        }
        Some("tool_use") => {
            let id = check.identifier(&block["id"], NAME_LIMIT, &format!("{at}.id"));
            ids.extend(id.map(str::to_owned));
            check.identifier(&block["name"], NAME_LIMIT, &format!("{at}.name"));
            check.object(&block["input"], &format!("{at}.input"));
        }
        other => check.fail(at, format!("a block of type `{}` in an assistant message", other.unwrap_or_default())),
    });
    pairing.calls(ids, at, check);
}

fn check_signature(block: &Value, at: &str, check: &mut Check) {
    let signed = match check.rules.signatures {
        Signatures::Required => block["signature"].as_str().is_some_and(|signature| !signature.is_empty()),
        Signatures::MayBeEmpty => block["signature"].is_string(),
    };
    check.require(signed, at, "a thinking block without its signature");
    check.require(block["thinking"].is_string(), at, "a thinking block without `thinking`");
    check.require(block.get("cache_control").is_none(), at, "a cache marker on a thinking block");
}

fn check_later_system(message: &Value, at: &str, check: &mut Check) {
    if check.rules.later_system == LaterSystem::Refused {
        return check.fail(at, "a system message between the turns");
    }
    // A message that only sets the effort has no content.
    if message.get("output_config").is_some() {
        return;
    }
    for_each_block(message, at, check, |block, at, check| match block["type"].as_str() {
        Some("text") => check_text_block(block, at, check),
        Some("tool_addition" | "tool_removal") => {
            check.object(&block["tool"], &format!("{at}.tool"));
        }
        other => check.fail(at, format!("a block of type `{}` in a system message", other.unwrap_or_default())),
    });
}

fn for_each_block(message: &Value, at: &str, check: &mut Check, mut each: impl FnMut(&Value, &str, &mut Check)) {
    match &message["content"] {
        Value::String(text) => check.require(!text.trim().is_empty(), at, "an empty text"),
        content => {
            for (index, block) in check.list(content, &format!("{at}.content")).iter().enumerate() {
                each(block, &format!("{at}.content[{index}]"), check);
            }
        }
    }
}

fn check_text_block(block: &Value, at: &str, check: &mut Check) {
    check.require(block["type"] == "text", at, "expected a text block");
    let filled = block["text"].as_str().is_some_and(|text| !text.trim().is_empty());
    check.require(filled, at, "a text block without text");
}

fn check_image(block: &Value, at: &str, check: &mut Check) {
    let source = &block["source"];
    match source["type"].as_str() {
        Some("base64") => {
            let known = source["media_type"].as_str().is_some_and(|kind| IMAGE_TYPES.contains(&kind));
            check.require(known, at, "an image type that the service does not take");
            check.text(&source["data"], &format!("{at}.source.data"));
        }
        Some("url" | "file") => {}
        _ => check.fail(at, "an image without a source"),
    }
}

/// Writes the events of an answer.
#[derive(Default)]
struct Encoder {
    steps: Vec<Step>,
    /// The block that is open, by index and kind.
    open: Option<BlockKind>,
    index: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum BlockKind {
    Text,
    Thinking,
    ToolUse,
}

impl Encoder {
    fn run(&mut self, answer: &Answer, asked: &Asked<'_>) {
        let usage = answer.effective_usage();
        let mut counts = json!({
            "input_tokens": usage.input,
            "cache_read_input_tokens": usage.cache_read,
            "cache_creation_input_tokens": usage.cache_write,
            "output_tokens": 1,
        });
        let id = match &answer.id {
            Some(id) => id.clone(),
            None => format!("msg_{}", asked.serial),
        };
        self.event(&json!({"type": "message_start", "message": {
            "id": id, "type": "message", "role": "assistant", "content": [],
            "model": answer.model.as_deref().unwrap_or(asked.model),
            "stop_reason": null, "stop_sequence": null, "usage": counts,
        }}));
        for part in &answer.parts {
            match part {
                Part::Text(text) => {
                    self.enter(BlockKind::Text, &json!({"type": "text", "text": ""}));
                    self.delta(&json!({"type": "text_delta", "text": text}));
                }
                Part::Thinking(text) => {
                    self.enter(BlockKind::Thinking, &json!({"type": "thinking", "thinking": "", "signature": ""}));
                    self.delta(&json!({"type": "thinking_delta", "thinking": text}));
                }
                Part::Wait(wait) => self.steps.push(Step::Wait(wait.clone())),
                Part::ToolCall(call) => self.tool_use(call, asked),
            }
        }
        self.leave();
        counts["output_tokens"] = json!(usage.output);
        if usage.reasoning > 0 {
            counts["output_tokens_details"] = json!({"thinking_tokens": usage.reasoning});
        }
        let delta = json!({"stop_reason": stop_reason(answer.effective_stop()), "stop_sequence": null});
        self.event(&json!({"type": "message_delta", "delta": delta, "usage": counts}));
        self.event(&json!({"type": "message_stop"}));
    }

    fn tool_use(&mut self, call: &ToolCall, asked: &Asked<'_>) {
        self.leave();
        let id = match &call.id {
            Some(id) => id.clone(),
            None => format!("toolu_{}_{}", asked.serial, self.index),
        };
        let block = json!({"type": "tool_use", "id": id, "name": call.name, "input": {}});
        self.enter(BlockKind::ToolUse, &block);
        for piece in call.argument_pieces() {
            self.delta(&json!({"type": "input_json_delta", "partial_json": piece}));
        }
        self.leave();
    }

    fn enter(&mut self, kind: BlockKind, block: &Value) {
        if self.open == Some(kind) {
            return;
        }
        self.leave();
        self.open = Some(kind);
        self.event(&json!({"type": "content_block_start", "index": self.index, "content_block": block}));
    }

    fn leave(&mut self) {
        let Some(kind) = self.open.take() else { return };
        if kind == BlockKind::Thinking {
            self.delta(&json!({"type": "signature_delta", "signature": "c2lnbmF0dXJl"}));
        }
        self.event(&json!({"type": "content_block_stop", "index": self.index}));
        self.index += 1;
    }

    fn delta(&mut self, delta: &Value) {
        self.event(&json!({"type": "content_block_delta", "index": self.index, "delta": delta}));
    }

    fn event(&mut self, event: &Value) {
        let name = event["type"].as_str().unwrap_or_default();
        let text = format!("event: {name}\ndata: {event}\n\n");
        self.steps.push(Step::Bytes(text.into_bytes()));
    }
}

fn stop_reason(stop: Stop) -> Value {
    let reason = match stop {
        Stop::EndTurn => "end_turn",
        Stop::ToolUse => "tool_use",
        Stop::Length => "max_tokens",
        Stop::Refusal => "refusal",
        Stop::Raw(reason) => return Value::String(reason),
        Stop::Missing => return Value::Null,
    };
    json!(reason)
}
