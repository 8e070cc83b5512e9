//! What to tell when a connection fails: what, where, every cause, and what to do.

use std::{error::Error, fmt::Write as _, time::Duration};

use reqwest::Url;

use crate::{
    error::{ErrorKind, ProviderError},
    id::ProviderId,
};

/// Who was asked, without anything secret.
#[derive(Clone, Debug)]
pub(super) struct Target {
    /// Scheme, host and port.
    pub(super) origin: String,
    /// The proxy in between, likewise.
    pub(super) proxy: Option<String>,
}

impl Target {
    pub(super) fn new(server: &Url, proxy: Option<&Url>) -> Self {
        Self { origin: origin(server), proxy: proxy.map(origin) }
    }

    /// The request could not be sent.
    pub(super) fn unreachable(&self, error: reqwest::Error, connect: Option<Duration>) -> ProviderError {
        let error = error.without_url();
        let causes = causes(&error);
        let origin = &self.origin;
        let (kind, mut message) = match connect {
            _ if is_certificate_problem(&causes) => {
                let message = format!("The certificate of {origin} was not accepted: {causes}.");
                (ErrorKind::Other, message + &certificate_hint())
            }
            Some(limit) if error.is_timeout() => {
                let limit = shown(limit);
                (ErrorKind::Timeout, format!("Connection error: no connection to {origin} within {limit} (timed out)."))
            }
            _ if error.is_builder() => (ErrorKind::InvalidRequest, format!("The request could not be made: {causes}.")),
            _ => {
                let hint = reach_hint(&causes);
                (ErrorKind::Network, format!("Connection error: {origin} could not be reached: {causes}. {hint}"))
            }
        };
        if let Some(proxy) = &self.proxy {
            let _ = write!(
                message,
                " The request went through the proxy {proxy}; NO_PROXY names servers to reach without it."
            );
        }
        ProviderError::new(kind, message).with_source(error)
    }

    /// The server knows no such address: most often the base URL is not the right one, or the model's name.
    pub(super) fn not_found(&self, error: ProviderError, provider: &ProviderId, model: &str) -> ProviderError {
        let message = format!(
            "{}\nCheck the base URL of {provider} in models.json ({} was asked; those of many servers end in /v1) and the \
             model's id `{model}`.",
            error.message(),
            self.origin
        );
        error.with_message(message)
    }

    /// The connection broke while the answer was coming.
    pub(super) fn broken(&self, error: reqwest::Error) -> ProviderError {
        let error = error.without_url();
        let message = format!("Connection lost while the answer was coming from {}: {}.", self.origin, causes(&error));
        ProviderError::new(ErrorKind::Network, message).with_source(error)
    }

    /// Nothing came in time.
    pub(super) fn silent(&self, wait: Wait, limit: Duration) -> ProviderError {
        let (origin, limit) = (&self.origin, shown(limit));
        let message = match wait {
            Wait::FirstByte => format!("The request timed out: {origin} sent no answer within {limit}."),
            Wait::Idle => {
                format!("The request timed out: {origin} fell silent in the middle of its answer for {limit}.")
            }
        };
        ProviderError::new(ErrorKind::Timeout, message)
    }

    /// The server wants another one to be asked.
    pub(super) fn redirected(&self, status: u16, location: Option<&str>) -> ProviderError {
        let to = location.map_or_else(
            || "elsewhere".to_owned(),
            |location| match Url::parse(location) {
                Ok(url) => origin(&url),
                Err(_) => location.split('?').next().unwrap_or_default().to_owned(),
            },
        );
        let message = format!(
            "{} redirects to {to} (status {status}), which is not followed: the key is for the server that was \
             configured. If it is right, set it as the base URL.",
            self.origin
        );
        ProviderError::new(ErrorKind::InvalidRequest, message)
    }

    /// What came with a good status is not an event stream.
    pub(super) fn not_a_stream(&self, beginning: &str) -> ProviderError {
        let message = format!(
            "{} answered with something that is not an event stream: {beginning}\nCheck the model's base URL and API.",
            self.origin
        );
        ProviderError::new(ErrorKind::Protocol, message)
    }
}

/// What was waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    FirstByte,
    Idle,
}

/// Without user, password, path and query: each may be a secret.
fn origin(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    match url.port() {
        Some(port) => format!("{}://{host}:{port}", url.scheme()),
        None => format!("{}://{host}", url.scheme()),
    }
}

/// The whole chain of causes, each said once.
fn causes(error: &dyn Error) -> String {
    let mut texts: Vec<String> = Vec::new();
    let mut next = Some(error);
    while let Some(error) = next {
        let text = error.to_string();
        if !texts.iter().any(|known| known.contains(&text)) {
            texts.push(text);
        }
        next = error.source();
    }
    texts.join(": ")
}

fn is_certificate_problem(causes: &str) -> bool {
    let causes = causes.to_ascii_lowercase();
    causes.contains("invalid peer certificate") || causes.contains("certificate") && causes.contains("tls")
}

/// What to do about a server that is not reached.
fn reach_hint(causes: &str) -> &'static str {
    let causes = causes.to_ascii_lowercase();
    if causes.contains("dns error") || causes.contains("lookup address") {
        "No server of that name was found: check the base URL of the model's provider, and the network."
    } else if causes.contains("refused") {
        "Nothing listens there: start the server, or correct the base URL of the model's provider."
    } else {
        "Check the network and the base URL of the model's provider."
    }
}

fn certificate_hint() -> String {
    " If a company proxy or a private certificate authority is in between, name the file of its root certificate in \
     SSL_CERT_FILE, or set NODE_USE_SYSTEM_CA=1 to trust those that the system trusts."
        .into()
}

/// A limit for people.
fn shown(limit: Duration) -> String {
    match limit.as_millis() {
        millis if millis % 1000 == 0 => format!("{} s", millis / 1000),
        millis => format!("{millis} ms"),
    }
}
