//! Transcript → the body and head of a request.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use super::{
    ID_LENGTH,
    body::{Body, Content, Function, Message, Part, ThinkingText, ToolCall},
    tool_call_id,
};
use crate::{
    api::{
        EncodeRequest, HttpRequest, Note, budget,
        compat::Switches,
        constraint::{self, ANY_KEYWORD, StrictMode},
        headers::{self, HeaderMap},
        json_text::{DataUrl, JsonText},
        thinking::{Off, off_word},
        tool_schema::without_keywords,
        write_body,
    },
    error::ProviderError,
    replay::{self, AssistantPart, AssistantTurn, ReplayTarget, ToolResultTurn, Turn, UserContent, replay},
    tool::ToolDeclaration,
    transcript::{LaterSystemMessages, current_tools, render_full, render_update},
};

const IMAGE_ONLY_RESULT: &str = "(a picture)";
const EMPTY_RESULT: &str = "(the tool gave no output)";
/// The wire has no field that says so.
const FAILED: &str = "[the tool failed] ";

pub(super) fn encode(request: &EncodeRequest<'_>) -> Result<HttpRequest, ProviderError> {
    let body = Body { messages: messages(request), fields: fields(request)? };
    Ok(HttpRequest {
        url: headers::url(request.model, "/v1/chat/completions")?,
        headers: head(request)?.into_headers(),
        body: write_body(&body)?,
        note: Note::default(),
    })
}

fn head(request: &EncodeRequest<'_>) -> Result<HeaderMap, ProviderError> {
    let key = headers::key(request, &["authorization"])?;
    let mut head = HeaderMap::for_model(request);
    head.set("accept", "text/event-stream");
    if let Some(key) = key {
        head.set("authorization", format!("Bearer {key}"));
    }
    if let Some(session) = headers::affinity_session(request) {
        head.set("x-affinity", session);
    }
    head.add_model(request.model);
    head.add_request(request);
    Ok(head)
}

fn fields(request: &EncodeRequest<'_>) -> Result<Map<String, Value>, ProviderError> {
    let EncodeRequest { model, context, options, .. } = *request;
    let mut fields = Map::new();
    let mut set = |name: &str, value: Value| drop(fields.insert(name.to_owned(), value));
    set("model", model.id.as_str().into());
    set("stream", true.into());
    let tools = current_tools(context.messages());
    if !tools.is_empty() {
        let switches = Switches::of(model);
        // Some models are silent for minutes before a strict call.
        let strict = match switches.flag("supportsStrictMode").unwrap_or(false) {
            true => ANY_KEYWORD,
            false => StrictMode::Unsupported,
        };
        let refused = switches.list("refusedSchemaKeywords");
        let convert = |tool: &ToolDeclaration| {
            let sampled = constraint::sampled_schema(tool, strict)?;
            Ok(json!({
                "type": "function",
                "function": {
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": without_keywords(&sampled.schema, refused),
                    "strict": sampled.strict,
                },
            }))
        };
        set("tools", tools.iter().map(convert).collect::<Result<_, ProviderError>>()?);
    }
    if let Some(temperature) = options.temperature {
        set("temperature", temperature.into());
    }
    if let Some(max_tokens) = budget::max_tokens(model, context.messages(), options) {
        set("max_tokens", max_tokens.into());
    }
    if let Some(choice) = options.tool_choice {
        set("tool_choice", json!(choice));
    }
    if model.reasoning {
        let effort = budget::effort(model, options);
        let has_words = !model.thinking_level_map.is_empty();
        match (has_words, effort, off_word(model)) {
            (true, Some(level), _) => set("reasoning_effort", model.mapped_level(level).unwrap_or("high").into()),
            (true, None, Off::Word(word)) => set("reasoning_effort", word.into()),
            (false, Some(_), _) => set("prompt_mode", "reasoning".into()),
            (_, None, _) => {}
        }
    }
    if let Some(session) = headers::affinity_session(request) {
        set("prompt_cache_key", session.into());
    }
    Ok(fields)
}

fn messages<'a>(request: &EncodeRequest<'a>) -> Vec<Message<'a>> {
    let model = request.model;
    let turns = replay(
        request.context.messages(),
        &ReplayTarget {
            model,
            later_system_messages: match Switches::of(model).flag("supportsMidConvoSystemMessages").unwrap_or(false) {
                true => LaterSystemMessages::Supported,
                false => LaterSystemMessages::Unsupported,
            },
            tool_call_id: &|id, _| Cow::Owned(tool_call_id(id)),
            max_id_length: ID_LENGTH,
        },
    );
    let convert = |(index, turn)| match turn {
        Turn::System(message) => {
            let content = if index == 0 { render_full(&message) } else { render_update(&message) };
            (!content.is_empty()).then_some(Message::System { content })
        }
        Turn::User(content) => user(content),
        Turn::Assistant(turn) => assistant(turn),
        Turn::ToolResult(turn) => Some(tool_result(turn)),
    };
    turns.into_iter().enumerate().filter_map(convert).collect()
}

fn user(content: UserContent<'_>) -> Option<Message<'_>> {
    let content = match content {
        UserContent::Text(text) => Content::Text(text),
        UserContent::Parts(parts) if parts.is_empty() => return None,
        UserContent::Parts(parts) => Content::Parts(parts.into_iter().map(part).collect()),
    };
    Some(Message::User { content })
}

fn part(part: replay::Part<'_>) -> Part<'_> {
    match part {
        replay::Part::Text(text) => Part::text(text),
        replay::Part::Image(image) => Part::ImageUrl { image_url: DataUrl(image) },
    }
}

fn assistant(turn: AssistantTurn<'_>) -> Option<Message<'_>> {
    let (mut content, mut tool_calls) = (Vec::new(), Vec::new());
    for part in turn.parts {
        match part {
            AssistantPart::Text { text, .. } if !text.trim().is_empty() => content.push(Part::text(text)),
            AssistantPart::Thinking(block) if !block.thinking.trim().is_empty() => {
                content.push(Part::Thinking { thinking: [ThinkingText { text: &block.thinking }] });
            }
            AssistantPart::Text { .. } | AssistantPart::Thinking(_) => {}
            AssistantPart::ToolCall(part) => {
                let function = Function { name: &part.call.name, arguments: JsonText(&part.call.arguments) };
                tool_calls.push(ToolCall { id: part.id, index: 0, function });
            }
        }
    }
    let says_something = !content.is_empty() || !tool_calls.is_empty();
    says_something.then_some(Message::Assistant { prefix: false, content, tool_calls })
}

fn tool_result(turn: ToolResultTurn<'_>) -> Message<'_> {
    let said = turn.text();
    let images: Vec<_> = turn.images().map(|image| Part::ImageUrl { image_url: DataUrl(image) }).collect();
    let said: Cow<'_, str> = match (said.trim(), images.is_empty()) {
        ("", true) => EMPTY_RESULT.into(),
        ("", false) => IMAGE_ONLY_RESULT.into(),
        (trimmed, _) if trimmed.len() < said.len() => trimmed.to_owned().into(),
        _ => said,
    };
    let text = if turn.is_error { format!("{FAILED}{said}").into() } else { said };
    let content = std::iter::once(Part::Text { text }).chain(images).collect();
    Message::Tool { tool_call_id: turn.id, name: turn.name, content }
}
