//! The account that requests to Vertex are sent as, where there is no key: that of Google's application default
//! credentials, a login of `gcloud` or a service account.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use indexmap::IndexMap;
use reqwest::{Method, header};
use ring::{
    rand::SystemRandom,
    signature::{RSA_PKCS1_SHA256, RsaKeyPair},
};
use rustls::pki_types::{PrivatePkcs8KeyDer, pem::PemObject};
use serde::Deserialize;
use serde_json::json;

use crate::{
    error::{ErrorKind, ProviderError},
    time::Timestamp,
    transport::{Fetch, Transport},
};

const TOKEN_URI: &str = "https://oauth2.googleapis.com/token";
const SCOPE: &str = "https://www.googleapis.com/auth/cloud-platform";

/// A token is not used any more when it ends so soon.
const MARGIN_MS: u64 = 300_000;

/// The tokens that were got, by the file that they stand for.
#[derive(Default)]
pub(super) struct GoogleTokens(Mutex<HashMap<PathBuf, Token>>);

#[derive(Clone)]
struct Token {
    text: String,
    /// In ms since 1970.
    ends: u64,
}

/// The file of application default credentials.
#[derive(Deserialize)]
struct CredentialFile {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    client_id: String,
    #[serde(default)]
    client_secret: String,
    #[serde(default)]
    refresh_token: String,
    #[serde(default)]
    client_email: String,
    #[serde(default)]
    private_key: String,
    token_uri: Option<String>,
}

#[derive(Deserialize)]
struct TokenAnswer {
    access_token: String,
    expires_in: u64,
}

fn unusable(message: String) -> ProviderError {
    ProviderError::new(ErrorKind::Auth, message)
}

/// Where the credentials stand, as these variables say.
pub(super) fn file(env: &IndexMap<String, String>) -> PathBuf {
    match env.get("GOOGLE_APPLICATION_CREDENTIALS") {
        Some(path) => path.into(),
        None => Path::new(env.get("HOME").map_or("", String::as_str))
            .join(".config/gcloud/application_default_credentials.json"),
    }
}

impl GoogleTokens {
    /// A token for the credentials of a file.
    pub(super) async fn token(
        &self,
        file: PathBuf,
        transport: &Transport,
        now: Timestamp,
    ) -> Result<String, ProviderError> {
        let known = self.lock().get(&file).cloned();
        if let Some(token) = known.filter(|token| now.as_millis() + MARGIN_MS < token.ends) {
            return Ok(token.text);
        }
        let path = file.clone();
        let read = tokio::task::spawn_blocking(move || std::fs::read(path)).await;
        let told = |error: &dyn std::fmt::Display| unusable(format!("{}: {error}.", file.display()));
        let bytes = read.map_err(|error| told(&error))?.map_err(|error| told(&error))?;
        let credentials: CredentialFile = serde_json::from_slice(&bytes).map_err(|error| told(&error))?;
        let body = credentials.request(now).map_err(|reason| told(&reason))?;
        let url = credentials.token_uri.unwrap_or_else(|| TOKEN_URI.to_owned());
        let form = header::HeaderValue::from_static("application/x-www-form-urlencoded");
        let headers = [(header::CONTENT_TYPE, form)].into_iter().collect();
        let answer = transport.fetch(Fetch { method: Method::POST, url, headers, body: Some(body) }).await?;
        let answer: TokenAnswer = serde_json::from_slice(&answer)
            .map_err(|error| unusable(format!("Google's answer to a request for a token was not one: {error}.")))?;
        let ends = now.as_millis().saturating_add(answer.expires_in.saturating_mul(1000));
        self.lock().insert(file, Token { text: answer.access_token.clone(), ends });
        Ok(answer.access_token)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<PathBuf, Token>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CredentialFile {
    /// The form that asks for a token.
    fn request(&self, now: Timestamp) -> Result<String, String> {
        let form = |fields: &[(&str, &str)]| {
            let mut url = reqwest::Url::parse("http://form").map_err(|error| error.to_string())?;
            url.query_pairs_mut().extend_pairs(fields);
            Ok(url.query().unwrap_or_default().to_owned())
        };
        match self.kind.as_str() {
            "authorized_user" => form(&[
                ("grant_type", "refresh_token"),
                ("client_id", &self.client_id),
                ("client_secret", &self.client_secret),
                ("refresh_token", &self.refresh_token),
            ]),
            "service_account" => form(&[
                ("grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer"),
                ("assertion", &self.assertion(now)?),
            ]),
            other => Err(format!("credentials of type `{other}` are not read here; set GOOGLE_CLOUD_API_KEY instead")),
        }
    }

    /// What a service account proves itself with.
    fn assertion(&self, now: Timestamp) -> Result<String, String> {
        let seconds = now.as_millis() / 1000;
        let claims = json!({
            "iss": self.client_email,
            "scope": SCOPE,
            "aud": self.token_uri.as_deref().unwrap_or(TOKEN_URI),
            "iat": seconds,
            "exp": seconds + 3600,
        });
        let head = json!({ "alg": "RS256", "typ": "JWT" });
        let signed =
            format!("{}.{}", URL_SAFE_NO_PAD.encode(head.to_string()), URL_SAFE_NO_PAD.encode(claims.to_string()));
        let key = PrivatePkcs8KeyDer::from_pem_slice(self.private_key.as_bytes())
            .map_err(|error| format!("its private key is no PEM: {error}"))?;
        let key = RsaKeyPair::from_pkcs8(key.secret_pkcs8_der())
            .map_err(|error| format!("its private key cannot be used: {error}"))?;
        let mut signature = vec![0; key.public().modulus_len()];
        key.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), signed.as_bytes(), &mut signature)
            .map_err(|error| format!("its private key does not sign: {error}"))?;
        Ok(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }
}
