//! OpenAI Responses.

use serde_json::{Value, json};

use super::{Asked, Check, Dialect, Pairing};
use crate::answer::{Answer, Part, Stop, ToolCall, Usage};
use crate::reply::Step;
use crate::request::Request;
use crate::rules::{Alternation, LaterSystem};

/// The longest id and tool name the service takes.
const ID_LIMIT: usize = 64;

const TOP_FIELDS: &[&str] = &[
    "background",
    "conversation",
    "include",
    "input",
    "instructions",
    "max_output_tokens",
    "max_tool_calls",
    "metadata",
    "model",
    "parallel_tool_calls",
    "previous_response_id",
    "prompt",
    "prompt_cache_key",
    "prompt_cache_options",
    "prompt_cache_retention",
    "reasoning",
    "safety_identifier",
    "service_tier",
    "store",
    "stream",
    "stream_options",
    "temperature",
    "text",
    "tool_choice",
    "tools",
    "top_logprobs",
    "top_p",
    "truncation",
    "user",
];

pub(crate) struct OpenAiResponses;

impl Dialect for OpenAiResponses {
    fn name(&self) -> &'static str {
        "openai-responses"
    }

    fn base_path(&self) -> &'static str {
        "/v1"
    }

    fn owns(&self, path: &str) -> bool {
        path.ends_with("/responses")
    }

    fn steps(&self, answer: &Answer, asked: &Asked<'_>) -> Vec<Step> {
        let mut encoder = Encoder::default();
        encoder.run(answer, asked);
        encoder.steps
    }

    fn error_body(&self, status: u16, message: &str) -> Value {
        let kind = if (400..500).contains(&status) { "invalid_request_error" } else { "server_error" };
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
        check_tools(&body["tools"], "tools", check);
        if !body["input"].is_string() {
            check_input(check.list(&body["input"], "input"), body, check);
        }
    }
}

fn check_tools(tools: &Value, at: &str, check: &mut Check) {
    let mut names = Vec::new();
    for (index, tool) in tools.as_array().map_or(&[][..], Vec::as_slice).iter().enumerate() {
        let at = format!("{at}[{index}]");
        match tool["type"].as_str() {
            Some("function") => {
                names.extend(check.identifier(&tool["name"], ID_LIMIT, &format!("{at}.name")));
                check.object(&tool["parameters"], &format!("{at}.parameters"));
            }
            Some("custom") => names.extend(check.identifier(&tool["name"], ID_LIMIT, &format!("{at}.name"))),
            Some(_) => {}
            None => check.fail(&at, "a tool without a type"),
        }
    }
    check.unique(&names, at);
}

fn check_input(items: &[Value], body: &Value, check: &mut Check) {
    let mut pairing = Pairing::default();
    let mut calls: Vec<String> = Vec::new();
    let mut previous_role = None;
    let mut follows_reasoning = false;
    for (index, item) in items.iter().enumerate() {
        let at = format!("input[{index}]");
        let kind = item["type"].as_str().unwrap_or("message");
        if follows_reasoning && (kind.ends_with("_output") || item["role"] == "user") {
            check.fail(&at, "the reasoning before this has no message or call after it");
        }
        follows_reasoning = kind == "reasoning";
        // The calls of a turn stand side by side; what comes after them ends the turn.
        if matches!(kind, "function_call" | "custom_tool_call") {
            check_call(item, kind, &at, check);
            calls.extend(item["call_id"].as_str().map(str::to_owned));
            continue;
        }
        if !calls.is_empty() {
            pairing.calls(std::mem::take(&mut calls), &at, check);
        }
        match kind {
            "function_call_output" | "custom_tool_call_output" => {
                check_output(&item["output"], &at, check);
                if let Some(id) = check.text(&item["call_id"], &format!("{at}.call_id")) {
                    pairing.result(id, &at, check);
                }
            }
            "reasoning" => {
                pairing.close(&at, check);
                check_reasoning(item, body, &at, check);
            }
            "message" => {
                pairing.close(&at, check);
                check_message(item, &mut previous_role, &at, check);
            }
            "additional_tools" => check_tools(&item["tools"], &format!("{at}.tools"), check),
            "tool_search_call" | "tool_search_output" | "item_reference" | "compaction" => {}
            other => check.fail(&at, format!("an item of type `{other}`")),
        }
    }
    if !calls.is_empty() {
        pairing.calls(calls, "the end of input", check);
    }
    pairing.close("the end of input", check);
    check.require(!follows_reasoning, "the end of input", "the last reasoning has no message or call after it");
}

fn check_call(item: &Value, kind: &str, at: &str, check: &mut Check) {
    check.identifier(&item["call_id"], ID_LIMIT, &format!("{at}.call_id"));
    check.identifier(&item["name"], ID_LIMIT, &format!("{at}.name"));
    let prefix = if kind == "function_call" { "fc_" } else { "ctc_" };
    check_item_id(item, prefix, at, check);
    if kind == "custom_tool_call" {
        return check.require(item["input"].is_string(), &format!("{at}.input"), "expected a string");
    }
    let parsed = item["arguments"].as_str().map(serde_json::from_str::<Value>);
    let object = matches!(parsed, Some(Ok(Value::Object(_))));
    check.require(object, &format!("{at}.arguments"), "expected a JSON object as text");
}

/// An item's own id is optional, but the service knows its kind by the beginning.
fn check_item_id(item: &Value, prefix: &str, at: &str, check: &mut Check) {
    if item.get("id").is_none() {
        return;
    }
    let at = format!("{at}.id");
    if let Some(id) = check.identifier(&item["id"], ID_LIMIT, &at)
        && !id.starts_with(prefix)
    {
        check.fail(&at, format!("expected an id that begins with `{prefix}`, found `{id}`"));
    }
}

fn check_reasoning(item: &Value, body: &Value, at: &str, check: &mut Check) {
    check_item_id(item, "rs_", at, check);
    check.require(item["summary"].is_array(), &format!("{at}.summary"), "expected a list");
    // What the service did not store it can only know from the encrypted content.
    let known = body["store"] != false || item["encrypted_content"].as_str().is_some_and(|text| !text.is_empty());
    check.require(known, at, "reasoning that is neither stored nor encrypted");
}

fn check_message<'v>(item: &'v Value, previous: &mut Option<&'v str>, at: &str, check: &mut Check) {
    let role = item["role"].as_str().unwrap_or_default();
    let types: &[&str] = match role {
        "assistant" => {
            check_item_id(item, "msg_", at, check);
            &["output_text", "refusal"]
        }
        "user" => &["input_text", "input_image", "input_file"],
        "system" | "developer" => {
            let late = previous.is_some() && check.rules.later_system == LaterSystem::Refused;
            check.require(!late, at, "a system message after the first turn");
            &["input_text"]
        }
        other => return check.fail(at, format!("unknown role `{other}`")),
    };
    if matches!(role, "user" | "assistant") {
        if check.rules.alternation == Alternation::Strict && *previous == Some(role) {
            check.fail(at, format!("two `{role}` messages in a row"));
        }
        *previous = Some(role);
    }
    check_content(&item["content"], types, at, check);
}

fn check_output(output: &Value, at: &str, check: &mut Check) {
    if !output.is_string() {
        check_blocks(
            check.list(output, &format!("{at}.output")),
            &["input_text", "input_image", "input_file"],
            at,
            check,
        );
    }
}

fn check_content(content: &Value, types: &[&str], at: &str, check: &mut Check) {
    if !content.is_string() {
        check_blocks(check.list(content, &format!("{at}.content")), types, at, check);
    }
}

fn check_blocks(blocks: &[Value], types: &[&str], at: &str, check: &mut Check) {
    for (index, block) in blocks.iter().enumerate() {
        let at = format!("{at}.content[{index}]");
        let found = block["type"].as_str().unwrap_or_default();
        if !types.contains(&found) {
            check.fail(&at, format!("a block of type `{found}`, expected one of {types:?}"));
        } else if found == "input_image" {
            let url = block["image_url"].as_str().unwrap_or_default();
            let accepted =
                url.starts_with("data:image/") || url.starts_with("https://") || block["file_id"].is_string();
            check.require(accepted, &at, "an image that is neither a data URL nor https");
        } else if found.ends_with("_text") {
            check.require(block["text"].is_string(), &at, "a text block without `text`");
        }
    }
}

/// Writes the events of an answer.
#[derive(Default)]
struct Encoder {
    steps: Vec<Step>,
    serial: u64,
    /// The item that is open.
    open: Option<Open>,
    output: Vec<Value>,
    request: usize,
}

/// A message or a reasoning item while its deltas come.
struct Open {
    kind: Kind,
    id: String,
    text: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Message,
    Reasoning,
}

impl Open {
    fn item(&self) -> Value {
        match self.kind {
            Kind::Message => {
                let part = json!({"type": "output_text", "text": self.text, "annotations": []});
                json!({"type": "message", "id": self.id, "role": "assistant", "status": "completed", "content": [part]})
            }
            Kind::Reasoning => {
                let part = json!({"type": "summary_text", "text": self.text});
                json!({"type": "reasoning", "id": self.id, "summary": [part], "encrypted_content": "ZW5jcnlwdGVk"})
            }
        }
    }
}

impl Encoder {
    fn run(&mut self, answer: &Answer, asked: &Asked<'_>) {
        self.request = asked.serial;
        let id = answer.id.clone().unwrap_or_else(|| format!("resp_{}", asked.serial));
        let model = answer.model.as_deref().unwrap_or(asked.model).to_owned();
        let response = |status: &str| json!({"id": id, "object": "response", "model": model, "status": status});
        let mut created = response("in_progress");
        created["output"] = json!([]);
        self.event("response.created", json!({"response": created}));
        for part in &answer.parts {
            match part {
                Part::Text(text) => self.delta(Kind::Message, text),
                Part::Thinking(text) => self.delta(Kind::Reasoning, text),
                Part::Wait(wait) => self.steps.push(Step::Wait(wait.clone())),
                Part::ToolCall(call) => self.call(call),
            }
        }
        self.leave();
        let (status, event, details) = match answer.effective_stop() {
            Stop::EndTurn | Stop::ToolUse => ("completed", "response.completed", Value::Null),
            Stop::Length => ("incomplete", "response.incomplete", json!({"reason": "max_output_tokens"})),
            Stop::Refusal => ("incomplete", "response.incomplete", json!({"reason": "content_filter"})),
            Stop::Raw(reason) => ("incomplete", "response.incomplete", json!({"reason": reason})),
            // On this wire a missing stop reason is a stream without its last event.
            Stop::Missing => return,
        };
        let mut last = response(status);
        last["incomplete_details"] = details;
        last["output"] = Value::Array(std::mem::take(&mut self.output));
        last["usage"] = usage(&answer.effective_usage());
        self.event(event, json!({"response": last}));
    }

    fn delta(&mut self, kind: Kind, text: &str) {
        if self.open.as_ref().is_none_or(|open| open.kind != kind) {
            self.leave();
            self.enter(kind);
        }
        let Some(open) = &mut self.open else { return };
        open.text.push_str(text);
        let (id, index) = (open.id.clone(), self.output.len());
        match kind {
            Kind::Message => {
                let fields = json!({"item_id": id, "output_index": index, "content_index": 0, "delta": text});
                self.event("response.output_text.delta", fields);
            }
            Kind::Reasoning => {
                let fields = json!({"item_id": id, "output_index": index, "summary_index": 0, "delta": text});
                self.event("response.reasoning_summary_text.delta", fields);
            }
        }
    }

    fn enter(&mut self, kind: Kind) {
        let index = self.output.len();
        let (id, item) = match kind {
            Kind::Message => {
                let id = format!("msg_{}_{index}", self.request);
                let item =
                    json!({"type": "message", "id": id, "role": "assistant", "status": "in_progress", "content": []});
                (id, item)
            }
            Kind::Reasoning => {
                let id = format!("rs_{}_{index}", self.request);
                let item = json!({"type": "reasoning", "id": id, "summary": []});
                (id, item)
            }
        };
        self.event("response.output_item.added", json!({"output_index": index, "item": item}));
        let place = json!({"item_id": id, "output_index": index});
        match kind {
            Kind::Message => {
                let part = json!({"type": "output_text", "text": "", "annotations": []});
                self.event("response.content_part.added", merged(place, json!({"content_index": 0, "part": part})));
            }
            Kind::Reasoning => {
                let part = json!({"type": "summary_text", "text": ""});
                let fields = json!({"summary_index": 0, "part": part});
                self.event("response.reasoning_summary_part.added", merged(place, fields));
            }
        }
        self.open = Some(Open { kind, id, text: String::new() });
    }

    fn leave(&mut self) {
        let Some(open) = self.open.take() else { return };
        let place = json!({"item_id": open.id, "output_index": self.output.len()});
        let item = open.item();
        match open.kind {
            Kind::Message => {
                let fields = merged(place.clone(), json!({"content_index": 0, "text": open.text}));
                self.event("response.output_text.done", fields);
                let fields = merged(place, json!({"content_index": 0, "part": item["content"][0]}));
                self.event("response.content_part.done", fields);
            }
            Kind::Reasoning => {
                let fields = merged(place.clone(), json!({"summary_index": 0, "text": open.text}));
                self.event("response.reasoning_summary_text.done", fields);
                let fields = merged(place, json!({"summary_index": 0, "part": item["summary"][0]}));
                self.event("response.reasoning_summary_part.done", fields);
            }
        }
        self.finish_item(item);
    }

    fn call(&mut self, call: &ToolCall) {
        self.leave();
        let index = self.output.len();
        let id = format!("fc_{}_{index}", self.request);
        let call_id = call.id.clone().unwrap_or_else(|| format!("call_{}_{index}", self.request));
        let mut item = json!({
            "type": "function_call", "id": id, "call_id": call_id, "name": call.name, "arguments": "",
            "status": "in_progress",
        });
        self.event("response.output_item.added", json!({"output_index": index, "item": item}));
        for piece in call.argument_pieces() {
            let fields = json!({"item_id": id, "output_index": index, "delta": piece});
            self.event("response.function_call_arguments.delta", fields);
        }
        let fields = json!({"item_id": id, "output_index": index, "arguments": call.arguments});
        self.event("response.function_call_arguments.done", fields);
        item["arguments"] = json!(call.arguments);
        item["status"] = json!("completed");
        self.finish_item(item);
    }

    fn finish_item(&mut self, item: Value) {
        self.event("response.output_item.done", json!({"output_index": self.output.len(), "item": item}));
        self.output.push(item);
    }

    fn event(&mut self, name: &str, fields: Value) {
        let event = merged(json!({"type": name, "sequence_number": self.serial}), fields);
        self.serial += 1;
        self.steps.push(Step::Bytes(format!("event: {name}\ndata: {event}\n\n").into_bytes()));
    }
}

/// The first object with the fields of the second.
fn merged(mut object: Value, fields: Value) -> Value {
    if let (Value::Object(object), Value::Object(fields)) = (&mut object, fields) {
        object.extend(fields);
    }
    object
}

fn usage(usage: &Usage) -> Value {
    let input = usage.input + usage.cache_read + usage.cache_write;
    json!({
        "input_tokens": input,
        "input_tokens_details": {"cached_tokens": usage.cache_read, "cache_write_tokens": usage.cache_write},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": input + usage.output,
    })
}
