//! The events of a response → the answer.

use std::{collections::HashMap, mem};

use indexmap::IndexMap;
use serde::{
    Deserialize, Deserializer,
    de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::{Map, Value};

use super::{compat::Compat, is_reasoning_detail};
use crate::{
    api::{
        Decoder, EncodeRequest, Flow, Frame,
        billing::Billing,
        constraint::{self, GrammarInput},
        decode::{self, Arguments, Count, FunctionDelta, Index, List, Object, Payload, Scratch, Text},
        errors,
        finish::Finish,
        headers::is_openrouter,
        in_place::{Found, Into, Members},
        pieces::{Piece, Pieces},
    },
    error::{ErrorKind, ProviderError},
    message::{AssistantBlock, StopReason, ThinkingContent, ToolCall},
    model::{Model, ModelCost},
    stream::{BlockEnd, MessageBuilder},
    transcript::declared_tools,
    usage::Usage,
};

/// One chunk. Every field may be missing.
#[derive(Debug, Default)]
struct Chunk<'a> {
    id: Text<'a>,
    model: Text<'a>,
    object: Text<'a>,
    /// The one choice that counts: a request asks for one, and some servers send more.
    choice: Option<Choice<'a>>,
    usage: Object<Box<RawUsage>>,
    error: Option<Value>,
}

impl<'a> Members<'a> for Chunk<'a> {
    fn read<A: MapAccess<'a>>(&mut self, name: &str, chunk: &mut A) -> Result<(), A::Error> {
        match name {
            "id" => self.id = chunk.next_value()?,
            "model" => self.model = chunk.next_value()?,
            "object" => self.object = chunk.next_value()?,
            "choices" => chunk.next_value_seed(FirstChoice(&mut self.choice))?,
            "usage" => self.usage = chunk.next_value()?,
            "error" => self.error = chunk.next_value()?,
            _ => drop(chunk.next_value::<IgnoredAny>()?),
        }
        Ok(())
    }
}

#[derive(Debug, Default)]
struct Choice<'a> {
    index: Index,
    delta: Delta<'a>,
    /// What servers send that do not stream: the whole answer.
    message: Option<Box<Delta<'a>>>,
    finish_reason: Text<'a>,
    usage: Object<Box<RawUsage>>,
}

impl<'a> Members<'a> for Choice<'a> {
    fn read<A: MapAccess<'a>>(&mut self, name: &str, choice: &mut A) -> Result<(), A::Error> {
        match name {
            "index" => self.index = choice.next_value()?,
            "delta" => drop(choice.next_value_seed(Into(&mut self.delta))?),
            "message" => drop(choice.next_value_seed(Into(&mut **self.message.insert(Box::default())))?),
            "finish_reason" => self.finish_reason = choice.next_value()?,
            "usage" => self.usage = choice.next_value()?,
            _ => drop(choice.next_value::<IgnoredAny>()?),
        }
        Ok(())
    }
}

#[derive(Debug, Default)]
struct Delta<'a> {
    content: Pieces<'a>,
    refusal: Text<'a>,
    reasoning_content: Text<'a>,
    reasoning: Text<'a>,
    reasoning_text: Text<'a>,
    reasoning_details: List<Map<String, Value>>,
    tool_calls: List<CallDelta<'a>>,
}

impl<'a> Members<'a> for Delta<'a> {
    fn read<A: MapAccess<'a>>(&mut self, name: &str, delta: &mut A) -> Result<(), A::Error> {
        match name {
            "content" => self.content = delta.next_value()?,
            "refusal" => self.refusal = delta.next_value()?,
            "reasoning_content" => self.reasoning_content = delta.next_value()?,
            "reasoning" => self.reasoning = delta.next_value()?,
            "reasoning_text" => self.reasoning_text = delta.next_value()?,
            "reasoning_details" => self.reasoning_details = delta.next_value()?,
            "tool_calls" => self.tool_calls = delta.next_value()?,
            _ => drop(delta.next_value::<IgnoredAny>()?),
        }
        Ok(())
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct CallDelta<'a> {
    index: Index,
    #[serde(borrow)]
    id: Text<'a>,
    function: Object<FunctionDelta<'a>>,
    custom: Object<CustomDelta<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct CustomDelta<'a> {
    #[serde(borrow)]
    name: Text<'a>,
    input: Text<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct RawUsage {
    prompt_tokens: Count,
    completion_tokens: Count,
    prompt_cache_hit_tokens: Count,
    cached_tokens: Count,
    reasoning_tokens: Count,
    prompt_tokens_details: Object<PromptDetails>,
    completion_tokens_details: Object<CompletionDetails>,
    #[serde(flatten)]
    billing: Billing,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct PromptDetails {
    cached_tokens: Count,
    cache_write_tokens: Count,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct CompletionDetails {
    reasoning_tokens: Count,
}

pub(super) struct ChatDecoder {
    model: ModelFacts,
    grammar_properties: IndexMap<String, String>,
    text: Option<usize>,
    thinking: Option<usize>,
    /// Structured reasoning, which is kept in the reasoning block's signature.
    details: Vec<Map<String, Value>>,
    calls: Vec<OpenCall>,
    by_index: HashMap<u64, usize>,
    finish: Option<Finish>,
}

/// What the decoder has to know of the model.
struct ModelFacts {
    id: String,
    provider: crate::ProviderId,
    cost: ModelCost,
    openrouter: bool,
    needs_finish_reason: bool,
}

/// A tool call that is being streamed.
struct OpenCall {
    block: usize,
    id: String,
    input: CallInput,
}

enum CallInput {
    Text,
    /// The arguments came as an object.
    Whole(Map<String, Value>),
    Grammar(GrammarInput),
}

impl ChatDecoder {
    pub(super) fn new(request: &EncodeRequest<'_>) -> Self {
        let model: &Model = request.model;
        let compat = Compat::of(model);
        let tools = declared_tools(request.context.messages());
        Self {
            model: ModelFacts {
                id: model.id.to_string(),
                provider: model.provider.clone(),
                cost: model.cost.clone(),
                openrouter: is_openrouter(model),
                needs_finish_reason: compat.finish_reason,
            },
            // A tool that cannot be sent has failed the request before.
            grammar_properties: constraint::grammar_properties(&tools, compat.grammar_tools).unwrap_or_default(),
            text: None,
            thinking: None,
            details: Vec::new(),
            calls: Vec::new(),
            by_index: HashMap::new(),
            finish: None,
        }
    }

    fn chunk(&mut self, chunk: &mut Chunk<'_>, answer: &mut MessageBuilder) {
        if let Some(id) = chunk.id.non_empty()
            && answer.message().response_id.as_deref().is_none_or(str::is_empty)
        {
            answer.complete(|message| message.response_id = Some(id.to_owned()));
        }
        if let Some(model) = chunk.model.non_empty()
            && answer.message().response_model.is_none()
            && *model != *self.model.id
        {
            answer.complete(|message| message.response_model = Some(model.to_owned()));
        }
        // Some servers count in the choice.
        let in_choice = chunk.choice.as_mut().and_then(|choice| choice.usage.0.take());
        if let Some(usage) = chunk.usage.0.take().or(in_choice) {
            self.usage(*usage, answer);
        }
        let Some(choice) = &mut chunk.choice else { return };
        if let Some(reason) = choice.finish_reason.non_empty() {
            answer.complete(|message| message.raw_stop_reason = Some(reason.to_owned()));
            self.finish = Some(self.finish_of(reason));
        }
        self.delta(&mut choice.delta, answer);
        // Behind deltas it is said once more.
        if let Some(message) = &mut choice.message
            && answer.message().content.is_empty()
        {
            self.delta(message, answer);
        }
    }

    fn usage(&self, raw: RawUsage, answer: &mut MessageBuilder) {
        let details = raw.prompt_tokens_details.0.unwrap_or_default();
        let read = details.cached_tokens.0.or(raw.prompt_cache_hit_tokens.0).or(raw.cached_tokens.0).unwrap_or(0);
        let written = details.cache_write_tokens.or_zero();
        let input = raw.prompt_tokens.or_zero().saturating_sub(read).saturating_sub(written);
        let output = raw.completion_tokens.or_zero();
        let of_details = raw.completion_tokens_details.0.unwrap_or_default().reasoning_tokens.or_zero();
        let reasoning = if of_details > 0 { of_details } else { raw.reasoning_tokens.or_zero() };
        let mut usage = Usage {
            input,
            output,
            cache_read: read,
            cache_write: written,
            reasoning: Some(reasoning),
            total_tokens: input.saturating_add(output).saturating_add(read).saturating_add(written),
            ..Usage::default()
        };
        usage.price(&self.model.cost);
        if self.model.openrouter {
            raw.billing.apply(&mut usage.cost);
        }
        *answer.usage_mut() = usage;
    }

    fn finish_of(&self, reason: &str) -> Finish {
        Finish::Done(match reason {
            "stop" | "end" => StopReason::Stop,
            "length" => StopReason::Length,
            "tool_calls" | "function_call" => StopReason::ToolUse,
            other => {
                let kind = match other {
                    "content_filter" => ErrorKind::Refused,
                    "network_error" => ErrorKind::Network,
                    "model_context_window_exceeded" => ErrorKind::ContextOverflow,
                    _ => ErrorKind::Other,
                };
                let message = format!("{} ended the answer with finish_reason: {other}", self.model.provider);
                return Finish::Failed(ProviderError::new(kind, message));
            }
        })
    }

    fn delta(&mut self, delta: &mut Delta<'_>, answer: &mut MessageBuilder) {
        // Reasoning first: some gateways put it into one delta with the answer that follows it. Some servers send it
        // in two fields at once.
        let fields = [
            ("reasoning_content", &delta.reasoning_content),
            ("reasoning", &delta.reasoning),
            ("reasoning_text", &delta.reasoning_text),
        ];
        if let Some((field, text)) = fields.into_iter().find_map(|(field, text)| Some((field, text.non_empty()?))) {
            let field = match field {
                "reasoning" if self.model.provider == "opencode-go" => "reasoning_content",
                field => field,
            };
            self.think(field, text, answer);
        }
        for detail in mem::take(&mut delta.reasoning_details.0) {
            let detail = Value::Object(detail);
            if is_reasoning_detail(&detail)
                && let Value::Object(detail) = detail
            {
                self.thinking_block("", answer);
                self.add_detail(detail);
            }
        }
        match mem::take(&mut delta.content) {
            Pieces::None => {}
            Pieces::Text(text) => self.write(text, answer),
            Pieces::List(pieces) => pieces.into_iter().for_each(|piece| self.piece(piece, answer)),
        }
        self.write(mem::take(&mut delta.refusal), answer);
        for call in mem::take(&mut delta.tool_calls.0) {
            self.call(call, answer);
        }
    }

    fn piece(&mut self, piece: Piece<'_>, answer: &mut MessageBuilder) {
        match piece {
            Piece::Text(text) => self.write(text, answer),
            Piece::Typed(piece) => match piece.kind.as_str().unwrap_or("text") {
                "text" | "output_text" => self.write(piece.text, answer),
                "refusal" => self.write(piece.refusal, answer),
                "thinking" => {
                    for text in piece.thinking.0.iter().filter_map(|piece| piece.text.non_empty()) {
                        self.think("", text, answer);
                    }
                }
                _ => {}
            },
        }
    }

    /// Empty text does not begin a block.
    fn write(&mut self, text: Text<'_>, answer: &mut MessageBuilder) {
        if text.non_empty().is_some() {
            let block = *self.text.get_or_insert_with(|| answer.start_text());
            answer.push_text(block, text.into_string());
        }
    }

    fn think(&mut self, signature: &str, text: &str, answer: &mut MessageBuilder) {
        let block = self.thinking_block(signature, answer);
        answer.push_thinking(block, text);
    }

    fn thinking_block(&mut self, signature: &str, answer: &mut MessageBuilder) -> usize {
        *self.thinking.get_or_insert_with(|| {
            let thinking_signature = Some(signature.to_owned());
            answer.start_thinking(ThinkingContent { thinking_signature, ..ThinkingContent::default() })
        })
    }

    /// Text comes in pieces, which belong together; encrypted entries stand for themselves.
    fn add_detail(&mut self, detail: Map<String, Value>) {
        let field = match detail.get("type").and_then(Value::as_str) {
            Some("reasoning.text") => "text",
            Some("reasoning.summary") => "summary",
            _ => return self.details.push(detail),
        };
        match self.details.last_mut() {
            Some(last) if last.get("type") == detail.get("type") => {
                for (name, value) in detail {
                    match (last.get_mut(&name), value) {
                        (Some(Value::String(text)), Value::String(more)) if name == field => text.push_str(&more),
                        (None | Some(Value::Null), value) => drop(last.insert(name, value)),
                        _ => {}
                    }
                }
            }
            _ => self.details.push(detail),
        }
    }

    fn call(&mut self, delta: CallDelta<'_>, answer: &mut MessageBuilder) {
        let id = delta.id.non_empty();
        let function = delta.function.0;
        let custom = delta.custom.0.filter(|_| function.is_none());
        let name = function.as_ref().map(|function| &function.name).or(custom.as_ref().map(|custom| &custom.name));
        let name = name.and_then(Text::non_empty);
        let position = match self.find_call(delta.index, id, name) {
            Some(position) => position,
            None => {
                let property = custom.as_ref().map(|_| self.grammar_property(name.unwrap_or_default()));
                self.open_call(id.unwrap_or_default(), name.unwrap_or_default(), property, answer)
            }
        };
        if let Index(Some(index)) = delta.index {
            self.by_index.insert(index, position);
        }
        let late_property = match &self.calls[position].input {
            CallInput::Text if custom.is_some() => {
                let known =
                    answer.message().content.get(self.calls[position].block).and_then(AssistantBlock::as_tool_call);
                Some(self.grammar_property(known.map_or("", |call| &call.name)))
            }
            _ => None,
        };
        let call = &mut self.calls[position];
        if let Some(AssistantBlock::ToolCall(block)) = answer.block_mut(call.block) {
            if let (Some(id), true) = (id, call.id.is_empty()) {
                id.clone_into(&mut call.id);
                block.id = id.into();
            }
            if let (Some(name), true) = (name, block.name.is_empty()) {
                name.clone_into(&mut block.name);
            }
            if let Some(property) = late_property {
                call.input = CallInput::Grammar(GrammarInput::new(&property));
                block.arguments = empty_input(property);
            }
        }
        let piece = match (&mut call.input, function.map(|function| function.arguments), custom) {
            (CallInput::Text, Some(Arguments::Text(text)), _) => text.into_string(),
            (CallInput::Text, Some(Arguments::Whole(arguments)), _) => {
                let text = Value::Object(arguments.clone()).to_string();
                call.input = CallInput::Whole(arguments);
                text
            }
            (CallInput::Whole(known), Some(Arguments::Whole(more)), _) => {
                known.extend(more);
                String::new()
            }
            (CallInput::Grammar(input), _, Some(custom)) => input.push(custom.input.as_str().unwrap_or_default()),
            _ => String::new(),
        };
        answer.push_arguments(call.block, piece);
    }

    /// The call that a delta belongs to: by index, by id, or the last one when it has neither.
    fn find_call(&self, index: Index, id: Option<&str>, name: Option<&str>) -> Option<usize> {
        let by_id = |id: &str| self.calls.iter().rposition(|call| call.id == id);
        match (index, id) {
            (Index(Some(index)), None) => self.by_index.get(&index).copied(),
            (Index(Some(index)), Some(id)) => {
                let known = self.by_index.get(&index).copied();
                known
                    .filter(|position| {
                        // Another id at the same index is another call; without a name it is the same one after all.
                        let call = &self.calls[*position];
                        call.id.is_empty() || call.id == id || name.is_none()
                    })
                    .or_else(|| by_id(id))
            }
            (Index(None), Some(id)) => by_id(id),
            (Index(None), None) => self.calls.len().checked_sub(1),
        }
    }

    /// The argument that the free text of a tool stands for. A tool that nobody declared has to keep it somewhere.
    fn grammar_property(&self, tool: &str) -> String {
        self.grammar_properties.get(tool).cloned().unwrap_or_else(|| "input".to_owned())
    }

    fn open_call(&mut self, id: &str, name: &str, property: Option<String>, answer: &mut MessageBuilder) -> usize {
        let (input, arguments) = match property {
            Some(property) => (CallInput::Grammar(GrammarInput::new(&property)), empty_input(property)),
            None => (CallInput::Text, Map::new()),
        };
        let call = ToolCall { id: id.into(), name: name.to_owned(), arguments, ..ToolCall::default() };
        let block = answer.start_tool_call(call);
        self.calls.push(OpenCall { block, id: id.to_owned(), input });
        self.calls.len() - 1
    }

    fn close_blocks(&mut self, answer: &mut MessageBuilder) -> Result<(), ProviderError> {
        for block in 0..answer.message().content.len() {
            if self.text == Some(block) {
                answer.end_text(block, BlockEnd::default());
            } else if self.thinking == Some(block) {
                answer.end_thinking(block, BlockEnd { signature: self.details_text(), ..BlockEnd::default() });
            } else if let Some(call) = self.calls.iter_mut().find(|call| call.block == block) {
                close_call(call, answer)?;
            }
        }
        Ok(())
    }

    fn details_text(&self) -> Option<String> {
        (!self.details.is_empty()).then(|| serde_json::to_string(&self.details).unwrap_or_default())
    }

    /// What is only said at the end is said before a failure, too.
    fn keep_details(&self, answer: &mut MessageBuilder) {
        if let (Some(block), Some(text)) = (self.thinking, self.details_text())
            && let Some(AssistantBlock::Thinking(block)) = answer.block_mut(block)
        {
            block.thinking_signature = Some(text);
        }
    }
}

fn empty_input(property: String) -> Map<String, Value> {
    Map::from_iter([(property, "".into())])
}

fn close_call(call: &mut OpenCall, answer: &mut MessageBuilder) -> Result<(), ProviderError> {
    match &mut call.input {
        CallInput::Text => answer.end_tool_call(call.block),
        CallInput::Grammar(input) => {
            let rest = input.close(None)?;
            if !rest.is_empty() {
                answer.push_arguments(call.block, rest);
            }
            answer.end_tool_call(call.block);
        }
        CallInput::Whole(arguments) => {
            if let Some(AssistantBlock::ToolCall(known)) = answer.message().content.get(call.block) {
                let whole = ToolCall { arguments: std::mem::take(arguments), ..known.clone() };
                answer.end_tool_call_with(call.block, whole);
            }
        }
    }
    Ok(())
}

impl Decoder for ChatDecoder {
    fn frame(&mut self, frame: Frame<'_>, answer: &mut MessageBuilder) -> Result<Flow, ProviderError> {
        let mut scratch = Scratch::default();
        let mut chunk = Chunk::default();
        let failed = |provider| Err(errors::from_event(provider, frame.data.trim()));
        let outcome = match decode::payload_into(frame, &self.model.provider, &mut scratch, &mut chunk) {
            Ok(Payload::Done) => return Ok(Flow::Complete),
            Ok(Payload::Object(())) if is_error(frame, &chunk) => failed(&self.model.provider),
            Ok(Payload::Object(())) => {
                self.chunk(&mut chunk, answer);
                Ok(())
            }
            Ok(Payload::Other) if frame.name == Some("error") => failed(&self.model.provider),
            Ok(Payload::Nothing | Payload::Other) => Ok(()),
            Err(error) => Err(error),
        };
        outcome.map(|()| Flow::More).inspect_err(|_| self.keep_details(answer))
    }

    fn is_settled(&self) -> bool {
        self.finish.is_some()
    }

    fn finish(&mut self, answer: &mut MessageBuilder) -> Result<(), ProviderError> {
        self.close_blocks(answer)?;
        match self.finish.take() {
            Some(Finish::Done(reason)) => answer.done(reason),
            Some(Finish::Failed(error)) => return Err(error),
            None if self.model.needs_finish_reason => {
                let message =
                    format!("The answer of {} broke off: it ended without finish_reason.", self.model.provider);
                return Err(ProviderError::new(ErrorKind::Protocol, message));
            }
            None if self.calls.is_empty() => answer.done(StopReason::Stop),
            None => answer.done(StopReason::ToolUse),
        }
        Ok(())
    }
}

/// An error has many shapes: an event of that name, an object or text in a chunk, or a chunk that is one.
fn is_error(frame: Frame<'_>, chunk: &Chunk<'_>) -> bool {
    frame.name == Some("error")
        || chunk.object.as_str() == Some("error")
        || match &chunk.error {
            None | Some(Value::Null | Value::Bool(false)) => false,
            Some(Value::Bool(true)) => true,
            Some(Value::Number(code)) => code.as_u64() != Some(0),
            Some(Value::String(error)) => !error.is_empty(),
            Some(Value::Array(errors)) => !errors.is_empty(),
            Some(Value::Object(error)) => !error.is_empty(),
        }
}

/// Reads the first choice of the index 0, and skips the others.
struct FirstChoice<'t, 'a>(&'t mut Option<Choice<'a>>);

impl<'de> DeserializeSeed<'de> for FirstChoice<'_, 'de> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        *self.0 = None;
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for FirstChoice<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a list of choices")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        loop {
            let choice = self.0.insert(Choice::default());
            match list.next_element_seed(Into(choice))? {
                Some(Found::Object) if choice.index.0.unwrap_or(0) == 0 => break,
                Some(_) => {}
                None => {
                    *self.0 = None;
                    return Ok(());
                }
            }
        }
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }

    decode::ignore_other_types!(@scalars);
    decode::ignore_other_types!(@numbers);
    decode::ignore_other_types!(@text);
    decode::ignore_other_types!(@object);
}
