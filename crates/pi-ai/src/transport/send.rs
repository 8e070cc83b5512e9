//! From a transcript to an open response: encode, hooks, send, and send again.

use std::{borrow::Cow, pin::Pin, sync::Arc, time::Duration};

use bytes::Bytes;
use futures::{Stream, StreamExt};
use reqwest::{
    Method, Response, Url,
    header::{HeaderMap, HeaderName, HeaderValue},
};
use serde_json::Value;
use tokio::time::Instant;

use super::{
    Transport,
    failure::{Target, Wait},
    proxy::is_local,
};
use crate::{
    api::{Exchange, HttpRequest, Next, errors},
    error::{ErrorKind, ProviderError},
    model::Model,
    options::{Headers, ResponseHead, RetryNotice},
};

/// The usual limits on waiting, see [`crate::options::Timeouts`].
const CONNECT: Duration = Duration::from_secs(30);
const SILENCE: Duration = Duration::from_secs(300);
const LOCAL_SILENCE: Duration = Duration::from_secs(1800);

/// The most of a failed response's body that is read: some servers repeat the whole request.
const MAX_ERROR_BYTES: usize = 64 * 1024;

/// How long a failed response's body may fall silent: what has come is good enough.
const ERROR_BODY_SILENCE: Duration = Duration::from_secs(10);

/// A request on its way, attempt by attempt.
pub(super) struct Call {
    pub(super) transport: Transport,
    pub(super) exchange: Exchange,
}

/// A request as it was or will be sent, as often as needed.
#[derive(Clone)]
pub(super) struct Outgoing {
    pub(super) http: Arc<HttpRequest>,
    url: Url,
    headers: HeaderMap,
    pub(super) limits: Limits,
    pub(super) target: Target,
}

/// Limits on waiting, as they apply to this server.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    connect: Option<Duration>,
    pub(super) first_byte: Option<Duration>,
    pub(super) idle: Option<Duration>,
}

/// A response whose body is coming.
pub(super) struct Open {
    pub(super) call: Call,
    pub(super) sent: Outgoing,
    pub(super) body: Body,
    pub(super) sent_at: Instant,
}

pub(super) type Body = Pin<Box<dyn Stream<Item = reqwest::Result<Bytes>> + Send>>;

/// No response opened.
pub(super) struct Unopened {
    /// The request, if it came so far.
    pub(super) exchange: Option<Exchange>,
    pub(super) error: ProviderError,
}

/// Why sending failed, and whether to send again is worth a thought.
enum Failed {
    /// The server or the way to it failed.
    OnTheWay(ProviderError),
    /// Something on our side did.
    Here(ProviderError),
}

impl Call {
    /// Sends until a response opens or nothing is left to try. A failed earlier attempt comes with what was sent.
    pub(super) async fn open(mut self, earlier: Option<(Outgoing, ProviderError)>) -> Result<Open, Unopened> {
        match self.send_until_open(earlier).await {
            Ok((sent, response, sent_at)) => {
                Ok(Open { call: self, sent, body: Box::pin(response.bytes_stream()), sent_at })
            }
            Err(error) => Err(Unopened { exchange: Some(self.exchange), error }),
        }
    }

    async fn send_until_open(
        &mut self,
        mut earlier: Option<(Outgoing, ProviderError)>,
    ) -> Result<(Outgoing, Response, Instant), ProviderError> {
        loop {
            let outgoing = match earlier.take() {
                None => self.encode().await?,
                Some((sent, error)) => match self.next(&sent, error).await? {
                    Again::Same => sent,
                    Again::Encoded => self.encode().await?,
                },
            };
            let sent_at = Instant::now();
            match self.send(&outgoing, sent_at).await {
                Ok(response) => return Ok((outgoing, response, sent_at)),
                Err(Failed::OnTheWay(error)) => earlier = Some((outgoing, error)),
                Err(Failed::Here(error)) => return Err(error),
            }
        }
    }

    /// Decides what comes after a failure, and waits for it.
    async fn next(&mut self, sent: &Outgoing, error: ProviderError) -> Result<Again, ProviderError> {
        let chance = (self.transport.shared.chance)();
        match self.exchange.failed(&sent.http, &error, chance) {
            Next::EncodeAgain => Ok(Again::Encoded),
            Next::Fail(error) => Err(error),
            Next::SendAgainAfter(delay) => {
                let attempt = self.exchange.repetitions();
                tracing::debug!(attempt, ?delay, %error, "the request is repeated");
                if let Some(hook) = &self.exchange.options().hooks.on_retry {
                    hook(RetryNotice { attempt, delay, error }).await?;
                }
                tokio::time::sleep(delay).await;
                Ok(Again::Same)
            }
        }
    }

    /// Encodes the request and lets the caller's hooks at it.
    async fn encode(&self) -> Result<Outgoing, ProviderError> {
        let options = self.exchange.options();
        let mut http = self.exchange.encode()?;
        if let Some(hook) = &options.hooks.on_payload {
            let payload: Value = serde_json::from_slice(&http.body).map_err(|error| {
                ProviderError::new(ErrorKind::Other, format!("The body is not JSON, so no hook can see it: {error}"))
            })?;
            if let Some(replaced) = hook(payload).await? {
                http.body = serde_json::to_vec(&replaced).map_err(|error| {
                    ProviderError::new(ErrorKind::Other, format!("The body of a hook cannot be written: {error}"))
                })?;
            }
        }
        if let Some(hook) = &options.hooks.on_headers {
            http.headers = hook(http.headers).await?;
        }
        let http = self.exchange.prepare(http);
        let url = parse_url(&http.url, self.exchange.model())?;
        let near = is_local(&url);
        let timeouts = options.timeouts;
        let limits = Limits {
            connect: timeouts.connect.or_usual(Some(CONNECT)),
            first_byte: timeouts.first_byte.or_usual(if near { None } else { Some(SILENCE) }),
            idle: timeouts.idle.or_usual(Some(if near { LOCAL_SILENCE } else { SILENCE })),
        };
        let target = Target::new(&url, self.transport.shared.clients.proxy_for(&url));
        Ok(Outgoing { headers: header_map(&http.headers)?, http: Arc::new(http), url, limits, target })
    }

    async fn send(&self, outgoing: &Outgoing, sent_at: Instant) -> Result<Response, Failed> {
        let Outgoing { http, url, headers, limits, target } = outgoing;
        let client = self.transport.shared.clients.get(url, limits.connect).await.map_err(Failed::Here)?;
        let mut request = reqwest::Request::new(Method::POST, url.clone());
        request.headers_mut().clone_from(headers);
        let signed = self.exchange.sign(http, self.transport.shared.clock.now()).map_err(Failed::Here)?;
        request.headers_mut().extend(header_map(&signed).map_err(Failed::Here)?);
        *request.body_mut() = Some(Bytes::from_owner(SentBody(http.clone())).into());
        let sending = client.execute(request);
        let response = match limits.first_byte {
            None => sending.await,
            Some(limit) => tokio::time::timeout_at(sent_at + limit, sending)
                .await
                .map_err(|_| Failed::OnTheWay(target.silent(Wait::FirstByte, limit)))?,
        };
        let response = response.map_err(|error| Failed::OnTheWay(target.unreachable(error, limits.connect)))?;
        let status = response.status();
        let headers = headers_of(&response);
        if let Some(hook) = &self.exchange.options().hooks.on_response {
            let head = ResponseHead { status: status.as_u16(), headers: headers.clone() };
            hook(head).await.map_err(Failed::Here)?;
        }
        if status.is_success() {
            return Ok(response);
        }
        if status.is_redirection() {
            let location = response.headers().get("location").and_then(|location| location.to_str().ok());
            return Err(Failed::Here(target.redirected(status.as_u16(), location)));
        }
        let body = without_secrets(error_body(response).await, &outgoing.headers);
        let provider = &self.exchange.model().provider;
        let error = errors::from_response(provider, status.as_u16(), headers, &body);
        Err(Failed::OnTheWay(match status.as_u16() {
            404 => target.not_found(error, provider, &self.exchange.model().id),
            _ => error,
        }))
    }
}

/// What is sent next.
enum Again {
    Same,
    Encoded,
}

/// The body of a request, without a copy of it.
struct SentBody(Arc<HttpRequest>);

impl AsRef<[u8]> for SentBody {
    fn as_ref(&self) -> &[u8] {
        &self.0.body
    }
}

/// What a failed response says, as far as it comes.
async fn error_body(response: Response) -> Vec<u8> {
    let mut stream = response.bytes_stream();
    let mut body = Vec::new();
    while let Ok(Some(Ok(bytes))) = tokio::time::timeout(ERROR_BODY_SILENCE, stream.next()).await {
        let room = MAX_ERROR_BYTES - body.len();
        body.extend_from_slice(&bytes[..bytes.len().min(room)]);
        if body.len() == MAX_ERROR_BYTES {
            break;
        }
    }
    body
}

/// Some servers repeat the key that they refuse. What they say is shown, logged and stored.
fn without_secrets(body: Vec<u8>, sent: &HeaderMap) -> Vec<u8> {
    /// What is shorter is part of ordinary words.
    const SHORTEST: usize = 8;
    let mut text = String::from_utf8_lossy(&body);
    for (name, value) in sent {
        let holds_one = ["auth", "key", "token", "secret", "cookie"].iter().any(|part| name.as_str().contains(part));
        let Some(value) = value.to_str().ok().filter(|_| holds_one) else { continue };
        // Behind the scheme, `Bearer` for example.
        let secret = value.split_once(' ').map_or(value, |(_, secret)| secret);
        if secret.len() >= SHORTEST && text.contains(secret) {
            text = text.replace(secret, "[secret]").into();
        }
    }
    match text {
        Cow::Borrowed(_) => body,
        Cow::Owned(text) => text.into_bytes(),
    }
}

fn parse_url(url: &str, model: &Model) -> Result<Url, ProviderError> {
    let wrong = |why: String| {
        let Model { id, provider, .. } = model;
        let message = format!("The base URL of the model {id} of provider {provider} is not usable: {why}.");
        ProviderError::new(ErrorKind::InvalidRequest, message)
    };
    let url = Url::parse(url).map_err(|error| wrong(error.to_string()))?;
    match url.scheme() {
        "http" | "https" => Ok(url),
        scheme => Err(wrong(format!("it begins with `{scheme}:`, expected http: or https:"))),
    }
}

fn header_map(headers: &Headers) -> Result<HeaderMap, ProviderError> {
    /// Those that may be logged.
    const OPEN: [&str; 5] = ["accept", "content-type", "content-encoding", "user-agent", "anthropic-version"];
    let mut map = HeaderMap::with_capacity(headers.len());
    for (name, value) in headers {
        // The value is not repeated: it may be a key.
        let wrong = |what| {
            ProviderError::new(
                ErrorKind::InvalidRequest,
                format!("The {what} of the header `{name}` is not allowed in HTTP."),
            )
        };
        let key = HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong("name"))?;
        let mut value = HeaderValue::from_bytes(value.as_bytes()).map_err(|_| wrong("value"))?;
        value.set_sensitive(!OPEN.contains(&key.as_str()));
        map.append(key, value);
    }
    Ok(map)
}

fn headers_of(response: &Response) -> Headers {
    let shown = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    response.headers().iter().map(|(name, value)| (name.as_str().to_owned(), shown(value))).collect()
}
