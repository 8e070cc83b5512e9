//! The events of a response → the answer.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{compat::Compat, oauth::Access, request::managed_effort, threads::Recorder};
use crate::{
    api::{
        Decoder, EncodeRequest, Flow, Frame,
        billing::Billing,
        decode::{self, Count, Index, List, Object, Scratch, Text},
        errors,
        finish::Finish,
        headers::is_openrouter,
        strays::{StrayKind, Strays},
    },
    error::{ErrorKind, ProviderError},
    message::{AssistantBlock, StopReason, ThinkingContent, ToolCall},
    model::{Model, ModelCost},
    stream::{BlockEnd, MessageBuilder},
    tool::ToolDeclaration,
    transcript::current_tools,
};

/// What stands for reasoning that the provider hides.
const REDACTED: &str = "[Reasoning redacted]";

/// Any event. Every field may be missing.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Event<'a> {
    #[serde(borrow, rename = "type")]
    kind: Text<'a>,
    index: Index,
    delta: Object<Delta<'a>>,
    content_block: Object<BlockStart<'a>>,
    message: Object<MessageStart<'a>>,
    usage: Object<RawUsage>,
    input_transformations: List<Map<String, Value>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Delta<'a> {
    #[serde(borrow, rename = "type")]
    kind: Text<'a>,
    text: Text<'a>,
    thinking: Text<'a>,
    partial_json: Text<'a>,
    signature: Text<'a>,
    stop_reason: Text<'a>,
    stop_details: Object<StopDetails<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct StopDetails<'a> {
    #[serde(borrow)]
    explanation: Text<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct BlockStart<'a> {
    #[serde(borrow, rename = "type")]
    kind: Text<'a>,
    text: Text<'a>,
    thinking: Text<'a>,
    signature: Text<'a>,
    data: Text<'a>,
    id: Text<'a>,
    name: Text<'a>,
    input: Object<Map<String, Value>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct MessageStart<'a> {
    #[serde(borrow)]
    id: Text<'a>,
    model: Text<'a>,
    usage: Object<RawUsage>,
    input_transformations: List<Map<String, Value>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct RawUsage {
    input_tokens: Count,
    output_tokens: Count,
    cache_read_input_tokens: Count,
    cache_creation_input_tokens: Count,
    cache_creation: Object<CacheCreation>,
    output_tokens_details: Object<OutputDetails>,
    #[serde(flatten)]
    billing: Billing,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct CacheCreation {
    ephemeral_1h_input_tokens: Count,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct OutputDetails {
    thinking_tokens: Count,
}

pub(super) struct MessageDecoder {
    model: ModelFacts,
    access: Access,
    tools: Vec<ToolDeclaration>,
    effort: Option<String>,
    /// The prices of the model that answers.
    cost: ModelCost,
    open: Vec<OpenBlock>,
    /// The provider's indexes of blocks that are passed over.
    passed_over: Vec<u64>,
    strays: Strays,
    seen: Seen,
    finish: Option<Finish>,
    transformations: Vec<Map<String, Value>>,
    recorder: Option<Recorder>,
}

/// What the decoder has to know of the model.
struct ModelFacts {
    id: String,
    provider: crate::ProviderId,
    openrouter: bool,
    /// The prices of models that may answer in its place.
    fallbacks: Vec<(String, ModelCost)>,
}

/// A block that was begun and not ended.
struct OpenBlock {
    /// The provider's index.
    index: u64,
    /// Its place in the content.
    block: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seen {
    Nothing,
    Start,
    Stop,
}

impl MessageDecoder {
    pub(super) fn new(request: &EncodeRequest<'_>, access: Access, recorder: Option<Recorder>) -> Self {
        let model: &Model = request.model;
        let compat = Compat::of(model);
        let fallbacks = compat.fallback_models.iter().filter_map(|fallback| {
            let name = fallback["model"].as_str()?;
            Some((name.to_owned(), compat.fallback_cost(model, name)?))
        });
        Self {
            model: ModelFacts {
                id: model.id.to_string(),
                provider: model.provider.clone(),
                openrouter: is_openrouter(model),
                fallbacks: fallbacks.collect(),
            },
            access,
            tools: current_tools(request.context.messages()),
            effort: managed_effort(request),
            cost: model.cost.clone(),
            open: Vec::new(),
            passed_over: Vec::new(),
            strays: Strays::default(),
            seen: Seen::Nothing,
            finish: None,
            transformations: Vec::new(),
            recorder,
        }
    }

    fn event(&mut self, event: Event<'_>, answer: &mut MessageBuilder) -> Result<Flow, ProviderError> {
        if !event.input_transformations.0.is_empty() {
            self.transformations = event.input_transformations.0;
        }
        match event.kind.as_str().unwrap_or_default() {
            "content_block_delta" => {
                if let Some(delta) = event.delta.0 {
                    self.delta(event.index, delta, answer);
                }
            }
            "content_block_start" => {
                if let Some(block) = event.content_block.0 {
                    self.block_start(event.index, block, answer)?;
                }
            }
            "content_block_stop" => self.block_stop(event.index, answer),
            "message_start" => {
                self.seen = Seen::Start;
                if let Some(message) = event.message.0 {
                    self.message_start(message, answer);
                }
            }
            "message_delta" => {
                if let Some(delta) = event.delta.0
                    && let Some(reason) = delta.stop_reason.non_empty()
                {
                    answer.complete(|message| message.raw_stop_reason = Some(reason.to_owned()));
                    let details = delta.stop_details.0.unwrap_or_default();
                    self.finish = Some(self.finish_of(reason, details.explanation.non_empty())?);
                }
                self.message_usage(event.usage.0, answer);
            }
            "message_stop" => {
                self.seen = Seen::Stop;
                return Ok(Flow::Complete);
            }
            _ => {}
        }
        Ok(Flow::More)
    }

    fn message_start(&mut self, message: MessageStart<'_>, answer: &mut MessageBuilder) {
        if !message.input_transformations.0.is_empty() {
            self.transformations = message.input_transformations.0;
        }
        let model = message.model.non_empty().filter(|model| *model != self.model.id);
        answer.complete(|completion| {
            completion.response_id = message.id.as_str().map(str::to_owned);
            completion.response_model = model.map(str::to_owned);
        });
        if let Some(answered) = model
            && let Some((_, cost)) = self.model.fallbacks.iter().find(|(name, _)| name == answered)
        {
            self.cost = cost.clone();
        }
        let raw = message.usage.0.unwrap_or_default();
        let usage = answer.usage_mut();
        usage.input = raw.input_tokens.or_zero();
        usage.output = raw.output_tokens.or_zero();
        usage.cache_read = raw.cache_read_input_tokens.or_zero();
        usage.cache_write = raw.cache_creation_input_tokens.or_zero();
        usage.cache_write_1h = Some(raw.cache_creation.0.unwrap_or_default().ephemeral_1h_input_tokens.or_zero());
        self.price(answer);
    }

    /// Counts that a gateway leaves out stay as they were.
    fn message_usage(&self, raw: Option<RawUsage>, answer: &mut MessageBuilder) {
        let raw = raw.unwrap_or_default();
        let usage = answer.usage_mut();
        let update = |count: &mut u64, new: Count| *count = new.0.unwrap_or(*count);
        update(&mut usage.input, raw.input_tokens);
        update(&mut usage.output, raw.output_tokens);
        update(&mut usage.cache_read, raw.cache_read_input_tokens);
        update(&mut usage.cache_write, raw.cache_creation_input_tokens);
        let for_an_hour = raw.cache_creation.0.unwrap_or_default().ephemeral_1h_input_tokens.0;
        usage.cache_write_1h = for_an_hour.or(usage.cache_write_1h);
        usage.reasoning = raw.output_tokens_details.0.unwrap_or_default().thinking_tokens.0.or(usage.reasoning);
        self.price(answer);
        if self.model.openrouter {
            raw.billing.apply(&mut answer.usage_mut().cost);
        }
    }

    fn price(&self, answer: &mut MessageBuilder) {
        let usage = answer.usage_mut();
        usage.total_tokens = usage.all_input().saturating_add(usage.output);
        usage.cost.total_from_provider = None;
        usage.price(&self.cost);
    }

    fn block_start(
        &mut self,
        Index(index): Index,
        start: BlockStart<'_>,
        answer: &mut MessageBuilder,
    ) -> Result<(), ProviderError> {
        let block = match start.kind.as_str().unwrap_or_default() {
            "text" => {
                let block = answer.start_text();
                if start.text.non_empty().is_some() {
                    answer.push_text(block, start.text.into_string());
                }
                block
            }
            "thinking" => answer.start_thinking(ThinkingContent {
                thinking: start.thinking.into_string(),
                thinking_signature: Some(start.signature.into_string()),
                redacted: None,
            }),
            "redacted_thinking" => answer.start_thinking(ThinkingContent {
                thinking: REDACTED.to_owned(),
                thinking_signature: Some(start.data.into_string()),
                redacted: Some(true),
            }),
            "tool_use" => answer.start_tool_call(ToolCall {
                id: start.id.as_str().unwrap_or_default().into(),
                name: self.access.own_name(start.name.as_str().unwrap_or_default(), &self.tools),
                arguments: start.input.0.unwrap_or_default(),
                ..ToolCall::default()
            }),
            "fallback" if !answer.message().content.is_empty() => {
                let message = format!(
                    "{} went on with another model (fallback) in the middle of its answer, which cannot be taken over.",
                    self.model.provider
                );
                return Err(ProviderError::new(ErrorKind::Protocol, message));
            }
            _ => {
                self.passed_over.extend(index);
                return Ok(());
            }
        };
        self.open.push(OpenBlock { index: index.unwrap_or_default(), block });
        Ok(())
    }

    fn delta(&mut self, Index(index): Index, delta: Delta<'_>, answer: &mut MessageBuilder) {
        let index = index.unwrap_or_default();
        let Some(open) = self.open.iter().rev().find(|open| open.index == index) else {
            return self.stray(index, delta);
        };
        let block = open.block;
        match (delta.kind.as_str().unwrap_or_default(), answer.block_mut(block)) {
            ("text_delta", Some(AssistantBlock::Text(_))) => answer.push_text(block, delta.text.into_string()),
            ("thinking_delta", Some(AssistantBlock::Thinking(_))) => {
                answer.push_thinking(block, delta.thinking.into_string());
            }
            ("input_json_delta", Some(AssistantBlock::ToolCall(_))) => {
                answer.push_arguments(block, delta.partial_json.into_string());
            }
            ("signature_delta", Some(AssistantBlock::Thinking(thinking))) => {
                let signature = thinking.thinking_signature.get_or_insert_default();
                signature.push_str(delta.signature.as_str().unwrap_or_default());
            }
            _ => {}
        }
    }

    /// A piece of a block that was not begun. That of a call says neither which nor whose.
    fn stray(&mut self, index: u64, delta: Delta<'_>) {
        if self.passed_over.contains(&index) {
            return;
        }
        match delta.kind.as_str().unwrap_or_default() {
            "text_delta" => self.strays.keep(Some(index), StrayKind::Text, delta.text),
            "thinking_delta" => self.strays.keep(Some(index), StrayKind::Thinking, delta.thinking),
            _ => {}
        }
    }

    fn block_stop(&mut self, Index(index): Index, answer: &mut MessageBuilder) {
        let index = index.unwrap_or_default();
        if let Some(at) = self.open.iter().rposition(|open| open.index == index) {
            let open = self.open.remove(at);
            end_block(open.block, answer);
        }
    }

    fn finish_of(&self, reason: &str, explanation: Option<&str>) -> Result<Finish, ProviderError> {
        let provider = &self.model.provider;
        let failed = |kind, message: String| Ok(Finish::Failed(ProviderError::new(kind, message)));
        match reason {
            // A pause is over when the conversation is sent again.
            "end_turn" | "stop_sequence" | "pause_turn" => Ok(Finish::Done(StopReason::Stop)),
            "max_tokens" => Ok(Finish::Done(StopReason::Length)),
            "tool_use" => Ok(Finish::Done(StopReason::ToolUse)),
            "refusal" => failed(
                ErrorKind::Refused,
                match explanation {
                    Some(explanation) => explanation.to_owned(),
                    None => "The model refused to answer this request.".to_owned(),
                },
            ),
            "sensitive" => {
                failed(ErrorKind::Refused, format!("{provider} withheld the answer (stop reason: sensitive)."))
            }
            "model_context_window_exceeded" => {
                failed(ErrorKind::ContextOverflow, format!("{provider} ended the answer: {reason}."))
            }
            other => {
                let message = format!("{provider} ended the answer with a stop reason that is not known: {other}");
                Err(ProviderError::new(ErrorKind::Protocol, message))
            }
        }
    }

    fn broken_off(&self, missing: &str) -> ProviderError {
        let message = format!("The answer of {} broke off: it ended without {missing}.", self.model.provider);
        ProviderError::new(ErrorKind::Protocol, message)
    }
}

fn end_block(block: usize, answer: &mut MessageBuilder) {
    match answer.message().content.get(block) {
        Some(AssistantBlock::Text(_)) => answer.end_text(block, BlockEnd::default()),
        Some(AssistantBlock::Thinking(thinking)) => {
            let signature = thinking.thinking_signature.clone();
            answer.end_thinking(block, BlockEnd { signature, ..BlockEnd::default() });
        }
        Some(AssistantBlock::ToolCall(_)) => answer.end_tool_call(block),
        _ => {}
    }
}

impl Decoder for MessageDecoder {
    fn frame(&mut self, frame: Frame<'_>, answer: &mut MessageBuilder) -> Result<Flow, ProviderError> {
        if let Some(effort) = self.effort.take() {
            answer.complete(|message| message.provider_thinking_level = Some(effort));
        }
        match frame.name {
            Some("error") => return Err(errors::from_event(&self.model.provider, frame.data)),
            Some(
                "message_start"
                | "message_delta"
                | "message_stop"
                | "content_block_start"
                | "content_block_delta"
                | "content_block_stop",
            )
            | None => {}
            Some(_) => return Ok(Flow::More),
        }
        let mut scratch = Scratch::default();
        match decode::parse::<Object<Event<'_>>>(frame.data, &mut scratch) {
            Ok(Object(Some(event))) if event.kind.as_str() == Some("error") => {
                Err(errors::from_event(&self.model.provider, frame.data))
            }
            Ok(Object(Some(event))) => self.event(event, answer),
            Ok(Object(None)) => Ok(Flow::More),
            // A comment of some gateway, not an event of this wire.
            Err(_) if frame.name.is_none() => Ok(Flow::More),
            Err(error) => Err(error),
        }
    }

    fn finish(&mut self, answer: &mut MessageBuilder) -> Result<(), ProviderError> {
        self.strays.surface(answer);
        if self.seen == Seen::Start {
            return Err(self.broken_off("message_stop"));
        }
        let reason = match self.finish.take() {
            Some(Finish::Done(reason)) => reason,
            Some(Finish::Failed(error)) => return Err(error),
            None => return Err(self.broken_off("a stop reason")),
        };
        // Text that was never ended is whole as it is. Reasoning has a signature to tell, and a call must not run with
        // arguments that only look complete.
        for open in self.open.drain(..) {
            if !matches!(answer.message().content.get(open.block), Some(AssistantBlock::Text(_))) {
                end_block(open.block, answer);
            }
        }
        if !self.transformations.is_empty() {
            let known = |transformation: &Map<String, Value>| {
                let fields = ["type", "path", "reason"].into_iter();
                let fields = fields.filter_map(|name| Some((name, transformation.get(name).filter(|v| !v.is_null())?)));
                Value::Object(fields.map(|(name, value)| (name.to_owned(), value.clone())).collect())
            };
            let transformations: Vec<Value> = self.transformations.iter().map(known).collect();
            let timestamp = json!(answer.message().timestamp);
            answer.diagnose(json!({
                "type": "anthropic_input_transformations",
                "timestamp": timestamp,
                "details": { "transformations": transformations },
            }));
        }
        answer.done(reason);
        if let Some(recorder) = self.recorder.take() {
            recorder.record(answer.message());
        }
        Ok(())
    }
}
