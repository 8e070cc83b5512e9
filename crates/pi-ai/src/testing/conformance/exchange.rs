//! What the areas about providers share: a vector's model, context and options, and an answer as JSON.

use std::{sync::Arc, time::Duration};

use serde_json::{Map, Value, json};

use crate::{
    api::{BodyReader, BuiltinWires, Concessions, EncodeRequest, HttpRequest, Note, Progress, Wire},
    context::{Context, TranscriptContext},
    id::SessionId,
    json::from_str_lenient,
    model::Model,
    options::{Continuation, Identity, StreamOptions},
    stream::{AssistantEvent, MessageBuilder, MessageFold},
    time::Timestamp,
};

/// The clock of the vectors.
pub(super) const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);

/// Who is asked what.
pub(super) struct Call {
    pub(super) model: Arc<Model>,
    pub(super) context: TranscriptContext,
    pub(super) options: StreamOptions,
    pub(super) wire: Arc<dyn Wire>,
    pub(super) concessions: Concessions,
}

impl Call {
    pub(super) fn new(model: &Value, context: TranscriptContext, options: StreamOptions) -> Option<Self> {
        let model: Model = serde_json::from_value(model.clone()).ok()?;
        let wire = BuiltinWires::default().get(&model.api).ok()?;
        Some(Self { model: Arc::new(model), context, options, wire, concessions: Concessions::default() })
    }

    pub(super) fn request(&self) -> EncodeRequest<'_> {
        let Self { model, context, options, concessions, .. } = self;
        EncodeRequest { model, context, options, concessions }
    }

    pub(super) fn reader(&self) -> BodyReader {
        let sent = HttpRequest { url: String::new(), headers: Vec::new(), body: Vec::new(), note: Note::default() };
        BodyReader::new(self.wire.framing(), self.wire.decoder(&self.request(), &sent))
    }
}

/// A context as callers hand it in.
pub(super) fn context(value: &Value) -> Option<TranscriptContext> {
    context_from(&value.to_string())
}

pub(super) fn context_from(json: &str) -> Option<TranscriptContext> {
    let fields: Map<String, Value> = from_str_lenient(json).ok()?;
    let field = |name: &str| fields.get(name).cloned().unwrap_or(Value::Null);
    let context = Context {
        system_prompt: field("systemPrompt").as_str().map(str::to_owned),
        messages: serde_json::from_value(field("messages")).ok()?,
        tools: match field("tools") {
            Value::Null => Vec::new(),
            tools => serde_json::from_value(tools).ok()?,
        },
    };
    Some(context.normalize())
}

/// Options by their names in the vectors. Nobody asks in particular: no identity.
pub(super) fn options(value: &Value) -> Option<StreamOptions> {
    let mut options = StreamOptions {
        identity: Identity { user_agent: None, title: None, referer: None },
        ..StreamOptions::default()
    };
    for (name, value) in value.as_object().into_iter().flatten() {
        let read = value.clone();
        match name.as_str() {
            "apiKey" => options.api_key = value.as_str().map(Into::into),
            "headers" => options.headers = serde_json::from_value(read).ok()?,
            "env" => options.env = serde_json::from_value(read).ok()?,
            "temperature" => options.temperature = value.as_f64(),
            "samplingParams" => options.sampling_params = value.as_object().cloned(),
            "maxTokens" => options.max_tokens = value.as_u64(),
            "cacheRetention" => options.cache_retention = serde_json::from_value(read).ok()?,
            "sessionId" => options.session_id = value.as_str().map(SessionId::from),
            "metadata" => options.metadata = value.as_object().cloned(),
            "reasoning" => options.reasoning = serde_json::from_value(read).ok()?,
            "toolChoice" => options.tool_choice = serde_json::from_value(read).ok()?,
            "thinkingBudgets" => options.thinking_budgets = serde_json::from_value(read).ok()?,
            "maxRetries" => options.retry.max_retries = u32::try_from(value.as_u64()?).ok()?,
            "maxRetryDelayMs" => {
                options.retry.max_delay = value.as_u64().filter(|ms| *ms > 0).map(Duration::from_millis);
            }
            "disableContinuation" if value == true => options.continuation = Continuation::Disabled,
            _ => {}
        }
    }
    Some(options)
}

/// Reads a whole body in pieces.
pub(super) fn read_body(reader: &mut BodyReader, pieces: &[&[u8]], answer: &mut MessageBuilder) {
    for piece in pieces {
        reader.push(piece);
        while reader.advance(answer) == Progress::Decoded {}
    }
    reader.finish();
    while reader.advance(answer) == Progress::Decoded {}
}

/// The events and the message of an answer. Panics when the events do not add up to the message.
pub(super) fn outcome(model: &Model, mut answer: MessageBuilder) -> Value {
    let mut fold = MessageFold::new(model, NOW);
    let mut events = Vec::new();
    while let Some(event) = answer.pop_event() {
        fold.apply(&event);
        events.push(event_json(&event, &fold));
    }
    let message = answer.into_message();
    let mut last = fold.into_message();
    // Signatures and ids may come late, without an event of their own, when an answer fails.
    if message.is_failed() {
        last.content.clone_from(&message.content);
    }
    assert_eq!(json!(last), json!(message), "the events do not add up to the message");
    let mut message = json!(message);
    if let Value::Object(fields) = &mut message {
        fields.shift_remove("timestamp");
        fields.shift_remove("durationMs");
        fields.insert("role".into(), "assistant".into());
        for diagnostic in fields.get_mut("diagnostics").and_then(Value::as_array_mut).into_iter().flatten() {
            if let Value::Object(diagnostic) = diagnostic {
                diagnostic.shift_remove("timestamp");
            }
        }
    }
    json!({ "events": events, "final": message })
}

fn event_json(event: &AssistantEvent, fold: &MessageFold) -> Value {
    let block = |index: &usize| json!(fold.message().content.get(*index));
    match event {
        AssistantEvent::Start => json!({ "type": "start" }),
        AssistantEvent::TextStart { index } => json!({ "type": "text_start", "contentIndex": index }),
        AssistantEvent::TextDelta { index, delta } => {
            json!({ "type": "text_delta", "contentIndex": index, "delta": delta })
        }
        AssistantEvent::TextEnd { index, .. } => {
            json!({ "type": "text_end", "contentIndex": index, "content": block(index)["text"] })
        }
        AssistantEvent::ThinkingStart { index, .. } => json!({ "type": "thinking_start", "contentIndex": index }),
        AssistantEvent::ThinkingDelta { index, delta } => {
            json!({ "type": "thinking_delta", "contentIndex": index, "delta": delta })
        }
        AssistantEvent::ThinkingEnd { index, .. } => {
            json!({ "type": "thinking_end", "contentIndex": index, "content": block(index)["thinking"] })
        }
        AssistantEvent::ToolCallStart { index, .. } => {
            json!({ "type": "toolcall_start", "contentIndex": index, "arguments": block(index)["arguments"] })
        }
        AssistantEvent::ToolCallDelta { index, delta } => {
            let arguments = &block(index)["arguments"];
            json!({ "type": "toolcall_delta", "contentIndex": index, "delta": delta, "arguments": arguments })
        }
        AssistantEvent::ToolCallEnd { index, .. } => {
            json!({ "type": "toolcall_end", "contentIndex": index, "toolCall": block(index) })
        }
        AssistantEvent::Done { reason, .. } => json!({ "type": "done", "reason": reason }),
        AssistantEvent::Error { reason, .. } => json!({ "type": "error", "reason": reason }),
    }
}
