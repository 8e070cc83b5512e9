//! Transcript → the body and head of a request.

use std::borrow::Cow;

use base64::{
    Engine, alphabet,
    engine::DecodePaddingMode,
    engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, STANDARD},
};
use serde_json::{Map, Value, json};

use super::{
    access::{self, Access},
    body::{Block, Body, Bytes, Message, Reasoning, Role, Status},
    family::Family,
    lenient_tools,
};
use crate::{
    api::{
        EncodeRequest, HttpRequest, Note, budget,
        compat::Switches,
        constraint::{self, ANY_KEYWORD, SampledSchema, StrictMode},
        headers::HeaderMap,
        ids,
        tool_schema::without_keywords,
        write_body,
    },
    error::{ErrorKind, ProviderError},
    message::ImageContent,
    model::{Model, ThinkingLevel},
    options::{CacheRetention, ToolChoice},
    replay::{self, AssistantPart, AssistantTurn, ReplayTarget, ToolResultTurn, Turn, UserContent, replay},
    tool::ToolDeclaration,
    transcript::{LaterSystemMessages, current_system_message, current_tools, render_full},
};

const MAX_ID_LENGTH: usize = 64;

/// Takes what others wrote, whatever its padding.
const LENIENT_BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The API refuses blank texts and messages without content.
const BLANK: &str = "(empty)";

/// Lets thinking be dropped that was bound to another prompt or other tools, for which the request would be refused.
const BINDING_CONTROLS: &str = "thinking-binding-controls-2026-08-01";
const INTERLEAVED_THINKING: &str = "interleaved-thinking-2025-05-14";

pub(super) fn encode(request: &EncodeRequest<'_>) -> Result<HttpRequest, ProviderError> {
    let access = Access::of(request)?;
    let encoder = Encoder::new(request);
    let body = Body { messages: encoder.messages()?, system: encoder.system(), fields: encoder.fields()? };
    Ok(HttpRequest {
        url: format!("{}/model/{}/converse-stream", access::endpoint(request)?, path_segment(&request.model.id)),
        headers: head(request, &access).into_headers(),
        body: write_body(&body)?,
        note: Note::default(),
    })
}

/// Whether the request had tools that would like strict arguments and got them.
pub(super) fn has_preferred_strict_tools(request: &EncodeRequest<'_>) -> bool {
    let encoder = Encoder::new(request);
    let is_strict = |tool: &ToolDeclaration| encoder.sampled(tool).is_ok_and(|sampled| sampled.strict);
    let tools = current_tools(request.context.messages());
    tools.iter().any(|tool| constraint::prefers_strict(tool) && is_strict(tool))
}

fn head(request: &EncodeRequest<'_>, access: &Access<'_>) -> HeaderMap {
    let mut head = HeaderMap::default();
    head.set("content-type", "application/json");
    head.identify(request);
    if let Access::Bearer(key) = access {
        head.set("authorization", format!("Bearer {key}"));
    }
    for (name, value) in &request.options.headers {
        if let Some(value) = value
            && !is_reserved(name)
        {
            head.set(name, value.clone());
        }
    }
    head
}

/// Headers that belong to the signature.
fn is_reserved(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.starts_with("x-amz-") || matches!(name.as_str(), "authorization" | "host")
}

fn path_segment(id: &str) -> String {
    let mut segment = String::with_capacity(id.len());
    for byte in id.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => segment.push(char::from(byte)),
            _ => segment.push_str(&format!("%{byte:02X}")),
        }
    }
    segment
}

struct Encoder<'a> {
    request: EncodeRequest<'a>,
    family: Family,
}

impl<'a> Encoder<'a> {
    fn new(request: &EncodeRequest<'a>) -> Self {
        Self { request: *request, family: Family::of(request.model) }
    }

    fn reasoning(&self) -> Option<ThinkingLevel> {
        self.request.options.reasoning.filter(|level| *level != ThinkingLevel::Off)
    }

    fn system(&self) -> Vec<Block<'a>> {
        let head = current_system_message(self.request.context.messages());
        let text = head.map(|head| render_full(&head)).filter(|text| !text.is_empty());
        let Some(text) = text else { return Vec::new() };
        std::iter::once(Block::Text(text.into())).chain(self.cache_point()).collect()
    }

    /// What marks that everything before it is to be cached.
    fn cache_point(&self) -> Option<Block<'a>> {
        let options = self.request.options;
        // For profiles whose name tells nothing.
        let forced = || options.env.get("AWS_BEDROCK_FORCE_CACHE").is_some_and(|value| value == "1");
        let ttl = match options.cache_retention {
            CacheRetention::None => return None,
            CacheRetention::Short => None,
            CacheRetention::Long => Some("1h"),
        };
        (self.family.caches() || !self.family.names_claude() && forced())
            .then_some(Block::CachePoint { kind: "default", ttl })
    }

    /// Everything but prompt and messages.
    fn fields(&self) -> Result<Map<String, Value>, ProviderError> {
        let options = self.request.options;
        let (max_tokens, budget) = self.limits();
        let mut inference = Map::new();
        if let Some(max_tokens) = max_tokens {
            inference.insert("maxTokens".into(), max_tokens.into());
        }
        if let Some(temperature) = options.temperature {
            inference.insert("temperature".into(), temperature.into());
        }
        let mut fields = Map::new();
        fields.insert("inferenceConfig".into(), inference.into());
        let tools = current_tools(self.request.context.messages());
        if !tools.is_empty() && options.tool_choice != Some(ToolChoice::None) {
            let tools: Vec<Value> = tools.iter().map(|tool| self.tool(tool)).collect::<Result<_, _>>()?;
            let mut config = json!({ "tools": tools });
            if options.tool_choice == Some(ToolChoice::Auto) {
                config["toolChoice"] = json!({ "auto": {} });
            }
            fields.insert("toolConfig".into(), config);
        }
        if let Some(level) = self.reasoning().filter(|_| self.request.model.reasoning)
            && let Some(thinking) = self.thinking(level, budget)
        {
            fields.insert("additionalModelRequestFields".into(), thinking);
        }
        Ok(fields)
    }

    /// The longest answer, and the part of it that may be thinking.
    fn limits(&self) -> (Option<u64>, u64) {
        let EncodeRequest { model, context, options, .. } = self.request;
        let base = budget::max_tokens(model, context.messages(), options);
        match self.reasoning() {
            Some(level) if self.family.is_claude() && !self.family.thinks_adaptively() => {
                if model.max_tokens == 0 && base.is_none() {
                    return (None, budget::thinking_budget(level, &options.thinking_budgets));
                }
                // A model whose limit is unknown takes any number.
                let limit = if model.max_tokens == 0 { u64::MAX } else { model.max_tokens };
                let known = Model { max_tokens: limit, ..Model::default() };
                let shared = budget::share_max_tokens(&known, base, level, &options.thinking_budgets);
                let max_tokens = budget::fit_max_tokens(model, context.messages(), shared.max_tokens);
                (Some(max_tokens), budget::leave_room_to_answer(shared.thinking, max_tokens))
            }
            _ => (base, 0),
        }
    }

    fn tool(&self, tool: &ToolDeclaration) -> Result<Value, ProviderError> {
        let sampled = self.sampled(tool)?;
        let refused = Switches::of(self.request.model).list("refusedSchemaKeywords");
        let mut spec = json!({
            "name": tool.name,
            "description": tool.description,
            "inputSchema": { "json": without_keywords(&sampled.schema, refused) },
        });
        if sampled.strict {
            spec["strict"] = true.into();
        }
        Ok(json!({ "toolSpec": spec }))
    }

    fn sampled<'t>(&self, tool: &'t ToolDeclaration) -> Result<SampledSchema<'t>, ProviderError> {
        if constraint::prefers_strict(tool) && self.request.concessions.contains(&lenient_tools()) {
            return Ok(SampledSchema { schema: Cow::Borrowed(&tool.parameters), strict: false });
        }
        let mode = match Switches::of(self.request.model).flag("supportsStrictMode").unwrap_or(false) {
            true => ANY_KEYWORD,
            false => StrictMode::Unsupported,
        };
        constraint::sampled_schema(tool, mode)
    }

    /// How hard to think, as the model's maker wants it said.
    fn thinking(&self, level: ThinkingLevel, budget: u64) -> Option<Value> {
        if self.family.is_claude() {
            return Some(self.claude_thinking(level, budget));
        }
        let effort = match level {
            ThinkingLevel::Minimal => ThinkingLevel::Low,
            level => level,
        };
        if self.family.is_gpt_oss() {
            return Some(json!({ "reasoning_effort": effort.min(ThinkingLevel::High).as_str() }));
        }
        let word = self.request.model.mapped_level(level).unwrap_or(effort.as_str());
        self.family.is_gpt().then(|| json!({ "reasoning": { "effort": word } }))
    }

    fn claude_thinking(&self, level: ThinkingLevel, budget: u64) -> Value {
        // The government's regions refuse what their API does not know yet.
        let plain = access::is_government(&self.request);
        let mut thinking = Map::new();
        let mut fields = Map::new();
        let adaptive = self.family.thinks_adaptively();
        thinking.insert("type".into(), if adaptive { "adaptive" } else { "enabled" }.into());
        if !adaptive {
            thinking.insert("budget_tokens".into(), budget.into());
        }
        if !plain {
            thinking.insert("display".into(), "summarized".into());
        }
        let mut betas: Vec<&str> = Vec::new();
        if adaptive {
            if !plain && self.family.has_full_control() {
                thinking.insert("block_binding".into(), json!({ "prefix_mismatch_behavior": "drop_block" }));
                betas.push(BINDING_CONTROLS);
            }
            fields.insert("output_config".into(), json!({ "effort": self.claude_effort(level) }));
        } else {
            betas.push(INTERLEAVED_THINKING);
        }
        fields.insert("thinking".into(), thinking.into());
        if !betas.is_empty() {
            fields.insert("anthropic_beta".into(), betas.into());
        }
        fields.into()
    }

    fn claude_effort(&self, level: ThinkingLevel) -> &'a str {
        if level == ThinkingLevel::XHigh && self.family.has_full_control() {
            return "xhigh";
        }
        match (self.request.model.mapped_level(level), level) {
            (Some(word), _) => word,
            (None, ThinkingLevel::Minimal | ThinkingLevel::Low) => "low",
            (None, ThinkingLevel::Medium) => "medium",
            (None, _) => "high",
        }
    }

    fn messages(&self) -> Result<Vec<Message<'a>>, ProviderError> {
        let turns = replay(
            self.request.context.messages(),
            &ReplayTarget {
                model: self.request.model,
                later_system_messages: LaterSystemMessages::Unsupported,
                tool_call_id: &|id, _| ids::plain_clipped(id, MAX_ID_LENGTH),
                max_id_length: MAX_ID_LENGTH,
            },
        );
        let mut messages: Vec<Message<'a>> = Vec::with_capacity(turns.len());
        let mut turns = turns.into_iter().peekable();
        while let Some(turn) = turns.next() {
            match turn {
                Turn::System(_) => {}
                Turn::User(content) => messages.push(user(content)?),
                Turn::Assistant(turn) => messages.extend(self.assistant(turn)),
                Turn::ToolResult(first) => {
                    let mut results = vec![first];
                    while let Some(Turn::ToolResult(next)) = turns.next_if(|turn| matches!(turn, Turn::ToolResult(_))) {
                        results.push(next);
                    }
                    messages.push(self.tool_results(results)?);
                }
            }
        }
        if let Some(last) = messages.last_mut().filter(|last| last.role == Role::User) {
            last.content.extend(self.cache_point());
        }
        Ok(messages)
    }

    fn assistant(&self, turn: AssistantTurn<'a>) -> Option<Message<'a>> {
        let content: Vec<_> = turn.parts.into_iter().filter_map(|part| self.assistant_block(part)).collect();
        (!content.is_empty()).then_some(Message { role: Role::Assistant, content })
    }

    fn assistant_block(&self, part: AssistantPart<'a>) -> Option<Block<'a>> {
        match part {
            AssistantPart::Text { text, .. } => text_block(text),
            AssistantPart::Thinking(block) => {
                let signature = block.thinking_signature.as_deref().unwrap_or_default();
                if block.redacted == Some(true) {
                    // A payload that is no base 64 would fail the whole request.
                    let payload = LENIENT_BASE64.decode(signature).ok().filter(|payload| !payload.is_empty())?;
                    let hidden = Reasoning::RedactedContent(STANDARD.encode(payload));
                    return Some(Block::ReasoningContent(hidden));
                }
                let text = block.thinking.as_str();
                if text.trim().is_empty() {
                    return None;
                }
                let reasoning = |signature| Block::ReasoningContent(Reasoning::ReasoningText { text, signature });
                Some(match (self.family.is_claude(), signature.trim().is_empty()) {
                    // Claude refuses thinking without a signature, all others refuse signatures.
                    (true, true) => Block::Text(text.into()),
                    (true, false) => reasoning(Some(signature)),
                    (false, _) => reasoning(None),
                })
            }
            AssistantPart::ToolCall(part) => Some(Block::ToolUse {
                tool_use_id: part.id,
                name: &part.call.name,
                input: without_empty_names(&part.call.arguments),
            }),
        }
    }

    /// All results of a turn stand in one message, first. Claude takes only text of failed calls: their pictures follow.
    fn tool_results(&self, results: Vec<ToolResultTurn<'a>>) -> Result<Message<'a>, ProviderError> {
        let mut content = Vec::with_capacity(results.len() + 1);
        let mut after = Vec::new();
        for mut result in results {
            if self.family.is_claude()
                && let Some(moved) = result.split_error_images()
            {
                after.push(Block::Text(moved.caption.into()));
                for image in moved.images {
                    after.push(image_block(image)?);
                }
            }
            content.push(Block::ToolResult {
                tool_use_id: result.id,
                content: blocks(result.parts)?,
                status: if result.is_error { Status::Error } else { Status::Success },
            });
        }
        content.append(&mut after);
        Ok(Message { role: Role::User, content })
    }
}

fn user(content: UserContent<'_>) -> Result<Message<'_>, ProviderError> {
    let content = match content {
        UserContent::Text(text) => vec![text_block(text).unwrap_or(Block::Text(BLANK.into()))],
        UserContent::Parts(parts) => blocks(parts)?,
    };
    Ok(Message { role: Role::User, content })
}

fn text_block(text: &str) -> Option<Block<'_>> {
    (!text.trim().is_empty()).then_some(Block::Text(text.into()))
}

/// Pictures, and texts that are not blank; at least one block.
fn blocks(parts: Vec<replay::Part<'_>>) -> Result<Vec<Block<'_>>, ProviderError> {
    let mut blocks = Vec::with_capacity(parts.len());
    for part in parts {
        match part {
            replay::Part::Text(text) => blocks.extend(text_block(text)),
            replay::Part::Image(image) => blocks.push(image_block(image)?),
        }
    }
    if blocks.is_empty() {
        blocks.push(Block::Text(BLANK.into()));
    }
    Ok(blocks)
}

fn image_block(image: &ImageContent) -> Result<Block<'_>, ProviderError> {
    let format = match image.mime_type.as_str() {
        "image/jpeg" | "image/jpg" => "jpeg",
        "image/png" => "png",
        "image/gif" => "gif",
        "image/webp" => "webp",
        other => {
            let message = format!("Bedrock takes JPEG, PNG, GIF and WebP; a picture of the conversation is {other}.");
            return Err(ProviderError::new(ErrorKind::InvalidRequest, message));
        }
    };
    Ok(Block::Image { format, source: Bytes { bytes: &image.data } })
}

/// The arguments without members whose name is empty: the API refuses them.
fn without_empty_names(arguments: &Map<String, Value>) -> Cow<'_, Map<String, Value>> {
    fn has_empty(value: &Value) -> bool {
        match value {
            Value::Object(fields) => fields.iter().any(|(name, value)| name.is_empty() || has_empty(value)),
            Value::Array(items) => items.iter().any(has_empty),
            _ => false,
        }
    }
    fn cleaned(value: &Value) -> Value {
        match value {
            Value::Object(fields) => Value::Object(cleaned_fields(fields)),
            Value::Array(items) => items.iter().map(cleaned).collect(),
            scalar => scalar.clone(),
        }
    }
    fn cleaned_fields(fields: &Map<String, Value>) -> Map<String, Value> {
        let named = fields.iter().filter(|(name, _)| !name.is_empty());
        named.map(|(name, value)| (name.clone(), cleaned(value))).collect()
    }
    match arguments.iter().any(|(name, value)| name.is_empty() || has_empty(value)) {
        true => Cow::Owned(cleaned_fields(arguments)),
        false => Cow::Borrowed(arguments),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_profiles_are_one_segment_of_the_path() {
        assert_eq!(path_segment("arn:aws:b/x-1_.~é"), "arn%3Aaws%3Ab%2Fx-1_.~%C3%A9");
    }

    #[test]
    fn members_without_a_name_are_left_out_at_all_depths() {
        let arguments = json!({"": 1, "a": [{"": 2, "b": 3}], "c": {"d": {"": 4}}});
        let Value::Object(arguments) = arguments else { panic!("an object") };
        assert_eq!(
            Value::Object(without_empty_names(&arguments).into_owned()),
            json!({"a": [{"b": 3}], "c": {"d": {}}})
        );
        assert!(matches!(without_empty_names(&Map::new()), Cow::Borrowed(_)));
    }
}
