//! The events of a response → the answer.

use indexmap::IndexMap;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::{
    api::{
        Decoder, EncodeRequest, Flow, Frame,
        constraint::{self, GrammarInput, GrammarMode},
        decode::{self, Index, Object, Payload, Scratch, Text},
        errors,
        finish::Finish,
        strays::{self, StrayKind, Strays},
    },
    error::{ErrorKind, ProviderError},
    id::ProviderId,
    message::{AssistantBlock, StopReason, ThinkingContent, ToolCall},
    model::ModelCost,
    stream::{BlockEnd, MessageBuilder},
    transcript::declared_tools,
    usage::Usage,
};

/// Any event. Every field may be missing.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Event<'a> {
    #[serde(borrow, rename = "type")]
    kind: Text<'a>,
    output_index: Index,
    delta: Text<'a>,
    arguments: Text<'a>,
    input: Text<'a>,
    item: Object<Map<String, Value>>,
    response: Object<Map<String, Value>>,
}

/// What differs between the dialects.
pub(in crate::api) struct Dialect {
    pub(in crate::api) grammar_tools: GrammarMode,
    /// The effort that was said inside the conversation.
    pub(in crate::api) effort: Option<String>,
    /// How much dearer a service tier is.
    pub(in crate::api) service_tiers: &'static [(&'static str, f64)],
    /// ChatGPT's: other names of the last event, and whether the turn ends.
    pub(in crate::api) codex: bool,
}

pub(in crate::api) struct ResponsesDecoder {
    dialect: Dialect,
    model: String,
    provider: ProviderId,
    cost: ModelCost,
    grammar_properties: IndexMap<String, String>,
    open: Vec<OpenItem>,
    strays: Strays,
    /// Reasoning items that are done, by id, with their place in the content.
    reasoning: Vec<(Value, usize)>,
    finish: Option<Finish>,
}

/// An item that was begun and not done.
struct OpenItem {
    /// The provider's index.
    index: Option<u64>,
    /// Its place in the content.
    block: usize,
    kind: ItemKind,
}

enum ItemKind {
    Thinking,
    Text,
    Call,
    GrammarCall {
        input: GrammarInput,
        /// JSON text of what came with the item; it goes out with the next piece.
        unsent: String,
    },
}

impl ResponsesDecoder {
    pub(in crate::api) fn new(request: &EncodeRequest<'_>, dialect: Dialect) -> Self {
        let tools = declared_tools(request.context.messages());
        Self {
            model: request.model.id.to_string(),
            provider: request.model.provider.clone(),
            cost: request.model.cost.clone(),
            // A tool that cannot be sent has failed the request before.
            grammar_properties: constraint::grammar_properties(&tools, dialect.grammar_tools).unwrap_or_default(),
            dialect,
            open: Vec::new(),
            strays: Strays::default(),
            reasoning: Vec::new(),
            finish: None,
        }
    }

    fn event(&mut self, event: Event<'_>, data: &str, answer: &mut MessageBuilder) -> Result<Flow, ProviderError> {
        let Index(index) = event.output_index;
        match event.kind.as_str().unwrap_or_default() {
            "response.output_text.delta" | "response.refusal.delta" => {
                match self.find(index, |kind| matches!(kind, ItemKind::Text)) {
                    Some(block) => answer.push_text(block, event.delta.into_string()),
                    None => self.strays.keep(index, StrayKind::Text, event.delta),
                }
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                match self.find(index, |kind| matches!(kind, ItemKind::Thinking)) {
                    Some(block) => answer.push_thinking(block, event.delta.into_string()),
                    None => self.strays.keep(index, StrayKind::Thinking, event.delta),
                }
            }
            "response.reasoning_summary_part.done" => {
                if let Some(block) = self.find(index, |kind| matches!(kind, ItemKind::Thinking)) {
                    answer.push_thinking(block, "\n\n");
                }
            }
            "response.function_call_arguments.delta" => {
                if let Some(block) = self.find(index, |kind| matches!(kind, ItemKind::Call)) {
                    answer.push_arguments(block, event.delta.into_string());
                }
            }
            "response.function_call_arguments.done" => {
                if let Some(block) = self.find(index, |kind| matches!(kind, ItemKind::Call))
                    && let Some(arguments) = event.arguments.as_str()
                {
                    answer.complete_arguments(block, arguments);
                }
            }
            "response.custom_tool_call_input.delta" => {
                let piece = event.delta.as_str().unwrap_or_default();
                self.grammar_piece(index, answer, |input| Ok(input.push(piece)))?;
            }
            "response.custom_tool_call_input.done" => {
                let whole = event.input.as_str();
                self.grammar_piece(index, answer, |input| input.close(whole))?;
            }
            "response.output_item.added" => {
                if let Some(item) = &event.item.0 {
                    self.open_item(index, item, answer);
                }
            }
            "response.output_item.done" => {
                if let Some(item) = event.item.0 {
                    self.close_item(index, item, answer)?;
                }
            }
            "response.created" => {
                if let Some(id) = event.response.0.as_ref().and_then(|response| response.get("id")?.as_str()) {
                    answer.complete(|message| message.response_id = Some(id.to_owned()));
                }
            }
            "response.completed" | "response.incomplete" => {
                self.complete(event.response.0.unwrap_or_default(), answer)?;
                return Ok(Flow::Complete);
            }
            "response.done" if self.dialect.codex => {
                self.complete(event.response.0.unwrap_or_default(), answer)?;
                return Ok(Flow::Complete);
            }
            "response.failed" => {
                let response = event.response.0.unwrap_or_default();
                let status = response.get("status").and_then(Value::as_str).map(str::to_owned);
                if !self.dialect.codex {
                    answer.complete(|message| message.raw_stop_reason = status);
                }
                return Err(errors::from_event(&self.provider, data));
            }
            "error" => return Err(errors::from_event(&self.provider, data)),
            _ => {}
        }
        Ok(Flow::More)
    }

    fn find(&self, index: Option<u64>, is: fn(&ItemKind) -> bool) -> Option<usize> {
        self.open.iter().rev().find(|item| item.index == index).filter(|item| is(&item.kind)).map(|item| item.block)
    }

    /// Grows a grammar tool's input.
    fn grammar_piece(
        &mut self,
        index: Option<u64>,
        answer: &mut MessageBuilder,
        grow: impl FnOnce(&mut GrammarInput) -> Result<String, ProviderError>,
    ) -> Result<(), ProviderError> {
        if let Some(OpenItem { block, kind: ItemKind::GrammarCall { input, unsent }, .. }) =
            self.open.iter_mut().rev().find(|item| item.index == index)
        {
            let piece = grow(input)?;
            let piece = std::mem::take(unsent) + &piece;
            if !piece.is_empty() {
                answer.push_arguments(*block, piece);
            }
        }
        Ok(())
    }

    fn open_item(&mut self, index: Option<u64>, item: &Map<String, Value>, answer: &mut MessageBuilder) {
        let text = |name: &str| item.get(name).and_then(Value::as_str);
        let call = |arguments| call_of(item, arguments);
        let (block, kind) = match text("type").unwrap_or_default() {
            "reasoning" => (answer.start_thinking(ThinkingContent::default()), ItemKind::Thinking),
            "message" => (answer.start_text(), ItemKind::Text),
            "function_call" => {
                let block = answer.start_tool_call(call(Map::new()));
                if let Some(arguments) = text("arguments").filter(|arguments| !arguments.is_empty()) {
                    answer.push_arguments(block, arguments);
                }
                (block, ItemKind::Call)
            }
            "custom_tool_call" => {
                let property = self.grammar_properties.get(text("name").unwrap_or_default());
                let property = property.map_or("input", String::as_str).to_owned();
                let begun = text("input").unwrap_or_default();
                let mut input = GrammarInput::new(&property);
                let unsent = input.push(begun);
                let block = answer.start_tool_call(call(Map::from_iter([(property, begun.into())])));
                (block, ItemKind::GrammarCall { input, unsent })
            }
            _ => return,
        };
        self.open.push(OpenItem { index, block, kind });
    }

    fn close_item(
        &mut self,
        index: Option<u64>,
        item: Map<String, Value>,
        answer: &mut MessageBuilder,
    ) -> Result<(), ProviderError> {
        if !self.open.iter().any(|open| open.index == index) {
            if let Some(whole) = whole_call(&item) {
                // There is nothing to stream: it begins with its arguments.
                let block = answer.start_tool_call(whole.clone());
                answer.end_tool_call_with(block, whole);
                return Ok(());
            }
            self.open_item(index, &item, answer);
        }
        let Some(at) = self.open.iter().rposition(|open| open.index == index) else { return Ok(()) };
        let text = |name: &str| item.get(name).and_then(Value::as_str);
        let block = self.open[at].block;
        match (text("type").unwrap_or_default(), &mut self.open[at].kind) {
            ("reasoning", ItemKind::Thinking) => {
                let whole = [joined(item.get("summary"), "\n\n"), joined(item.get("content"), "\n\n")];
                let whole = whole.into_iter().find(|text| !text.is_empty());
                self.reasoning.push((item.get("id").cloned().unwrap_or_default(), block));
                let signature = Some(Value::Object(item).to_string());
                answer.end_thinking(block, BlockEnd { text: whole, signature, ..BlockEnd::default() });
            }
            ("message", ItemKind::Text) => {
                let mut signature = json!({ "v": 1, "id": item.get("id") });
                if let Some(phase) = item.get("phase").filter(|phase| !phase.is_null()) {
                    signature["phase"] = phase.clone();
                }
                let whole = joined(item.get("content"), "");
                answer.end_text(
                    block,
                    BlockEnd { text: Some(whole), signature: Some(signature.to_string()), ..BlockEnd::default() },
                );
            }
            ("function_call", ItemKind::Call) => {
                if let Some(arguments) = text("arguments").filter(|arguments| !arguments.is_empty()) {
                    answer.replace_arguments(block, arguments);
                }
                set_namespace(block, text("namespace"), answer);
                answer.end_tool_call(block);
            }
            ("custom_tool_call", ItemKind::GrammarCall { input, unsent }) => {
                let piece = std::mem::take(unsent) + &input.close(text("input"))?;
                if !piece.is_empty() {
                    answer.push_arguments(block, piece);
                }
                set_namespace(block, text("namespace"), answer);
                answer.end_tool_call(block);
            }
            _ => return Ok(()),
        }
        self.open.remove(at);
        Ok(())
    }

    fn complete(&mut self, response: Map<String, Value>, answer: &mut MessageBuilder) -> Result<(), ProviderError> {
        self.take_output(&response, answer)?;
        self.strays.surface(answer);
        self.backfill(&response, answer);
        diagnose_removals(&response, answer);
        let text = |name: &str| response.get(name).and_then(Value::as_str);
        if let Some(id) = text("id") {
            answer.complete(|message| message.response_id = Some(id.to_owned()));
        }
        if self.dialect.codex
            && let Some(end) = response.get("end_turn").and_then(Value::as_bool)
        {
            answer.complete(|message| message.end_turn = Some(end));
        }
        self.count(&response, answer);
        let incomplete = response.get("incomplete_details").and_then(|details| details.get("reason")?.as_str());
        let known = |status: &&str| {
            matches!(*status, "completed" | "incomplete" | "failed" | "cancelled" | "queued" | "in_progress")
        };
        let status = text("status").filter(|status| !self.dialect.codex || known(status));
        answer.complete(|message| {
            message.raw_stop_reason = status.map(|status| match incomplete {
                Some(reason) => format!("{status}.{reason}"),
                None => status.to_owned(),
            });
        });
        self.finish = Some(match (status, incomplete) {
            (None | Some("completed" | "in_progress" | "queued"), _) => Finish::Done(StopReason::Stop),
            (Some("incomplete"), Some("max_output_tokens")) => Finish::Done(StopReason::Length),
            (Some("incomplete"), reason) => {
                let kind = if reason == Some("content_filter") { ErrorKind::Refused } else { ErrorKind::Other };
                let reason = reason.unwrap_or("without a reason");
                Finish::Failed(ProviderError::new(
                    kind,
                    format!("The answer of {} is incomplete: {reason}", self.provider),
                ))
            }
            (Some(status @ ("failed" | "cancelled")), _) => Finish::Failed(ProviderError::new(
                ErrorKind::Other,
                format!("{} says that the answer {status}.", self.provider),
            )),
            (Some(other), _) => {
                let message = format!("{} ended the answer with a status that is not known: {other}", self.provider);
                return Err(ProviderError::new(ErrorKind::Protocol, message));
            }
        });
        Ok(())
    }

    /// Some servers send the items only in the last event. Of an answer that has begun items, only its text can be
    /// missing still.
    fn take_output(&mut self, response: &Map<String, Value>, answer: &mut MessageBuilder) -> Result<(), ProviderError> {
        if !strays::says_nothing(answer) {
            return Ok(());
        }
        let all = answer.message().content.is_empty();
        let items = response.get("output").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_object);
        for (index, item) in (0..).zip(items) {
            let has_text =
                item.get("type").is_some_and(|kind| kind == "message") && !joined(item.get("content"), "").is_empty();
            if all || has_text {
                let open = self.open.iter().find(|open| has_text && matches!(open.kind, ItemKind::Text));
                self.close_item(open.map_or(Some(index), |open| open.index), item.clone(), answer)?;
            }
        }
        Ok(())
    }

    /// Some servers give the encrypted content of reasoning out only at the end.
    fn backfill(&self, response: &Map<String, Value>, answer: &mut MessageBuilder) {
        for item in response.get("output").and_then(Value::as_array).into_iter().flatten() {
            let encrypted = item.get("encrypted_content").filter(|content| !content.is_null() && *content != "");
            let (Some(encrypted), "reasoning") = (encrypted, item["type"].as_str().unwrap_or_default()) else {
                continue;
            };
            let Some((_, block)) = self.reasoning.iter().find(|(id, _)| Some(id) == item.get("id")) else { continue };
            let Some(AssistantBlock::Thinking(thinking)) = answer.message().content.get(*block) else { continue };
            let stored =
                thinking.thinking_signature.as_deref().and_then(|signature| serde_json::from_str(signature).ok());
            if let Some(Value::Object(mut stored)) = stored
                && stored.get("encrypted_content").is_none_or(|content| content.is_null() || content == "")
            {
                stored.insert("encrypted_content".into(), encrypted.clone());
                answer.sign_late(*block, Value::Object(stored).to_string());
            }
        }
    }

    fn count(&self, response: &Map<String, Value>, answer: &mut MessageBuilder) {
        if let Some(raw) = response.get("usage").filter(|usage| usage.is_object()) {
            let count = |value: &Value| value.as_f64().map_or(0, |count| count as u64);
            let details = &raw["input_tokens_details"];
            let (read, written) = (count(&details["cached_tokens"]), count(&details["cache_write_tokens"]));
            *answer.usage_mut() = Usage {
                input: count(&raw["input_tokens"]).saturating_sub(read).saturating_sub(written),
                output: count(&raw["output_tokens"]),
                cache_read: read,
                cache_write: written,
                reasoning: Some(count(&raw["output_tokens_details"]["reasoning_tokens"])),
                total_tokens: count(&raw["total_tokens"]),
                ..Usage::default()
            };
        }
        let usage = answer.usage_mut();
        usage.price(&self.cost);
        let tier = response.get("service_tier").and_then(Value::as_str).unwrap_or_default();
        if let Some((_, factor)) = self.dialect.service_tiers.iter().find(|(name, _)| *name == tier) {
            let factor = if self.model == "gpt-5.5" && *factor > 1.0 { 2.5 } else { *factor };
            let cost = &mut usage.cost;
            for part in [&mut cost.input, &mut cost.output, &mut cost.cache_read, &mut cost.cache_write] {
                *part *= factor;
            }
            cost.total = cost.input + cost.output + cost.cache_read + cost.cache_write;
        }
    }
}

fn call_of(item: &Map<String, Value>, arguments: Map<String, Value>) -> ToolCall {
    let text = |name: &str| item.get(name).and_then(Value::as_str);
    ToolCall {
        id: call_id(item).into(),
        name: text("name").unwrap_or_default().to_owned(),
        namespace: text("namespace").map(str::to_owned),
        arguments,
        ..ToolCall::default()
    }
}

/// A call whose arguments are there at once.
fn whole_call(item: &Map<String, Value>) -> Option<ToolCall> {
    (item.get("type")? == "function_call").then_some(())?;
    Some(call_of(item, serde_json::from_str(item.get("arguments")?.as_str()?).ok()?))
}

fn call_id(item: &Map<String, Value>) -> String {
    let text = |name: &str| item.get(name).and_then(Value::as_str).unwrap_or_default();
    match text("id") {
        "" => text("call_id").to_owned(),
        id => format!("{}|{id}", text("call_id")),
    }
}

fn set_namespace(block: usize, namespace: Option<&str>, answer: &mut MessageBuilder) {
    if let (Some(namespace), Some(AssistantBlock::ToolCall(call))) = (namespace, answer.block_mut(block)) {
        call.namespace = Some(namespace.to_owned());
    }
}

/// The texts of a list of parts.
fn joined(parts: Option<&Value>, separator: &str) -> String {
    let parts = parts.and_then(Value::as_array).into_iter().flatten();
    let texts = parts.filter_map(|part| part.get("text").or_else(|| part.get("refusal"))?.as_str());
    texts.collect::<Vec<_>>().join(separator)
}

/// Reasoning that the provider kept from the model, and why. What older models do with every earlier turn is no news.
fn diagnose_removals(response: &Map<String, Value>, answer: &mut MessageBuilder) {
    let all = response.get("input_transformations").and_then(Value::as_array).into_iter().flatten();
    let removals: Vec<Value> = all
        .filter(|one| one["type"] == "reasoning" && one["action"] == "removed" && one["reason"] != "turn_boundary")
        .map(|one| {
            let fields = ["type", "id", "action", "reason"].into_iter();
            fields.filter_map(|name| Some((name.to_owned(), one.get(name)?.clone()))).collect::<Map<_, _>>().into()
        })
        .collect();
    if !removals.is_empty() {
        let timestamp = json!(answer.message().timestamp);
        answer.diagnose(json!({
            "type": "openai_input_transformations",
            "timestamp": timestamp,
            "details": { "transformations": removals },
        }));
    }
}

impl Decoder for ResponsesDecoder {
    fn frame(&mut self, frame: Frame<'_>, answer: &mut MessageBuilder) -> Result<Flow, ProviderError> {
        if let Some(effort) = self.dialect.effort.take() {
            answer.complete(|message| message.provider_thinking_level = Some(effort));
        }
        let mut scratch = Scratch::default();
        match decode::payload::<Event<'_>>(frame, &self.provider, &mut scratch)? {
            Payload::Done => Ok(Flow::Complete),
            Payload::Nothing | Payload::Other => Ok(Flow::More),
            Payload::Object(event) => self.event(event, frame.data.trim(), answer),
        }
    }

    fn finish(&mut self, answer: &mut MessageBuilder) -> Result<(), ProviderError> {
        let broken_off = |what: &str| {
            ProviderError::new(ErrorKind::Protocol, format!("The answer of {} broke off: {what}.", self.provider))
        };
        let reason = match self.finish.take() {
            Some(Finish::Done(reason)) => reason,
            Some(Finish::Failed(error)) => return Err(error),
            None => return Err(broken_off("the stream ended without its last event")),
        };
        let has_calls = answer.message().tool_calls().next().is_some();
        let reason = if has_calls && reason == StopReason::Stop { StopReason::ToolUse } else { reason };
        let is_call = |item: &&OpenItem| matches!(item.kind, ItemKind::Call | ItemKind::GrammarCall { .. });
        if reason == StopReason::ToolUse && self.open.iter().find(is_call).is_some() {
            // Its arguments may be cut off, or mixed up with those of another one.
            return Err(broken_off("it ended without the end of a tool call"));
        }
        answer.done(reason);
        Ok(())
    }
}
