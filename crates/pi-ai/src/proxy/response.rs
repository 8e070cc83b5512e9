//! The client's side of an answer: the server's events → ours.

use serde::Deserialize;
use serde_json::Value;

use crate::{
    api::{
        Decoder, EncodeRequest, Flow, Frame,
        decode::{self, Count, Index, Object, Scratch, Text},
        errors,
    },
    error::{ErrorKind, ProviderError},
    id::ProviderId,
    message::{AssistantBlock, StopReason, ThinkingContent, ToolCall},
    stream::{BlockEnd, MessageBuilder},
    usage::Usage,
};

/// Any event. Every field may be missing; what is rare is boxed, because nearly all events are deltas, and are moved.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Event<'a> {
    #[serde(borrow, rename = "type")]
    kind: Text<'a>,
    content_index: Index,
    delta: Text<'a>,
    content: Text<'a>,
    content_signature: Text<'a>,
    redacted: Option<Box<Value>>,
    id: Text<'a>,
    tool_name: Text<'a>,
    tool_call: Option<Box<ToolCall>>,
    reason: Option<StopReason>,
    usage: Option<Box<Usage>>,
    error_message: Text<'a>,
    error: Option<Box<Object<RawError>>>,
    response_id: Text<'a>,
    response_model: Text<'a>,
    provider_thinking_level: Text<'a>,
    raw_stop_reason: Text<'a>,
    end_turn: Option<Box<Value>>,
    deferred: Option<Box<Value>>,
    diagnostics: Option<Box<Value>>,
    /// What a gateway changed about the request.
    rewrite: Option<Box<Value>>,
    late_signatures: Vec<(usize, String)>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct RawError {
    kind: Option<ErrorKind>,
    retry_after_ms: Count,
}

pub(crate) struct EventDecoder {
    provider: ProviderId,
    finish: Option<StopReason>,
}

/// What a block is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BlockKind {
    Text,
    Thinking,
    ToolCall,
}

impl EventDecoder {
    pub(crate) fn new(request: &EncodeRequest<'_>) -> Self {
        Self { provider: request.model.provider.clone(), finish: None }
    }

    fn event(&mut self, event: Event<'_>, answer: &mut MessageBuilder) -> Result<Flow, ProviderError> {
        let kind = event.kind.as_str().unwrap_or_default();
        match kind {
            "text_start" => {
                self.next(event.content_index, answer)?;
                answer.start_text();
            }
            "thinking_start" => {
                self.next(event.content_index, answer)?;
                answer.start_thinking(ThinkingContent {
                    thinking: event.content.into_string(),
                    thinking_signature: event.content_signature.as_str().map(str::to_owned),
                    redacted: event.redacted.as_deref().and_then(Value::as_bool),
                });
            }
            "toolcall_start" => {
                self.next(event.content_index, answer)?;
                let begun = event.tool_call.map_or_else(
                    || ToolCall {
                        id: event.id.as_str().unwrap_or_default().into(),
                        name: event.tool_name.into_string(),
                        ..ToolCall::default()
                    },
                    |call| *call,
                );
                answer.start_tool_call(begun);
            }
            "text_delta" => {
                let block = self.known(event.content_index, BlockKind::Text, answer)?;
                answer.push_text(block, event.delta.into_string());
            }
            "thinking_delta" => {
                let block = self.known(event.content_index, BlockKind::Thinking, answer)?;
                answer.push_thinking(block, event.delta.into_string());
            }
            "toolcall_delta" => {
                let block = self.known(event.content_index, BlockKind::ToolCall, answer)?;
                answer.push_arguments(block, event.delta.into_string());
            }
            "text_end" => {
                let block = self.known(event.content_index, BlockKind::Text, answer)?;
                answer.end_text(block, end(event, block, answer));
            }
            "thinking_end" => {
                let block = self.known(event.content_index, BlockKind::Thinking, answer)?;
                answer.end_thinking(block, end(event, block, answer));
            }
            "toolcall_end" => {
                let block = self.known(event.content_index, BlockKind::ToolCall, answer)?;
                match event.tool_call {
                    Some(call) => answer.end_tool_call_with(block, *call),
                    None => answer.end_tool_call(block),
                }
            }
            "done" => {
                let reason = event.reason;
                complete(event, answer);
                self.finish = match reason {
                    Some(StopReason::Pending | StopReason::Error | StopReason::Aborted | StopReason::Unknown)
                    | None => {
                        return Err(self.protocol("its last event has no reason that is known"));
                    }
                    reason => reason,
                };
                return Ok(Flow::Complete);
            }
            "error" => return Err(self.failure(event, answer)),
            _ => {}
        }
        Ok(Flow::More)
    }

    fn failure(&self, event: Event<'_>, answer: &mut MessageBuilder) -> ProviderError {
        let aborted = event.reason == Some(StopReason::Aborted);
        let message = match event.error_message.non_empty() {
            Some(message) => message.to_owned(),
            None => format!("{} ended the answer with an error and did not say which.", self.provider),
        };
        let raw = event.error.as_ref().and_then(|error| error.0.as_ref());
        let named = raw.and_then(|raw| raw.kind);
        let kind = match (aborted, named) {
            (true, _) => ErrorKind::Aborted,
            (false, Some(ErrorKind::Aborted)) | (false, None) => errors::kind_of(&self.provider, &message),
            (false, Some(kind)) => kind,
        };
        let delay = raw.and_then(|raw| raw.retry_after_ms.0).map(std::time::Duration::from_millis);
        complete(event, answer);
        let error = ProviderError::new(kind, message);
        match delay {
            Some(delay) => error.with_retry_after(delay),
            None => error,
        }
    }

    /// The index of a block that begins: the next one.
    fn next(&self, Index(index): Index, answer: &MessageBuilder) -> Result<(), ProviderError> {
        let next = answer.message().content.len();
        match index == u64::try_from(next).ok() {
            true => Ok(()),
            false => Err(self.protocol(&format!("block {next} should begin, not {index:?}"))),
        }
    }

    /// The index of a block that was begun, if it is of this kind.
    fn known(&self, Index(index): Index, kind: BlockKind, answer: &MessageBuilder) -> Result<usize, ProviderError> {
        let at = index.and_then(|index| usize::try_from(index).ok());
        let found = match at.and_then(|at| answer.message().content.get(at)) {
            Some(AssistantBlock::Text(_)) => Some(BlockKind::Text),
            Some(AssistantBlock::Thinking(_)) => Some(BlockKind::Thinking),
            Some(AssistantBlock::ToolCall(_)) => Some(BlockKind::ToolCall),
            _ => None,
        };
        at.filter(|_| found == Some(kind))
            .ok_or_else(|| self.protocol(&format!("there is no block {index:?} of kind {kind:?}")))
    }

    fn protocol(&self, what: &str) -> ProviderError {
        ProviderError::new(ErrorKind::Protocol, format!("The answer of {} is out of order: {what}.", self.provider))
    }
}

fn end(event: Event<'_>, block: usize, answer: &MessageBuilder) -> BlockEnd {
    let so_far = match answer.message().content.get(block) {
        Some(AssistantBlock::Text(block)) => block.text.as_str(),
        Some(AssistantBlock::Thinking(block)) => block.thinking.as_str(),
        _ => "",
    };
    BlockEnd {
        text: event.content.as_str().filter(|whole| *whole != so_far).map(str::to_owned),
        signature: event.content_signature.as_str().map(str::to_owned),
        redacted: event.redacted.as_deref().and_then(Value::as_bool),
    }
}

/// Takes over what the last event says of the whole message.
fn complete(event: Event<'_>, answer: &mut MessageBuilder) {
    for (index, signature) in &event.late_signatures {
        answer.sign_late(*index, signature.clone());
    }
    let owned = |text: &Text<'_>| text.non_empty().map(str::to_owned);
    answer.complete(|message| {
        if let Some(usage) = event.usage {
            message.usage = *usage;
        }
        message.response_id = owned(&event.response_id);
        message.response_model = owned(&event.response_model);
        message.provider_thinking_level = owned(&event.provider_thinking_level);
        message.raw_stop_reason = owned(&event.raw_stop_reason);
        message.end_turn = event.end_turn.as_deref().and_then(Value::as_bool);
        message.deferred = event.deferred.map(|value| *value);
        message.diagnostics = event.diagnostics.map(|value| *value);
    });
    if let Some(rewrite) = event.rewrite {
        let timestamp = serde_json::json!(answer.message().timestamp);
        answer.diagnose(serde_json::json!({
            "type": "pi_messages_rewrite", "timestamp": timestamp, "details": rewrite,
        }));
    }
}

impl Decoder for EventDecoder {
    fn frame(&mut self, frame: Frame<'_>, answer: &mut MessageBuilder) -> Result<Flow, ProviderError> {
        // Servers that end each line, and not each event, with a blank one make several events one frame.
        for line in frame.data.lines().map(str::trim) {
            if line.is_empty() || line == "[DONE]" {
                continue;
            }
            let mut scratch = Scratch::default();
            if let Object(Some(event)) = decode::parse::<Object<Event<'_>>>(line, &mut scratch)?
                && self.event(event, answer)? == Flow::Complete
            {
                return Ok(Flow::Complete);
            }
        }
        Ok(Flow::More)
    }

    fn finish(&mut self, answer: &mut MessageBuilder) -> Result<(), ProviderError> {
        match self.finish.take() {
            Some(reason) => answer.done(reason),
            None => {
                let message = format!("The answer of {} broke off: it ended without a last event.", self.provider);
                return Err(ProviderError::new(ErrorKind::Protocol, message));
            }
        }
        Ok(())
    }
}
