//! Why a request failed.

use std::{fmt, sync::Arc, time::Duration};

use serde::{Deserialize, Serialize};

/// The class of a failure: what a caller can do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum ErrorKind {
    /// No key, or one that the provider refuses.
    Auth,
    /// A quota is used up, or billing stands in the way. Waiting does not help.
    Quota,
    /// Too many requests. Waiting helps.
    RateLimit,
    /// The provider is overloaded or has an internal fault. Waiting helps.
    Overloaded,
    /// The request is larger than the model's context.
    ContextOverflow,
    /// The request is wrong: the provider refuses it, or it cannot be expressed on this wire.
    InvalidRequest,
    /// The connection could not be made or broke.
    Network,
    /// Nothing came in time.
    Timeout,
    /// What came is not what the wire's protocol says.
    Protocol,
    /// The answer was withheld (refusal, content filter).
    Refused,
    /// The caller aborted the request.
    Aborted,
    /// Anything else.
    Other,
}

impl ErrorKind {
    /// Whether the same request may succeed when it is sent again.
    pub fn is_transient(self) -> bool {
        matches!(self, Self::RateLimit | Self::Overloaded | Self::Network | Self::Timeout | Self::Protocol)
    }
}

/// A failed request: its class, a message for people, and what the provider said.
///
/// It is cheap to clone, because it travels along with a stream's last event.
#[derive(Clone)]
pub struct ProviderError(Arc<Inner>);

#[derive(Clone)]
struct Inner {
    kind: ErrorKind,
    message: String,
    status: Option<u16>,
    headers: Vec<(String, String)>,
    body: Option<String>,
    retry_after: Option<Duration>,
    source: Option<Arc<dyn std::error::Error + Send + Sync>>,
}

impl ProviderError {
    /// A failure with a message for people: what, where, what to do.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Arc::new(Inner {
            kind,
            message: message.into(),
            status: None,
            headers: Vec::new(),
            body: None,
            retry_after: None,
            source: None,
        }))
    }

    /// The caller aborted.
    pub fn aborted() -> Self {
        Self::new(ErrorKind::Aborted, "The request was aborted.")
    }

    /// Adds the HTTP response that carried the failure. Header names are lower case.
    #[must_use]
    pub fn with_response(mut self, status: u16, headers: Vec<(String, String)>, body: impl Into<String>) -> Self {
        let inner = Arc::make_mut(&mut self.0);
        inner.status = Some(status);
        inner.headers = headers;
        inner.body = Some(body.into());
        self
    }

    /// Adds what the provider sent in the middle of an answer.
    #[must_use]
    pub fn with_body(mut self, body: impl Into<String>) -> Self {
        Arc::make_mut(&mut self.0).body = Some(body.into());
        self
    }

    /// The same failure with another message.
    #[must_use]
    pub fn with_message(mut self, message: impl Into<String>) -> Self {
        Arc::make_mut(&mut self.0).message = message.into();
        self
    }

    /// Adds how long the provider asks to wait.
    #[must_use]
    pub fn with_retry_after(mut self, delay: Duration) -> Self {
        Arc::make_mut(&mut self.0).retry_after = Some(delay);
        self
    }

    /// Adds the error below this one.
    #[must_use]
    pub fn with_source(mut self, source: impl std::error::Error + Send + Sync + 'static) -> Self {
        Arc::make_mut(&mut self.0).source = Some(Arc::new(source));
        self
    }

    /// The class.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The message for people.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The HTTP status, when there was a response.
    pub fn status(&self) -> Option<u16> {
        self.0.status
    }

    /// A response header; the name is lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.0.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// All response headers.
    pub fn headers(&self) -> &[(String, String)] {
        &self.0.headers
    }

    /// What the provider sent: the response's body, or the event that carried the failure.
    pub fn body(&self) -> Option<&str> {
        self.0.body.as_deref()
    }

    /// How long the provider asks to wait.
    pub fn retry_after(&self) -> Option<Duration> {
        self.0.retry_after
    }
}

impl fmt::Debug for ProviderError {
    /// Without headers and body: they may hold what must not be logged.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProviderError")
            .field("kind", &self.0.kind)
            .field("message", &self.0.message)
            .field("status", &self.0.status)
            .field("retry_after", &self.0.retry_after)
            .finish_non_exhaustive()
    }
}

impl fmt::Display for ProviderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl std::error::Error for ProviderError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_deref().map(|source| source as &(dyn std::error::Error + 'static))
    }
}
