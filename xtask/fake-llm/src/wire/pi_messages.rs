//! The messages and events of pi itself, as a gateway speaks them.

use serde_json::{Value, json};

use super::{Asked, Check, Dialect, Pairing};
use crate::answer::{Answer, Part, Stop, Usage};
use crate::reply::Step;
use crate::request::Request;

pub(crate) struct PiMessages;

impl Dialect for PiMessages {
    fn name(&self) -> &'static str {
        "pi-messages"
    }

    fn base_path(&self) -> &'static str {
        "/v1"
    }

    fn owns(&self, path: &str) -> bool {
        path.ends_with("/messages") || path.ends_with("/api/stream")
    }

    fn model<'r>(&self, request: &'r Request) -> &'r str {
        let model = &request.json()["model"];
        model.as_str().or(model["id"].as_str()).unwrap_or("fake-model")
    }

    fn steps(&self, answer: &Answer, asked: &Asked<'_>) -> Vec<Step> {
        let mut encoder = Encoder::default();
        encoder.run(answer, asked);
        encoder.steps
    }

    fn error_body(&self, status: u16, message: &str) -> Value {
        json!({"error": {"message": message, "code": status.to_string()}})
    }

    fn check_head(&self, request: &Request, check: &mut Check) {
        let bearer = request.header("authorization").is_some_and(|value| value.starts_with("Bearer "));
        check.require(bearer, "head", "`authorization` is not a bearer token");
    }

    fn check(&self, body: &Value, check: &mut Check) {
        check.fields(body, &["model", "context", "options"], "body");
        check.require(!body["model"].is_null(), "model", "no model");
        check.object(&body["options"], "options");
        // The gateway repairs what it passes on, so that a transcript may come as it is stored. Only results without
        // a call that was ever made are refused.
        let mut pairing = Pairing::default();
        let mut known = Vec::new();
        for (index, message) in check.list(&body["context"]["messages"], "context.messages").iter().enumerate() {
            let at = format!("context.messages[{index}]");
            match message["role"].as_str().unwrap_or_default() {
                "system" | "user" => {}
                "assistant" => {
                    let blocks = message["content"].as_array().map_or(&[][..], Vec::as_slice);
                    let calls = blocks.iter().filter(|block| block["type"] == "toolCall");
                    known.extend(calls.filter_map(|call| call["id"].as_str().map(str::to_owned)));
                }
                "toolResult" => {
                    let id = message["toolCallId"].as_str().unwrap_or_default();
                    if !known.iter().any(|call| call == id) {
                        pairing.result(id, &at, check);
                    }
                }
                other => check.fail(&at, format!("unknown role `{other}`")),
            }
        }
    }
}

/// Writes the events of an answer.
#[derive(Default)]
struct Encoder {
    steps: Vec<Step>,
    open: Option<(&'static str, String)>,
    index: usize,
}

impl Encoder {
    fn run(&mut self, answer: &Answer, asked: &Asked<'_>) {
        self.event(&json!({"type": "start"}));
        for part in &answer.parts {
            match part {
                Part::Text(text) => self.grow("text", text),
                Part::Thinking(text) => self.grow("thinking", text),
                Part::Wait(wait) => self.steps.push(Step::Wait(wait.clone())),
                Part::ToolCall(call) => {
                    self.leave();
                    let id = call.id.clone().unwrap_or_else(|| format!("call_{}_{}", asked.serial, self.index));
                    let index = self.index;
                    self.event(
                        &json!({"type": "toolcall_start", "contentIndex": index, "id": id, "toolName": call.name}),
                    );
                    for piece in call.argument_pieces() {
                        self.event(&json!({"type": "toolcall_delta", "contentIndex": index, "delta": piece}));
                    }
                    let arguments: Value = serde_json::from_str(&call.arguments).unwrap_or_else(|_| json!({}));
                    let call = json!({"type": "toolCall", "id": id, "name": call.name, "arguments": arguments});
                    self.event(&json!({"type": "toolcall_end", "contentIndex": index, "toolCall": call}));
                    self.index += 1;
                }
            }
        }
        self.leave();
        let usage = counts(&answer.effective_usage());
        match answer.effective_stop() {
            Stop::Refusal => {
                let message = "The model refused to answer.";
                self.event(&json!({"type": "error", "reason": "error", "errorMessage": message, "usage": usage}));
            }
            Stop::Missing => {}
            stop => {
                let reason = match stop {
                    Stop::ToolUse => "toolUse".to_owned(),
                    Stop::Length => "length".to_owned(),
                    Stop::Raw(reason) => reason,
                    _ => "stop".to_owned(),
                };
                let id = answer.id.clone().unwrap_or_else(|| format!("msg_{}", asked.serial));
                self.event(&json!({"type": "done", "reason": reason, "usage": usage, "responseId": id}));
            }
        }
    }

    fn grow(&mut self, kind: &'static str, delta: &str) {
        if self.open.as_ref().is_none_or(|(open, _)| *open != kind) {
            self.leave();
            self.open = Some((kind, String::new()));
            self.event(&json!({"type": format!("{kind}_start"), "contentIndex": self.index}));
        }
        if let Some((_, text)) = &mut self.open {
            text.push_str(delta);
        }
        self.event(&json!({"type": format!("{kind}_delta"), "contentIndex": self.index, "delta": delta}));
    }

    fn leave(&mut self) {
        let Some((kind, text)) = self.open.take() else { return };
        let mut end = json!({"type": format!("{kind}_end"), "contentIndex": self.index, "content": text});
        if kind == "thinking" {
            end["contentSignature"] = "c2lnbmF0dXJl".into();
        }
        self.event(&end);
        self.index += 1;
    }

    fn event(&mut self, event: &Value) {
        self.steps.push(Step::Bytes(format!("data: {event}\n\n").into_bytes()));
    }
}

fn counts(usage: &Usage) -> Value {
    json!({
        "input": usage.input, "output": usage.output, "cacheRead": usage.cache_read, "cacheWrite": usage.cache_write,
        "totalTokens": usage.input + usage.output + usage.cache_read + usage.cache_write,
    })
}
