//! Options → the head and settings of a request.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::{Map, Value, json};

use crate::{
    api::{
        EncodeRequest, HttpRequest, Note, budget,
        cache::clipped_cache_key,
        compat::Switches,
        headers::{self, HeaderMap},
        openai_responses::{InputSettings, MIN_OUTPUT_TOKENS, Strictness, ToolCallIds, ToolSettings, body},
        thinking::{Off, effort_word, off_word},
    },
    error::{ErrorKind, ProviderError},
};

const DEFAULT_BASE_URL: &str = "https://chatgpt.com/backend-api";

/// The effort of the request itself, where the real one is said inside the conversation.
const FIXED_EFFORT: &str = "medium";

const COMPRESSION_LEVEL: i32 = 3;

pub(super) fn encode(request: &EncodeRequest<'_>) -> Result<HttpRequest, ProviderError> {
    let effort = managed_effort(request);
    let settings = InputSettings {
        tools: ToolSettings::of(request.model, Strictness::NullByDefault, Strictness::NullByDefault),
        ids: ToolCallIds::of(request.model, &["openai", "openai-codex", "opencode"]),
        effort: effort.as_deref(),
    };
    Ok(HttpRequest {
        url: url(&request.model.base_url),
        headers: head(request)?.into_headers(),
        body: body(request, settings, fields(request, effort.as_deref()))?,
        note: Note::default(),
    })
}

fn url(base_url: &str) -> String {
    let base = match base_url.trim().trim_end_matches('/') {
        "" => DEFAULT_BASE_URL,
        base => base,
    };
    if base.ends_with("/codex/responses") {
        base.to_owned()
    } else if base.ends_with("/codex") {
        format!("{base}/responses")
    } else {
        format!("{base}/codex/responses")
    }
}

/// Compresses the body, after hooks have seen it.
pub(super) fn compress(mut http: HttpRequest) -> HttpRequest {
    if let Ok(body) = zstd::encode_all(&http.body[..], COMPRESSION_LEVEL) {
        http.body = body;
        http.headers.push(("content-encoding".into(), "zstd".into()));
    }
    http
}

fn head(request: &EncodeRequest<'_>) -> Result<HeaderMap, ProviderError> {
    let provider = &request.model.provider;
    let refused = |message: String| ProviderError::new(ErrorKind::Auth, message);
    let key = request.options.api_key.as_ref().map(|key| key.expose());
    let key = key.ok_or_else(|| refused(format!("No API key for provider: {provider}. Log in with ChatGPT.")))?;
    let account = account_id(key).ok_or_else(|| {
        refused(format!(
            "The key for {provider} is not a token that ChatGPT gives out: it names no account. Log in with ChatGPT."
        ))
    })?;
    let mut head = HeaderMap::default();
    // The service expects one; it does not attribute the request.
    head.set("originator", "pi");
    head.identify(request);
    head.add_model(request.model);
    head.add_request(request);
    head.set("authorization", format!("Bearer {key}"));
    head.set("chatgpt-account-id", account);
    head.set("openai-beta", "responses=experimental");
    head.set("accept", "text/event-stream");
    head.set("content-type", "application/json");
    if let Some(session) = headers::affinity_session(request).map(clipped_cache_key) {
        head.set("session-id", session);
        head.set("x-client-request-id", session);
    }
    Ok(head)
}

/// The account that a token is for, from its claims.
fn account_id(token: &str) -> Option<String> {
    let mut parts = token.split('.');
    let (_, claims, _) = (parts.next()?, parts.next()?, parts.next()?);
    let claims = URL_SAFE_NO_PAD.decode(claims.trim_end_matches('=').replace('+', "-").replace('/', "_")).ok()?;
    let claims: Value = serde_json::from_slice(&claims).ok()?;
    let account = claims["https://api.openai.com/auth"]["chatgpt_account_id"].as_str()?;
    (parts.next().is_none() && !account.is_empty()).then(|| account.to_owned())
}

/// The effort that is said inside the conversation, "not at all" included.
pub(super) fn managed_effort(request: &EncodeRequest<'_>) -> Option<String> {
    let managed = Switches::of(request.model).flag("supportsMidConvoEffort").unwrap_or(false);
    effort(request).filter(|_| managed).map(str::to_owned)
}

fn effort<'a>(request: &EncodeRequest<'a>) -> Option<&'a str> {
    let model = request.model;
    match (budget::effort(model, request.options), off_word(model)) {
        (Some(level), _) => Some(effort_word(model, level)),
        (None, _) if !model.reasoning => None,
        (None, Off::Unsupported) => None,
        (None, off) => Some(off.word().unwrap_or("none")),
    }
}

fn fields(request: &EncodeRequest<'_>, managed_effort: Option<&str>) -> Map<String, Value> {
    let EncodeRequest { model, context, options, .. } = *request;
    let mut fields = Map::new();
    let mut set = |name: &str, value: Value| drop(fields.insert(name.to_owned(), value));
    set("model", model.id.as_str().into());
    set("store", false.into());
    set("stream", true.into());
    set("text", json!({ "verbosity": "low" }));
    set("include", json!(["reasoning.encrypted_content"]));
    set("parallel_tool_calls", true.into());
    set("tool_choice", options.tool_choice.map_or("auto".into(), |choice| json!(choice)));
    if let Some(session) = headers::affinity_session(request) {
        set("prompt_cache_key", clipped_cache_key(session).into());
    }
    if let Some(max_tokens) = budget::max_tokens(model, context.messages(), options)
        && Switches::of(model).flag("supportsMaxOutputTokens").unwrap_or(true)
    {
        set("max_output_tokens", max_tokens.max(MIN_OUTPUT_TOKENS).into());
    }
    if let Some(temperature) = options.temperature {
        set("temperature", temperature.into());
    }
    let effort = if managed_effort.is_some() { Some(FIXED_EFFORT) } else { effort(request) };
    if let Some(effort) = effort {
        set("reasoning", json!({ "effort": effort, "summary": "auto" }));
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_completed_as_far_as_it_needs_to_be() {
        for (base, expected) in [
            ("", "https://chatgpt.com/backend-api/codex/responses"),
            ("http://h/x/", "http://h/x/codex/responses"),
            ("http://h/codex", "http://h/codex/responses"),
            ("http://h/codex/responses/", "http://h/codex/responses"),
        ] {
            assert_eq!(url(base), expected);
        }
    }

    #[test]
    fn a_token_names_its_account() {
        let token = |claims: &str| format!("x.{}.y", URL_SAFE_NO_PAD.encode(claims));
        let claims = r#"{"https://api.openai.com/auth":{"chatgpt_account_id":"acc-1"}}"#;
        assert_eq!(account_id(&token(claims)).as_deref(), Some("acc-1"));
        for bad in ["sk-123", "a.b", &token("{}"), "a.b.c.d"] {
            assert_eq!(account_id(bad), None, "{bad}");
        }
    }
}
