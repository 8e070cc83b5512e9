//! What providers say when a request fails: the only thing that many of them tell a failure's class by.

/// The input is larger than the model's context, or the request larger than the provider takes.
pub(crate) fn says_overflow(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    !any(NOT_OVERFLOW, &text) && (starts_with_413(&text) || any(OVERFLOW, &text))
}

/// A 400 or 413 without a body, which is how Cerebras says overflow.
pub(crate) fn says_bodiless_refusal(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    let rest = text.strip_prefix("400").or_else(|| text.strip_prefix("413"));
    rest.and_then(|rest| rest.split_once("(no body)")).is_some_and(|(between, _)| !between.contains([':', '{', '<']))
}

/// A quota, a budget or a plan is used up: waiting for seconds does not help.
pub(crate) fn says_quota(text: &str) -> bool {
    any(QUOTA, &text.to_ascii_lowercase())
}

/// A picture in the request is refused: it is too large, damaged, or of a kind that the model does not take.
pub(crate) fn says_image_refused(text: &str) -> bool {
    any(IMAGE_REFUSED, &text.to_ascii_lowercase())
}

/// The same request may succeed later.
pub(crate) fn says_transient(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    any(TRANSIENT, &text)
        || words(&text, |c| c.is_ascii_alphanumeric()).any(|word| TRANSIENT_STATUSES.contains(&word))
        || words(&text, |c| c.is_ascii_alphanumeric() || c == '_').any(|word| SOCKET_ERRORS.contains(&word))
}

// In the tables: `#` is a number (with commas), `*` anything, `?` at most one character, `[…]` an optional part.

const IMAGE_REFUSED: &[&str] = &[
    "could not process image",
    "unable to process[ input] image",
    "failed to process image",
    "failed to decode image",
    "invalid image",
    "invalid base64 image",
    "unsupported image",
    "support image input",
    "support image content",
    "support images",
    "image exceeds",
    "image*exceeds # mb",
    "image*exceeds the",
    "image is too large",
    "image*too large",
    "image dimensions",
    "image data*not valid",
    "image*not a valid",
    "image is not supported",
    "images are not supported",
    "image format*not supported",
    "image_url is only supported",
    "unknown variant `image_url`",
    "not a multimodal model",
    "not a vision model",
];

const OVERFLOW: &[&str] = &[
    "prompt [is ]too long",
    "prompt exceeds max length",
    "request_too_large",
    "input is too long for requested model",
    "exceeds the context window",
    "exceeds [the ][model's ][models ]maximum context length of # token",
    "exceeds [the ][model's ][models ]maximum context length[ ](#)",
    "context window exceeded",
    "input token count*exceeds the maximum",
    "maximum prompt length is #",
    "reduce the length of the messages",
    "maximum context length is # tokens",
    "exceeds [the ]maximum allowed input length of # token",
    "input (# tokens) is longer than the model's context length (# tokens)",
    "input (# tokens) is longer than the models context length (# tokens)",
    "exceeds the limit of #",
    "exceeds the available context size",
    "greater than the context length",
    "context window exceeds limit",
    "exceeded model token limit",
    "too large for model with # maximum context length",
    "prompt has # token[s], but the configured context size is # token",
    "model_context_window_exceeded",
    "range of input length should be",
    "context?length?exceeded",
    "too many tokens",
    "token limit exceeded",
];

/// Throttling speaks of tokens too.
const NOT_OVERFLOW: &[&str] = &["^throttling error:", "^service unavailable:", "rate limit", "too many requests"];

const QUOTA: &[&str] = &[
    "gousagelimiterror",
    "freeusagelimiterror",
    "monthly usage limit reached",
    "available balance",
    "insufficient_quota",
    "out of budget",
    "quota exceeded",
    "billing",
    "subscription_sharing_usage_limit_exceeded",
    "subscription_sharing_workplace_individual_usage_limit_exceeded",
    // Z.ai's code for a plan that is used up: in its own JSON, and as our messages write it.
    "\"code\":[ ]1308",
    "\"code\":[ ]\"1308",
    "(code 1308)",
];

/// Statuses count as words of their own, not as parts of an id or a byte count.
const TRANSIENT_STATUSES: &[&str] = &["429", "500", "502", "503", "504", "520", "524"];

const SOCKET_ERRORS: &[&str] = &["econnreset", "econnaborted", "econnrefused", "etimedout", "epipe"];

const TRANSIENT: &[&str] = &[
    "overloaded",
    "server_busy",
    "servers are currently busy",
    "currently experiencing high demand",
    "model is at capacity",
    "rate?limit",
    "too many requests",
    "service?[is]?[temporarily]?unavailable",
    "server?error",
    "internal?error",
    "provider?returned?[an ]error",
    "exceeded request buffer limit while retrying upstream",
    "unable to forward upstream",
    "upstream?request?failed",
    "upstream_stream_read_error",
    "stream was interrupted",
    "http[/]2 stream failed",
    "network?error",
    "connection?error",
    "connection?refused",
    "connection?lost",
    "connection?closed",
    "other side closed",
    "fetch failed",
    "request to * failed, reason:",
    "getaddrinfo",
    "enotfound",
    "eai_again",
    "upstream?connect",
    "reset before headers",
    "socket hang up",
    "socket connection was closed",
    "time out",
    "timed out",
    "timeout",
    "terminated",
    "websocket?closed",
    "websocket?error",
    "websocket?connection?limit?reached",
    "ended without",
    "stream ended before message_stop",
    "stream ended before a terminal response event",
    "http2 request did not get a response",
    "stream disconnected before completion",
    "cut short after the reply had begun",
    "pending stream has been canceled",
    "retry delay",
    "you can retry your request",
    "try your request again",
    "please retry your request",
    "resourceexhausted",
    "subscription_sharing_usage_unavailable",
    "subscription_sharing_user_unavailable",
];

/// `413`, or `… API error (413):` as other programs write it into sessions.
fn starts_with_413(text: &str) -> bool {
    match text.strip_prefix("413") {
        Some(rest) => rest.is_empty() || rest.starts_with([' ', ':', '\t', '\n']),
        None => text.split_once(" api error (413):").is_some_and(|(name, _)| {
            !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | ' '))
        }),
    }
}

fn words(text: &str, is_part: fn(char) -> bool) -> impl Iterator<Item = &str> {
    text.split(move |c| !is_part(c))
}

fn any(table: &[&str], text: &str) -> bool {
    table.iter().any(|phrase| match phrase.strip_prefix('^') {
        Some(phrase) => matches(phrase.as_bytes(), text.as_bytes()),
        None => (0..=text.len()).any(|at| matches(phrase.as_bytes(), &text.as_bytes()[at..])),
    })
}

/// Whether the text begins with the phrase.
fn matches(phrase: &[u8], text: &[u8]) -> bool {
    let Some((first, rest)) = phrase.split_first() else { return true };
    match first {
        b'#' => {
            let digits = text.iter().take_while(|byte| byte.is_ascii_digit() || **byte == b',').count();
            (1..=digits).rev().any(|digits| matches(rest, &text[digits..]))
        }
        b'*' => (0..=text.len()).any(|at| matches(rest, &text[at..])),
        b'?' => matches(rest, text) || text.split_first().is_some_and(|(_, text)| matches(rest, text)),
        b'[' => {
            let end = rest.iter().position(|byte| *byte == b']').unwrap_or(rest.len());
            let (part, rest) = (&rest[..end], rest.get(end + 1..).unwrap_or_default());
            text.strip_prefix(part).is_some_and(|text| matches(rest, text)) || matches(rest, text)
        }
        literal => text.split_first().is_some_and(|(byte, text)| byte == literal && matches(rest, text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phrase_matches_anywhere_in_any_case() {
        assert!(any(&["number #, then [an ]end"], "the number 12,000, then end."));
        assert!(any(&["a?b*c"], "xxa-b and c"));
        assert!(!any(&["number #"], "number one"));
        assert!(!any(&["^start"], "no start"));
        assert!(says_overflow(
            "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575)"
        ));
    }

    /// An overflow that is not recognised is sent again and again instead of being made smaller.
    #[test]
    fn every_servers_way_to_say_overflow_is_known() {
        for text in [
            "prompt is too long: 213000 tokens > 200000 maximum",
            "This model's maximum context length is 262144 tokens. However, you requested 0 output tokens and your prompt \
             contains at least 262145 input tokens",
            "Your input exceeds the context window of this model",
            "Request size 9000 exceeds the available context size (8192 tokens), try increasing it",
            "context_length_exceeded",
            "Input is too long for requested model.",
        ] {
            assert!(says_overflow(text), "{text}");
        }
        assert!(!says_overflow("Rate limit reached: 200000 input tokens per minute"));
    }

    #[test]
    fn wordings_of_a_table_stand_apart_from_their_neighbours() {
        assert!(says_overflow("openai API error (413): too big"));
        assert!(!says_overflow("4130 things"));
        assert!(!says_overflow("max_tokens: 64000 > 32000, which is the maximum allowed number of output tokens"));
        assert!(says_transient("the service is temporarily unavailable"));
        assert!(says_transient("upstream provider returned an error"));
        assert!(says_quota("{\"code\": \"1308\"}"));
        assert!(says_bodiless_refusal("400 Bad Request from cerebras (no body)"));
        assert!(!says_bodiless_refusal("400: {\"message\": \"(no body)\"}"));
    }
}
