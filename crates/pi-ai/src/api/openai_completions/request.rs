//! Transcript → the body and headers of a request.

use indexmap::IndexMap;
use serde_json::{Map, Value, json};

use super::{
    body::{AssistantMessage, Body, Content, Part, ToolCall, WireMessage},
    compat::{Compat, PromptCacheKey, SessionAffinity},
    is_reasoning_detail, tool_call_id,
};
use crate::{
    api::{
        EncodeRequest, HttpRequest, Note, budget,
        cache::{CacheControl, clipped_cache_key},
        constraint::{self, ANY_KEYWORD, StrictMode},
        headers::{self, HeaderMap},
        json_text::JsonText,
        thinking::{Off, effort_word, off_word},
        tool_schema::without_keywords,
    },
    error::ProviderError,
    message::{Message, ThinkingContent},
    model::{Model, ThinkingLevel},
    options::CacheRetention,
    replay::{self, AssistantPart, AssistantTurn, ReplayTarget, ToolResultTurn, Turn, UserContent, replay},
    tool::ToolDeclaration,
    transcript::{ResolvedTools, declared_tools, render_full, render_update, resolve_tools},
};

const BRIDGE: &str = "I have read the tool results.";
const IMAGES_OF_RESULTS: &str = "The pictures that the tools gave:";
const IMAGE_ONLY_RESULT: &str = "(a picture, see below)";
const EMPTY_RESULT: &str = "(the tool gave no output)";

pub(super) fn encode(request: &EncodeRequest<'_>) -> Result<HttpRequest, ProviderError> {
    let compat = Compat::of(request.model);
    let body = body(request, &compat)?;
    Ok(HttpRequest {
        url: headers::url(request.model, "/chat/completions")?,
        headers: head(request, &compat)?.into_headers(),
        body: body.into_bytes()?,
        note: Note::default(),
    })
}

fn head(request: &EncodeRequest<'_>, compat: &Compat<'_>) -> Result<HeaderMap, ProviderError> {
    let key = headers::key(request, &["authorization", "cf-aig-authorization"])?;
    let mut head = HeaderMap::for_model(request);
    head.set("accept", "application/json");
    if let Some(key) = key {
        head.set("authorization", format!("Bearer {key}"));
    }
    head.add_model(request.model);
    head.add_copilot(request);
    if let (Some(session), Some(affinity)) = (headers::affinity_session(request), compat.session_affinity) {
        match affinity {
            SessionAffinity::OpenRouter => head.set("x-session-id", session),
            SessionAffinity::OpenAi | SessionAffinity::NoSession => {
                if affinity == SessionAffinity::OpenAi {
                    head.set("session_id", session);
                }
                head.set("x-client-request-id", session);
                head.set("x-session-affinity", session);
            }
        }
    }
    head.add_request(request);
    Ok(head)
}

fn body<'a>(request: &EncodeRequest<'a>, compat: &Compat<'a>) -> Result<Body<'a>, ProviderError> {
    let EncodeRequest { model, context, options, .. } = *request;
    let messages = context.messages();
    let tools = resolve_tools(messages, compat.tool_changes);
    let cache_control = cache_control(compat, options.cache_retention);
    let mut body = Body {
        messages: Conversation::new(request, compat, &tools)?.messages,
        tools: None,
        fields: fields(request, compat),
    };
    if !tools.request_tools.is_empty() {
        let converted = tools.request_tools.iter().map(|tool| convert_tool(tool, compat));
        body.tools = Some(converted.collect::<Result<_, _>>()?);
        if compat.zai_tool_stream {
            body.fields.insert("tool_stream".into(), true.into());
        }
    } else if compat.tools_with_tool_history && has_tool_history(messages) {
        body.tools = Some(Vec::new());
    }
    if let Some(cache_control) = cache_control {
        body.mark_cached(cache_control);
    }
    // Last, so that they replace what the request has under the same names.
    body.fields.extend(budget::sampling_params(model, options));
    Ok(body)
}

fn cache_control(compat: &Compat<'_>, retention: CacheRetention) -> Option<CacheControl> {
    CacheControl::of(retention, compat.long_cache_retention).filter(|_| compat.anthropic_cache_control)
}

/// Everything but messages and tools.
fn fields(request: &EncodeRequest<'_>, compat: &Compat<'_>) -> Map<String, Value> {
    let EncodeRequest { model, context, options, .. } = *request;
    let mut fields = Map::new();
    let mut set = |name: &str, value: Value| drop(fields.insert(name.to_owned(), value));
    set("model", model.id.as_str().into());
    set("stream", true.into());
    let long = options.cache_retention == CacheRetention::Long && compat.long_cache_retention;
    let sends_key = match compat.prompt_cache_key {
        PromptCacheKey::Enabled => true,
        PromptCacheKey::Auto => long || model.base_url.contains("api.openai.com"),
        PromptCacheKey::Disabled => false,
    };
    if sends_key && let Some(session) = headers::affinity_session(request) {
        set("prompt_cache_key", clipped_cache_key(session).into());
    }
    if long {
        set("prompt_cache_retention", "24h".into());
    }
    if compat.usage_in_streaming {
        set("stream_options", json!({ "include_usage": true }));
    }
    if compat.store {
        set("store", false.into());
    }
    let max_tokens = budget::max_tokens(model, context.messages(), options).filter(|tokens| *tokens > 0);
    if let Some(max_tokens) = max_tokens {
        set(compat.max_tokens_field, max_tokens.into());
    }
    if let Some(temperature) = options.temperature {
        set("temperature", temperature.into());
    }
    if let Some(choice) = options.tool_choice {
        set("tool_choice", json!(choice));
    }
    if let Some(priority) = compat.vllm_priority {
        set("priority", priority.clone());
    }
    if model.reasoning {
        let effort = budget::effort(model, options);
        let ceiling = max_tokens.unwrap_or(model.max_tokens);
        let budget = effort
            .map(|level| {
                budget::leave_room_to_answer(budget::thinking_budget(level, &options.thinking_budgets), ceiling)
            })
            .filter(|budget| *budget > 0);
        thinking(model, compat, effort, budget, &mut set);
        if let (Some(field), Some(budget)) = (compat.thinking_budget_field, budget) {
            set(field, budget.into());
        }
    }
    if let Some(routing) = compat.open_router_routing {
        set("provider", routing.clone().into());
    }
    if let Some(routing) = compat.vercel_gateway_routing {
        let known = ["only", "order"].into_iter().filter_map(|name| Some((name, routing.get(name)?)));
        let gateway: Map<String, Value> = known.map(|(name, value)| (name.to_owned(), value.clone())).collect();
        if !gateway.is_empty() {
            set("providerOptions", json!({ "gateway": gateway }));
        }
    }
    fields
}

/// How a server is told to think, in one of the many ways.
fn thinking(
    model: &Model,
    compat: &Compat<'_>,
    effort: Option<ThinkingLevel>,
    budget: Option<u64>,
    set: &mut impl FnMut(&str, Value),
) {
    let word = effort.map(|level| effort_word(model, level));
    let mapped = effort.and_then(|level| match model.thinking_level_map.get(&level) {
        Some(mapped) => mapped.as_deref(),
        None => Some(level.as_str()),
    });
    let off = off_word(model);
    let says_effort = compat.reasoning_effort;
    let on_or_off = |on: &str| json!({ "type": if word.is_some() { on } else { "disabled" } });
    match compat.thinking_format {
        "zai" => {
            set(
                "thinking",
                match word {
                    Some(_) => json!({ "type": "enabled", "clear_thinking": false }),
                    None => on_or_off("enabled"),
                },
            );
            if let (Some(word), true) = (mapped, says_effort) {
                set("reasoning_effort", word.into());
            }
        }
        "qwen" => {
            set("enable_thinking", word.is_some().into());
            if let (Some(word), true) = (word, says_effort) {
                set("reasoning_effort", word.into());
            }
        }
        "qwen-chat-template" => {
            set("chat_template_kwargs", json!({ "enable_thinking": word.is_some(), "preserve_thinking": true }));
        }
        "chat-template" => {
            if let Some(values) = template_values(model, compat.chat_template_kwargs, effort, budget) {
                set("chat_template_kwargs", values);
            }
        }
        "baseten" => {
            if let Some(values) = template_values(model, compat.chat_template_args, effort, budget) {
                set("chat_template_args", values);
            }
            let word = match (effort, off) {
                (Some(_), _) => mapped,
                (None, Off::Word(word)) => Some(word),
                (None, _) => None,
            };
            if let (Some(word), true) = (word, says_effort) {
                set("reasoning_effort", word.into());
            }
        }
        "deepseek" => {
            if word.is_some() || off != Off::Unsupported {
                set("thinking", on_or_off("enabled"));
            }
            if let (Some(word), true) = (word, says_effort) {
                set("reasoning_effort", word.into());
            }
        }
        "openrouter" => match (word, off) {
            (Some(word), _) | (None, Off::Word(word)) => set("reasoning", json!({ "effort": word })),
            (None, Off::Unnamed) => set("reasoning", json!({ "effort": "none" })),
            (None, Off::Unsupported) => {}
        },
        "ant-ling" => {
            let mapped = effort.and_then(|level| model.mapped_level(level));
            if let Some(word) = mapped {
                set("reasoning", json!({ "effort": word }));
            }
        }
        "together" => {
            set("reasoning", json!({ "enabled": word.is_some() }));
            if let (Some(word), true) = (word, says_effort) {
                set("reasoning_effort", word.into());
            }
        }
        "string-thinking" => match (word, off) {
            (Some(word), _) | (None, Off::Word(word)) => set("thinking", word.into()),
            (None, Off::Unnamed) => set("thinking", "none".into()),
            (None, Off::Unsupported) => {}
        },
        _ => {
            if let (Some(word), true) = (word.or(off.word()), says_effort) {
                set("reasoning_effort", word.into());
            }
        }
    }
}

/// Settings of a chat template, in which `{"$var": …}` stands for what this request thinks.
fn template_values(
    model: &Model,
    values: Option<&Map<String, Value>>,
    effort: Option<ThinkingLevel>,
    budget: Option<u64>,
) -> Option<Value> {
    let resolve = |value: &Value| {
        let Some(variable) = value.as_object() else { return Some(value.clone()) };
        if effort.is_none() && variable.get("omitWhenOff") == Some(&Value::Bool(true)) {
            return None;
        }
        match variable.get("$var").and_then(Value::as_str) {
            Some("thinking.enabled") => Some(effort.is_some().into()),
            Some("thinking.budget") => budget.map(Value::from),
            _ => match model.thinking_level_map.get(&effort.unwrap_or_default()) {
                Some(mapped) => mapped.as_deref().map(Value::from),
                None => effort.map(|level| level.as_str().into()),
            },
        }
    };
    let resolved: Map<String, Value> =
        values?.iter().filter_map(|(name, value)| Some((name.clone(), resolve(value)?))).collect();
    (!resolved.is_empty()).then(|| resolved.into())
}

fn has_tool_history(messages: &[Message]) -> bool {
    messages.iter().any(|message| match message {
        Message::ToolResult(_) => true,
        Message::Assistant(message) => message.tool_calls().next().is_some(),
        Message::System(_) | Message::User(_) => false,
    })
}

fn convert_tool(tool: &ToolDeclaration, compat: &Compat<'_>) -> Result<Value, ProviderError> {
    if let Some(grammar) = constraint::grammar(tool, compat.grammar_tools)? {
        let format = json!({ "syntax": grammar.syntax, "definition": grammar.definition });
        return Ok(json!({
            "type": "custom",
            "custom": {
                "name": tool.name,
                "description": tool.description,
                "format": { "type": "grammar", "grammar": format },
            },
        }));
    }
    let mode = if compat.strict_mode { ANY_KEYWORD } else { StrictMode::Unsupported };
    let sampled = constraint::sampled_schema(tool, mode)?;
    let mut function = json!({
        "name": tool.name,
        "description": tool.description,
        "parameters": without_keywords(&sampled.schema, compat.refused_schema_keywords),
    });
    if compat.strict_mode {
        function["strict"] = sampled.strict.into();
    }
    Ok(json!({ "type": "function", "function": function }))
}

/// The messages of a request, as they come about.
struct Conversation<'a, 'c> {
    model: &'a Model,
    compat: &'c Compat<'a>,
    grammar_properties: IndexMap<String, String>,
    messages: Vec<WireMessage<'a>>,
}

/// What the last message was, for servers that want another one between two of them.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Last {
    ToolResult,
    Other,
}

impl<'a, 'c> Conversation<'a, 'c> {
    fn new(request: &EncodeRequest<'a>, compat: &'c Compat<'a>, tools: &ResolvedTools) -> Result<Self, ProviderError> {
        let stored = request.context.messages();
        let mut conversation = Self {
            model: request.model,
            compat,
            grammar_properties: constraint::grammar_properties(&declared_tools(stored), compat.grammar_tools)?,
            messages: Vec::with_capacity(stored.len() + 1),
        };
        let model = request.model;
        let turns = replay(
            stored,
            &ReplayTarget {
                model: request.model,
                later_system_messages: compat.later_system_messages,
                tool_call_id: &|id, _| tool_call_id(id, model),
                max_id_length: 40,
            },
        );
        conversation.add_turns(turns, tools)?;
        if compat.alternating_roles {
            conversation.merge_adjacent_users();
        }
        Ok(conversation)
    }

    fn add_turns(&mut self, turns: Vec<Turn<'a>>, tools: &ResolvedTools) -> Result<(), ProviderError> {
        let mut last = Last::Other;
        let mut systems = 0;
        let mut turns = turns.into_iter().enumerate().peekable();
        while let Some((index, turn)) = turns.next() {
            match turn {
                Turn::System(message) => {
                    systems += 1;
                    if systems > tools.folded_system_messages && !message.tools_added.is_empty() {
                        let tools = message.tools_added.iter().map(|tool| convert_tool(tool, self.compat));
                        self.messages.push(WireMessage::SystemTools { tools: tools.collect::<Result<_, _>>()? });
                    }
                    let text = if index == 0 { render_full(&message) } else { render_update(&message) };
                    if !text.is_empty() {
                        self.instruct(text);
                    }
                    last = Last::Other;
                }
                Turn::User(content) => {
                    if last == Last::ToolResult && self.compat.assistant_after_tool_result {
                        self.bridge();
                    }
                    // A message that has nothing to say leaves no trace, not even as the last one.
                    if self.user(content) {
                        last = Last::Other;
                    }
                }
                Turn::Assistant(turn) => {
                    if self.assistant(turn)? {
                        last = Last::Other;
                    }
                }
                Turn::ToolResult(first) => {
                    let mut images = Vec::new();
                    self.tool_result(first, &mut images);
                    while let Some((_, Turn::ToolResult(next))) =
                        turns.next_if(|(_, turn)| matches!(turn, Turn::ToolResult(_)))
                    {
                        self.tool_result(next, &mut images);
                    }
                    last = match images.is_empty() {
                        true => Last::ToolResult,
                        false => {
                            self.images_of_results(images);
                            Last::Other
                        }
                    };
                }
            }
        }
        Ok(())
    }

    fn instruct(&mut self, text: String) {
        let content = Content::Text(text.into());
        self.messages.push(match self.model.reasoning && self.compat.developer_role {
            true => WireMessage::Developer { content },
            false => WireMessage::System { content },
        });
    }

    fn bridge(&mut self) {
        let content = Some(Content::Text(BRIDGE.into()));
        self.messages.push(WireMessage::Assistant(AssistantMessage { content, ..AssistantMessage::default() }));
    }

    /// Whether there was anything to say.
    fn user(&mut self, content: UserContent<'a>) -> bool {
        let content = match content {
            UserContent::Text(text) => Content::Text(text.into()),
            UserContent::Parts(parts) => {
                let parts: Vec<_> = parts
                    .into_iter()
                    .filter(|part| *part != replay::Part::Text(""))
                    .map(|part| match part {
                        replay::Part::Text(text) => Part::text(text),
                        replay::Part::Image(image) => Part::image(image),
                    })
                    .collect();
                if parts.is_empty() {
                    return false;
                }
                Content::Parts(parts)
            }
        };
        self.messages.push(WireMessage::User { content });
        true
    }

    /// Whether there was anything to say.
    fn assistant(&mut self, turn: AssistantTurn<'a>) -> Result<bool, ProviderError> {
        let compat = self.compat;
        let mut texts = Vec::new();
        let mut thinking: Vec<&'a ThinkingContent> = Vec::new();
        let mut tool_calls = Vec::new();
        let mut legacy_details = Vec::new();
        for part in turn.parts {
            match part {
                AssistantPart::Text { text, .. } if !text.trim().is_empty() => texts.push(text),
                AssistantPart::Text { .. } => {}
                AssistantPart::Thinking(block) => thinking.push(block),
                AssistantPart::ToolCall(part) => {
                    legacy_details.extend(part.signature.and_then(legacy_encrypted_detail));
                    tool_calls.push(self.tool_call(part)?);
                }
            }
        }
        let signed = thinking.iter().find_map(|block| reasoning_details(block.thinking_signature.as_deref()?));
        let details = signed.or((!legacy_details.is_empty()).then(|| legacy_details.into()));
        let visible: Vec<&ThinkingContent> =
            thinking.into_iter().filter(|block| !block.thinking.trim().is_empty()).collect();

        let mut message = AssistantMessage::default();
        if compat.assistant_after_tool_result || compat.non_null_assistant_content {
            message.content = Some(Content::Text("".into()));
        }
        if compat.thinking_as_text && !visible.is_empty() {
            let text = visible.iter().map(|block| block.thinking.as_str()).collect::<Vec<_>>().join("\n\n");
            let parts = std::iter::once(Part::text(text)).chain(texts.into_iter().map(Part::text));
            message.content = Some(Content::Parts(parts.collect()));
        } else {
            // One string, although a list of parts would do: some models mirror the list in what they write.
            match texts[..] {
                [] => {}
                [text] => message.content = Some(Content::Text(text.into())),
                _ => message.content = Some(Content::Text(texts.concat().into())),
            }
            if details.is_none() {
                message.set_reasoning(self.model, &visible);
            }
        }
        message.reasoning_details = details;
        if compat.reasoning_content_on_assistant_messages && self.model.reasoning {
            message.reasoning_content.get_or_insert("".into());
        }
        message.tool_calls = tool_calls;
        let says_something = message.content.as_ref().is_some_and(|content| !content.is_empty());
        if !says_something && message.tool_calls.is_empty() {
            return Ok(false);
        }
        self.messages.push(WireMessage::Assistant(message));
        Ok(true)
    }

    fn tool_call(&self, part: replay::CallPart<'a>) -> Result<ToolCall<'a>, ProviderError> {
        let replay::CallPart { id, call, .. } = part;
        match self.grammar_properties.get(&call.name) {
            Some(property) => {
                let input = constraint::grammar_input(&call.name, &call.arguments, property)?;
                Ok(ToolCall::custom(id, &call.name, input))
            }
            None => Ok(ToolCall::function(id, &call.name, JsonText(&call.arguments))),
        }
    }

    fn tool_result(&mut self, turn: ToolResultTurn<'a>, images: &mut Vec<Part<'a>>) {
        let text = turn.text();
        let before = images.len();
        images.extend(turn.images().map(Part::image));
        let content = match text.trim().is_empty() {
            false => text,
            true if images.len() > before => IMAGE_ONLY_RESULT.into(),
            true => EMPTY_RESULT.into(),
        };
        let name = (self.compat.tool_result_name && !turn.name.is_empty()).then_some(turn.name);
        self.messages.push(WireMessage::Tool { content: Content::Text(content), tool_call_id: turn.id, name });
    }

    /// Only user messages may hold pictures: those of the results follow in one.
    fn images_of_results(&mut self, images: Vec<Part<'a>>) {
        if self.compat.assistant_after_tool_result {
            self.bridge();
        }
        let parts = std::iter::once(Part::text(IMAGES_OF_RESULTS)).chain(images).collect();
        self.messages.push(WireMessage::User { content: Content::Parts(parts) });
    }

    fn merge_adjacent_users(&mut self) {
        let mut merged: Vec<WireMessage<'a>> = Vec::with_capacity(self.messages.len());
        for message in self.messages.drain(..) {
            match (merged.last_mut(), message) {
                (Some(WireMessage::User { content: before }), WireMessage::User { content }) => before.append(content),
                (_, message) => merged.push(message),
            }
        }
        self.messages = merged;
    }
}

/// Reasoning that came as structured details, from the signature in which it is kept.
fn reasoning_details(signature: &str) -> Option<Value> {
    let details: Value = signature.starts_with('[').then(|| serde_json::from_str(signature).ok())??;
    let valid = details.as_array().is_some_and(|list| !list.is_empty() && list.iter().all(is_reasoning_detail));
    valid.then_some(details)
}

/// Older sessions keep an encrypted detail with the call that it belongs to.
fn legacy_encrypted_detail(signature: &str) -> Option<Value> {
    let detail: Value = signature.starts_with('{').then(|| serde_json::from_str(signature).ok())??;
    let has_text = |name: &str| detail[name].as_str().is_some_and(|text| !text.is_empty());
    let encrypted = detail["type"] == "reasoning.encrypted" && has_text("id") && has_text("data");
    (encrypted && is_reasoning_detail(&detail)).then_some(detail)
}
