//! The account that requests to Bedrock are signed for, where neither a key nor access keys are given: a profile of the
//! files that the AWS command line keeps, the role of a container, or a web identity.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use indexmap::IndexMap;
use reqwest::{
    Method, Url,
    header::{ACCEPT, AUTHORIZATION, HeaderMap, HeaderValue},
};
use serde::Deserialize;

use crate::{
    error::{ErrorKind, ProviderError},
    time::Timestamp,
    transport::{Fetch, Transport},
};

/// Where containers ask for the credentials of their role.
const CONTAINER_HOST: &str = "http://169.254.170.2";

/// How long the credentials of a role are kept. They hold for longer, and are given anew well before they end.
const KEPT_MS: u64 = 300_000;

/// The credentials of roles that were got, by where they came from.
#[derive(Default)]
pub(super) struct RoleCredentials(Mutex<HashMap<String, (RoleKey, Timestamp)>>);

#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "PascalCase")]
struct RoleKey {
    access_key_id: String,
    secret_access_key: String,
    #[serde(alias = "SessionToken")]
    token: Option<String>,
}

impl RoleCredentials {
    /// Adds the access keys of a role to the variables, where the environment names one and there are no keys yet.
    pub(super) async fn add(
        &self,
        env: &mut IndexMap<String, String>,
        transport: &Transport,
        now: Timestamp,
    ) -> Result<(), ProviderError> {
        if env.contains_key("AWS_ACCESS_KEY_ID") && env.contains_key("AWS_SECRET_ACCESS_KEY") {
            return Ok(());
        }
        let Some(source) = Source::of(env) else { return Ok(()) };
        let name = source.name().to_owned();
        let known = self.lock().get(&name).cloned();
        let key = match known.filter(|(_, since)| now.as_millis().saturating_sub(since.as_millis()) < KEPT_MS) {
            Some((key, _)) => key,
            None => {
                let key = source.ask(transport).await?;
                self.lock().insert(name, (key.clone(), now));
                key
            }
        };
        env.insert("AWS_ACCESS_KEY_ID".into(), key.access_key_id);
        env.insert("AWS_SECRET_ACCESS_KEY".into(), key.secret_access_key);
        if let Some(token) = key.token {
            env.insert("AWS_SESSION_TOKEN".into(), token);
        }
        Ok(())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, (RoleKey, Timestamp)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Who gives the credentials of a role.
enum Source {
    Container { url: String, token: Option<String>, token_file: Option<PathBuf> },
    WebIdentity { service: String, role: String, token_file: PathBuf },
}

impl Source {
    fn of(env: &IndexMap<String, String>) -> Option<Self> {
        let get = |name: &str| env.get(name).filter(|value| !value.is_empty()).cloned();
        if let (Some(token_file), Some(role)) = (get("AWS_WEB_IDENTITY_TOKEN_FILE"), get("AWS_ROLE_ARN")) {
            let region = get("AWS_REGION").or_else(|| get("AWS_DEFAULT_REGION"));
            let region = region.unwrap_or_else(|| "us-east-1".to_owned());
            let china = if region.starts_with("cn-") { ".cn" } else { "" };
            let service =
                get("AWS_ENDPOINT_URL_STS").unwrap_or_else(|| format!("https://sts.{region}.amazonaws.com{china}"));
            return Some(Self::WebIdentity { service, role, token_file: token_file.into() });
        }
        let relative = get("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI").map(|path| format!("{CONTAINER_HOST}{path}"));
        Some(Self::Container {
            url: relative.or_else(|| get("AWS_CONTAINER_CREDENTIALS_FULL_URI"))?,
            token: get("AWS_CONTAINER_AUTHORIZATION_TOKEN"),
            token_file: get("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE").map(PathBuf::from),
        })
    }

    fn name(&self) -> &str {
        match self {
            Self::Container { url, .. } => url,
            Self::WebIdentity { role, .. } => role,
        }
    }

    async fn ask(&self, transport: &Transport) -> Result<RoleKey, ProviderError> {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        let url = match self {
            Self::Container { url, token, token_file } => {
                let token = match token_file {
                    Some(file) => Some(read_token(file).await?),
                    None => token.clone(),
                };
                if let Some(token) = token {
                    let mut value = HeaderValue::from_str(&token)
                        .map_err(|_| unusable("The container's authorization token is no header value.".into()))?;
                    value.set_sensitive(true);
                    headers.insert(AUTHORIZATION, value);
                }
                url.clone()
            }
            Self::WebIdentity { service, role, token_file } => {
                let token = read_token(token_file).await?;
                let fields = [
                    ("Action", "AssumeRoleWithWebIdentity"),
                    ("Version", "2011-06-15"),
                    ("RoleSessionName", "pi"),
                    ("RoleArn", role.as_str()),
                    ("WebIdentityToken", token.as_str()),
                ];
                let url = Url::parse_with_params(service, fields);
                url.map_err(|error| unusable(format!("{service} is no URL: {error}.")))?.into()
            }
        };
        let answer = transport.fetch(Fetch { method: Method::GET, url, headers, body: None }).await?;
        self.read(&answer)
    }

    fn read(&self, answer: &[u8]) -> Result<RoleKey, ProviderError> {
        let told = |error: serde_json::Error| {
            unusable(format!("The credentials of the AWS role `{}` cannot be read: {error}.", self.name()))
        };
        let answer: serde_json::Value = serde_json::from_slice(answer).map_err(told)?;
        let key = match self {
            Self::Container { .. } => &answer,
            Self::WebIdentity { .. } => {
                &answer["AssumeRoleWithWebIdentityResponse"]["AssumeRoleWithWebIdentityResult"]["Credentials"]
            }
        };
        RoleKey::deserialize(key).map_err(told)
    }
}

async fn read_token(file: &Path) -> Result<String, ProviderError> {
    let path = file.to_owned();
    let read = tokio::task::spawn_blocking(move || std::fs::read_to_string(path)).await;
    let told = |error: &dyn std::fmt::Display| unusable(format!("{} cannot be read: {error}.", file.display()));
    Ok(read.map_err(|error| told(&error))?.map_err(|error| told(&error))?.trim().to_owned())
}

/// Adds a profile's access keys and region to the variables, unless there is a key or are access keys already. A
/// profile that was chosen for the provider counts more than access keys of the environment.
pub(super) async fn add_profile(
    env: &mut IndexMap<String, String>,
    chosen: Option<&String>,
) -> Result<(), ProviderError> {
    let has_keys = env.contains_key("AWS_ACCESS_KEY_ID") && env.contains_key("AWS_SECRET_ACCESS_KEY");
    let profile = match (chosen, env.get("AWS_PROFILE")) {
        (Some(profile), _) => profile.clone(),
        (None, Some(profile)) if !has_keys => profile.clone(),
        _ => return Ok(()),
    };
    let files = Files::of(env);
    let read = tokio::task::spawn_blocking(move || files.profile(&profile));
    let profile = read.await.map_err(|error| unusable(format!("The AWS files could not be read: {error}.")))??;
    env.insert("AWS_ACCESS_KEY_ID".into(), profile.id);
    env.insert("AWS_SECRET_ACCESS_KEY".into(), profile.secret);
    match profile.session_token {
        Some(token) => drop(env.insert("AWS_SESSION_TOKEN".into(), token)),
        None => drop(env.shift_remove("AWS_SESSION_TOKEN")),
    }
    if let Some(region) = profile.region
        && !env.contains_key("AWS_DEFAULT_REGION")
    {
        env.entry("AWS_REGION".into()).or_insert(region);
    }
    Ok(())
}

fn unusable(message: String) -> ProviderError {
    ProviderError::new(ErrorKind::Auth, message)
}

/// Where profiles stand.
struct Files {
    credentials: PathBuf,
    config: PathBuf,
}

#[derive(Debug, PartialEq, Eq)]
struct Profile {
    id: String,
    secret: String,
    session_token: Option<String>,
    region: Option<String>,
}

impl Files {
    fn of(env: &IndexMap<String, String>) -> Self {
        let folder = PathBuf::from(env.get("HOME").map_or("", String::as_str)).join(".aws");
        let file = |variable: &str, name: &str| env.get(variable).map_or_else(|| folder.join(name), PathBuf::from);
        Self {
            credentials: file("AWS_SHARED_CREDENTIALS_FILE", "credentials"),
            config: file("AWS_CONFIG_FILE", "config"),
        }
    }

    fn profile(&self, name: &str) -> Result<Profile, ProviderError> {
        let credentials = read(&self.credentials)?;
        let config = read(&self.config)?;
        let in_config = if name == "default" { "default".to_owned() } else { format!("profile {name}") };
        let setting = |key: &str| {
            let value = value_of(&credentials, name, key).or_else(|| value_of(&config, &in_config, key));
            value.filter(|value| !value.is_empty()).map(str::to_owned)
        };
        match (setting("aws_access_key_id"), setting("aws_secret_access_key")) {
            (Some(id), Some(secret)) => {
                Ok(Profile { id, secret, session_token: setting("aws_session_token"), region: setting("region") })
            }
            _ => {
                let other = ["sso_session", "sso_start_url", "role_arn", "credential_process", "login_session"];
                let why = match other.iter().find(|key| setting(key).is_some()) {
                    Some(key) => format!("it is of a kind (`{key}`) that is not read here"),
                    None => "it has no access key".to_owned(),
                };
                Err(unusable(format!(
                    "The AWS profile `{name}` cannot be used: {why} (looked in {} and {}). Run \
                     `aws configure export-credentials --profile {name} --format env` and set what it prints.",
                    self.credentials.display(),
                    self.config.display(),
                )))
            }
        }
    }
}

/// A file that is not there is empty.
fn read(path: &PathBuf) -> Result<String, ProviderError> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(text),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(String::new()),
        Err(error) => Err(unusable(format!("{} cannot be read: {error}.", path.display()))),
    }
}

/// A setting of a section. Lines that are indented belong to the setting above them and are passed over.
fn value_of<'a>(file: &'a str, section: &str, key: &str) -> Option<&'a str> {
    let mut here = false;
    let mut found = None;
    for line in file.lines() {
        let text = line.trim_end();
        if let Some(name) = text.trim().strip_prefix('[').and_then(|name| name.split(']').next()) {
            here = name.split_whitespace().eq(section.split_whitespace());
        } else if here
            && !text.starts_with([' ', '\t', '#', ';'])
            && let Some((name, value)) = text.split_once('=')
            && name.trim().eq_ignore_ascii_case(key)
        {
            let value = value.split(" #").next().unwrap_or_default().split(" ;").next().unwrap_or_default();
            found = Some(value.trim());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: &str = "[default]\nregion = us-west-2\n[profile  work] # ours\nregion=eu-west-1 ; here\ns3 =\n  region = no\n\
                          [profile sso]\nsso_session = x\n";
    const CREDENTIALS: &str = "# keys\n[work]\naws_access_key_id = AKID\nAWS_SECRET_ACCESS_KEY = a=b/c+\n";

    #[tokio::test]
    async fn a_profile_gives_keys_and_region() {
        let folder = std::env::temp_dir().join(format!("pi-ai-aws-{}", uuid::Uuid::new_v4()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = |name: &str, text: &str| {
            let path = folder.join(name);
            std::fs::write(&path, text).unwrap();
            path.to_str().unwrap().to_owned()
        };
        let files = [
            ("AWS_CONFIG_FILE".to_owned(), path("config", CONFIG)),
            ("AWS_SHARED_CREDENTIALS_FILE".to_owned(), path("credentials", CREDENTIALS)),
        ];
        let with = |more: &[(&str, &str)]| {
            let more = more.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
            files.iter().cloned().chain(more).collect::<IndexMap<_, _>>()
        };
        let get = |env: &IndexMap<String, String>, name: &str| env.get(name).cloned().unwrap_or_default();

        let mut env = with(&[("AWS_PROFILE", "work"), ("AWS_SESSION_TOKEN", "stale")]);
        add_profile(&mut env, None).await.unwrap();
        assert_eq!(get(&env, "AWS_ACCESS_KEY_ID"), "AKID");
        assert_eq!(get(&env, "AWS_SECRET_ACCESS_KEY"), "a=b/c+");
        assert_eq!((get(&env, "AWS_REGION"), get(&env, "AWS_SESSION_TOKEN")), ("eu-west-1".into(), String::new()));

        let keys = [("AWS_ACCESS_KEY_ID", "other"), ("AWS_SECRET_ACCESS_KEY", "s"), ("AWS_REGION", "us-east-2")];
        let mut env = with(&[keys[0], keys[1], keys[2], ("AWS_PROFILE", "work")]);
        add_profile(&mut env, None).await.unwrap();
        assert_eq!(get(&env, "AWS_ACCESS_KEY_ID"), "other");
        add_profile(&mut env, Some(&"work".to_owned())).await.unwrap();
        assert_eq!((get(&env, "AWS_ACCESS_KEY_ID"), get(&env, "AWS_REGION")), ("AKID".into(), "us-east-2".into()));

        for (name, why) in [("sso", "`sso_session`"), ("nobody", "no access key")] {
            let mut env = with(&[("AWS_PROFILE", name)]);
            let error = add_profile(&mut env, None).await.unwrap_err();
            assert!(error.message().contains(why), "{}", error.message());
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
