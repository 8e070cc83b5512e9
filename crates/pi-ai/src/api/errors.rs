//! What a provider says went wrong → [`ProviderError`]: a class, a message for people, and everything that was said.
//!
//! Providers agree on little: an error is an object, a string, a list or a page of HTML; its class is in the status, in
//! a type, in a code, or only in the words. All of them are read here, for every wire.

use std::{borrow::Cow, time::Duration};

use serde_json::Value;

use super::phrases;
use crate::{
    error::{ErrorKind, ProviderError},
    id::ProviderId,
    json::from_slice_lossy,
    options::Headers,
};

/// Longer messages are cut: some servers echo the whole request.
const MAX_MESSAGE_CHARS: usize = 4000;

/// Text that is no JSON is most often a page; its beginning tells enough.
const MAX_PAGE_CHARS: usize = 500;

/// The error that a response with a failing status stands for. Header names are lower case.
///
/// ```
/// use pi_ai::{ErrorKind, api::errors::from_response};
/// let body = br#"{"type":"error","error":{"type":"rate_limit_error","message":"slow down"}}"#;
/// let error = from_response(&"anthropic".into(), 429, vec![("retry-after".into(), "2".into())], body);
/// assert_eq!(error.kind(), ErrorKind::RateLimit);
/// assert_eq!(error.message(), "429 Too Many Requests from anthropic: rate_limit_error: slow down");
/// assert_eq!(error.retry_after(), Some(std::time::Duration::from_secs(2)));
/// ```
pub fn from_response(provider: &ProviderId, status: u16, headers: Headers, body: &[u8]) -> ProviderError {
    let text = String::from_utf8_lossy(body);
    let said = Said::read(&text, Some(status));
    let head = match reason(status) {
        "" => format!("{status} from {provider}"),
        reason => format!("{status} {reason} from {provider}"),
    };
    let message = match said.text() {
        text if text.is_empty() => format!("{head} (no body)"),
        text => format!("{head}: {text}"),
    };
    let kind = classify(provider, Some(status), &said, &message);
    let message = match kind {
        ErrorKind::Auth => format!("{message}\nCheck the key or login of {provider}."),
        _ => message,
    };
    let delay = delay_of(&headers).or(said.retry_after);
    with_delay(ProviderError::new(kind, message).with_response(status, headers, text), delay)
}

/// The error that an event in the middle of an answer stands for: an error object, or anything around one.
pub fn from_event(provider: &ProviderId, data: &str) -> ProviderError {
    let said = Said::read(data, None);
    let message = match said.text() {
        text if text.is_empty() => format!("{provider} ended the answer with an error and did not say which."),
        text => format!("{provider} ended the answer with an error: {text}"),
    };
    let kind = classify(provider, said.status, &said, &message);
    with_delay(ProviderError::new(kind, message).with_body(data), said.retry_after)
}

/// The class of a failure of which only the words are known.
pub(crate) fn kind_of(provider: &ProviderId, message: &str) -> ErrorKind {
    classify(provider, None, &Said::default(), message)
}

fn with_delay(error: ProviderError, delay: Option<Duration>) -> ProviderError {
    match delay {
        Some(delay) => error.with_retry_after(delay),
        None => error,
    }
}

/// What was found in an error's body.
#[derive(Debug, Default)]
struct Said {
    /// Types, codes and statuses, as the provider names them.
    labels: Vec<String>,
    message: String,
    /// What a gateway passes on from the provider behind it.
    behind: Option<String>,
    /// An HTTP status that stands in the body.
    status: Option<u16>,
    retry_after: Option<Duration>,
}

impl Said {
    fn read(text: &str, status: Option<u16>) -> Self {
        let mut said = Self::default();
        match from_slice_lossy::<Value>(text.as_bytes()) {
            Ok(value) => {
                said.take(&value, status);
                if said.text().is_empty()
                    && !matches!(&value, Value::Null)
                    && value.as_object().is_none_or(|o| !o.is_empty())
                {
                    said.message = cut(text.trim(), MAX_PAGE_CHARS).into_owned();
                }
            }
            Err(_) => said.message = page_text(text),
        }
        said
    }

    fn take(&mut self, value: &Value, status: Option<u16>) {
        let fields = match value {
            Value::String(message) => return self.set_message(message),
            Value::Array(items) => return items.iter().take(1).for_each(|item| self.take(item, status)),
            Value::Object(fields) => fields,
            _ => return,
        };
        let inner = match (fields.get("error"), fields.get("response")) {
            (Some(error @ (Value::Object(_) | Value::String(_) | Value::Array(_))), _) => Some(error),
            // A failed response event carries the whole response, with the error in it.
            (_, Some(response @ Value::Object(_))) => Some(response),
            _ => None,
        };
        if let Some(inner) = inner {
            self.take(inner, status);
        }
        for name in ["type", "status", "code", "__type"] {
            match fields.get(name) {
                Some(Value::String(label)) if label != "error" || name != "type" => self.add_label(label),
                Some(Value::Number(code)) => self.add_code(code, status),
                _ => {}
            }
        }
        for name in ["message", "Message", "detail", "msg", "error_description"] {
            match fields.get(name) {
                Some(Value::String(message)) => self.set_message(message),
                Some(nested @ (Value::Array(_) | Value::Object(_))) => self.take(nested, status),
                _ => {}
            }
        }
        if let Some(raw) = fields.get("metadata").and_then(|metadata| metadata.get("raw")) {
            self.behind = Some(raw.as_str().map_or_else(|| raw.to_string(), str::to_owned));
        }
        for detail in fields.get("details").and_then(Value::as_array).into_iter().flatten() {
            let delay = detail.get("retryDelay").and_then(Value::as_str);
            self.retry_after = self.retry_after.or_else(|| seconds(delay?.strip_suffix('s')?));
        }
    }

    fn set_message(&mut self, message: &str) {
        if self.message.is_empty() {
            message.trim().clone_into(&mut self.message);
        }
    }

    fn add_label(&mut self, label: &str) {
        let label = label.trim();
        if !label.is_empty() && !self.labels.iter().any(|known| known == label) {
            self.labels.push(label.to_owned());
        }
    }

    fn add_code(&mut self, code: &serde_json::Number, status: Option<u16>) {
        let http = code.as_u64().and_then(|code| u16::try_from(code).ok()).filter(|code| (400..600).contains(code));
        self.status = self.status.or(http);
        if http.is_none() || http != status {
            self.add_label(&format!("code {code}"));
        }
    }

    /// `type: message (code)`.
    fn text(&self) -> String {
        let mut labels = self.labels.iter().filter(|label| !self.message.contains(label.as_str()));
        let mut text = String::new();
        if let Some(first) = labels.next() {
            text.push_str(first);
            if !self.message.is_empty() {
                text.push_str(": ");
            }
        }
        text.push_str(&self.message);
        for label in labels {
            text.push_str(&format!(" ({label})"));
        }
        if let Some(behind) = &self.behind
            && !text.contains(behind.as_str())
        {
            text.push_str(&format!("\n{}", cut(behind, MAX_PAGE_CHARS)));
        }
        cut(&text, MAX_MESSAGE_CHARS).into_owned()
    }
}

fn classify(provider: &ProviderId, status: Option<u16>, said: &Said, message: &str) -> ErrorKind {
    if phrases::says_quota(message) {
        return ErrorKind::Quota;
    }
    if phrases::says_overflow(message) || (*provider == "cerebras" && phrases::says_bodiless_refusal(message)) {
        return ErrorKind::ContextOverflow;
    }
    let labels = said.labels.join(" ").to_ascii_lowercase();
    let is = |names: &[&str]| names.iter().any(|name| labels.contains(name));
    let by_label = if is(&["auth", "permission", "forbidden", "api_key", "accessdenied", "unrecognizedclient"]) {
        Some(ErrorKind::Auth)
    } else if is(&["rate_limit", "too_many_requests", "resource_exhausted", "throttl"]) {
        Some(ErrorKind::RateLimit)
    } else if is(&["overloaded", "server_error", "internal", "unavailable", "api_error", "modelstreamerror"]) {
        Some(ErrorKind::Overloaded)
    } else if is(&["timeout", "deadline"]) {
        Some(ErrorKind::Timeout)
    } else if is(&["content_filter", "content_policy", "refusal", "safety"]) {
        Some(ErrorKind::Refused)
    } else if is(&["invalid", "not_found", "bad_request", "validation", "unsupported"]) {
        Some(ErrorKind::InvalidRequest)
    } else {
        None
    };
    match (status, by_label) {
        (Some(401 | 403), _) => ErrorKind::Auth,
        (Some(402), _) => ErrorKind::Quota,
        (Some(408), _) => ErrorKind::Timeout,
        (Some(429), _) => ErrorKind::RateLimit,
        (Some(500..), Some(ErrorKind::RateLimit)) => ErrorKind::RateLimit,
        (Some(500..), _) => ErrorKind::Overloaded,
        (_, Some(kind)) => kind,
        (Some(400..), None) => ErrorKind::InvalidRequest,
        (_, None) if phrases::says_transient(message) => ErrorKind::Overloaded,
        (_, None) => ErrorKind::Other,
    }
}

/// How long the provider asks to wait: `retry-after-ms`, or `retry-after` as seconds or as a date, which counts from
/// the response's own date.
fn delay_of(headers: &Headers) -> Option<Duration> {
    let header = |name: &str| headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.trim());
    let millis = header("retry-after-ms").and_then(seconds).map(|millis| millis / 1000);
    millis.or_else(|| {
        let after = header("retry-after")?;
        seconds(after).or_else(|| {
            let (at, now) = (unix_seconds(after)?, unix_seconds(header("date")?)?);
            Some(Duration::from_secs(at.saturating_sub(now)))
        })
    })
}

fn seconds(text: &str) -> Option<Duration> {
    Duration::try_from_secs_f64(text.parse::<f64>().ok()?.max(0.0)).ok()
}

/// An HTTP date (`Wed, 21 Oct 2015 07:28:00 GMT`) as seconds since 1970.
fn unix_seconds(date: &str) -> Option<u64> {
    let (_, date) = date.split_once(", ")?;
    let mut parts = date.split([' ', '-']);
    let day: u64 = parts.next()?.parse().ok()?;
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let month = parts.next()?;
    let month = MONTHS.iter().position(|name| *name == month)? as u64 + 1;
    let year: u64 = parts.next()?.parse().ok().filter(|year| (1970..10_000).contains(year))?;
    let mut clock = parts.next()?.split(':').map(|part| part.parse::<u64>().ok().filter(|part| *part < 62));
    let (hours, minutes, seconds) = (clock.next()??, clock.next()??, clock.next()??);
    // Days since 0000-03-01, so that a leap day ends its year.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day.checked_sub(1)?;
    Some((days.checked_sub(719_468)? * 24 + hours) * 3600 + minutes * 60 + seconds)
}

/// The words of a page: without tags, scripts and styles, white space collapsed.
fn page_text(page: &str) -> String {
    if !page.trim_start().starts_with('<') {
        return cut(page.trim(), MAX_PAGE_CHARS).into_owned();
    }
    let mut words = String::new();
    let mut skipped_element: Option<&str> = None;
    for piece in page.split('<').skip(1) {
        let (tag, text) = piece.split_once('>').unwrap_or((piece, ""));
        let name = tag.split(|c: char| c.is_whitespace()).next().unwrap_or_default();
        match skipped_element {
            Some(open) if name.strip_prefix('/') == Some(open) => skipped_element = None,
            Some(_) => continue,
            None if matches!(name, "script" | "style") => {
                skipped_element = Some(name);
                continue;
            }
            None => {}
        }
        for word in text.split_whitespace() {
            if !words.is_empty() {
                words.push(' ');
            }
            words.push_str(word);
        }
        if words.len() > MAX_PAGE_CHARS * 4 {
            break;
        }
    }
    cut(&words, MAX_PAGE_CHARS).into_owned()
}

fn cut(text: &str, chars: usize) -> Cow<'_, str> {
    match text.char_indices().nth(chars) {
        Some((at, _)) => Cow::Owned(format!("{}… ({} bytes in all)", &text[..at], text.len())),
        None => Cow::Borrowed(text),
    }
}

fn reason(status: u16) -> &'static str {
    match status {
        400 => "Bad Request",
        401 => "Unauthorized",
        402 => "Payment Required",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        409 => "Conflict",
        413 => "Payload Too Large",
        415 => "Unsupported Media Type",
        422 => "Unprocessable Content",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        529 => "Overloaded",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(status: u16, body: &str) -> ProviderError {
        from_response(&"acme".into(), status, Headers::new(), body.as_bytes())
    }

    #[test]
    fn every_shape_of_an_error_body_gives_its_message() {
        for (body, message) in [
            (r#"{"type":"error","error":{"type":"t","message":"m"}}"#, "t: m"),
            (r#"{"error":{"message":"m","type":"t","code":"c"}}"#, "t: m (c)"),
            (r#"{"error":{"code":400,"message":"m","status":"INVALID_ARGUMENT"}}"#, "INVALID_ARGUMENT: m"),
            (r#"[{"error":{"code":400,"message":"m","status":"S"}}]"#, "S: m"),
            (r#"{"error":"m"}"#, "m"),
            (r#"{"object":"error","message":"m","type":"t","code":1308}"#, "t: m (code 1308)"),
            (r#"{"detail":[{"loc":["body"],"msg":"m","type":"missing"}]}"#, "missing: m"),
            (r#"{"message":"m"}"#, "m"),
            (r#"{"Message":"m","__type":"ValidationException"}"#, "ValidationException: m"),
            (r#"{"error":{"message":"m","code":"m"}}"#, "m"),
            (r#"{"error":{"message":"m","metadata":{"raw":"behind"}}}"#, "m\nbehind"),
            (r#"{"unknown":[1]}"#, r#"{"unknown":[1]}"#),
            ("just text\n", "just text"),
            ("<html><style>x{}</style><h1>Bad\n gateway</h1><p>later</html>", "Bad gateway later"),
        ] {
            assert_eq!(failed(400, body).message(), format!("400 Bad Request from acme: {message}"), "{body}");
        }
        for body in ["", "  ", "{}", "null"] {
            assert_eq!(failed(500, body).message(), "500 Internal Server Error from acme (no body)");
        }
    }

    #[test]
    fn classes_come_from_status_labels_and_words() {
        for (status, body, kind) in [
            (400, r#"{"error":{"message":"bad"}}"#, ErrorKind::InvalidRequest),
            (400, "prompt is too long: 9 tokens > 8 maximum", ErrorKind::ContextOverflow),
            (413, "", ErrorKind::ContextOverflow),
            (401, "", ErrorKind::Auth),
            (403, "", ErrorKind::Auth),
            (402, "", ErrorKind::Quota),
            (408, "", ErrorKind::Timeout),
            (429, "", ErrorKind::RateLimit),
            (429, r#"{"error":{"code":"insufficient_quota","message":"m"}}"#, ErrorKind::Quota),
            (500, "", ErrorKind::Overloaded),
            (529, r#"{"error":{"type":"overloaded_error","message":"m"}}"#, ErrorKind::Overloaded),
            (404, "", ErrorKind::InvalidRequest),
        ] {
            assert_eq!(failed(status, body).kind(), kind, "{status} {body}");
        }
        for (data, kind) in [
            (r#"{"error":{"type":"overloaded_error","message":"m"}}"#, ErrorKind::Overloaded),
            (r#"{"error":{"code":500,"message":"m"}}"#, ErrorKind::Overloaded),
            (r#"{"error":{"code":429,"message":"m"}}"#, ErrorKind::RateLimit),
            (r#"{"error":{"code":"rate_limit_exceeded","message":"m"}}"#, ErrorKind::RateLimit),
            (r#"{"error":{"type":"invalid_request_error","message":"m"}}"#, ErrorKind::InvalidRequest),
            (r#"{"error":"upstream connect failed"}"#, ErrorKind::Overloaded),
            (r#"{"error":"who knows"}"#, ErrorKind::Other),
        ] {
            assert_eq!(from_event(&"acme".into(), data).kind(), kind, "{data}");
        }
        let cerebras = from_response(&"cerebras".into(), 400, Headers::new(), b"");
        assert_eq!(cerebras.kind(), ErrorKind::ContextOverflow);
    }

    #[test]
    fn an_error_keeps_what_the_provider_sent() {
        let error = from_response(&"acme".into(), 503, vec![("x-id".into(), "7".into())], b"down");
        assert_eq!((error.status(), error.header("x-id"), error.body()), (Some(503), Some("7"), Some("down")));
    }

    #[test]
    fn the_wait_that_a_provider_asks_for_is_read() {
        let delay = |headers: &[(&str, &str)]| {
            delay_of(&headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
        };
        assert_eq!(delay(&[("retry-after", "2"), ("retry-after-ms", "1500")]), Some(Duration::from_millis(1500)));
        assert_eq!(delay(&[("retry-after", "0.5")]), Some(Duration::from_millis(500)));
        assert_eq!(delay(&[("retry-after", "-3")]), Some(Duration::ZERO));
        assert_eq!(delay(&[("retry-after", "soon")]), None);
        let date = ("date", "Fri, 29 Feb 2024 23:59:30 GMT");
        assert_eq!(delay(&[("retry-after", "Fri, 01 Mar 2024 00:00:00 GMT"), date]), Some(Duration::from_secs(30)));
        assert_eq!(delay(&[("retry-after", "Thu, 01 Jan 1970 00:00:00 GMT"), date]), Some(Duration::ZERO));
        let body = r#"{"error":{"code":429,"details":[{"retryDelay":"7.5s"}]}}"#;
        assert_eq!(failed(429, body).retry_after(), Some(Duration::from_millis(7500)));
    }

    #[test]
    fn dates_are_counted_from_1970() {
        assert_eq!(unix_seconds("Thu, 01 Jan 1970 00:00:01 GMT"), Some(1));
        assert_eq!(unix_seconds("Tue, 14 Nov 2023 22:13:20 GMT"), Some(1_700_000_000));
        assert_eq!(unix_seconds("Tue, 00 Nov 2023 22:13:20 GMT"), None);
    }
}
