//! The events of a response → the answer.

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::{
    api::{
        Decoder, EncodeRequest, Flow, Frame,
        decode::{self, Count, List, Object, Payload, Scratch, Text},
        errors,
        finish::Finish,
        ids,
    },
    error::{ErrorKind, ProviderError},
    id::ProviderId,
    message::{AssistantBlock, StopReason, ThinkingContent, ToolCall},
    model::ModelCost,
    stream::{BlockEnd, MessageBuilder},
    usage::Usage,
};

/// One chunk. Every field may be missing.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Chunk<'a> {
    #[serde(borrow)]
    response_id: Text<'a>,
    candidates: List<Candidate<'a>>,
    usage_metadata: Object<RawUsage>,
    prompt_feedback: Object<PromptFeedback<'a>>,
    error: Value,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Candidate<'a> {
    #[serde(borrow)]
    content: Object<Content<'a>>,
    finish_reason: Text<'a>,
    finish_message: Text<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Content<'a> {
    #[serde(borrow)]
    parts: List<Part<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Part<'a> {
    #[serde(borrow)]
    text: Text<'a>,
    thought: Value,
    thought_signature: Text<'a>,
    function_call: Object<FunctionCall<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct FunctionCall<'a> {
    #[serde(borrow)]
    id: Text<'a>,
    name: Text<'a>,
    args: Object<Map<String, Value>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct PromptFeedback<'a> {
    #[serde(borrow)]
    block_reason: Text<'a>,
    block_reason_message: Text<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct RawUsage {
    prompt_token_count: Count,
    cached_content_token_count: Count,
    candidates_token_count: Count,
    thoughts_token_count: Count,
    total_token_count: Count,
}

pub(in crate::api) struct GeminiDecoder {
    provider: ProviderId,
    cost: ModelCost,
    open: Option<OpenBlock>,
    finish: Option<Finish>,
}

/// The text or reasoning that is being streamed.
struct OpenBlock {
    block: usize,
    kind: BlockKind,
    signature: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BlockKind {
    Text,
    Thinking,
}

impl GeminiDecoder {
    pub(in crate::api) fn new(request: &EncodeRequest<'_>) -> Self {
        let model = request.model;
        Self { provider: model.provider.clone(), cost: model.cost.clone(), open: None, finish: None }
    }

    fn chunk(&mut self, chunk: Chunk<'_>, answer: &mut MessageBuilder) -> Result<(), ProviderError> {
        if let Some(id) = chunk.response_id.non_empty()
            && answer.message().response_id.is_none()
        {
            answer.complete(|message| message.response_id = Some(id.to_owned()));
        }
        if let Some(candidate) = chunk.candidates.0.into_iter().next() {
            for part in candidate.content.0.unwrap_or_default().parts.0 {
                self.part(part, answer);
            }
            if let Some(reason) = candidate.finish_reason.non_empty() {
                answer.complete(|message| message.raw_stop_reason = Some(reason.to_owned()));
                self.finish = Some(self.finish_of(reason, candidate.finish_message.non_empty())?);
            }
        } else if let Some(feedback) = chunk.prompt_feedback.0
            && let Some(reason) = feedback.block_reason.non_empty()
        {
            let said = feedback.block_reason_message.non_empty().map(|said| format!(": {said}")).unwrap_or_default();
            let message = format!("{} refused the prompt ({reason}){said}", self.provider);
            self.finish = Some(Finish::Failed(ProviderError::new(ErrorKind::Refused, message)));
        }
        if let Some(usage) = chunk.usage_metadata.0 {
            self.usage(&usage, answer);
        }
        Ok(())
    }

    fn usage(&self, raw: &RawUsage, answer: &mut MessageBuilder) {
        let cached = raw.cached_content_token_count.or_zero();
        let thoughts = raw.thoughts_token_count.or_zero();
        let mut usage = Usage {
            input: raw.prompt_token_count.or_zero().saturating_sub(cached),
            output: raw.candidates_token_count.or_zero().saturating_add(thoughts),
            cache_read: cached,
            reasoning: Some(thoughts),
            total_tokens: raw.total_token_count.or_zero(),
            ..Usage::default()
        };
        usage.price(&self.cost);
        *answer.usage_mut() = usage;
    }

    fn part(&mut self, part: Part<'_>, answer: &mut MessageBuilder) {
        if part.text.as_str().is_some() {
            let kind = if part.thought == Value::Bool(true) { BlockKind::Thinking } else { BlockKind::Text };
            self.grow(kind, part.text.into_string(), part.thought_signature.non_empty(), answer);
        }
        if let Some(call) = part.function_call.0 {
            self.close_block(answer);
            self.call(call, part.thought_signature.non_empty(), answer);
        }
    }

    fn grow(&mut self, kind: BlockKind, text: String, signature: Option<&str>, answer: &mut MessageBuilder) {
        if self.open.as_ref().is_some_and(|open| open.kind != kind) {
            self.close_block(answer);
        }
        let open = self.open.get_or_insert_with(|| OpenBlock {
            block: match kind {
                BlockKind::Text => answer.start_text(),
                BlockKind::Thinking => answer.start_thinking(ThinkingContent::default()),
            },
            kind,
            signature: None,
        });
        if let Some(signature) = signature {
            // Some servers sign the first piece only, some the last.
            open.signature = Some(signature.to_owned());
            match answer.block_mut(open.block) {
                Some(AssistantBlock::Text(block)) => block.text_signature.clone_from(&open.signature),
                Some(AssistantBlock::Thinking(block)) => block.thinking_signature.clone_from(&open.signature),
                _ => {}
            }
        }
        match kind {
            BlockKind::Text => answer.push_text(open.block, text),
            BlockKind::Thinking => answer.push_thinking(open.block, text),
        }
    }

    fn close_block(&mut self, answer: &mut MessageBuilder) {
        if let Some(OpenBlock { block, kind, signature }) = self.open.take() {
            let end = BlockEnd { signature, ..BlockEnd::default() };
            match kind {
                BlockKind::Text => answer.end_text(block, end),
                BlockKind::Thinking => answer.end_thinking(block, end),
            }
        }
    }

    /// A call comes as a whole.
    fn call(&self, call: FunctionCall<'_>, signature: Option<&str>, answer: &mut MessageBuilder) {
        let name = call.name.as_str().unwrap_or_default();
        let given = call.id.non_empty().filter(|id| answer.message().tool_calls().all(|known| known.id != **id));
        let id = match given {
            Some(id) => id.to_owned(),
            // Distinct within a conversation: by the answer's time and the call's place in it.
            None => {
                let (time, place) = (answer.message().timestamp.as_millis(), answer.message().content.len());
                format!("{}_{time}_{place}", ids::plain_clipped(name, 32))
            }
        };
        let call = ToolCall {
            id: id.into(),
            name: name.to_owned(),
            arguments: call.args.0.unwrap_or_default(),
            thought_signature: signature.map(str::to_owned),
            ..ToolCall::default()
        };
        let arguments = Value::Object(call.arguments.clone()).to_string();
        let block = answer.start_tool_call(call.clone());
        answer.push_arguments(block, arguments);
        answer.end_tool_call_with(block, call);
    }

    fn finish_of(&self, reason: &str, said: Option<&str>) -> Result<Finish, ProviderError> {
        let said = said.map(|said| format!(": {said}")).unwrap_or_default();
        let stopped = |kind| {
            let message = format!("{} stopped the answer ({reason}){said}", self.provider);
            Ok(Finish::Failed(ProviderError::new(kind, message)))
        };
        match reason {
            // The second is what some servers in between say for an answer with calls.
            "STOP" | "FUNCTION_CALL" => Ok(Finish::Done(StopReason::Stop)),
            "MAX_TOKENS" | "CONTINUATION" => Ok(Finish::Done(StopReason::Length)),
            "BLOCKLIST"
            | "PROHIBITED_CONTENT"
            | "SPII"
            | "SAFETY"
            | "IMAGE_SAFETY"
            | "IMAGE_PROHIBITED_CONTENT"
            | "IMAGE_RECITATION"
            | "RECITATION" => stopped(ErrorKind::Refused),
            "IMAGE_OTHER"
            | "FINISH_REASON_UNSPECIFIED"
            | "OTHER"
            | "LANGUAGE"
            | "MALFORMED_FUNCTION_CALL"
            | "UNEXPECTED_TOOL_CALL"
            | "TOO_MANY_TOOL_CALLS"
            | "NO_IMAGE" => stopped(ErrorKind::Other),
            other => {
                let message = format!("{} ended the answer with a reason that is not known: {other}", self.provider);
                Err(ProviderError::new(ErrorKind::Protocol, message))
            }
        }
    }
}

impl Decoder for GeminiDecoder {
    fn frame(&mut self, frame: Frame<'_>, answer: &mut MessageBuilder) -> Result<Flow, ProviderError> {
        let mut scratch = Scratch::default();
        match decode::payload::<Chunk<'_>>(frame, &self.provider, &mut scratch)? {
            Payload::Done => Ok(Flow::Complete),
            Payload::Nothing | Payload::Other => Ok(Flow::More),
            Payload::Object(chunk) if !chunk.error.is_null() => {
                Err(errors::from_event(&self.provider, frame.data.trim()))
            }
            Payload::Object(chunk) => self.chunk(chunk, answer).map(|()| Flow::More),
        }
    }

    fn is_settled(&self) -> bool {
        self.finish.is_some()
    }

    fn finish(&mut self, answer: &mut MessageBuilder) -> Result<(), ProviderError> {
        self.close_block(answer);
        match self.finish.take() {
            Some(Finish::Done(StopReason::Stop)) if answer.message().tool_calls().next().is_some() => {
                answer.done(StopReason::ToolUse);
            }
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
