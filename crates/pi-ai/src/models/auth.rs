//! Who a request is sent as: the key, and the headers and settings that go with it.

use std::fmt;

use indexmap::IndexMap;

use super::{
    credentials::{Credential, CredentialError, CredentialStore, OAuthCredential},
    environment::Environment,
    provider::{KeyNeed, Provider},
    template::{CommandCache, Unset, ValueTemplate},
};
use crate::{
    catalog::{Ambient, KeyKind, KeyPlacement},
    error::{ErrorKind, ProviderError},
    secret::Secret,
    time::Timestamp,
};

/// What a request is sent with.
#[derive(Clone)]
#[non_exhaustive]
pub struct RequestAuth {
    /// The key, which goes where the model's wire wants it.
    pub api_key: Option<Secret>,
    /// Headers to set (`Some`) or to leave out (`None`). Values may be keys.
    pub headers: Vec<(String, Option<Secret>)>,
    /// Variables that belong to the credential.
    pub env: IndexMap<String, String>,
    /// Where this account's models are served, when that is not where the model says.
    pub base_url: Option<String>,
    /// Where it comes from.
    pub source: KeySource,
}

impl fmt::Debug for RequestAuth {
    /// Without the values of variables and headers: some of them are keys.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestAuth")
            .field("api_key", &self.api_key)
            .field("headers", &self.headers)
            .field("env", &self.env.keys().collect::<Vec<_>>())
            .field("base_url", &self.base_url)
            .field("source", &self.source)
            .finish()
    }
}

/// Where a key comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeySource {
    /// The request's own options.
    Request,
    /// [`Models::set_api_key`](super::Models::set_api_key).
    Runtime,
    /// A stored key.
    Stored,
    /// A stored sign-in.
    SignIn,
    /// The provider's configuration.
    Configured,
    /// This environment variable.
    Variable(String),
    /// The machine's own credentials, such as an AWS profile.
    Ambient(&'static str),
    /// None is needed.
    NotNeeded,
}

impl fmt::Display for KeySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Request => "the request",
            Self::Runtime => "this run",
            Self::Stored => "a stored key",
            Self::SignIn => "a stored sign-in",
            Self::Configured => "models.json",
            Self::Variable(name) => name,
            Self::Ambient(what) => what,
            Self::NotNeeded => "no key needed",
        })
    }
}

/// What authentication may look at.
pub(super) struct Sources<'a> {
    pub(super) environment: &'a Environment,
    pub(super) credentials: &'a dyn CredentialStore,
    pub(super) commands: &'a CommandCache,
    pub(super) now: Timestamp,
}

/// A key that was handed in.
pub(super) struct Explicit {
    pub(super) key: Secret,
    pub(super) source: KeySource,
}

/// Whether the key itself is wanted, or only whether there is one. A check runs no command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Depth {
    Check,
    Resolve,
}

impl Sources<'_> {
    /// Finds the key of a provider: handed in > stored > configured > environment. `None`: there is none.
    pub(super) async fn find(
        &self,
        provider: &Provider,
        explicit: Option<Explicit>,
        server: Server,
        depth: Depth,
    ) -> Result<Option<RequestAuth>, ProviderError> {
        let auth = &provider.auth;
        let mut found = RequestAuth {
            api_key: None,
            headers: Vec::new(),
            env: IndexMap::new(),
            base_url: None,
            source: KeySource::NotNeeded,
        };
        if let Some(Explicit { key, source }) = explicit {
            found.api_key = Some(key);
            found.source = source;
        } else {
            match self.credentials.credential(provider.id()).await.map_err(store_failed)? {
                Some(Credential::OAuth(tokens)) => {
                    self.sign_in(provider, tokens, &mut found)?;
                    return Ok(Some(found));
                }
                Some(Credential::ApiKey { key: Some(key), env }) => {
                    found.api_key = Some(self.stored_key(provider, &key, &env, depth).await?);
                    found.env = env;
                    found.source = KeySource::Stored;
                }
                Some(Credential::ApiKey { key: None, env }) => {
                    found.env = env;
                    if !self.look_around(provider, &mut found) {
                        return Ok(None);
                    }
                    found.source = KeySource::Stored;
                }
                None => match &auth.key {
                    Some(key) => {
                        if depth == Depth::Check && !key.missing(self.environment).is_empty() {
                            return Ok(None);
                        }
                        found.api_key = self.configured_key(provider, key, depth).await?;
                        found.source = KeySource::Configured;
                    }
                    None if self.look_around(provider, &mut found) => {}
                    None if auth.need == KeyNeed::Never || is_open(provider, server) => {
                        found.api_key = Some(Secret::new(""));
                    }
                    None => return Ok(None),
                },
            }
        }
        let environment = self.environment.with(found.env.clone());
        for name in auth.required {
            match environment.get(name) {
                Some(value) => found.env.insert((*name).to_owned(), value),
                None => return Ok(None),
            };
        }
        place(provider, &mut found);
        Ok(Some(found))
    }

    /// The key of the environment, or the machine's own credentials. False: neither is there.
    fn look_around(&self, provider: &Provider, found: &mut RequestAuth) -> bool {
        let environment = self.environment.with(found.env.clone());
        for (name, kind) in &provider.auth.variables {
            let Some(value) = environment.get(name) else { continue };
            match kind {
                KeyKind::Key => found.api_key = Some(value.into()),
                KeyKind::Bearer => found.headers.push(bearer(&value)),
            }
            found.source = KeySource::Variable(name.to_string());
            return true;
        }
        match ambient(provider.auth.ambient, &environment) {
            Some(what) => {
                found.source = KeySource::Ambient(what);
                true
            }
            None => false,
        }
    }

    async fn stored_key(
        &self,
        provider: &Provider,
        key: &ValueTemplate,
        env: &IndexMap<String, String>,
        depth: Depth,
    ) -> Result<Secret, ProviderError> {
        if depth == Depth::Check {
            // Whether it resolves is found out when it is used: a stored key counts, whatever it stands for.
            return Ok(Secret::new(""));
        }
        let environment = self.environment.with(env.clone());
        let value = self.commands.resolve(key, &environment).await;
        Ok(value.map_err(|unset| unresolved(provider, "stored key", &unset))?.into())
    }

    async fn configured_key(
        &self,
        provider: &Provider,
        key: &ValueTemplate,
        depth: Depth,
    ) -> Result<Option<Secret>, ProviderError> {
        if depth == Depth::Check {
            return Ok(None);
        }
        let value = key.resolve(self.environment).await;
        Ok(Some(value.map_err(|unset| unresolved(provider, "configured key", &unset))?.into()))
    }

    fn sign_in(
        &self,
        provider: &Provider,
        tokens: OAuthCredential,
        found: &mut RequestAuth,
    ) -> Result<(), ProviderError> {
        let id = provider.id();
        if tokens.expires <= self.now {
            let message = format!(
                "The sign-in to {name} ({id}) has expired. Sign in again, or remove it to use a key.",
                name = provider.display_name()
            );
            return Err(ProviderError::new(ErrorKind::Auth, message));
        }
        found.source = KeySource::SignIn;
        match id.as_str() {
            "kimi-coding" => found.headers.push(bearer(tokens.access.expose())),
            "github-copilot" => {
                found.base_url = Some(copilot_base_url(&tokens));
                found.api_key = Some(tokens.access);
            }
            _ => found.api_key = Some(tokens.access),
        }
        Ok(())
    }
}

/// Where a model is served, as far as keys are concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Server {
    /// On this machine or network.
    Local,
    /// Elsewhere.
    Remote,
}

/// Puts the key where the provider wants it.
fn place(provider: &Provider, found: &mut RequestAuth) {
    if provider.auth.placement == KeyPlacement::CloudflareGateway
        && let Some(key) = found.api_key.take()
    {
        found.headers.push(("cf-aig-authorization".into(), Some(format!("Bearer {}", key.expose()).into())));
        found.headers.extend([("authorization".into(), None), ("x-api-key".into(), None)]);
    }
}

/// Whether there is a key without asking the store: configured, in the environment, the machine's own, or not needed.
/// No command is run to find out.
pub(super) fn has_own_key(provider: &Provider, environment: &Environment) -> bool {
    let auth = &provider.auth;
    let key = match &auth.key {
        Some(key) => key.missing(environment).is_empty(),
        None => {
            auth.need == KeyNeed::Never
                || auth.variables.iter().any(|(name, _)| environment.get(name).is_some())
                || ambient(auth.ambient, environment).is_some()
        }
    };
    key && auth.required.iter().all(|name| environment.get(name).is_some())
}

/// Whether a model can be used without a key because it is served on this machine or network.
pub(super) fn is_open(provider: &Provider, server: Server) -> bool {
    let auth = &provider.auth;
    server == Server::Local && auth.need == KeyNeed::UnlessLocal && auth.key.is_none() && auth.variables.is_empty()
}

fn bearer(token: &str) -> (String, Option<Secret>) {
    ("authorization".into(), Some(format!("Bearer {token}").into()))
}

/// The account's own server, which the token names.
fn copilot_base_url(tokens: &OAuthCredential) -> String {
    let named = tokens.access.expose().split(';').find_map(|field| field.strip_prefix("proxy-ep="));
    match (named, tokens.field("enterpriseUrl")) {
        (Some(host), _) if !host.is_empty() => {
            format!("https://{}", host.strip_prefix("proxy.").map_or(host.to_owned(), |rest| format!("api.{rest}")))
        }
        (_, Some(enterprise)) => {
            let host = enterprise.trim_start_matches("https://").trim_end_matches('/');
            format!("https://copilot-api.{host}")
        }
        _ => "https://api.individual.githubcopilot.com".into(),
    }
}

/// What of the machine's own credentials is there.
fn ambient(ambient: Ambient, environment: &Environment) -> Option<&'static str> {
    let set = |name| environment.get(name).is_some();
    match ambient {
        Ambient::None => None,
        Ambient::Aws if set("AWS_BEARER_TOKEN_BEDROCK") => Some("AWS_BEARER_TOKEN_BEDROCK"),
        Ambient::Aws if set("AWS_PROFILE") => Some("AWS_PROFILE"),
        Ambient::Aws if set("AWS_ACCESS_KEY_ID") && set("AWS_SECRET_ACCESS_KEY") => Some("AWS access keys"),
        Ambient::Aws if set("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI") => Some("the container's AWS role"),
        Ambient::Aws if set("AWS_CONTAINER_CREDENTIALS_FULL_URI") => Some("the container's AWS role"),
        Ambient::Aws if set("AWS_WEB_IDENTITY_TOKEN_FILE") => Some("an AWS web identity"),
        Ambient::Aws => None,
        Ambient::GoogleCloud => {
            let file = environment.get("GOOGLE_APPLICATION_CREDENTIALS").or_else(|| {
                let home = environment.get("HOME").or_else(|| environment.get("USERPROFILE"))?;
                Some(format!("{home}/.config/gcloud/application_default_credentials.json"))
            })?;
            let project = set("GOOGLE_CLOUD_PROJECT") || set("GCLOUD_PROJECT");
            let complete = project && set("GOOGLE_CLOUD_LOCATION") && std::path::Path::new(&file).is_file();
            complete.then_some("Google application default credentials")
        }
    }
}

/// What to tell whoever asked a provider without a key.
pub(super) fn missing(provider: &Provider, environment: &Environment) -> ProviderError {
    let (id, name) = (provider.id(), provider.display_name());
    let auth = &provider.auth;
    let required: Vec<_> = auth.required.iter().copied().filter(|name| environment.get(name).is_none()).collect();
    let keys: Vec<_> = provider.key_variables().collect();
    let has_key = keys.iter().any(|name| environment.get(name).is_some());
    let mut ways = Vec::new();
    if let Some(template) = &auth.key {
        ways.push(format!("set {}", template.missing(environment).join(" and ")));
    } else if has_key && !required.is_empty() {
        ways.push(format!("set {}", required.join(" and ")));
    } else {
        if !keys.is_empty() {
            let also = required.iter().map(|name| format!(" and {name}")).collect::<String>();
            ways.push(format!("set {}{also}", keys.join(" or ")));
        }
        match auth.ambient {
            Ambient::Aws => ways.push(
                "set AWS_BEARER_TOKEN_BEDROCK, AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY".into(),
            ),
            Ambient::GoogleCloud => ways.push(
                "sign in with `gcloud auth application-default login` and set GOOGLE_CLOUD_PROJECT and \
                 GOOGLE_CLOUD_LOCATION"
                    .into(),
            ),
            Ambient::None => {}
        }
        ways.push(match keys.is_empty() && auth.ambient == Ambient::None && auth.need == KeyNeed::Always {
            true => "sign in to it".to_owned(),
            false => "give it an apiKey in models.json".to_owned(),
        });
    }
    ProviderError::new(ErrorKind::Auth, format!("No key for {name} ({id}). To use it: {}.", ways.join("; or ")))
}

fn store_failed(error: CredentialError) -> ProviderError {
    ProviderError::new(ErrorKind::Auth, error.to_string()).with_source(error)
}

pub(super) fn unresolved(provider: &Provider, what: &str, unset: &Unset) -> ProviderError {
    let message = format!("The {what} of {} ({}) has no value: {unset}.", provider.display_name(), provider.id());
    ProviderError::new(ErrorKind::Auth, message)
}
