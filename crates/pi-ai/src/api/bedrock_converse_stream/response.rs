//! The events of a response → the answer.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde::Deserialize;
use serde_json::Value;

use crate::{
    api::{
        Decoder, EncodeRequest, Flow, Frame,
        decode::{self, Count, Index, List, Object, Scratch, Text},
        errors,
        finish::Finish,
    },
    error::{ErrorKind, ProviderError},
    id::ProviderId,
    json::from_str_lenient,
    message::{AssistantBlock, StopReason, ThinkingContent, ToolCall},
    model::ModelCost,
    stream::{BlockEnd, MessageBuilder},
    usage::Usage,
};

/// What stands for reasoning that the provider hides.
const REDACTED: &str = "[Reasoning redacted]";

/// Any event. Every field may be missing.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Event<'a> {
    #[serde(borrow)]
    role: Text<'a>,
    content_block_index: Index,
    start: Object<BlockStart<'a>>,
    delta: Object<Delta<'a>>,
    stop_reason: Text<'a>,
    usage: Object<RawUsage<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct BlockStart<'a> {
    #[serde(borrow)]
    tool_use: Object<ToolUseStart<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ToolUseStart<'a> {
    #[serde(borrow)]
    tool_use_id: Text<'a>,
    name: Text<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Delta<'a> {
    #[serde(borrow)]
    text: Text<'a>,
    tool_use: Object<ToolUseDelta<'a>>,
    reasoning_content: Object<ReasoningDelta<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ToolUseDelta<'a> {
    #[serde(borrow)]
    input: Text<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ReasoningDelta<'a> {
    #[serde(borrow)]
    text: Text<'a>,
    signature: Text<'a>,
    redacted_content: Text<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct RawUsage<'a> {
    input_tokens: Count,
    output_tokens: Count,
    total_tokens: Count,
    cache_read_input_tokens: Count,
    cache_write_input_tokens: Count,
    #[serde(borrow)]
    cache_details: Option<List<CacheDetail<'a>>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct CacheDetail<'a> {
    #[serde(borrow)]
    ttl: Text<'a>,
    input_tokens: Count,
}

pub(super) struct ConverseDecoder {
    provider: ProviderId,
    cost: ModelCost,
    open: Vec<OpenBlock>,
    finish: Option<Finish>,
    counted: bool,
}

/// A block that was begun and not ended.
struct OpenBlock {
    /// The provider's index.
    index: u64,
    /// Its place in the content.
    block: usize,
    /// The hidden reasoning, which may come in pieces.
    redacted: Vec<u8>,
}

impl ConverseDecoder {
    pub(super) fn new(request: &EncodeRequest<'_>) -> Self {
        Self {
            provider: request.model.provider.clone(),
            cost: request.model.cost.clone(),
            open: Vec::new(),
            finish: None,
            counted: false,
        }
    }

    fn event(&mut self, name: &str, event: Event<'_>, answer: &mut MessageBuilder) -> Result<Flow, ProviderError> {
        match name {
            "messageStart" if event.role.as_str().is_some_and(|role| role != "assistant") => {
                let message = format!("The answer of {} is not one of an assistant.", self.provider);
                return Err(ProviderError::new(ErrorKind::Protocol, message));
            }
            "contentBlockStart" => {
                if let Some(start) = event.start.0.and_then(|start| start.tool_use.0) {
                    let call = ToolCall {
                        id: start.tool_use_id.as_str().unwrap_or_default().into(),
                        name: start.name.into_string(),
                        ..ToolCall::default()
                    };
                    let block = answer.start_tool_call(call);
                    self.opened(event.content_block_index, block);
                }
            }
            "contentBlockDelta" => {
                if let Some(delta) = event.delta.0 {
                    self.delta(event.content_block_index, delta, answer);
                }
            }
            "contentBlockStop" => {
                let index = event.content_block_index.0.unwrap_or_default();
                if let Some(at) = self.open.iter().rposition(|open| open.index == index) {
                    end_block(self.open.remove(at), answer);
                }
            }
            "messageStop" => {
                let reason = event.stop_reason.as_str().unwrap_or_default();
                answer.complete(|message| message.raw_stop_reason = Some(reason.to_owned()));
                self.finish = Some(self.finish_of(reason));
            }
            "metadata" => {
                if let Some(usage) = event.usage.0 {
                    self.usage(&usage, answer);
                }
                self.counted = true;
            }
            _ => {}
        }
        // The counts come last.
        Ok(if self.finish.is_some() && self.counted { Flow::Complete } else { Flow::More })
    }

    fn opened(&mut self, Index(index): Index, block: usize) -> &mut OpenBlock {
        self.open.push(OpenBlock { index: index.unwrap_or_default(), block, redacted: Vec::new() });
        let last = self.open.len() - 1;
        &mut self.open[last]
    }

    /// A block begins with its first delta, but for calls.
    fn delta(&mut self, index: Index, delta: Delta<'_>, answer: &mut MessageBuilder) {
        let number = index.0.unwrap_or_default();
        let known = self.open.iter().rposition(|open| open.index == number);
        if delta.text.as_str().is_some() {
            let block = match known {
                Some(at) => self.open[at].block,
                None => {
                    let block = answer.start_text();
                    self.opened(index, block).block
                }
            };
            if let Some(AssistantBlock::Text(_)) = answer.block_mut(block) {
                answer.push_text(block, delta.text.into_string());
            }
        } else if let Some(call) = delta.tool_use.0 {
            if let Some(at) = known
                && let Some(AssistantBlock::ToolCall(_)) = answer.block_mut(self.open[at].block)
            {
                answer.push_arguments(self.open[at].block, call.input.into_string());
            }
        } else if let Some(reasoning) = delta.reasoning_content.0 {
            let open = match known {
                Some(at) => &mut self.open[at],
                None => {
                    let begun = ThinkingContent { thinking_signature: Some(String::new()), ..Default::default() };
                    let block = answer.start_thinking(begun);
                    self.opened(index, block)
                }
            };
            reason(open, reasoning, answer);
        }
    }

    fn usage(&self, raw: &RawUsage<'_>, answer: &mut MessageBuilder) {
        let for_an_hour = |details: &List<CacheDetail<'_>>| {
            let long = details.0.iter().filter(|detail| detail.ttl.as_str() == Some("1h"));
            long.map(|detail| detail.input_tokens.or_zero()).fold(0, u64::saturating_add)
        };
        let mut usage = Usage {
            input: raw.input_tokens.or_zero(),
            output: raw.output_tokens.or_zero(),
            cache_read: raw.cache_read_input_tokens.or_zero(),
            cache_write: raw.cache_write_input_tokens.or_zero(),
            cache_write_1h: raw.cache_details.as_ref().map(for_an_hour),
            ..Usage::default()
        };
        usage.total_tokens = match raw.total_tokens.or_zero() {
            0 => usage.input.saturating_add(usage.output),
            total => total,
        };
        usage.price(&self.cost);
        *answer.usage_mut() = usage;
    }

    fn finish_of(&self, reason: &str) -> Finish {
        let failed = Finish::failed;
        let provider = &self.provider;
        match reason {
            "end_turn" | "stop_sequence" => Finish::Done(StopReason::Stop),
            "max_tokens" | "model_context_window_exceeded" => Finish::Done(StopReason::Length),
            "tool_use" => Finish::Done(StopReason::ToolUse),
            "guardrail_intervened" | "content_filtered" => {
                failed(ErrorKind::Refused, format!("{provider} withheld the answer (stop reason: {reason})."))
            }
            other => failed(ErrorKind::Other, format!("{provider} ended the answer with stop reason: {other}")),
        }
    }

    /// The failure that an exception stands for. Its name is its class.
    fn exception(&self, name: &str, data: &str) -> ProviderError {
        let mut said = match from_str_lenient::<Value>(data) {
            Ok(Value::Object(said)) => said,
            _ => serde_json::Map::from_iter([("message".to_owned(), data.into())]),
        };
        if name != "error" {
            said.insert("__type".into(), name.into());
        }
        errors::from_event(&self.provider, &Value::Object(said).to_string())
    }
}

/// A signature and a hidden payload are never mixed: both stand in the same field.
fn reason(open: &mut OpenBlock, delta: ReasoningDelta<'_>, answer: &mut MessageBuilder) {
    let block = open.block;
    let Some(AssistantBlock::Thinking(_)) = answer.block_mut(block) else { return };
    if delta.text.non_empty().is_some() {
        answer.push_thinking(block, delta.text.into_string());
    }
    let Some(AssistantBlock::Thinking(thinking)) = answer.block_mut(block) else { return };
    let is_redacted = thinking.redacted == Some(true);
    if let Some(signature) = delta.signature.non_empty().filter(|_| !is_redacted) {
        thinking.thinking_signature.get_or_insert_default().push_str(signature);
    }
    let piece = delta.redacted_content.non_empty().and_then(|piece| STANDARD.decode(piece).ok());
    if let Some(piece) = piece.filter(|piece| !piece.is_empty()) {
        open.redacted.extend_from_slice(&piece);
        if !is_redacted {
            thinking.redacted = Some(true);
            thinking.thinking_signature = Some(String::new());
            answer.push_thinking(block, REDACTED);
        }
    }
}

fn end_block(open: OpenBlock, answer: &mut MessageBuilder) {
    let block = open.block;
    match answer.block_mut(block) {
        Some(AssistantBlock::Text(_)) => answer.end_text(block, BlockEnd::default()),
        Some(AssistantBlock::Thinking(thinking)) => {
            if !open.redacted.is_empty() {
                thinking.thinking_signature = Some(STANDARD.encode(&open.redacted));
            }
            let end =
                BlockEnd { text: None, signature: thinking.thinking_signature.clone(), redacted: thinking.redacted };
            answer.end_thinking(block, end);
        }
        Some(AssistantBlock::ToolCall(_)) => answer.end_tool_call(block),
        _ => {}
    }
}

impl Decoder for ConverseDecoder {
    fn frame(&mut self, frame: Frame<'_>, answer: &mut MessageBuilder) -> Result<Flow, ProviderError> {
        let name = frame.name.unwrap_or_default();
        if name == "error" || name.ends_with("Exception") {
            return Err(self.exception(name, frame.data));
        }
        answer.start();
        let mut scratch = Scratch::default();
        match decode::parse::<Object<Event<'_>>>(frame.data, &mut scratch)? {
            Object(Some(event)) => self.event(name, event, answer),
            Object(None) => Ok(Flow::More),
        }
    }

    fn is_settled(&self) -> bool {
        self.finish.is_some()
    }

    fn finish(&mut self, answer: &mut MessageBuilder) -> Result<(), ProviderError> {
        let reason = match self.finish.take() {
            Some(Finish::Done(reason)) => reason,
            Some(Finish::Failed(error)) => return Err(error),
            None => {
                let message = format!("The answer of {} broke off: it ended without a stop reason.", self.provider);
                return Err(ProviderError::new(ErrorKind::Protocol, message));
            }
        };
        // Text that was never ended is whole as it is. Reasoning has a signature to tell, and a call must not run with
        // arguments that only look complete.
        for open in self.open.drain(..) {
            if !matches!(answer.message().content.get(open.block), Some(AssistantBlock::Text(_))) {
                end_block(open, answer);
            }
        }
        answer.done(reason);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{Model, StreamOptions, Timestamp, api::Concessions, context::Context};

    fn read(events: &[(&str, Value)]) -> crate::AssistantMessage {
        let model = Model::default();
        let context = Context::from(Vec::new()).normalize();
        let (options, concessions) = (StreamOptions::default(), Concessions::default());
        let request = EncodeRequest { model: &model, context: &context, options: &options, concessions: &concessions };
        let mut decoder = ConverseDecoder::new(&request);
        let mut answer = MessageBuilder::new(&model, Timestamp::default());
        for (name, data) in events {
            let data = data.to_string();
            decoder.frame(Frame { name: Some(name), data: &data }, &mut answer).unwrap();
        }
        decoder.finish(&mut answer).unwrap();
        answer.into_message()
    }

    #[test]
    fn hidden_reasoning_is_kept_as_one_payload() {
        let piece = |bytes: &[u8]| {
            let delta = json!({ "reasoningContent": { "redactedContent": STANDARD.encode(bytes) } });
            ("contentBlockDelta", json!({ "contentBlockIndex": 0, "delta": delta }))
        };
        let stop = ("messageStop", json!({ "stopReason": "end_turn" }));
        let message = read(&[piece(b"ab"), piece(b"cde"), ("contentBlockStop", json!({})), stop]);
        let AssistantBlock::Thinking(thinking) = &message.content[0] else { panic!("no reasoning") };
        assert_eq!((thinking.thinking.as_str(), thinking.redacted), (REDACTED, Some(true)));
        assert_eq!(thinking.thinking_signature, Some(STANDARD.encode(b"abcde")));
    }
}
