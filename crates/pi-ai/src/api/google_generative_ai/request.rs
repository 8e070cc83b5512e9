//! Transcript → the body and head of a request.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use super::{
    body::{Body, Content, FunctionCall, FunctionResponse, ImagePart, Outcome, Part, Role, TextPart},
    schema::{const_as_enum, openapi_subset},
};
use crate::{
    api::{
        EncodeRequest, HttpRequest, Note, budget,
        compat::Switches,
        constraint::{self, ANY_KEYWORD, StrictMode},
        headers::{self, HeaderMap},
        ids,
        tool_schema::without_keywords,
        write_body,
    },
    error::{ErrorKind, ProviderError},
    model::{Model, ThinkingLevel},
    options::{StreamOptions, ToolChoice},
    replay::{self, AssistantPart, AssistantTurn, ReplayTarget, ToolResultTurn, Turn, UserContent, replay},
    tool::ToolDeclaration,
    transcript::{LaterSystemMessages, current_system_message, current_tools, render_full},
};

const MAX_ID_LENGTH: usize = 64;
const IMAGE_ONLY_RESULT: &str = "(a picture)";
const IMAGES_OF_RESULT: &str = "The picture that the tool gave:";

/// Whose thinking budgets hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::api) enum Budgets {
    /// Gemini's own service knows flash-lite by itself.
    WithFlashLite,
    /// Vertex.
    #[cfg_attr(not(feature = "vertex"), expect(dead_code, reason = "Vertex is off"))]
    WithoutFlashLite,
}

pub(super) fn encode(request: &EncodeRequest<'_>, budgets: Budgets) -> Result<HttpRequest, ProviderError> {
    let key = headers::key(request, &["x-goog-api-key", "authorization"])?;
    let mut head = HeaderMap::for_model(request);
    if let Some(key) = key {
        head.set("x-goog-api-key", key);
    }
    head.add_model(request.model);
    head.add_request(request);
    let id = request.model.id.as_str();
    let path = match id.starts_with("models/") || id.starts_with("tunedModels/") {
        true => format!("/{id}:streamGenerateContent?alt=sse"),
        false => format!("/models/{id}:streamGenerateContent?alt=sse"),
    };
    Ok(HttpRequest {
        url: headers::url(request.model, &path)?,
        headers: head.into_headers(),
        body: body(request, budgets)?,
        note: Note::default(),
    })
}

pub(in crate::api) fn body(request: &EncodeRequest<'_>, budgets: Budgets) -> Result<Vec<u8>, ProviderError> {
    let EncodeRequest { model, context, options, .. } = *request;
    let messages = context.messages();
    let tools = current_tools(messages);
    let strict = match gemini_version(&model.id) {
        Some(3..) => ANY_KEYWORD,
        _ => StrictMode::Unsupported,
    };
    let system = current_system_message(messages).map(|head| render_full(&head)).filter(|text| !text.is_empty());
    write_body(&Body {
        contents: contents(request),
        system_instruction: system.map(|text| Content { role: Role::User, parts: vec![Part::text(text)] }),
        tool_config: calling_mode(&tools, options, strict)?
            .map(|mode| json!({ "functionCallingConfig": { "mode": mode } })),
        tools: (!tools.is_empty()).then(|| declarations(&tools, model, strict)).transpose()?,
        generation_config: generation_config(request, budgets)?,
    })
}

fn declarations(tools: &[ToolDeclaration], model: &Model, strict: StrictMode) -> Result<Value, ProviderError> {
    let switches = Switches::of(model);
    let subset = switches.flag("requiresOpenApiSchema").unwrap_or(false);
    let refused = switches.list("refusedSchemaKeywords");
    let declare = |tool: &ToolDeclaration| {
        let sampled = constraint::sampled_schema(tool, strict)?;
        let schema = without_keywords(&sampled.schema, refused);
        let (field, schema) = match subset {
            true => ("parameters", openapi_subset(&schema)),
            false => ("parametersJsonSchema", const_as_enum(&schema)),
        };
        let mut declaration = json!({ "name": tool.name, "description": tool.description });
        declaration[field] = schema;
        Ok(declaration)
    };
    let declarations = tools.iter().map(declare).collect::<Result<Vec<_>, ProviderError>>()?;
    Ok(json!([{ "functionDeclarations": declarations }]))
}

fn calling_mode(
    tools: &[ToolDeclaration],
    options: &StreamOptions,
    strict: StrictMode,
) -> Result<Option<&'static str>, ProviderError> {
    if tools.is_empty() {
        return Ok(None);
    }
    let mut is_strict = false;
    for tool in tools {
        is_strict |= constraint::sampled_schema(tool, strict)?.strict;
    }
    Ok(match options.tool_choice {
        Some(ToolChoice::None) => Some("NONE"),
        _ if is_strict => Some("VALIDATED"),
        Some(ToolChoice::Auto) => Some("AUTO"),
        None => None,
    })
}

fn generation_config(request: &EncodeRequest<'_>, budgets: Budgets) -> Result<Map<String, Value>, ProviderError> {
    let EncodeRequest { model, context, options, .. } = *request;
    let mut config = Map::new();
    if let Some(temperature) = options.temperature {
        config.insert("temperature".into(), temperature.into());
    }
    if let Some(max_tokens) = budget::max_tokens(model, context.messages(), options) {
        config.insert("maxOutputTokens".into(), max_tokens.into());
    }
    if model.reasoning {
        config.insert("thinkingConfig".into(), thinking_config(model, options, budgets)?);
    }
    Ok(config)
}

fn thinking_config(model: &Model, options: &StreamOptions, budgets: Budgets) -> Result<Value, ProviderError> {
    let by_level = thinks_by_level(&model.id);
    Ok(match (budget::effort(model, options), by_level) {
        (Some(level), true) => json!({ "includeThoughts": true, "thinkingLevel": google_level(model, level)?.1 }),
        (Some(level), false) => {
            let budget = thinking_budget(model, google_level(model, level)?.0, options, budgets);
            json!({ "includeThoughts": true, "thinkingBudget": budget })
        }
        // A model that cannot stop thinking thinks as little as it can.
        (None, true) if model.clamp(ThinkingLevel::Off) != ThinkingLevel::Off => {
            json!({ "thinkingLevel": google_level(model, model.clamp(ThinkingLevel::Off))?.1 })
        }
        (None, _) => json!({ "thinkingBudget": 0 }),
    })
}

/// One of the four levels that Google has, and its name there.
fn google_level(model: &Model, level: ThinkingLevel) -> Result<(ThinkingLevel, &'static str), ProviderError> {
    let named = model.mapped_level(level).map(str::to_ascii_lowercase);
    Ok(match named.as_deref().unwrap_or(level.as_str()) {
        "minimal" => (ThinkingLevel::Minimal, "MINIMAL"),
        "low" => (ThinkingLevel::Low, "LOW"),
        "medium" => (ThinkingLevel::Medium, "MEDIUM"),
        "high" => (ThinkingLevel::High, "HIGH"),
        other => {
            let message = format!(
                "The model {} maps the thinking level {level} to `{other}`; Google has minimal, low, medium and high.",
                model.id,
            );
            return Err(ProviderError::new(ErrorKind::InvalidRequest, message));
        }
    })
}

/// -1: the model decides.
fn thinking_budget(model: &Model, level: ThinkingLevel, options: &StreamOptions, budgets: Budgets) -> i64 {
    if let Some(budget) = options.thinking_budgets.get(&level) {
        return i64::try_from(*budget).unwrap_or(i64::MAX);
    }
    let by_level = match &*model.id {
        id if id.contains("2.5-pro") => [128, 2048, 8192, 32_768],
        id if id.contains("2.5-flash-lite") && budgets == Budgets::WithFlashLite => [512, 2048, 8192, 24_576],
        id if id.contains("2.5-flash") => [128, 2048, 8192, 24_576],
        _ => return -1,
    };
    match level {
        ThinkingLevel::Off | ThinkingLevel::Minimal => by_level[0],
        ThinkingLevel::Low => by_level[1],
        ThinkingLevel::Medium => by_level[2],
        ThinkingLevel::High | ThinkingLevel::XHigh | ThinkingLevel::Max => by_level[3],
    }
}

/// Whether a model thinks by level, and not by a number of tokens: Gemini 3 (pro and flash) and later, Gemma 4.
fn thinks_by_level(id: &str) -> bool {
    let id = id.to_ascii_lowercase();
    let versions = id.match_indices("gemini-").filter_map(|(at, name)| {
        let rest = &id[at + name.len()..];
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        Some((rest[..digits].parse::<u32>().ok()?, &rest[digits..]))
    });
    let by_version = versions.into_iter().any(|(version, rest)| match version {
        4.. => true,
        3 => {
            let rest = match rest.strip_prefix('.') {
                Some(minor) if minor.starts_with(|c: char| c.is_ascii_digit()) => {
                    minor.trim_start_matches(|c: char| c.is_ascii_digit())
                }
                _ => rest,
            };
            rest.starts_with("-pro") || rest.starts_with("-flash")
        }
        _ => false,
    });
    by_version
        || id == "gemini-flash-latest"
        || id == "gemini-flash-lite-latest"
        || id.contains("gemma-4")
        || id.contains("gemma4")
}

/// The major version that an id begins with.
fn gemini_version(id: &str) -> Option<u32> {
    let id = id.to_ascii_lowercase();
    let rest = id.strip_prefix("gemini-live-").or_else(|| id.strip_prefix("gemini-"))?;
    let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    rest[..digits].parse().ok()
}

fn needs_call_ids(id: &str) -> bool {
    id.starts_with("claude-") || id.starts_with("gpt-oss-") || gemini_version(id).is_some_and(|version| version >= 3)
}

fn contents<'a>(request: &EncodeRequest<'a>) -> Vec<Content<'a>> {
    let model = request.model;
    let with_ids = needs_call_ids(&model.id);
    let turns = replay(
        request.context.messages(),
        &ReplayTarget {
            model,
            later_system_messages: LaterSystemMessages::Unsupported,
            tool_call_id: &|id, _| if with_ids { ids::plain_clipped(id, MAX_ID_LENGTH) } else { Cow::Borrowed(id) },
            max_id_length: MAX_ID_LENGTH,
        },
    );
    let mut conversation = Conversation {
        with_ids,
        images_in_results: gemini_version(&model.id).is_none_or(|version| version >= 3),
        contents: Vec::with_capacity(turns.len()),
    };
    for turn in turns {
        match turn {
            // The prompt stands beside the conversation.
            Turn::System(_) => {}
            Turn::User(content) => conversation.user(content),
            Turn::Assistant(turn) => conversation.assistant(turn),
            Turn::ToolResult(turn) => conversation.tool_result(turn),
        }
    }
    conversation.contents
}

struct Conversation<'a> {
    with_ids: bool,
    /// Whether a result may hold pictures; otherwise they follow in a turn of their own.
    images_in_results: bool,
    contents: Vec<Content<'a>>,
}

impl<'a> Conversation<'a> {
    fn user(&mut self, content: UserContent<'a>) {
        let parts = match content {
            UserContent::Text(text) => vec![Part::text(text)],
            UserContent::Parts(parts) => parts
                .into_iter()
                .map(|part| match part {
                    replay::Part::Text(text) => Part::text(text),
                    replay::Part::Image(image) => Part::Image(ImagePart::new(image)),
                })
                .collect(),
        };
        if !parts.is_empty() {
            self.contents.push(Content { role: Role::User, parts });
        }
    }

    fn assistant(&mut self, turn: AssistantTurn<'a>) {
        let parts: Vec<_> = turn.parts.into_iter().filter_map(|part| self.assistant_part(part)).collect();
        if !parts.is_empty() {
            self.contents.push(Content { role: Role::Model, parts });
        }
    }

    /// A part without text counts when it carries a signature: the model wants that back.
    fn assistant_part(&self, part: AssistantPart<'a>) -> Option<Part<'a>> {
        let says_something = |text: &str, signature: Option<&str>| signature.is_some() || !text.trim().is_empty();
        match part {
            AssistantPart::Text { text, signature } => {
                let thought_signature = valid_signature(signature);
                says_something(text, thought_signature)
                    .then(|| Part::Text(TextPart { thought: None, text: text.into(), thought_signature }))
            }
            AssistantPart::Thinking(block) => {
                let thought_signature = valid_signature(block.thinking_signature.as_deref());
                let text = block.thinking.as_str();
                says_something(text, thought_signature)
                    .then(|| Part::Text(TextPart { thought: Some(true), text: text.into(), thought_signature }))
            }
            AssistantPart::ToolCall(part) => Some(Part::Call {
                function_call: FunctionCall {
                    id: self.with_ids.then_some(part.id),
                    name: &part.call.name,
                    args: &part.call.arguments,
                },
                thought_signature: valid_signature(part.signature),
            }),
        }
    }

    fn tool_result(&mut self, turn: ToolResultTurn<'a>) {
        let text = turn.text();
        let images: Vec<_> = turn.images().map(ImagePart::new).collect();
        let text = match (text.trim().is_empty(), images.is_empty()) {
            (false, _) => text,
            (true, false) => IMAGE_ONLY_RESULT.into(),
            (true, true) => "".into(),
        };
        let (inside, after) = if self.images_in_results { (images, Vec::new()) } else { (Vec::new(), images) };
        let response = Part::Response {
            function_response: FunctionResponse {
                id: self.with_ids.then_some(turn.id),
                name: turn.name,
                response: if turn.is_error { Outcome::Error(text) } else { Outcome::Output(text) },
                parts: inside,
            },
        };
        // All results of a turn stand in one content.
        match self.contents.last_mut() {
            Some(last) if last.role == Role::User && last.parts.iter().any(Part::is_response) => {
                last.parts.push(response);
            }
            _ => self.contents.push(Content { role: Role::User, parts: vec![response] }),
        }
        if !after.is_empty() {
            let parts = std::iter::once(Part::text(IMAGES_OF_RESULT)).chain(after.into_iter().map(Part::Image));
            self.contents.push(Content { role: Role::User, parts: parts.collect() });
        }
    }
}

/// A signature that the API takes: it is a field of bytes.
fn valid_signature(signature: Option<&str>) -> Option<&str> {
    signature.filter(|signature| {
        let body = signature.strip_suffix("==").or_else(|| signature.strip_suffix('=')).unwrap_or(signature);
        let is_base64 = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
        signature.len().is_multiple_of(4) && !body.is_empty() && body.bytes().all(is_base64)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_that_think_by_level_are_known_by_their_ids() {
        for id in [
            "gemini-3-pro-preview",
            "gemini-3.1-flash",
            "x/gemini-4-argon",
            "gemini-12",
            "gemma-4-27b",
            "gemma4",
            "gemini-flash-latest",
        ] {
            assert!(thinks_by_level(id), "{id}");
        }
        for id in ["gemini-2.5-pro", "gemini-3-nano", "gemini-30x".replace("30x", "pro").as_str(), "gemma-3"] {
            assert!(!thinks_by_level(id), "{id}");
        }
    }

    #[test]
    fn signatures_are_base64_or_nothing() {
        for good in ["c2ln", "c2lnMQ==", "c2lnMTI="] {
            assert_eq!(valid_signature(Some(good)), Some(good));
        }
        for bad in ["", "abc", "reasoning_content", "====", "a b=", "YQ=a"] {
            assert_eq!(valid_signature(Some(bad)), None, "{bad}");
        }
    }
}
