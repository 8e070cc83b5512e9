//! The events of a response → the answer.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::Value;

use super::tool_call_id;
use crate::{
    api::{
        Decoder, EncodeRequest, Flow, Frame,
        decode::{self, Arguments, Count, FunctionDelta, Index, List, Object, Payload, Scratch, Text},
        errors,
        finish::Finish,
        pieces::{Piece, Pieces},
    },
    error::{ErrorKind, ProviderError},
    id::ProviderId,
    message::{StopReason, ThinkingContent, ToolCall},
    model::ModelCost,
    stream::{BlockEnd, MessageBuilder},
    usage::Usage,
};

/// One chunk. Every field may be missing, but for the choices.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Chunk<'a> {
    #[serde(borrow)]
    id: Text<'a>,
    object: Text<'a>,
    choices: Option<List<Choice<'a>>>,
    usage: Object<RawUsage>,
    error: Value,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Choice<'a> {
    #[serde(borrow)]
    delta: Object<Delta<'a>>,
    finish_reason: Text<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Delta<'a> {
    #[serde(borrow)]
    content: Pieces<'a>,
    tool_calls: List<CallDelta<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct CallDelta<'a> {
    index: Index,
    #[serde(borrow)]
    id: Text<'a>,
    function: Object<FunctionDelta<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct RawUsage {
    prompt_tokens: Count,
    completion_tokens: Count,
    total_tokens: Count,
    #[serde(alias = "prompt_token_details", alias = "promptTokensDetails", alias = "promptTokenDetails")]
    prompt_tokens_details: Object<PromptDetails>,
    #[serde(alias = "numCachedTokens")]
    num_cached_tokens: Count,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct PromptDetails {
    #[serde(alias = "cachedTokens")]
    cached_tokens: Count,
}

pub(super) struct MistralDecoder {
    provider: ProviderId,
    cost: ModelCost,
    open: Option<(BlockKind, usize)>,
    calls: Vec<OpenCall>,
    by_index: HashMap<u64, usize>,
    finish: Option<Finish>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BlockKind {
    Text,
    Thinking,
}

struct OpenCall {
    block: usize,
    id: String,
}

impl MistralDecoder {
    pub(super) fn new(request: &EncodeRequest<'_>) -> Self {
        Self {
            provider: request.model.provider.clone(),
            cost: request.model.cost.clone(),
            open: None,
            calls: Vec::new(),
            by_index: HashMap::new(),
            finish: None,
        }
    }

    fn chunk(&mut self, chunk: Chunk<'_>, answer: &mut MessageBuilder) -> Result<(), ProviderError> {
        let Some(List(choices)) = chunk.choices else {
            let message = format!("An event of {} is not one of this API: it has no choices.", self.provider);
            return Err(ProviderError::new(ErrorKind::Protocol, message));
        };
        if let Some(id) = chunk.id.non_empty()
            && answer.message().response_id.is_none()
        {
            answer.complete(|message| message.response_id = Some(id.to_owned()));
        }
        if let Some(usage) = chunk.usage.0 {
            self.usage(usage, answer);
        }
        let Some(choice) = choices.into_iter().next() else { return Ok(()) };
        if let Some(reason) = choice.finish_reason.non_empty() {
            answer.complete(|message| message.raw_stop_reason = Some(reason.to_owned()));
            self.finish = Some(self.finish_of(reason));
        }
        let delta = choice.delta.0.unwrap_or_default();
        match delta.content {
            Pieces::None => {}
            Pieces::Text(text) => self.grow(BlockKind::Text, text, answer),
            Pieces::List(pieces) => {
                for piece in pieces {
                    self.piece(piece, answer);
                }
            }
        }
        for call in delta.tool_calls.0 {
            self.close_block(answer);
            self.call(call, answer);
        }
        Ok(())
    }

    fn usage(&self, raw: RawUsage, answer: &mut MessageBuilder) {
        let prompt = raw.prompt_tokens.or_zero();
        let details = raw.prompt_tokens_details.0.unwrap_or_default();
        let cached = details.cached_tokens.0.or(raw.num_cached_tokens.0).unwrap_or(0).min(prompt);
        let usage = answer.usage_mut();
        *usage = Usage {
            input: prompt - cached,
            output: raw.completion_tokens.or_zero(),
            cache_read: cached,
            ..Usage::default()
        };
        usage.total_tokens = match raw.total_tokens.or_zero() {
            0 => usage.all_input().saturating_add(usage.output),
            total => total,
        };
        usage.price(&self.cost);
    }

    fn finish_of(&self, reason: &str) -> Finish {
        let failed = Finish::failed;
        let provider = &self.provider;
        match reason {
            "stop" => Finish::Done(StopReason::Stop),
            "length" | "model_length" => Finish::Done(StopReason::Length),
            "tool_calls" => Finish::Done(StopReason::ToolUse),
            // So it tells of faults that pass.
            "error" => failed(ErrorKind::Overloaded, format!("{provider} ended the answer with a server error.")),
            other => failed(ErrorKind::Other, format!("{provider} ended the answer with finish_reason: {other}")),
        }
    }

    fn piece(&mut self, piece: Piece<'_>, answer: &mut MessageBuilder) {
        match piece {
            Piece::Text(text) => self.grow(BlockKind::Text, text, answer),
            Piece::Typed(piece) => match piece.kind.as_str().unwrap_or_default() {
                "text" => self.grow(BlockKind::Text, piece.text, answer),
                "thinking" => {
                    for piece in piece.thinking.0 {
                        self.grow(BlockKind::Thinking, piece.text, answer);
                    }
                }
                _ => {}
            },
        }
    }

    /// Empty pieces do not begin a block: some models send them between pieces of another kind.
    fn grow(&mut self, kind: BlockKind, text: Text<'_>, answer: &mut MessageBuilder) {
        if text.non_empty().is_none() {
            return;
        }
        if self.open.is_some_and(|(open, _)| open != kind) {
            self.close_block(answer);
        }
        let (_, block) = *self.open.get_or_insert_with(|| {
            let block = match kind {
                BlockKind::Text => answer.start_text(),
                BlockKind::Thinking => answer.start_thinking(ThinkingContent::default()),
            };
            (kind, block)
        });
        match kind {
            BlockKind::Text => answer.push_text(block, text.into_string()),
            BlockKind::Thinking => answer.push_thinking(block, text.into_string()),
        }
    }

    fn close_block(&mut self, answer: &mut MessageBuilder) {
        match self.open.take() {
            Some((BlockKind::Text, block)) => answer.end_text(block, BlockEnd::default()),
            Some((BlockKind::Thinking, block)) => answer.end_thinking(block, BlockEnd::default()),
            None => {}
        }
    }

    fn call(&mut self, delta: CallDelta<'_>, answer: &mut MessageBuilder) {
        let function = delta.function.0.unwrap_or_default();
        let name = function.name.non_empty();
        let id = delta.id.non_empty().filter(|id| *id != "null");
        let position = match self.find_call(delta.index, id, name) {
            Some(position) => position,
            None => {
                let place = answer.message().content.len();
                let made = || tool_call_id(&format!("{} {place}", answer.message().timestamp.as_millis()));
                let id = id.map_or_else(made, str::to_owned);
                let name = name.unwrap_or_default().to_owned();
                let block = answer.start_tool_call(ToolCall { id: id.as_str().into(), name, ..ToolCall::default() });
                self.calls.push(OpenCall { block, id });
                self.calls.len() - 1
            }
        };
        if let Index(Some(index)) = delta.index {
            self.by_index.insert(index, position);
        }
        let piece = match function.arguments {
            Arguments::Text(text) => text.into_string(),
            Arguments::Whole(arguments) => Value::Object(arguments).to_string(),
            Arguments::None => return,
        };
        answer.push_arguments(self.calls[position].block, piece);
    }

    /// The call that a delta goes on with. Another id with a name is another call, also at the same index.
    fn find_call(&self, Index(index): Index, id: Option<&str>, name: Option<&str>) -> Option<usize> {
        let by_id = |id: &str| self.calls.iter().rposition(|call| call.id == id);
        let known = match index {
            Some(index) => self.by_index.get(&index).copied(),
            None => id.and_then(by_id),
        };
        known.filter(|position| match id {
            Some(id) => self.calls[*position].id == id || name.is_none(),
            None => true,
        })
    }
}

impl Decoder for MistralDecoder {
    fn frame(&mut self, frame: Frame<'_>, answer: &mut MessageBuilder) -> Result<Flow, ProviderError> {
        let mut scratch = Scratch::default();
        match decode::payload::<Chunk<'_>>(frame, &self.provider, &mut scratch)? {
            Payload::Done => Ok(Flow::Complete),
            Payload::Nothing => Ok(Flow::More),
            Payload::Object(chunk) if !chunk.error.is_null() || chunk.object.as_str() == Some("error") => {
                Err(errors::from_event(&self.provider, frame.data.trim()))
            }
            Payload::Object(chunk) => self.chunk(chunk, answer).map(|()| Flow::More),
            Payload::Other => {
                let data = frame.data.trim();
                let message = format!("An event of {} is not one of this API: {data}", self.provider);
                Err(ProviderError::new(ErrorKind::Protocol, message))
            }
        }
    }

    fn is_settled(&self) -> bool {
        self.finish.is_some()
    }

    fn finish(&mut self, answer: &mut MessageBuilder) -> Result<(), ProviderError> {
        self.close_block(answer);
        for call in self.calls.drain(..) {
            answer.end_tool_call(call.block);
        }
        match self.finish.take() {
            Some(Finish::Done(reason)) => answer.done(reason),
            Some(Finish::Failed(error)) => return Err(error),
            None => {
                let message = format!("The answer of {} broke off: it ended without a finish reason.", self.provider);
                return Err(ProviderError::new(ErrorKind::Protocol, message));
            }
        }
        Ok(())
    }
}
