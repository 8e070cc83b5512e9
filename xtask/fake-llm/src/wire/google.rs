//! Google generative language.

use serde_json::{Value, json};

use super::{Asked, Check, Dialect};
use crate::answer::{Answer, Part, Stop, Usage};
use crate::reply::Step;
use crate::request::Request;
use crate::rules::Alternation;

/// The longest function name the service takes.
const NAME_LIMIT: usize = 64;

const TOP_FIELDS: &[&str] = &[
    "cachedContent",
    "contents",
    "generationConfig",
    "labels",
    "safetySettings",
    "systemInstruction",
    "toolConfig",
    "tools",
];

pub(crate) struct Google;

impl Dialect for Google {
    fn name(&self) -> &'static str {
        "google-generative-ai"
    }

    fn base_path(&self) -> &'static str {
        "/v1beta"
    }

    fn owns(&self, path: &str) -> bool {
        path.ends_with(":streamGenerateContent")
    }

    fn model<'r>(&self, request: &'r Request) -> &'r str {
        let last = request.path().rsplit('/').next().unwrap_or_default();
        last.split(':').next().unwrap_or_default()
    }

    fn steps(&self, answer: &Answer, asked: &Asked<'_>) -> Vec<Step> {
        let encoder = Encoder {
            model: answer.model.as_deref().unwrap_or(asked.model),
            id: answer.id.clone().unwrap_or_else(|| format!("response_{}", asked.serial)),
        };
        encoder.run(answer, asked)
    }

    fn error_body(&self, status: u16, message: &str) -> Value {
        let kind = match status {
            400 => "INVALID_ARGUMENT",
            401 => "UNAUTHENTICATED",
            403 => "PERMISSION_DENIED",
            404 => "NOT_FOUND",
            429 => "RESOURCE_EXHAUSTED",
            503 => "UNAVAILABLE",
            _ => "INTERNAL",
        };
        json!({"error": {"code": status, "message": message, "status": kind}})
    }

    fn check_head(&self, request: &Request, check: &mut Check) {
        let events = request.target().contains("alt=sse");
        check.require(events, "head", "no `alt=sse`: this server only streams events");
    }

    fn check(&self, body: &Value, check: &mut Check) {
        check.fields(body, TOP_FIELDS, "body");
        let mut names = Vec::new();
        for (index, tool) in list(&body["tools"]).iter().enumerate() {
            for declaration in list(&tool["functionDeclarations"]) {
                names.extend(check.identifier(&declaration["name"], NAME_LIMIT, &format!("tools[{index}]")));
            }
        }
        check.unique(&names, "tools");
        check_contents(check.list(&body["contents"], "contents"), check);
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// The calls of a turn of the model are answered by the next turn of the user, one response for each and nothing else.
fn check_contents(contents: &[Value], check: &mut Check) {
    let mut open: Vec<(String, Option<String>)> = Vec::new();
    let mut previous: Option<&str> = None;
    for (index, content) in contents.iter().enumerate() {
        let at = format!("contents[{index}]");
        let role = content["role"].as_str().unwrap_or_default();
        check.require(matches!(role, "user" | "model"), &at, "expected the role `user` or `model`");
        check.require(previous.is_some() || role == "user", &at, "the first turn is not the user's");
        if check.rules.alternation == Alternation::Strict && previous == Some(role) {
            check.fail(&at, format!("two `{role}` messages in a row"));
        }
        for (number, part) in check.list(&content["parts"], &format!("{at}.parts")).iter().enumerate() {
            let at = format!("{at}.parts[{number}]");
            check_part(part, role, &at, check);
            if let Some(response) = part.get("functionResponse") {
                check_response(response, &mut open, &at, check);
            }
        }
        for (name, _) in open.drain(..) {
            check.fail(&at, format!("the call of `{name}` before this has no response"));
        }
        let calls = list(&content["parts"]).iter().filter_map(|part| part.get("functionCall"));
        open.extend(
            calls.filter_map(|call| Some((call["name"].as_str()?.to_owned(), call["id"].as_str().map(str::to_owned)))),
        );
        previous = Some(role);
    }
    for (name, _) in open {
        check.fail("the end of contents", format!("the call of `{name}` has no response"));
    }
    check.require(previous != Some("model"), "the end of contents", "the last turn is not the user's");
}

fn check_part(part: &Value, role: &str, at: &str, check: &mut Check) {
    let kinds = ["text", "inlineData", "fileData", "functionCall", "functionResponse"];
    let found: Vec<&str> = kinds.into_iter().filter(|kind| part.get(*kind).is_some()).collect();
    match (found.as_slice(), role) {
        (["text"], _) => check.require(part["text"].is_string(), at, "a text that is none"),
        (["functionCall"], "model") => {
            check.identifier(&part["functionCall"]["name"], NAME_LIMIT, &format!("{at}.functionCall.name"));
            check.object(&part["functionCall"]["args"], &format!("{at}.functionCall.args"));
        }
        (["functionResponse"], "user") => {
            check.object(&part["functionResponse"]["response"], &format!("{at}.functionResponse.response"));
        }
        (["inlineData"], "user") => {
            check.text(&part["inlineData"]["data"], &format!("{at}.inlineData.data"));
            check.text(&part["inlineData"]["mimeType"], &format!("{at}.inlineData.mimeType"));
        }
        (["fileData"], "user") => {}
        (found, role) => check.fail(at, format!("a part with {found:?} in a turn of `{role}`")),
    }
}

fn check_response(response: &Value, open: &mut Vec<(String, Option<String>)>, at: &str, check: &mut Check) {
    let (name, id) = (response["name"].as_str().unwrap_or_default(), response["id"].as_str());
    let position = open.iter().position(|(call, call_id)| match (call_id, id) {
        (Some(call_id), Some(id)) => call_id == id,
        _ => call == name,
    });
    match position {
        Some(position) => {
            open.remove(position);
        }
        None => check.fail(at, format!("a response for `{name}`, which the turn before it does not call")),
    }
}

/// Writes the chunks of an answer.
struct Encoder<'a> {
    model: &'a str,
    id: String,
}

impl Encoder<'_> {
    fn run(&self, answer: &Answer, asked: &Asked<'_>) -> Vec<Step> {
        let mut steps = Vec::with_capacity(answer.parts.len() + 1);
        let mut calls = 0;
        for part in &answer.parts {
            let part = match part {
                Part::Text(text) => json!({"text": text}),
                Part::Thinking(text) => json!({"text": text, "thought": true}),
                // Calls come whole on this wire.
                Part::ToolCall(call) => {
                    let id = call.id.clone().unwrap_or_else(|| format!("call_{}_{calls}", asked.serial));
                    calls += 1;
                    let args: Value = serde_json::from_str(&call.arguments).unwrap_or_else(|_| json!({}));
                    json!({"functionCall": {"id": id, "name": call.name, "args": args}})
                }
                Part::Wait(wait) => {
                    steps.push(Step::Wait(wait.clone()));
                    continue;
                }
            };
            steps.push(self.chunk(&[part], None, None));
        }
        let reason = finish_reason(answer.effective_stop());
        steps.push(self.chunk(&[], reason, Some(&answer.effective_usage())));
        steps
    }

    fn chunk(&self, parts: &[Value], reason: Option<String>, usage: Option<&Usage>) -> Step {
        let mut candidate = json!({"index": 0, "content": {"role": "model", "parts": parts}});
        if let Some(reason) = reason {
            candidate["finishReason"] = json!(reason);
        }
        let mut chunk = json!({"candidates": [candidate], "responseId": self.id, "modelVersion": self.model});
        if let Some(usage) = usage {
            chunk["usageMetadata"] = usage_metadata(usage);
        }
        Step::Bytes(format!("data: {chunk}\n\n").into_bytes())
    }
}

fn usage_metadata(usage: &Usage) -> Value {
    let prompt = usage.input + usage.cache_read + usage.cache_write;
    json!({
        "promptTokenCount": prompt,
        "cachedContentTokenCount": usage.cache_read,
        "candidatesTokenCount": usage.output - usage.reasoning.min(usage.output),
        "thoughtsTokenCount": usage.reasoning,
        "totalTokenCount": prompt + usage.output,
    })
}

fn finish_reason(stop: Stop) -> Option<String> {
    let reason = match stop {
        Stop::EndTurn | Stop::ToolUse => "STOP",
        Stop::Length => "MAX_TOKENS",
        Stop::Refusal => "SAFETY",
        Stop::Raw(reason) => return Some(reason),
        Stop::Missing => return None,
    };
    Some(reason.to_owned())
}
