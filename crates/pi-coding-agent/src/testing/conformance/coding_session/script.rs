//! A model server and tools that do what a case says.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
};

use async_trait::async_trait;
use pi_agent_core::{AgentTool, ToolArguments, ToolContext, ToolError, ToolOutput};
use pi_ai::{
    AssistantStream, Model, StreamFn, StreamOptions, ToolDeclaration, TranscriptContext,
    api::{BuiltinWires, Exchange, Progress, errors},
    stream::MessageBuilder,
};
use serde_json::{Value, json};

use super::NOW;

/// Answers without sockets: a request is encoded by its wire and recorded, and the answer decoded by it.
#[derive(Clone)]
pub(super) struct ScriptedServer {
    wires: BuiltinWires,
    shared: Arc<Mutex<Shared>>,
}

struct Shared {
    replies: VecDeque<Value>,
    requests: Vec<Value>,
    answered: usize,
}

impl ScriptedServer {
    pub(super) fn new(replies: Vec<Value>) -> Self {
        let shared = Shared { replies: replies.into(), requests: Vec::new(), answered: 0 };
        Self { wires: BuiltinWires::default(), shared: Arc::new(Mutex::new(shared)) }
    }

    pub(super) fn requests(&self) -> Vec<Value> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner).requests.clone()
    }

    fn next(&self, request: Value) -> (Value, usize) {
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        shared.requests.push(request);
        shared.answered += 1;
        let reply = shared.replies.pop_front().unwrap_or_else(|| json!({"text": "(script ended)"}));
        (reply, shared.answered)
    }
}

impl StreamFn for ScriptedServer {
    fn stream(&self, model: &Arc<Model>, context: TranscriptContext, options: StreamOptions) -> AssistantStream {
        let options = StreamOptions { api_key: Some("test".into()), ..options };
        let mut answer = MessageBuilder::new(model, NOW);
        let failed = |error| AssistantStream::failed(model, NOW, error);
        let wire = match self.wires.get(&model.api) {
            Ok(wire) => wire,
            Err(error) => return failed(error),
        };
        let exchange = Exchange::new(wire, model.clone(), context, options.clone());
        let sent = match exchange.encode() {
            Ok(request) => exchange.prepare(request),
            Err(error) => return failed(error),
        };
        let body: Value = serde_json::from_slice(&sent.body).unwrap_or_default();
        let (reply, number) = self.next(shown(&body));
        if let Some(status) = reply["status"].as_u64().and_then(|status| u16::try_from(status).ok()) {
            let body = json!({"error": {"message": reply["message"]}}).to_string();
            return failed(errors::from_response(&model.provider, status, Vec::new(), body.as_bytes()));
        }
        let mut reader = exchange.begin(&sent, &mut answer);
        let events = chunks(&reply, number, &model.id);
        reader.push(events.as_bytes());
        reader.finish();
        while reader.advance(&mut answer) == Progress::Decoded {}
        let signal = options.signal.clone();
        AssistantStream::from_events(
            model,
            NOW,
            signal,
            futures::stream::iter(std::iter::from_fn(move || answer.pop_event()).collect::<Vec<_>>()),
        )
    }
}

/// What of a request the vectors hold.
fn shown(body: &Value) -> Value {
    let messages = body["messages"].as_array().cloned().unwrap_or_default();
    let role = |message: &Value| match message["role"].as_str() {
        Some("developer") => json!("system"),
        _ => message["role"].clone(),
    };
    let text = |content: &Value| match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        _ => String::new(),
    };
    let tools = body["tools"].as_array().into_iter().flatten();
    json!({
        "model": body["model"],
        "roles": messages.iter().map(role).collect::<Vec<_>>(),
        "tools": tools.map(|tool| tool["function"]["name"].clone()).collect::<Vec<_>>(),
        "last_text": messages.last().map(|message| text(&message["content"])).unwrap_or_default(),
        "reasoning_effort": body.get("reasoning_effort").cloned().unwrap_or_default(),
    })
}

/// The body of a streamed answer.
fn chunks(reply: &Value, number: usize, model: &str) -> String {
    let mut body = String::new();
    let mut event = |choices: Value, usage: Value| {
        let mut chunk = json!({"id": format!("chatcmpl-{number}"), "model": model, "choices": choices});
        if !usage.is_null() {
            chunk["usage"] = usage;
        }
        body.push_str(&format!("data: {chunk}\n\n"));
    };
    if let Some(text) = reply["text"].as_str() {
        event(json!([{"index": 0, "delta": {"content": text}}]), Value::Null);
    }
    let calls: Vec<Value> = reply["tool_calls"].as_array().cloned().unwrap_or_default();
    for (index, call) in calls.iter().enumerate() {
        let arguments = call.get("arguments").or(call.get("args")).cloned().unwrap_or_else(|| json!({}));
        let text = arguments.as_str().map_or_else(|| arguments.to_string(), str::to_owned);
        let call = json!({
            "index": index, "id": call["id"], "type": "function",
            "function": {"name": call["name"], "arguments": text},
        });
        event(json!([{"index": 0, "delta": {"tool_calls": [call]}}]), Value::Null);
    }
    let usual = if calls.is_empty() { "stop" } else { "tool_calls" };
    let finish = reply["finish"].as_str().unwrap_or(usual);
    event(json!([{"index": 0, "delta": {}, "finish_reason": finish}]), Value::Null);
    let tokens = |key: &str, usual: u64| reply[key].as_u64().unwrap_or(usual);
    let (prompt, completion) = (tokens("prompt_tokens", 10), tokens("completion_tokens", 5));
    let usage = json!({
        "prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion,
    });
    event(json!([]), usage);
    body.push_str("data: [DONE]\n\n");
    body
}

/// A tool that says what it is told to.
pub(super) struct ScriptedTool {
    declaration: ToolDeclaration,
    outcome: Result<String, String>,
}

impl ScriptedTool {
    pub(super) fn new(name: &str, behavior: &Value) -> Self {
        let text = |key: &str| behavior[key].as_str().map(str::to_owned);
        let outcome = match (text("throw"), behavior["throw"].as_bool()) {
            (Some(error), _) => Err(error),
            (None, Some(true)) => Err("failed".to_owned()),
            _ => Ok(text("text").unwrap_or_else(|| format!("{name} done"))),
        };
        let parameters = json!({"type": "object", "properties": {}});
        Self { declaration: ToolDeclaration::new(name, format!("{name} tool"), parameters), outcome }
    }
}

#[async_trait]
impl AgentTool for ScriptedTool {
    fn declaration(&self) -> &ToolDeclaration {
        &self.declaration
    }

    async fn execute(&self, _arguments: ToolArguments, _context: ToolContext) -> Result<ToolOutput, ToolError> {
        match &self.outcome {
            Ok(text) => Ok(ToolOutput::text(text.clone())),
            Err(error) => Err(ToolError::new(error.clone())),
        }
    }
}
