//! The headers of a request: who asks, what the model and the caller add, and the key.

use indexmap::IndexMap;

use super::EncodeRequest;
use crate::{
    error::{ErrorKind, ProviderError},
    message::{Content, InputBlock, Message},
    model::Model,
    options::{CacheRetention, Headers},
};

/// Headers under construction. Names are case-insensitive; the last word counts.
#[derive(Clone, Debug, Default)]
pub struct HeaderMap(IndexMap<String, String>);

impl HeaderMap {
    /// The headers that every JSON request has, those that name the client, and the model's own.
    pub fn for_model(request: &EncodeRequest<'_>) -> Self {
        let mut headers = Self::default();
        headers.set("content-type", "application/json");
        headers.identify(request);
        headers
    }

    /// Sets a header.
    pub fn set(&mut self, name: &str, value: impl Into<String>) {
        self.0.insert(name.to_ascii_lowercase(), value.into());
    }

    /// Sets a header unless it is there.
    pub fn set_default(&mut self, name: &str, value: impl Into<String>) {
        self.0.entry(name.to_ascii_lowercase()).or_insert_with(|| value.into());
    }

    /// Leaves a header out.
    pub fn remove(&mut self, name: &str) {
        self.0.shift_remove(&name.to_ascii_lowercase());
    }

    /// A header's value.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(&name.to_ascii_lowercase()).map(String::as_str)
    }

    /// Adds the model's headers.
    pub fn add_model(&mut self, model: &Model) {
        for (name, value) in &model.headers {
            self.set(name, value.clone());
        }
    }

    /// Adds the headers that the caller wants, and leaves out those that they do not want.
    pub fn add_request(&mut self, request: &EncodeRequest<'_>) {
        for (name, value) in &request.options.headers {
            match value {
                Some(value) => self.set(name, value.clone()),
                None => self.remove(name),
            }
        }
    }

    /// The finished list.
    pub fn into_headers(self) -> Headers {
        self.0.into_iter().collect()
    }

    /// Who asks, and what providers that attribute requests want to know.
    pub fn identify(&mut self, request: &EncodeRequest<'_>) {
        let (model, identity) = (request.model, &request.options.identity);
        if let Some(agent) = &identity.user_agent {
            self.set("user-agent", agent.clone());
        }
        if is_opencode(model) {
            if let Some(title) = &identity.title {
                self.set("x-opencode-client", title.clone());
            }
        } else if is_openrouter(model) {
            if let Some(referer) = &identity.referer {
                self.set("http-referer", referer.clone());
            }
            if let Some(title) = &identity.title {
                self.set("x-openrouter-title", title.clone());
                self.set("x-openrouter-categories", "cli-agent");
            }
        } else if is_nvidia(model)
            && let Some(title) = &identity.title
        {
            let mut letters = title.chars();
            let capital = letters.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
            self.set("x-billing-invoke-origin", capital + letters.as_str());
        }
    }

    /// What GitHub Copilot wants to know of a conversation.
    pub fn add_copilot(&mut self, request: &EncodeRequest<'_>) {
        if request.model.provider != "github-copilot" {
            return;
        }
        let messages = request.context.messages();
        let by_agent = messages.last().is_some_and(|last| !matches!(last, Message::User(_)));
        self.set("x-initiator", if by_agent { "agent" } else { "user" });
        self.set("openai-intent", "conversation-edits");
        if messages.iter().any(has_image) {
            self.set("copilot-vision-request", "true");
        }
    }
}

/// The conversation's name, where the provider may use it: not when nothing is to be cached.
pub(crate) fn affinity_session<'a>(request: &EncodeRequest<'a>) -> Option<&'a str> {
    let session = request.options.session_id.as_ref()?;
    (request.options.cache_retention != CacheRetention::None).then_some(session.as_str())
}

/// The key, or `None` when the caller brings a header that authenticates, or an empty key: some servers want none.
///
/// # Errors
/// When there is neither.
pub(crate) fn key<'a>(request: &EncodeRequest<'a>, headers: &[&str]) -> Result<Option<&'a str>, ProviderError> {
    let options = request.options;
    if let Some(key) = options.api_key.as_ref().map(|key| key.expose()) {
        return Ok(Some(key).filter(|key| !key.is_empty()));
    }
    let given = |name: &String| headers.iter().any(|wanted| name.eq_ignore_ascii_case(wanted));
    let by_caller = options
        .headers
        .iter()
        .any(|(name, value)| given(name) && value.as_deref().is_some_and(|value| !value.trim().is_empty()));
    let by_model = || request.model.headers.iter().any(|(name, value)| given(name) && !value.trim().is_empty());
    if by_caller || by_model() {
        return Ok(None);
    }
    let provider = &request.model.provider;
    Err(ProviderError::new(
        ErrorKind::Auth,
        format!("No API key for provider: {provider}. Set its key variable, or log in."),
    ))
}

/// The base URL without its last slashes, and what comes after it.
///
/// # Errors
/// When the model has none.
pub(crate) fn url(model: &Model, path: &str) -> Result<String, ProviderError> {
    let base = model.base_url.trim().trim_end_matches('/');
    if base.is_empty() {
        let message = format!("The model {} of provider {} has no base URL. Set `baseUrl`.", model.id, model.provider);
        return Err(ProviderError::new(ErrorKind::InvalidRequest, message));
    }
    Ok(format!("{base}{path}"))
}

/// Whether requests go to OpenRouter.
pub(crate) fn is_openrouter(model: &Model) -> bool {
    model.provider == "openrouter" || model.base_url.contains("openrouter.ai")
}

/// Whether requests go to OpenCode.
pub(crate) fn is_opencode(model: &Model) -> bool {
    model.provider == "opencode" || model.provider == "opencode-go" || host(&model.base_url) == "opencode.ai"
}

fn is_nvidia(model: &Model) -> bool {
    model.provider == "nvidia" || host(&model.base_url) == "integrate.api.nvidia.com"
}

fn host(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    host.split_once(':').map_or(host, |(host, _)| host)
}

pub(crate) fn has_image(message: &Message) -> bool {
    let blocks = match message {
        Message::User(message) => match &message.content {
            Content::Blocks(blocks) => blocks,
            Content::Text(_) => return false,
        },
        Message::ToolResult(message) => &message.content,
        Message::System(_) | Message::Assistant(_) => return false,
    };
    blocks.iter().any(|block| matches!(block, InputBlock::Image(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_differ_in_more_than_their_case() {
        let mut headers = HeaderMap::default();
        headers.set("X-One", "1");
        headers.set("x-one", "2");
        headers.set("x-two", "3");
        headers.remove("X-TWO");
        assert_eq!(headers.into_headers(), [("x-one".to_owned(), "2".to_owned())]);
    }

    #[test]
    fn a_host_is_found_in_any_url() {
        for url in ["https://a.b/x", "http://u:p@a.b:80?x", "a.b", "https://a.b"] {
            assert_eq!(host(url), "a.b", "{url}");
        }
    }
}
