//! Stored credentials, and the file that holds them.

use std::{
    fmt, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use futures::future::BoxFuture;
use indexmap::IndexMap;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{regular_file, template::ValueTemplate};
use crate::{id::ProviderId, secret::Secret, time::Timestamp};

/// Where stored credentials come from. Implement it for another place than a file.
///
/// It is asked for each request, so that a credential that changes meanwhile (a sign-in, a refreshed token) counts.
pub trait CredentialStore: Send + Sync + 'static {
    /// The credential of a provider; `None` when there is none.
    ///
    /// # Errors
    /// When the store cannot be read. That is never the same as having no credential.
    fn credential<'a>(&'a self, provider: &'a ProviderId)
    -> BoxFuture<'a, Result<Option<Credential>, CredentialError>>;

    /// The providers that have a credential.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn providers(&self) -> BoxFuture<'_, Result<Vec<ProviderId>, CredentialError>>;
}

impl<T: CredentialStore + ?Sized> CredentialStore for Arc<T> {
    fn credential<'a>(
        &'a self,
        provider: &'a ProviderId,
    ) -> BoxFuture<'a, Result<Option<Credential>, CredentialError>> {
        (**self).credential(provider)
    }

    fn providers(&self) -> BoxFuture<'_, Result<Vec<ProviderId>, CredentialError>> {
        (**self).providers()
    }
}

/// A stored credential. It owns its provider: while it is there, the environment is not asked for a key.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Credential {
    /// A key, or settings that stand for one (an AWS profile).
    ApiKey {
        /// The key, which may stand for a variable or a command's output.
        key: Option<ValueTemplate>,
        /// Variables that belong to it; they take precedence over the environment's.
        env: IndexMap<String, String>,
    },
    /// Tokens of a sign-in.
    OAuth(OAuthCredential),
}

impl fmt::Debug for Credential {
    /// Without the values of variables: some of them are keys.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ApiKey { key, env } => {
                f.debug_struct("ApiKey").field("key", key).field("env", &env.keys().collect::<Vec<_>>()).finish()
            }
            Self::OAuth(tokens) => f.debug_tuple("OAuth").field(tokens).finish(),
        }
    }
}

/// The tokens of a sign-in.
#[derive(Clone, PartialEq, Eq)]
pub struct OAuthCredential {
    /// What requests carry.
    pub access: Secret,
    /// What gets the next access token.
    pub refresh: Secret,
    /// When the access token ends.
    pub expires: Timestamp,
    /// Whatever else the sign-in stored.
    pub fields: Map<String, Value>,
}

impl OAuthCredential {
    /// A text that the sign-in stored.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.fields.get(name)?.as_str()
    }
}

impl fmt::Debug for OAuthCredential {
    /// Without the further fields: some sign-ins keep tokens there.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OAuthCredential").field("expires", &self.expires).finish_non_exhaustive()
    }
}

/// Stored credentials cannot be read.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CredentialError {
    /// The file is there and cannot be read.
    #[error("{}: the stored credentials cannot be read: {reason}. Check the file's owner and permissions.", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        reason: String,
    },
    /// The file is not what it should be.
    #[error("{}: {problem}. Correct the file, or move it away and sign in again; it was not changed.", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What was expected, and where. Nothing of the file's content is told.
        problem: String,
    },
    /// Another store failed.
    #[error("the stored credentials cannot be read: {0}")]
    Store(String),
}

/// Credentials in a JSON file, `auth.json` of the agent folder. It is read for each request and never written.
///
/// ```json
/// {
///   "anthropic": { "type": "api_key", "key": "sk-ant-…" },
///   "groq": { "type": "api_key", "key": "!pass show groq", "env": { "REGION": "eu" } },
///   "xai": { "type": "oauth", "access": "…", "refresh": "…", "expires": 1764500000000 }
/// }
/// ```
#[derive(Clone, Debug)]
pub struct AuthFile {
    path: PathBuf,
}

impl AuthFile {
    /// Credentials in this file. It need not exist.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    async fn entries(&self) -> Result<Map<String, Value>, CredentialError> {
        let path = self.path.clone();
        let read = tokio::task::spawn_blocking(move || regular_file::read(&path)).await;
        let bytes = match read.unwrap_or_else(|error| Err(io::Error::other(error))) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Map::new()),
            Err(error) => {
                return Err(CredentialError::Unreadable { path: self.path.clone(), reason: error.to_string() });
            }
        };
        let text = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(&bytes);
        match serde_json::from_slice(text) {
            Ok(Value::Object(entries)) => Ok(entries),
            Ok(_) => Err(self.malformed("expected an object of credentials by provider")),
            Err(error) => Err(self.malformed(format!("not valid JSON: {error}"))),
        }
    }

    fn malformed(&self, problem: impl Into<String>) -> CredentialError {
        CredentialError::Malformed { path: self.path.clone(), problem: problem.into() }
    }

    fn read_entry(&self, provider: &ProviderId, entry: Value) -> Result<Credential, CredentialError> {
        #[derive(Deserialize)]
        #[serde(tag = "type", rename_all = "snake_case")]
        enum Stored {
            ApiKey {
                key: Option<String>,
                #[serde(default)]
                env: IndexMap<String, String>,
            },
            #[serde(rename = "oauth")]
            OAuth {
                access: String,
                refresh: String,
                expires: Timestamp,
                #[serde(flatten)]
                fields: Map<String, Value>,
            },
        }
        // The decoder's own message is not passed on: it may quote a key.
        let stored = serde_json::from_value(entry).map_err(|_| {
            self.malformed(format!(
                "the credential of `{provider}` is neither {{\"type\": \"api_key\", \"key\": text}} nor \
                 {{\"type\": \"oauth\", \"access\": text, \"refresh\": text, \"expires\": milliseconds}}"
            ))
        })?;
        Ok(match stored {
            Stored::ApiKey { key, env } => Credential::ApiKey { key: key.as_deref().map(ValueTemplate::parse), env },
            Stored::OAuth { access, refresh, expires, fields } => {
                Credential::OAuth(OAuthCredential { access: access.into(), refresh: refresh.into(), expires, fields })
            }
        })
    }
}

impl CredentialStore for AuthFile {
    fn credential<'a>(
        &'a self,
        provider: &'a ProviderId,
    ) -> BoxFuture<'a, Result<Option<Credential>, CredentialError>> {
        Box::pin(async move {
            let entry = self.entries().await?.shift_remove(provider.as_str());
            entry.map(|entry| self.read_entry(provider, entry)).transpose()
        })
    }

    fn providers(&self) -> BoxFuture<'_, Result<Vec<ProviderId>, CredentialError>> {
        Box::pin(async move { Ok(self.entries().await?.into_iter().map(|(provider, _)| provider.into()).collect()) })
    }
}

/// No credentials are stored.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoCredentials;

impl CredentialStore for NoCredentials {
    fn credential<'a>(&'a self, _: &'a ProviderId) -> BoxFuture<'a, Result<Option<Credential>, CredentialError>> {
        Box::pin(std::future::ready(Ok(None)))
    }

    fn providers(&self) -> BoxFuture<'_, Result<Vec<ProviderId>, CredentialError>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }
}
