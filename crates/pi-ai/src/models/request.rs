//! From a caller's options to those that a wire gets: key, headers, settings and server are filled in.

use std::sync::Arc;

use indexmap::IndexMap;

use super::{
    Models,
    auth::{self, Depth, Explicit, KeySource, RequestAuth, Server, Sources, unresolved},
    environment::Environment,
    provider::Provider,
    template::ValueTemplate,
};
use crate::{
    api::headers::is_opencode,
    error::{ErrorKind, ProviderError},
    id::{ApiId, SessionId},
    model::Model,
    options::{CacheRetention, StreamOptions},
    secret::Secret,
};

impl Models {
    /// Fills in what a caller left open: the key, headers, variables that the wire reads, and the account's server.
    /// What the caller set wins. [`stream`](crate::StreamFn::stream) does this for each request; it is here for those
    /// who send requests by other means.
    ///
    /// # Errors
    /// Of kind [`Auth`](ErrorKind::Auth): there is no key (the message names the variables to set), stored credentials
    /// cannot be read, or a configured value has none.
    pub async fn prepare(
        &self,
        model: &Arc<Model>,
        mut options: StreamOptions,
    ) -> Result<(Arc<Model>, StreamOptions), ProviderError> {
        let provider = self.provider_of(model);
        let below = self.shared.environment.clone();
        let explicit = options.api_key.take().map(|key| Explicit { key, source: KeySource::Request });
        let asked = below.with(options.env.clone());
        let found = self.find_auth_in(&asked, &provider, explicit, Depth::Resolve, &model.base_url).await?;
        let auth = found.ok_or_else(|| auth::missing(&provider, &asked))?;

        let environment = below.with(auth.env.clone()).with(options.env.clone());
        let mut env = variables(&model.api, &provider, &environment);
        env.extend(auth.env.clone());
        env.extend(std::mem::take(&mut options.env));
        #[cfg(feature = "bedrock")]
        if model.api == "bedrock-converse-stream"
            && auth.api_key.is_none()
            && !env.contains_key("AWS_BEARER_TOKEN_BEDROCK")
        {
            super::aws::add_profile(&mut env, auth.env.get("AWS_PROFILE")).await?;
            self.shared.roles.add(&mut env, &self.shared.transport, self.shared.clock.now()).await?;
        }
        let (asked, session) = (std::mem::take(&mut options.headers), options.session_id.as_ref());
        options.headers = headers(&provider, model, &auth, &environment, asked, session).await?;
        #[cfg(feature = "vertex")]
        if model.api == "google-vertex" && auth.api_key.is_none() && !options.headers.contains_key("authorization") {
            let file = super::google::file(&env);
            let token = self.shared.google.token(file, &self.shared.transport, self.shared.clock.now()).await?;
            options.headers.insert("authorization".into(), Some(format!("Bearer {token}")));
        }
        options.env = env;
        options.api_key = auth.api_key;
        if options.cache_retention == CacheRetention::Short
            && environment.get("PI_CACHE_RETENTION").is_some_and(|retention| retention == "long")
        {
            options.cache_retention = CacheRetention::Long;
        }

        let base_url = match auth.base_url {
            Some(base_url) => base_url,
            None => filled_in(&model.base_url, &environment, &provider)?,
        };
        let model =
            if base_url == model.base_url { model.clone() } else { Arc::new(Model { base_url, ..(**model).clone() }) };
        Ok((model, options))
    }

    /// The provider of a model. One that is not registered has nothing but the model's server.
    fn provider_of(&self, model: &Model) -> Arc<Provider> {
        let known = self.provider(&model.provider);
        known.unwrap_or_else(|| Arc::new(Provider::new(model.provider.clone(), model.base_url.clone())))
    }

    pub(super) async fn find_auth(
        &self,
        provider: &Provider,
        explicit: Option<Explicit>,
        depth: Depth,
        base_url: &str,
    ) -> Result<Option<RequestAuth>, ProviderError> {
        self.find_auth_in(&self.shared.environment, provider, explicit, depth, base_url).await
    }

    async fn find_auth_in(
        &self,
        environment: &Environment,
        provider: &Provider,
        explicit: Option<Explicit>,
        depth: Depth,
        base_url: &str,
    ) -> Result<Option<RequestAuth>, ProviderError> {
        let runtime = || {
            let key = self.state(|state| state.runtime_keys.get(provider.id()).cloned())?;
            Some(Explicit { key, source: KeySource::Runtime })
        };
        let sources = Sources {
            environment,
            credentials: &*self.shared.credentials,
            commands: &self.shared.commands,
            now: self.shared.clock.now(),
        };
        sources.find(provider, explicit.or_else(runtime), server(base_url), depth).await
    }
}

/// Headers in rising order of weight: the credential's and the provider's, the model's, the request's.
async fn headers(
    provider: &Provider,
    model: &Model,
    auth: &RequestAuth,
    environment: &Environment,
    asked: IndexMap<String, Option<String>>,
    session: Option<&SessionId>,
) -> Result<IndexMap<String, Option<String>>, ProviderError> {
    let mut merged = IndexMap::new();
    if let Some(session) = session.filter(|_| is_opencode(model)) {
        // How OpenCode keeps a conversation at one server.
        merged.insert("x-opencode-session".to_owned(), Some(session.to_string()));
    }
    for (name, value) in &auth.headers {
        merged.insert(name.to_ascii_lowercase(), value.as_ref().map(Secret::expose).map(str::to_owned));
    }
    let configured = provider.model_headers.get(&model.id);
    add(&mut merged, provider, &provider.headers, environment).await?;
    if let Some(RequestAuth { api_key: Some(key), .. }) = Some(auth).filter(|_| provider.auth.also_bearer) {
        merged.insert("authorization".into(), Some(format!("Bearer {}", key.expose())));
    }
    for (name, value) in &model.headers {
        merged.insert(name.to_ascii_lowercase(), Some(value.clone()));
    }
    if let Some(configured) = configured {
        add(&mut merged, provider, configured, environment).await?;
    }
    for (name, value) in asked {
        merged.insert(name.to_ascii_lowercase(), value);
    }
    Ok(merged)
}

async fn add(
    merged: &mut IndexMap<String, Option<String>>,
    provider: &Provider,
    headers: &[(String, ValueTemplate)],
    environment: &Environment,
) -> Result<(), ProviderError> {
    for (name, template) in headers {
        let value = template.resolve(environment).await;
        let value = value.map_err(|unset| unresolved(provider, &format!("header `{name}`"), &unset))?;
        merged.insert(name.to_ascii_lowercase(), Some(value));
    }
    Ok(())
}

/// The variables that a wire reads besides the key: wires are pure and see only what they are handed.
fn variables(api: &ApiId, provider: &Provider, environment: &Environment) -> IndexMap<String, String> {
    let of_wire: &[&str] = match api.as_str() {
        "bedrock-converse-stream" => &[
            "AWS_ACCESS_KEY_ID",
            "AWS_BEARER_TOKEN_BEDROCK",
            "AWS_BEDROCK_FORCE_CACHE",
            "AWS_BEDROCK_SKIP_AUTH",
            "AWS_CONFIG_FILE",
            "AWS_CONTAINER_AUTHORIZATION_TOKEN",
            "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
            "AWS_CONTAINER_CREDENTIALS_FULL_URI",
            "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
            "AWS_DEFAULT_REGION",
            "AWS_ENDPOINT_URL_BEDROCK_RUNTIME",
            "AWS_ENDPOINT_URL_STS",
            "AWS_PROFILE",
            "AWS_REGION",
            "AWS_ROLE_ARN",
            "AWS_SECRET_ACCESS_KEY",
            "AWS_SESSION_TOKEN",
            "AWS_SHARED_CREDENTIALS_FILE",
            "AWS_WEB_IDENTITY_TOKEN_FILE",
            "HOME",
        ],
        "google-vertex" => &[
            "GCLOUD_PROJECT",
            "GOOGLE_APPLICATION_CREDENTIALS",
            "GOOGLE_CLOUD_LOCATION",
            "GOOGLE_CLOUD_PROJECT",
            "HOME",
        ],
        "azure-openai-responses" => AZURE,
        _ if provider.id() == "azure" => AZURE,
        _ => &[],
    };
    let names = of_wire.iter().chain(provider.auth.required);
    names.filter_map(|name| Some(((*name).to_owned(), environment.get(name)?))).collect()
}

const AZURE: &[&str] = &[
    "AZURE_OPENAI_API_VERSION",
    "AZURE_OPENAI_BASE_URL",
    "AZURE_OPENAI_DEPLOYMENT_NAME_MAP",
    "AZURE_OPENAI_RESOURCE_NAME",
];

/// Puts variables into `{NAME}` in a base URL. Names in lower case are the wire's to fill in.
fn filled_in(base_url: &str, environment: &Environment, provider: &Provider) -> Result<String, ProviderError> {
    let mut filled = String::with_capacity(base_url.len());
    let mut rest = base_url;
    while let Some((before, after)) = rest.split_once('{') {
        filled.push_str(before);
        let variable = after.split_once('}').filter(|(name, _)| {
            !name.is_empty()
                && name.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
        });
        match variable {
            Some((name, after)) => {
                let value = environment.get(name).ok_or_else(|| {
                    let name_of = provider.display_name();
                    ProviderError::new(
                        ErrorKind::Auth,
                        format!("The server of {name_of} depends on the variable {name}, which is not set."),
                    )
                })?;
                filled.push_str(&value);
                rest = after;
            }
            None => {
                filled.push('{');
                rest = after;
            }
        }
    }
    filled.push_str(rest);
    Ok(filled)
}

/// Whether a server is on this machine or network.
pub(super) fn server(base_url: &str) -> Server {
    let host = reqwest::Url::parse(base_url).ok().and_then(|url| url.host_str().map(str::to_owned));
    match host {
        Some(host) if crate::transport::is_local_host(&host) => Server::Local,
        _ => Server::Remote,
    }
}
