//! Options → the head and settings of a request.

use serde_json::{Map, Value, json};

use super::{
    body::body,
    input::{InputSettings, ToolCallIds},
    tools::{Strictness, ToolSettings},
};
use crate::{
    api::{
        EncodeRequest, HttpRequest, Note, budget,
        cache::clipped_cache_key,
        compat::Switches,
        headers::{self, HeaderMap, is_openrouter},
        thinking::{Off, effort_word, off_word},
    },
    error::ProviderError,
    model::Model,
    options::CacheRetention,
};

/// The provider refuses a smaller limit.
pub(in crate::api) const MIN_OUTPUT_TOKENS: u64 = 16;

/// The effort of the request itself, where the real one is said inside the conversation: it is a part of the cached
/// prefix, so it stays the same.
const FIXED_EFFORT: &str = "medium";

pub(super) fn encode(request: &EncodeRequest<'_>) -> Result<HttpRequest, ProviderError> {
    let effort = managed_effort(request);
    let settings = InputSettings {
        tools: ToolSettings::of(request.model, Strictness::OffByDefault, Strictness::Unknown),
        ids: ToolCallIds::of(request.model, &["openai", "openai-codex", "opencode"]),
        effort: effort.as_deref(),
    };
    Ok(HttpRequest {
        url: headers::url(request.model, "/responses")?,
        headers: head(request)?.into_headers(),
        body: body(request, settings, fields(request, effort.as_deref()))?,
        note: Note::default(),
    })
}

/// The effort that is said inside the conversation, where the server takes it there.
pub(super) fn managed_effort(request: &EncodeRequest<'_>) -> Option<String> {
    let managed = Switches::of(request.model).flag("supportsMidConvoEffort").unwrap_or(false);
    let managed = managed && !signs_in_with_chatgpt(request);
    let level = budget::effort(request.model, request.options).filter(|_| managed)?;
    Some(effort_word(request.model, level).to_owned())
}

/// Keys of the API begin with `sk-`; another one that goes to OpenAI itself is a subscription's token.
fn signs_in_with_chatgpt(request: &EncodeRequest<'_>) -> bool {
    let model = request.model;
    let key = request.options.api_key.as_ref().map(|key| key.expose());
    model.provider == "openai"
        && model.base_url == "https://api.openai.com/v1"
        && key.is_some_and(|key| !key.starts_with("sk-"))
}

fn head(request: &EncodeRequest<'_>) -> Result<HeaderMap, ProviderError> {
    let key = headers::key(request, &["authorization", "cf-aig-authorization"])?;
    let mut head = HeaderMap::for_model(request);
    head.set("accept", "application/json");
    if let Some(key) = key {
        head.set("authorization", format!("Bearer {key}"));
    }
    head.add_model(request.model);
    head.add_copilot(request);
    if let Some(session) = headers::affinity_session(request) {
        let default = if is_openrouter(request.model) { "openrouter" } else { "openai" };
        match Switches::of(request.model).text("sessionAffinityFormat").unwrap_or(default) {
            "openrouter" => head.set("x-session-id", session),
            format => {
                if format == "openai" {
                    head.set("session-id", session);
                }
                head.set("x-client-request-id", session);
            }
        }
    }
    head.add_request(request);
    Ok(head)
}

fn fields(request: &EncodeRequest<'_>, managed_effort: Option<&str>) -> Map<String, Value> {
    let EncodeRequest { model, context, options, .. } = *request;
    let switches = Switches::of(model);
    let flag = |name, default| switches.flag(name).unwrap_or(default);
    // Fields that a subscription's token may not have.
    let all_fields = !signs_in_with_chatgpt(request);
    let mut fields = Map::new();
    let mut set = |name: &str, value: Value| drop(fields.insert(name.to_owned(), value));
    set("model", model.id.as_str().into());
    set("stream", true.into());
    set("store", false.into());
    if let Some(session) = headers::affinity_session(request)
        && switches.text("promptCacheKeyMode") != Some("disabled")
    {
        set("prompt_cache_key", clipped_cache_key(session).into());
    }
    let explicit = flag("supportsExplicitPromptCacheMode", false);
    let long = options.cache_retention == CacheRetention::Long && flag("supportsLongCacheRetention", true);
    match (explicit, options.cache_retention) {
        _ if !all_fields => {}
        (true, CacheRetention::None) => set("prompt_cache_options", json!({ "mode": "explicit" })),
        (true, _) if long => set("prompt_cache_options", json!({ "ttl": "30m" })),
        (false, _) if long => set("prompt_cache_retention", "24h".into()),
        _ => {}
    }
    if let Some(max_tokens) = budget::max_tokens(model, context.messages(), options)
        && all_fields
        && flag("supportsMaxOutputTokens", true)
    {
        set("max_output_tokens", max_tokens.max(MIN_OUTPUT_TOKENS).into());
    }
    if let Some(temperature) = options.temperature.filter(|_| all_fields) {
        set("temperature", temperature.into());
    }
    if let Some(choice) = options.tool_choice {
        set("tool_choice", json!(choice));
    }
    reasoning_fields(request, managed_effort, &mut set);
    if model.reasoning && model.provider == "xai" {
        set("include", json!(["reasoning.encrypted_content"]));
    }
    // Last, so that they replace what the request has under the same names.
    fields.extend(budget::sampling_params(model, options));
    fields
}

/// How hard to think, and that reasoning is to be given out for the next request.
pub(in crate::api) fn reasoning_fields(
    request: &EncodeRequest<'_>,
    managed_effort: Option<&str>,
    set: &mut impl FnMut(&str, Value),
) {
    let model: &Model = request.model;
    if !model.reasoning {
        return;
    }
    match (budget::effort(model, request.options), off_word(model)) {
        (Some(level), _) => {
            let effort = if managed_effort.is_some() { FIXED_EFFORT } else { effort_word(model, level) };
            set("reasoning", json!({ "effort": effort, "summary": "auto" }));
            set("include", json!(["reasoning.encrypted_content"]));
        }
        (None, _) if model.provider == "github-copilot" => {}
        (None, Off::Unsupported) => {}
        (None, off) => set("reasoning", json!({ "effort": off.word().unwrap_or("none") })),
    }
}
