//! Options → the head and settings of a request.

use serde_json::{Map, Value, json};

use crate::{
    api::{
        EncodeRequest, HttpRequest, Note, budget,
        cache::clipped_cache_key,
        compat::Switches,
        headers::HeaderMap,
        openai_responses::{
            InputSettings, MIN_OUTPUT_TOKENS, Strictness, ToolCallIds, ToolSettings, body, reasoning_fields,
        },
    },
    error::{ErrorKind, ProviderError},
};

const DEFAULT_VERSION: &str = "v1";
/// Where Azure serves the API of version 1.
const API_PATH: &str = "/openai/v1";

pub(super) fn encode(request: &EncodeRequest<'_>) -> Result<HttpRequest, ProviderError> {
    let model = request.model;
    let settings = InputSettings {
        tools: ToolSettings::of(model, Strictness::OffByDefault, Strictness::OffByDefault),
        ids: ToolCallIds::of(model, &["openai", "openai-codex", "opencode", "azure"]),
        effort: None,
    };
    let version = variable(request, "AZURE_OPENAI_API_VERSION").unwrap_or(DEFAULT_VERSION);
    Ok(HttpRequest {
        url: format!("{}/responses?api-version={version}", base_url(request)?),
        headers: head(request)?.into_headers(),
        body: body(request, settings, fields(request))?,
        note: Note::default(),
    })
}

fn variable<'a>(request: &EncodeRequest<'a>, name: &str) -> Option<&'a str> {
    request.options.env.get(name).map(|value| value.trim()).filter(|value| !value.is_empty())
}

fn head(request: &EncodeRequest<'_>) -> Result<HeaderMap, ProviderError> {
    let key = crate::api::headers::key(request, &["api-key", "authorization"])?;
    let mut head = HeaderMap::for_model(request);
    head.set("accept", "application/json");
    if let Some(key) = key {
        head.set("api-key", key);
    }
    head.add_model(request.model);
    head.add_request(request);
    Ok(head)
}

/// The server: from the environment, by the resource's name, or the model's own.
fn base_url(request: &EncodeRequest<'_>) -> Result<String, ProviderError> {
    let resource = || variable(request, "AZURE_OPENAI_RESOURCE_NAME");
    let named = variable(request, "AZURE_OPENAI_BASE_URL")
        .map(str::to_owned)
        .or_else(|| Some(format!("https://{}.openai.azure.com{API_PATH}", resource()?)))
        .unwrap_or_else(|| request.model.base_url.clone());
    let url = named.trim().trim_end_matches('/');
    let Some((scheme, rest)) = url.split_once("://").filter(|(_, rest)| !rest.is_empty()) else {
        let message = match url.is_empty() {
            true => "Azure needs a base URL. Set AZURE_OPENAI_BASE_URL or AZURE_OPENAI_RESOURCE_NAME, or the model's `baseUrl`.".to_owned(),
            false => format!("`{url}` is not a URL that Azure could be at. Check AZURE_OPENAI_BASE_URL or the model's `baseUrl`."),
        };
        return Err(ProviderError::new(ErrorKind::InvalidRequest, message));
    };
    let (host, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    let path = path.split('?').next().unwrap_or_default().trim_end_matches('/');
    let name = host.split(':').next().unwrap_or_default().to_ascii_lowercase();
    let of_azure = [".openai.azure.com", ".cognitiveservices.azure.com", ".ai.azure.com"];
    let bare = matches!(path, "" | "/openai" | "/openai/v1/responses");
    Ok(match bare && of_azure.iter().any(|end| name.ends_with(end)) {
        true => format!("{scheme}://{host}{API_PATH}"),
        false => url.to_owned(),
    })
}

/// The deployment of a model, from a list `model=deployment,…`.
fn deployment<'a>(request: &EncodeRequest<'a>) -> &'a str {
    let list = variable(request, "AZURE_OPENAI_DEPLOYMENT_NAME_MAP").unwrap_or_default();
    let entries = list.rsplit(',').filter_map(|entry| entry.split_once('='));
    let mut named = entries
        .filter(|(model, _)| request.model.id == model.trim())
        .map(|(_, deployment)| deployment.trim())
        .filter(|deployment| !deployment.is_empty());
    named.next().unwrap_or(request.model.id.as_str())
}

fn fields(request: &EncodeRequest<'_>) -> Map<String, Value> {
    let EncodeRequest { model, context, options, .. } = *request;
    let mut fields = Map::new();
    let mut set = |name: &str, value: Value| drop(fields.insert(name.to_owned(), value));
    set("model", deployment(request).into());
    set("stream", true.into());
    set("store", false.into());
    if let Some(session) = &options.session_id
        && Switches::of(model).text("promptCacheKeyMode") != Some("disabled")
    {
        set("prompt_cache_key", clipped_cache_key(session).into());
    }
    if let Some(max_tokens) = budget::max_tokens(model, context.messages(), options) {
        set("max_output_tokens", max_tokens.max(MIN_OUTPUT_TOKENS).into());
    }
    if let Some(temperature) = options.temperature {
        set("temperature", temperature.into());
    }
    if let Some(choice) = options.tool_choice {
        set("tool_choice", json!(choice));
    }
    reasoning_fields(request, None, &mut set);
    // Last, so that they replace what the request has under the same names.
    fields.extend(budget::sampling_params(model, options));
    fields
}
