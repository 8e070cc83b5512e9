//! The server's side of an answer: events → bytes.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use futures::{Stream, StreamExt};
use serde_json::{Map, Value, json};

use crate::{
    error::{ErrorKind, ProviderError},
    message::{AssistantBlock, StopReason, ThinkingContent},
    model::Model,
    stream::{AssistantEvent, Completion, MessageFold},
    time::Timestamp,
};

/// Writes the events of an answer, one server-sent event each.
#[derive(Debug)]
pub struct EventEncoder {
    /// The answer so far: the end of a block repeats what it came to.
    fold: MessageFold,
}

impl Default for EventEncoder {
    fn default() -> Self {
        Self { fold: MessageFold::new(&Model::default(), Timestamp::default()) }
    }
}

impl EventEncoder {
    /// The bytes of the next event.
    pub fn encode(&mut self, event: &AssistantEvent) -> Vec<u8> {
        self.fold.apply(event);
        let mut frame = b"data: ".to_vec();
        // A JSON value is always written.
        let _ = serde_json::to_writer(&mut frame, &self.value(event));
        frame.extend_from_slice(b"\n\n");
        frame
    }

    /// Whether the last event was encoded.
    pub fn has_ended(&self) -> bool {
        self.fold.has_ended()
    }

    fn value(&self, event: &AssistantEvent) -> Value {
        let block = |index: &usize| self.fold.message().content.get(*index);
        let about = |kind: &str, index: &usize| {
            Map::from_iter([("type".to_owned(), json!(kind)), ("contentIndex".to_owned(), json!(index))])
        };
        let mut fields = match event {
            AssistantEvent::Start => Map::from_iter([("type".to_owned(), json!("start"))]),
            AssistantEvent::TextStart { index } => about("text_start", index),
            AssistantEvent::ThinkingStart { index, .. } => about("thinking_start", index),
            AssistantEvent::ToolCallStart { index, .. } => about("toolcall_start", index),
            AssistantEvent::TextDelta { index, .. } => about("text_delta", index),
            AssistantEvent::ThinkingDelta { index, .. } => about("thinking_delta", index),
            AssistantEvent::ToolCallDelta { index, .. } => about("toolcall_delta", index),
            AssistantEvent::TextEnd { index, .. } => about("text_end", index),
            AssistantEvent::ThinkingEnd { index, .. } => about("thinking_end", index),
            AssistantEvent::ToolCallEnd { index, .. } => about("toolcall_end", index),
            AssistantEvent::Done { .. } => Map::from_iter([("type".to_owned(), json!("done"))]),
            AssistantEvent::Error { .. } => Map::from_iter([("type".to_owned(), json!("error"))]),
        };
        let mut set = |name: &str, value: Value| {
            if !value.is_null() {
                fields.insert(name.to_owned(), value);
            }
        };
        match event {
            AssistantEvent::Start | AssistantEvent::TextStart { .. } => {}
            AssistantEvent::ThinkingStart { block, .. } => {
                if **block != ThinkingContent::default() {
                    set("content", json!(block.thinking));
                    set("contentSignature", json!(block.thinking_signature));
                    set("redacted", json!(block.redacted));
                }
            }
            AssistantEvent::ToolCallStart { call, .. } => {
                set("id", json!(call.id));
                set("toolName", json!(call.name));
                if !call.arguments.is_empty() || call.thought_signature.is_some() || call.namespace.is_some() {
                    set("toolCall", json!(call));
                }
            }
            AssistantEvent::TextDelta { delta, .. }
            | AssistantEvent::ThinkingDelta { delta, .. }
            | AssistantEvent::ToolCallDelta { delta, .. } => set("delta", json!(delta)),
            AssistantEvent::TextEnd { index, .. } => {
                if let Some(AssistantBlock::Text(text)) = block(index) {
                    set("content", json!(text.text));
                    set("contentSignature", json!(text.text_signature));
                }
            }
            AssistantEvent::ThinkingEnd { index, .. } => {
                if let Some(AssistantBlock::Thinking(thinking)) = block(index) {
                    set("content", json!(thinking.thinking));
                    set("contentSignature", json!(thinking.thinking_signature));
                    set("redacted", json!(thinking.redacted));
                }
            }
            AssistantEvent::ToolCallEnd { call, .. } => {
                let mut call = json!(call);
                call["type"] = "toolCall".into();
                set("toolCall", call);
            }
            AssistantEvent::Done { reason, completion } => {
                set("reason", json!(reason));
                set_completion(completion, &mut set);
            }
            AssistantEvent::Error { reason, error, completion } => {
                set("reason", json!(reason));
                set("errorMessage", json!(error.message()));
                set("error", error_value(error));
                set_completion(completion, &mut set);
            }
        }
        Value::Object(fields)
    }
}

fn set_completion(completion: &Completion, set: &mut impl FnMut(&str, Value)) {
    set("usage", json!(completion.usage));
    set("responseId", json!(completion.response_id));
    set("responseModel", json!(completion.response_model));
    set("providerThinkingLevel", json!(completion.provider_thinking_level));
    set("rawStopReason", json!(completion.raw_stop_reason));
    set("endTurn", json!(completion.end_turn));
    set("deferred", json!(completion.deferred));
    set("diagnostics", json!(completion.diagnostics));
    if !completion.late_signatures.is_empty() {
        set("lateSignatures", json!(completion.late_signatures));
    }
}

/// The class of a failure. Headers and body of the provider's response stay with the server.
fn error_value(error: &ProviderError) -> Value {
    let mut value = json!({ "kind": error.kind() });
    if let Some(status) = error.status() {
        value["status"] = status.into();
    }
    if let Some(delay) = error.retry_after() {
        value["retryAfterMs"] = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX).into();
    }
    value
}

/// The body of a response with the events of an answer. Events that end without `Done` or `Error` are followed by an
/// error, so that a client always learns how it ended.
pub fn event_stream<S>(events: S) -> impl Stream<Item = Vec<u8>> + Send
where
    S: Stream<Item = AssistantEvent> + Send,
{
    Frames { events: Box::pin(events), encoder: EventEncoder::default() }
}

struct Frames<S> {
    events: Pin<Box<S>>,
    encoder: EventEncoder,
}

impl<S: Stream<Item = AssistantEvent>> Stream for Frames<S> {
    type Item = Vec<u8>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Vec<u8>>> {
        let this = &mut *self;
        if this.encoder.has_ended() {
            return Poll::Ready(None);
        }
        let event = ready!(this.events.poll_next_unpin(cx)).unwrap_or_else(|| {
            let message = "The answer broke off: the server's stream ended without a last event.";
            AssistantEvent::Error {
                reason: StopReason::Error,
                error: ProviderError::new(ErrorKind::Protocol, message),
                completion: Box::default(),
            }
        });
        Poll::Ready(Some(this.encoder.encode(&event)))
    }
}
