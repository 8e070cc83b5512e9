//! Amazon Bedrock's Converse, streamed in frames of AWS.

use serde_json::{Value, json};

use super::{Asked, Check, Dialect, Pairing};
use crate::answer::{Answer, Part, Stop, ToolCall, Usage};
use crate::reply::Step;
use crate::request::Request;
use crate::rules::Alternation;

/// The longest tool name and call id the service takes.
const NAME_LIMIT: usize = 64;

const IMAGE_FORMATS: &[&str] = &["jpeg", "png", "gif", "webp"];

const TOP_FIELDS: &[&str] = &[
    "additionalModelRequestFields",
    "additionalModelResponseFieldPaths",
    "guardrailConfig",
    "inferenceConfig",
    "messages",
    "performanceConfig",
    "promptVariables",
    "requestMetadata",
    "serviceTier",
    "system",
    "toolConfig",
];

pub(crate) struct Bedrock;

impl Dialect for Bedrock {
    fn name(&self) -> &'static str {
        "bedrock-converse-stream"
    }

    fn base_path(&self) -> &'static str {
        ""
    }

    fn owns(&self, path: &str) -> bool {
        path.starts_with("/model/") && path.ends_with("/converse-stream")
    }

    fn content_type(&self) -> &'static str {
        "application/vnd.amazon.eventstream"
    }

    fn model<'r>(&self, request: &'r Request) -> &'r str {
        request.path().split('/').nth(2).unwrap_or_default()
    }

    fn steps(&self, answer: &Answer, asked: &Asked<'_>) -> Vec<Step> {
        let mut encoder = Encoder::default();
        encoder.run(answer, asked);
        encoder.steps
    }

    fn error_body(&self, _status: u16, message: &str) -> Value {
        json!({"message": message})
    }

    fn check_head(&self, request: &Request, check: &mut Check) {
        let proof = request.header("authorization").unwrap_or_default();
        let signed = proof.starts_with("AWS4-HMAC-SHA256 ") && request.header("x-amz-date").is_some();
        check.require(signed || proof.starts_with("Bearer "), "head", "neither a bearer token nor a signature");
    }

    fn check(&self, body: &Value, check: &mut Check) {
        check.fields(body, TOP_FIELDS, "body");
        for (index, block) in list(&body["system"]).iter().enumerate() {
            check_block(block, &["text", "cachePoint"], &format!("system[{index}]"), check);
        }
        let mut names = Vec::new();
        for (index, tool) in list(&body["toolConfig"]["tools"]).iter().enumerate() {
            let at = format!("toolConfig.tools[{index}]");
            if let Some(spec) = tool.get("toolSpec") {
                names.extend(check.identifier(&spec["name"], NAME_LIMIT, &format!("{at}.name")));
                let object = spec["inputSchema"]["json"]["type"] == "object";
                check.require(object, &format!("{at}.inputSchema"), "expected a schema of type `object`");
            }
        }
        check.unique(&names, "toolConfig.tools");
        check_messages(check.list(&body["messages"], "messages"), check);
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn check_messages(messages: &[Value], check: &mut Check) {
    let mut pairing = Pairing::default();
    let mut previous: Option<&str> = None;
    for (index, message) in messages.iter().enumerate() {
        let at = format!("messages[{index}]");
        let role = message["role"].as_str().unwrap_or_default();
        check.require(previous.is_some() || role == "user", &at, "the first turn is not the user's");
        if check.rules.alternation == Alternation::Strict && previous == Some(role) {
            check.fail(&at, format!("two `{role}` messages in a row"));
        }
        let mut calls = Vec::new();
        for (number, block) in check.list(&message["content"], &format!("{at}.content")).iter().enumerate() {
            let at = format!("{at}.content[{number}]");
            match role {
                "user" => check_block(block, &["text", "image", "document", "toolResult", "cachePoint"], &at, check),
                "assistant" => check_block(block, &["text", "reasoningContent", "toolUse", "cachePoint"], &at, check),
                other => check.fail(&at, format!("unknown role `{other}`")),
            }
            if let Some(call) = block.get("toolUse") {
                calls.extend(check.identifier(&call["toolUseId"], NAME_LIMIT, &format!("{at}.toolUseId")));
            }
            if let Some(result) = block.get("toolResult")
                && let Some(id) = check.text(&result["toolUseId"], &format!("{at}.toolUseId"))
            {
                pairing.result(id, &at, check);
            }
        }
        // All results of a turn stand in the message after it.
        pairing.close(&at, check);
        if !calls.is_empty() {
            pairing.calls(calls.into_iter().map(str::to_owned).collect(), &at, check);
        }
        previous = Some(role);
    }
    pairing.close("the end of messages", check);
    check.require(previous != Some("assistant"), "the end of messages", "the last turn is not the user's");
}

fn check_block(block: &Value, kinds: &[&str], at: &str, check: &mut Check) {
    let Some((kind, value)) = block.as_object().filter(|fields| fields.len() == 1).and_then(|f| f.iter().next()) else {
        return check.fail(at, "expected a block with one member");
    };
    if !kinds.contains(&kind.as_str()) {
        return check.fail(at, format!("a block of type `{kind}`, expected one of {kinds:?}"));
    }
    match kind.as_str() {
        "text" => {
            let filled = value.as_str().is_some_and(|text| !text.trim().is_empty());
            check.require(filled, at, "a text block without text");
        }
        "image" => {
            let known = value["format"].as_str().is_some_and(|format| IMAGE_FORMATS.contains(&format));
            check.require(known, at, "an image format that the service does not take");
            check.text(&value["source"]["bytes"], &format!("{at}.source.bytes"));
        }
        "toolUse" => {
            check.identifier(&value["name"], NAME_LIMIT, &format!("{at}.name"));
            check.object(&value["input"], &format!("{at}.input"));
        }
        "toolResult" => {
            for (index, part) in check.list(&value["content"], &format!("{at}.content")).iter().enumerate() {
                check_block(part, &["text", "image", "json", "document"], &format!("{at}.content[{index}]"), check);
            }
        }
        "reasoningContent" => {
            let text = value["reasoningText"]["text"].as_str().is_some_and(|text| !text.is_empty());
            let hidden = value["redactedContent"].as_str().is_some_and(|payload| !payload.is_empty());
            check.require(text || hidden, at, "reasoning without text or payload");
        }
        _ => {}
    }
}

/// Writes the frames of an answer.
#[derive(Default)]
struct Encoder {
    steps: Vec<Step>,
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
        self.event("messageStart", &json!({"role": "assistant"}));
        for part in &answer.parts {
            match part {
                Part::Text(text) => {
                    self.enter(BlockKind::Text);
                    self.delta(&json!({"text": text}));
                }
                Part::Thinking(text) => {
                    self.enter(BlockKind::Thinking);
                    self.delta(&json!({"reasoningContent": {"text": text}}));
                }
                Part::Wait(wait) => self.steps.push(Step::Wait(wait.clone())),
                Part::ToolCall(call) => self.tool_use(call, asked),
            }
        }
        self.leave();
        if let Some(reason) = stop_reason(answer.effective_stop()) {
            self.event("messageStop", &json!({"stopReason": reason}));
        }
        self.event("metadata", &json!({"usage": counts(&answer.effective_usage()), "metrics": {"latencyMs": 1}}));
    }

    fn tool_use(&mut self, call: &ToolCall, asked: &Asked<'_>) {
        self.leave();
        let id = call.id.clone().unwrap_or_else(|| format!("tooluse_{}_{}", asked.serial, self.index));
        let start = json!({"toolUse": {"toolUseId": id, "name": call.name}});
        self.event("contentBlockStart", &json!({"contentBlockIndex": self.index, "start": start}));
        self.open = Some(BlockKind::ToolUse);
        for piece in call.argument_pieces() {
            self.delta(&json!({"toolUse": {"input": piece}}));
        }
        self.leave();
    }

    /// Only calls are announced.
    fn enter(&mut self, kind: BlockKind) {
        if self.open != Some(kind) {
            self.leave();
            self.open = Some(kind);
        }
    }

    fn leave(&mut self) {
        let Some(kind) = self.open.take() else { return };
        if kind == BlockKind::Thinking {
            self.delta(&json!({"reasoningContent": {"signature": "c2lnbmF0dXJl"}}));
        }
        self.event("contentBlockStop", &json!({"contentBlockIndex": self.index}));
        self.index += 1;
    }

    fn delta(&mut self, delta: &Value) {
        self.event("contentBlockDelta", &json!({"contentBlockIndex": self.index, "delta": delta}));
    }

    fn event(&mut self, name: &str, payload: &Value) {
        let headers = [(":message-type", "event"), (":event-type", name), (":content-type", "application/json")];
        self.steps.push(Step::Bytes(frame(&headers, payload.to_string().as_bytes())));
    }
}

fn counts(usage: &Usage) -> Value {
    let total = usage.input + usage.cache_read + usage.cache_write + usage.output;
    json!({
        "inputTokens": usage.input, "outputTokens": usage.output, "totalTokens": total,
        "cacheReadInputTokens": usage.cache_read, "cacheWriteInputTokens": usage.cache_write,
    })
}

fn stop_reason(stop: Stop) -> Option<String> {
    let reason = match stop {
        Stop::EndTurn => "end_turn",
        Stop::ToolUse => "tool_use",
        Stop::Length => "max_tokens",
        Stop::Refusal => "guardrail_intervened",
        Stop::Raw(reason) => return Some(reason),
        Stop::Missing => return None,
    };
    Some(reason.to_owned())
}

/// One frame: both lengths, their check sum, the headers, the payload, and a check sum over all of it.
fn frame(headers: &[(&str, &str)], payload: &[u8]) -> Vec<u8> {
    /// The type of a header whose value is text.
    const TEXT: u8 = 7;
    const OVERHEAD: usize = 16;
    let mut encoded = Vec::new();
    for (name, value) in headers {
        encoded.push(u8::try_from(name.len()).expect("a short name"));
        encoded.extend_from_slice(name.as_bytes());
        encoded.push(TEXT);
        encoded.extend_from_slice(&u16::try_from(value.len()).expect("a short value").to_be_bytes());
        encoded.extend_from_slice(value.as_bytes());
    }
    let length = |length: usize| u32::try_from(length).expect("a frame of less than 4 GiB").to_be_bytes();
    let mut frame = Vec::with_capacity(OVERHEAD + encoded.len() + payload.len());
    frame.extend_from_slice(&length(OVERHEAD + encoded.len() + payload.len()));
    frame.extend_from_slice(&length(encoded.len()));
    frame.extend_from_slice(&crc32fast::hash(&frame).to_be_bytes());
    frame.extend_from_slice(&encoded);
    frame.extend_from_slice(payload);
    frame.extend_from_slice(&crc32fast::hash(&frame).to_be_bytes());
    frame
}
