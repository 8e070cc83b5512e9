//! Transcript → the body and headers of a request.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use super::{
    body::{Block, Body, Content, Role, WireMessage},
    compat::Compat,
    oauth::{self, Access},
};
use crate::{
    api::{
        Concession, Concessions, EncodeRequest, HttpRequest, Note, budget,
        cache::CacheControl,
        constraint::{self, StrictMode},
        headers::{self, HeaderMap},
        ids,
        thinking::{Off, off_word},
        tool_schema::without_keywords,
    },
    context::Context,
    error::ProviderError,
    message::{AssistantMessage, SystemMessage},
    model::{Model, ThinkingLevel},
    options::StreamOptions,
    replay::{AssistantPart, AssistantTurn, Part, ReplayTarget, ToolResultTurn, Turn, UserContent, replay},
    tool::ToolDeclaration,
    transcript::{
        LaterSystemMessages, TranscriptItem, current_system_message, current_tools, initial_system_message,
        render_full, render_update,
    },
};

/// Used when nothing else is known: the wire wants a number.
const DEFAULT_MAX_TOKENS: u64 = 16_384;

const MAX_ID_LENGTH: usize = 64;
const IMAGE_ONLY_RESULT: &str = "(a picture)";

/// A tool that is never active. Declared from the first request on, it makes the provider's own text for tool changes
/// a part of the cached prefix, so that the first change does not cost the cache.
const DEFERRED_PLACEHOLDER: &str = "__pi_deferred_placeholder__";

pub(super) fn encode(request: &EncodeRequest<'_>) -> Result<HttpRequest, ProviderError> {
    let key = headers::key(request, &["authorization", "x-api-key", "cf-aig-authorization"])?;
    let encoder = Encoder::new(request, Access::of_request(request));
    let body = encoder.body()?;
    Ok(HttpRequest {
        url: headers::url(request.model, "/v1/messages?beta=true")?,
        headers: encoder.head(key).into_headers(),
        body: body.into_bytes()?,
        note: Note::default(),
    })
}

/// The effort that a reply to this request is given, where it is said inside the conversation.
pub(super) fn managed_effort(request: &EncodeRequest<'_>) -> Option<String> {
    let encoder = Encoder::new(request, Access::of_request(request));
    encoder.says_effort().then(|| encoder.active_effort().to_owned())
}

/// A reply, as the next request will have it.
pub(super) fn reply_messages(model: &Model, access: Access, reply: &AssistantMessage) -> Vec<Value> {
    let context = Context::from(vec![reply.clone().into()]).normalize();
    let request = EncodeRequest {
        model,
        context: &context,
        options: &StreamOptions::default(),
        concessions: &Concessions::default(),
    };
    let encoder = Encoder::new(&request, access);
    let messages = encoder.messages().unwrap_or_default();
    messages.iter().filter(|message| message.role == Role::Assistant).map(|message| json!(message)).collect()
}

pub(super) fn tool_call_id(id: &str) -> Cow<'_, str> {
    ids::plain_clipped(id, MAX_ID_LENGTH)
}

/// Whether the request had tools that would like strict arguments and got them.
pub(super) fn has_preferred_strict_tools(request: &EncodeRequest<'_>) -> bool {
    let encoder = Encoder::new(request, Access::of_request(request));
    let tools = request.context.messages().iter().filter_map(TranscriptItem::as_system);
    tools.flat_map(|message| &message.tools_added).any(|tool| {
        constraint::prefers_strict(tool)
            && constraint::sampled_schema(tool, encoder.strict_mode(tool)).is_ok_and(|sampled| sampled.strict)
    })
}

struct Encoder<'a> {
    request: EncodeRequest<'a>,
    model: &'a Model,
    options: &'a StreamOptions,
    compat: Compat<'a>,
    access: Access,
    cache_control: Option<CacheControl>,
}

impl<'a> Encoder<'a> {
    fn new(request: &EncodeRequest<'a>, access: Access) -> Self {
        let compat = Compat::of(request.model);
        Self {
            request: *request,
            model: request.model,
            options: request.options,
            access,
            cache_control: CacheControl::of(request.options.cache_retention, compat.long_cache_retention),
            compat,
        }
    }

    fn head(&self, key: Option<&str>) -> HeaderMap {
        let mut head = HeaderMap::default();
        let copilot = self.model.provider == "github-copilot";
        head.set("content-type", "application/json");
        head.set("anthropic-version", "2023-06-01");
        head.set("accept", "application/json");
        head.set("anthropic-dangerous-direct-browser-access", "true");
        match (key, self.access) {
            (Some(key), Access::Subscription) => {
                head.set("authorization", format!("Bearer {key}"));
                head.set("user-agent", oauth::USER_AGENT);
                head.set("x-app", "cli");
            }
            (key, _) => {
                head.identify(&self.request);
                match key {
                    Some(key) if copilot => head.set("authorization", format!("Bearer {key}")),
                    Some(key) => head.set("x-api-key", key),
                    None => {}
                }
                if let (Some(session), Some(header), false) =
                    (headers::affinity_session(&self.request), self.compat.session_header, copilot)
                {
                    head.set(header, session);
                }
            }
        }
        head.add_model(self.model);
        head.add_copilot(&self.request);
        head.add_request(&self.request);
        match self.betas() {
            Some(betas) if !betas.is_empty() => head.set("anthropic-beta", betas.join(",")),
            _ => head.remove("anthropic-beta"),
        }
        head
    }

    /// The features that a request asks for; `None` when the caller wants none. A header that is set by hand counts
    /// in place of what would be asked for.
    fn betas(&self) -> Option<Vec<Cow<'a, str>>> {
        let of_model = self.model.headers.iter().map(|(name, value)| (name, Some(value.as_str())));
        let of_request = self.options.headers.iter().map(|(name, value)| (name, value.as_deref()));
        let set = of_model.chain(of_request).rfind(|(name, _)| name.eq_ignore_ascii_case("anthropic-beta"));
        let mut betas: Vec<Cow<'a, str>> = Vec::new();
        let mut add = |beta: &'a str| {
            if !beta.is_empty() && !betas.iter().any(|known| known == beta) {
                betas.push(Cow::Borrowed(beta));
            }
        };
        if let Some((_, set)) = set {
            set?.split(',').map(str::trim).for_each(&mut add);
            return Some(betas);
        }
        if self.access == Access::Subscription {
            add("claude-code-20250219");
            add("oauth-2025-04-20");
        }
        if !self.compat.eager_tool_input_streaming && !self.current_tools().is_empty() {
            add("fine-grained-tool-streaming-2025-05-14");
        }
        if self.model.reasoning && self.thinks() && !self.compat.adaptive_thinking {
            add("interleaved-thinking-2025-05-14");
        }
        if !self.compat.fallback_models.is_empty() {
            add("server-side-fallback-2026-07-01");
        }
        if self.compat.managed_effort {
            add("mid-conversation-output-config-2026-07-01");
            add("thinking-binding-controls-2026-08-01");
        }
        if self.changes_tools_in_place() {
            add("inline-tools-2026-09-15");
        }
        if self.compat.message_threads && headers::affinity_session(&self.request).is_some() {
            add("message-threads-2026-08-12");
        }
        Some(betas)
    }

    fn body(&self) -> Result<Body<'a>, ProviderError> {
        let mut body = Body { system: self.system(), messages: self.messages()?, tools: None, fields: self.fields() };
        let marked = self.cache_control.filter(|_| self.compat.cache_control_on_tools);
        if self.changes_tools_in_place() {
            let mut tools = self.convert_tools(self.initial_tools(), marked)?;
            tools.push(json!({
                "name": DEFERRED_PLACEHOLDER,
                "description": "A placeholder. It is never available; do not call it.",
                "input_schema": { "type": "object", "properties": {}, "required": [] },
                "defer_loading": true,
            }));
            body.tools = Some(tools);
        } else {
            let tools = self.current_tools();
            if !tools.is_empty() {
                body.tools = Some(self.convert_tools(&tools, marked)?);
            }
        }
        Ok(body)
    }

    fn head_message(&self) -> Option<Cow<'a, SystemMessage>> {
        let messages = self.request.context.messages();
        match self.compat.later_system_messages {
            LaterSystemMessages::Supported => initial_system_message(messages).map(Cow::Borrowed),
            LaterSystemMessages::Unsupported => current_system_message(messages).map(Cow::Owned),
        }
    }

    fn system(&self) -> Vec<Block<'a>> {
        let text = self.head_message().map(|head| render_full(&head)).filter(|text| !text.is_empty());
        let identity = (self.access == Access::Subscription).then_some(Cow::Borrowed(oauth::IDENTITY));
        let texts = identity.into_iter().chain(text.map(Cow::Owned));
        texts.map(|text| Block::Text { text, cache_control: self.cache_control }).collect()
    }

    /// Everything but prompt, messages and tools.
    fn fields(&self) -> Map<String, Value> {
        let (model, options) = (self.model, self.options);
        let mut fields = Map::new();
        let mut set = |name: &str, value: Value| drop(fields.insert(name.to_owned(), value));
        let (max_tokens, budget) = self.limits();
        set("model", model.id.as_str().into());
        set("max_tokens", max_tokens.into());
        set("stream", true.into());
        if let Some(temperature) = options.temperature
            && !self.thinks()
            && !self.compat.managed_effort
            && self.compat.temperature
        {
            set("temperature", temperature.into());
        }
        if self.disables_thinking() {
            set("thinking", json!({ "type": "disabled" }));
        } else if self.says_effort() {
            set(
                "thinking",
                json!({
                    "type": "adaptive",
                    "display": "summarized",
                    "block_binding": { "prefix_mismatch_behavior": "drop_block" },
                }),
            );
            // The real effort stands in the conversation. This one is a part of the cached prefix, so it stays the
            // same; and it is the lowest, because an organisation may refuse everything above its own limit.
            set("output_config", json!({ "effort": "low" }));
        } else if model.reasoning && self.thinks() {
            if self.compat.adaptive_thinking {
                set("thinking", json!({ "type": "adaptive", "display": "summarized" }));
                set("output_config", json!({ "effort": self.active_effort() }));
            } else {
                let budget = if budget == 0 { budget::MIN_ANSWER_TOKENS } else { budget };
                set("thinking", json!({ "type": "enabled", "budget_tokens": budget, "display": "summarized" }));
            }
        }
        if let Some(user) = options.metadata.as_ref().and_then(|metadata| metadata.get("user_id")?.as_str()) {
            set("metadata", json!({ "user_id": user }));
        }
        if let Some(choice) = options.tool_choice {
            set("tool_choice", json!({ "type": choice }));
        }
        if !self.compat.fallback_models.is_empty() {
            let models = self.compat.fallback_models.iter().map(|fallback| json!({ "model": fallback["model"] }));
            set("fallbacks", models.collect());
        }
        fields
    }

    /// The longest answer, and the part of it that may be thinking.
    fn limits(&self) -> (u64, u64) {
        let (model, options) = (self.model, self.options);
        let messages = self.request.context.messages();
        let base = budget::max_tokens(model, messages, options);
        let Some(level) = options.reasoning.filter(|_| self.thinks() && !self.compat.adaptive_thinking) else {
            return (base.unwrap_or(DEFAULT_MAX_TOKENS), 0);
        };
        let known =
            Model { max_tokens: if model.max_tokens > 0 { model.max_tokens } else { u64::MAX }, ..Model::default() };
        let base = base.unwrap_or(DEFAULT_MAX_TOKENS);
        let shared = budget::share_max_tokens(&known, Some(base), level, &options.thinking_budgets);
        let max_tokens = budget::fit_max_tokens(model, messages, shared.max_tokens);
        (max_tokens, budget::leave_room_to_answer(shared.thinking, max_tokens))
    }

    fn thinks(&self) -> bool {
        self.options.reasoning.is_some_and(|level| level != ThinkingLevel::Off)
    }

    fn disables_thinking(&self) -> bool {
        self.model.reasoning && !self.thinks() && off_word(self.model) != Off::Unsupported
    }

    fn says_effort(&self) -> bool {
        self.compat.managed_effort && !self.disables_thinking()
    }

    fn active_effort(&self) -> &'a str {
        let level = self.options.reasoning.filter(|_| self.thinks() && self.compat.adaptive_thinking);
        let Some(level) = level else { return "high" };
        match (self.model.mapped_level(level), level) {
            (Some(word), _) => word,
            (None, ThinkingLevel::Minimal | ThinkingLevel::Low) => "low",
            (None, ThinkingLevel::Medium) => "medium",
            (None, _) => "high",
        }
    }

    fn initial_tools(&self) -> &'a [ToolDeclaration] {
        initial_system_message(self.request.context.messages())
            .map(|head| head.tools_added.as_slice())
            .unwrap_or_default()
    }

    fn current_tools(&self) -> Vec<ToolDeclaration> {
        current_tools(self.request.context.messages())
    }

    /// The list of tools stays as it began, and every later tool is defined where it comes. The provider refuses a
    /// list in which every tool is deferred, so there must be one at the beginning.
    fn changes_tools_in_place(&self) -> bool {
        self.compat.tool_changes_in_place && !self.initial_tools().is_empty()
    }

    fn strict_mode(&self, tool: &ToolDeclaration) -> StrictMode {
        let given_up = self.request.concessions.contains(&Concession::LenientTools) && constraint::prefers_strict(tool);
        match self.compat.strict_tools && !given_up {
            true => StrictMode::Supported(is_refused_when_strict),
            false => StrictMode::Unsupported,
        }
    }

    fn convert_tools(
        &self,
        tools: &[ToolDeclaration],
        mark_last: Option<CacheControl>,
    ) -> Result<Vec<Value>, ProviderError> {
        let mut converted = tools.iter().map(|tool| self.convert_tool(tool)).collect::<Result<Vec<_>, _>>()?;
        if let (Some(mark), Some(last)) = (mark_last, converted.last_mut()) {
            last["cache_control"] = mark.to_value();
        }
        Ok(converted)
    }

    fn convert_tool(&self, tool: &ToolDeclaration) -> Result<Value, ProviderError> {
        let given_up = self.request.concessions.contains(&Concession::LenientTools) && constraint::prefers_strict(tool);
        let sampled = match given_up {
            true => constraint::SampledSchema { schema: Cow::Borrowed(&tool.parameters), strict: false },
            false => constraint::sampled_schema(tool, self.strict_mode(tool))?,
        };
        let schema = without_keywords(&sampled.schema, self.compat.refused_schema_keywords);
        let mut definition = json!({
            "name": self.access.wire_name(&tool.name),
            "description": tool.description,
            "input_schema": input_schema(&schema, sampled.strict),
        });
        if self.compat.eager_tool_input_streaming {
            definition["eager_input_streaming"] = true.into();
        }
        if sampled.strict {
            definition["strict"] = true.into();
        }
        Ok(definition)
    }

    fn messages(&self) -> Result<Vec<WireMessage<'a>>, ProviderError> {
        let mut turns = replay(
            self.request.context.messages(),
            &ReplayTarget {
                model: self.model,
                later_system_messages: self.compat.later_system_messages,
                tool_call_id: &|id, _| tool_call_id(id),
                max_id_length: MAX_ID_LENGTH,
            },
        );
        // The leading one is the request's own prompt.
        if matches!(turns.first(), Some(Turn::System(_))) {
            turns.remove(0);
        }
        let mut conversation = Conversation {
            encoder: self,
            messages: Vec::with_capacity(turns.len()),
            held: Vec::new(),
            efforts: Vec::new(),
        };
        conversation.add_turns(turns)?;
        Ok(conversation.finish())
    }
}

/// Keywords for which strict tools are refused.
fn is_refused_when_strict(keyword: &str, value: &Value) -> bool {
    const FORMATS: [&str; 10] =
        ["date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"];
    match keyword {
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf" | "maxItems" | "uniqueItems"
        | "minContains" | "maxContains" | "minProperties" | "maxProperties" => true,
        "minItems" => !matches!(value.as_f64(), Some(0.0 | 1.0)),
        "format" => !value.as_str().is_some_and(|format| FORMATS.contains(&format)),
        _ => false,
    }
}

/// Of a lenient schema only what the provider takes at the top: it refuses alternatives there.
fn input_schema(schema: &Value, strict: bool) -> Value {
    let of = |name: &str| schema.get(name).filter(|value| !value.is_null());
    let mut input = Map::new();
    if let (true, Value::Object(schema)) = (strict, schema) {
        input.clone_from(schema);
    }
    input.insert("type".into(), "object".into());
    input.insert("properties".into(), of("properties").cloned().unwrap_or_else(|| json!({})));
    input.insert("required".into(), of("required").cloned().unwrap_or_else(|| json!([])));
    for name in ["additionalProperties", "$defs", "definitions"] {
        if let Some(value) = schema.get(name) {
            input.insert(name.into(), value.clone());
        }
    }
    Value::Object(input)
}

/// The messages of a request, as they come about.
struct Conversation<'a, 'e> {
    encoder: &'e Encoder<'a>,
    messages: Vec<WireMessage<'a>>,
    /// Later system messages wait for the next assistant message that is sent: results must follow their calls at
    /// once, and an update must not come between a user message and its answer.
    held: Vec<WireMessage<'a>>,
    /// Before which message which effort is said.
    efforts: Vec<(usize, &'a str)>,
}

impl<'a> Conversation<'a, '_> {
    fn add_turns(&mut self, turns: Vec<Turn<'a>>) -> Result<(), ProviderError> {
        let mut turns = turns.into_iter().peekable();
        while let Some(turn) = turns.next() {
            match turn {
                Turn::System(message) => self.system(&message)?,
                Turn::User(content) => self.user(content),
                Turn::Assistant(turn) => self.assistant(turn),
                Turn::ToolResult(first) => {
                    let mut results = vec![first];
                    while let Some(Turn::ToolResult(next)) = turns.next_if(|turn| matches!(turn, Turn::ToolResult(_))) {
                        results.push(next);
                    }
                    self.tool_results(results);
                }
            }
        }
        Ok(())
    }

    fn finish(mut self) -> Vec<WireMessage<'a>> {
        self.messages.append(&mut self.held);
        if let (Some(mark), Some(last)) = (self.encoder.cache_control, self.messages.last_mut()) {
            last.mark_cached(mark);
        }
        if !self.encoder.says_effort() {
            return self.messages;
        }
        let mut efforts = self.efforts.into_iter().peekable();
        let mut messages = Vec::with_capacity(self.messages.len() + efforts.len() + 1);
        for (index, message) in self.messages.into_iter().enumerate() {
            if let Some((_, effort)) = efforts.next_if(|(before, _)| *before == index) {
                messages.push(WireMessage::effort(effort));
            }
            messages.push(message);
        }
        messages.push(WireMessage::effort(self.encoder.active_effort()));
        messages
    }

    fn system(&mut self, message: &SystemMessage) -> Result<(), ProviderError> {
        let mut blocks = Vec::new();
        let text = render_update(message);
        if !text.is_empty() {
            blocks.push(Block::text(text));
        }
        if self.encoder.changes_tools_in_place() {
            for removed in &message.tools_removed {
                // A new definition under the same name replaces the old one by itself.
                if !message.tools_added.iter().any(|added| added.name == removed.name) {
                    let name = self.encoder.access.wire_name(&removed.name).into_owned();
                    blocks.push(Block::tool_removal(name.into()));
                }
            }
            for definition in self.encoder.convert_tools(&message.tools_added, None)? {
                blocks.push(Block::tool_addition(definition));
            }
        }
        if !blocks.is_empty() {
            self.held.push(WireMessage::new(Role::System, Content::Blocks(blocks)));
        }
        Ok(())
    }

    fn user(&mut self, content: UserContent<'a>) {
        let content = match content {
            UserContent::Text(text) if text.trim().is_empty() => return,
            UserContent::Text(text) => Content::Text(text.into()),
            UserContent::Parts(parts) => match blocks(parts) {
                blocks if blocks.is_empty() => return,
                blocks => Content::Blocks(blocks),
            },
        };
        self.messages.push(WireMessage::new(Role::User, content));
    }

    fn assistant(&mut self, turn: AssistantTurn<'a>) {
        let message = turn.message;
        let blocks: Vec<_> = turn.parts.into_iter().filter_map(|part| self.assistant_block(part)).collect();
        if blocks.is_empty() {
            return;
        }
        self.messages.append(&mut self.held);
        if message.api == super::AnthropicMessages::ID
            && message.provider == self.encoder.model.provider
            && let Some(effort) = message.provider_thinking_level.as_deref()
            && matches!(effort, "low" | "medium" | "high" | "xhigh" | "max")
        {
            self.efforts.push((self.messages.len(), effort));
        }
        self.messages.push(WireMessage::new(Role::Assistant, Content::Blocks(blocks)));
    }

    fn assistant_block(&self, part: AssistantPart<'a>) -> Option<Block<'a>> {
        match part {
            AssistantPart::Text { text, .. } => (!text.trim().is_empty()).then(|| Block::text(text)),
            AssistantPart::Thinking(block) => {
                let signature = block.thinking_signature.as_deref().unwrap_or_default();
                if block.redacted == Some(true) {
                    return Some(Block::RedactedThinking { data: signature });
                }
                let signed = !signature.trim().is_empty();
                let thinking = block.thinking.as_str();
                match (signed, self.encoder.compat.empty_signature) {
                    (true, _) => Some(Block::Thinking { thinking, signature }),
                    (false, _) if thinking.trim().is_empty() => None,
                    (false, true) => Some(Block::Thinking { thinking, signature: "" }),
                    (false, false) => Some(Block::text(thinking)),
                }
            }
            AssistantPart::ToolCall(part) => Some(Block::ToolUse {
                id: part.id,
                name: self.encoder.access.wire_name(&part.call.name),
                input: &part.call.arguments,
            }),
        }
    }

    /// All results of a turn stand in one message, first; pictures of failed calls follow.
    fn tool_results(&mut self, results: Vec<ToolResultTurn<'a>>) {
        let mut blocks = Vec::with_capacity(results.len());
        let mut after = Vec::new();
        for mut result in results {
            if let Some(moved) = result.split_error_images() {
                after.push(Block::text(moved.caption));
                after.extend(moved.images.into_iter().map(Block::image));
            }
            blocks.push(tool_result(result));
        }
        blocks.append(&mut after);
        self.messages.push(WireMessage::new(Role::User, Content::Blocks(blocks)));
    }
}

fn tool_result(result: ToolResultTurn<'_>) -> Block<'_> {
    let has_images = result.images().next().is_some();
    let content = match has_images {
        false => Content::Text(result.text()),
        true => {
            let mut blocks = blocks(result.parts);
            if !blocks.iter().any(|block| matches!(block, Block::Text { .. })) {
                blocks.insert(0, Block::text(IMAGE_ONLY_RESULT));
            }
            Content::Blocks(blocks)
        }
    };
    Block::ToolResult { tool_use_id: result.id, content, is_error: result.is_error, cache_control: None }
}

/// Pictures, and texts that are not blank: the provider refuses blank ones.
fn blocks(parts: Vec<Part<'_>>) -> Vec<Block<'_>> {
    let block = |part| match part {
        Part::Text(text) if text.trim().is_empty() => None,
        Part::Text(text) => Some(Block::text(text)),
        Part::Image(image) => Some(Block::image(image)),
    };
    parts.into_iter().filter_map(block).collect()
}
