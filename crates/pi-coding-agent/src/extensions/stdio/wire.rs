//! JSON-RPC 2.0, a message a line.

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::limits;

/// Cuts bytes into lines. Lines end at LF and nowhere else; one that has no end is refused.
#[derive(Debug)]
pub(crate) struct LineCutter {
    /// The beginning of the line whose end has not come yet.
    begun: Vec<u8>,
    limit: usize,
}

/// A line is longer than it may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it wrote a line of more than {limit} bytes")]
pub(crate) struct LineTooLong {
    limit: usize,
}

impl Default for LineCutter {
    fn default() -> Self {
        Self::with_limit(limits::MAX_LINE)
    }
}

impl LineCutter {
    /// A cutter of lines of so many bytes at most.
    pub(crate) fn with_limit(limit: usize) -> Self {
        Self { begun: Vec::new(), limit }
    }

    /// Takes what came, and hands on each line that is complete, without its LF. Each byte is looked at once.
    pub(crate) fn feed(&mut self, mut piece: &[u8], mut on_line: impl FnMut(&[u8])) -> Result<(), LineTooLong> {
        while let Some(end) = memchr::memchr(b'\n', piece) {
            let (line, rest) = (&piece[..end], &piece[end + 1..]);
            piece = rest;
            if self.begun.len() + line.len() > self.limit {
                return Err(LineTooLong { limit: self.limit });
            }
            if self.begun.is_empty() {
                on_line(line);
            } else {
                self.begun.extend_from_slice(line);
                on_line(&std::mem::take(&mut self.begun));
            }
        }
        if self.begun.len() + piece.len() > self.limit {
            return Err(LineTooLong { limit: self.limit });
        }
        self.begun.extend_from_slice(piece);
        Ok(())
    }
}

/// What a program says.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Incoming {
    /// It asks for something, and wants an answer.
    Request { id: Value, method: String, params: Value },
    /// It asks for something, and does not.
    Notification { method: String, params: Value },
    /// It answers.
    Response { id: Value, result: Result<Value, RpcError> },
}

/// The error of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RpcError {
    pub(crate) code: i64,
    pub(crate) message: String,
}

impl RpcError {
    pub(super) const METHOD_NOT_FOUND: i64 = -32601;
    pub(super) const INVALID_PARAMS: i64 = -32602;
    /// What was asked for failed.
    pub(super) const FAILED: i64 = -32000;
    pub(super) const TOO_MANY: i64 = -32001;

    pub(super) fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }
}

/// Why a line is no message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct NoMessage(String);

/// Reads a line. `None`: it is blank.
pub(crate) fn read(line: &[u8]) -> Result<Option<Incoming>, NoMessage> {
    if line.iter().all(u8::is_ascii_whitespace) {
        return Ok(None);
    }
    let no = |text: &str| NoMessage(format!("{text}: {}", excerpt(line)));
    let mut fields: Map<String, Value> = match serde_json::from_slice(line) {
        Ok(Value::Object(fields)) => fields,
        Ok(Value::Array(_)) => return Err(no("batches of messages are not understood")),
        Ok(_) => return Err(no("expected a JSON object")),
        Err(error) => return Err(no(&format!("it is not JSON ({error})"))),
    };
    if fields.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return Err(no("expected \"jsonrpc\":\"2.0\""));
    }
    let id = fields.shift_remove("id");
    let params = |fields: &mut Map<String, Value>| fields.shift_remove("params").unwrap_or(Value::Null);
    match (fields.shift_remove("method"), id) {
        (Some(Value::String(method)), None) => Ok(Some(Incoming::Notification { method, params: params(&mut fields) })),
        (Some(Value::String(method)), Some(id @ (Value::String(_) | Value::Number(_)))) => {
            Ok(Some(Incoming::Request { id, method, params: params(&mut fields) }))
        }
        (Some(Value::String(_)), Some(_)) => Err(no("the id of a request is a text or a number")),
        (Some(_), _) => Err(no("`method` is a text")),
        (None, Some(id)) => {
            let result = match (fields.shift_remove("result"), fields.shift_remove("error")) {
                (Some(result), None) => Ok(result),
                (None, Some(error)) => Err(RpcError {
                    code: error.get("code").and_then(Value::as_i64).unwrap_or(RpcError::FAILED),
                    message: error.get("message").and_then(Value::as_str).unwrap_or("no reason given").to_owned(),
                }),
                _ => return Err(no("an answer has either `result` or `error`")),
            };
            Ok(Some(Incoming::Response { id, result }))
        }
        (None, None) => Err(no("neither a request nor an answer")),
    }
}

/// The beginning of a line, for people.
fn excerpt(line: &[u8]) -> String {
    const SHOWN: usize = 120;
    let text = String::from_utf8_lossy(&line[..line.len().min(SHOWN)]);
    let more = if line.len() > SHOWN { "…" } else { "" };
    format!("{text}{more}")
}

/// A request as a line. The fields come in this order and without blanks, so that a shell can tell messages apart by
/// how they begin.
pub(super) fn request(id: u64, method: &str, params: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    #[derive(Serialize)]
    struct Request<'a, P> {
        jsonrpc: &'a str,
        id: u64,
        method: &'a str,
        params: &'a P,
    }
    line(&Request { jsonrpc: "2.0", id, method, params })
}

/// A notification as a line, its fields in this order.
pub(super) fn notification(method: &str, params: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    #[derive(Serialize)]
    struct Notification<'a, P> {
        jsonrpc: &'a str,
        method: &'a str,
        params: &'a P,
    }
    line(&Notification { jsonrpc: "2.0", method, params })
}

/// An answer as a line.
pub(super) fn response(id: &Value, result: Result<Value, RpcError>) -> serde_json::Result<Vec<u8>> {
    line(&match result {
        Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
        Err(RpcError { code, message }) => {
            json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
        }
    })
}

fn line(message: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    Ok(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(pieces: &[&str], limit: usize) -> Result<Vec<String>, LineTooLong> {
        let mut cutter = LineCutter::with_limit(limit);
        let mut lines = Vec::new();
        for piece in pieces {
            cutter.feed(piece.as_bytes(), |line| lines.push(String::from_utf8_lossy(line).into_owned()))?;
        }
        Ok(lines)
    }

    #[test]
    fn lines_end_at_lf_however_they_arrive() {
        assert_eq!(cut(&["a\nb", "c\n\nd"], 9).unwrap(), ["a", "bc", ""]);
        assert_eq!(cut(&["a\u{2028}b\u{85}\r\n"], 9).unwrap(), ["a\u{2028}b\u{85}\r"]);
    }

    #[test]
    fn a_line_without_an_end_is_refused_and_not_kept() {
        assert!(cut(&["abcd", "efgh", "i"], 8).is_err());
        assert!(cut(&["abcdefghi\n"], 8).is_err());
        assert_eq!(cut(&["abcd", "efgh", "\n"], 8).unwrap(), ["abcdefgh"]);
    }

    #[test]
    fn messages_are_told_apart_and_others_say_what_is_wrong() {
        let of = |text: &str| read(text.as_bytes());
        assert_eq!(of("  \r").unwrap(), None);
        assert!(matches!(
            of(r#"{"jsonrpc":"2.0","id":"a","method":"exec"}"#),
            Ok(Some(Incoming::Request { params: Value::Null, .. }))
        ));
        assert!(matches!(of(r#"{"jsonrpc":"2.0","method":"log"}"#), Ok(Some(Incoming::Notification { .. }))));
        let answer = of(r#"{"jsonrpc":"2.0","id":1,"result":null}"#).unwrap();
        assert_eq!(answer, Some(Incoming::Response { id: json!(1), result: Ok(Value::Null) }));
        for (text, expected) in [
            ("hello", "it is not JSON"),
            ("[]", "batches"),
            ("3", "a JSON object"),
            ("{}", "\"jsonrpc\":\"2.0\""),
            (r#"{"jsonrpc":"2.0","id":null,"method":"x"}"#, "a text or a number"),
            (r#"{"jsonrpc":"2.0","id":1}"#, "either `result` or `error`"),
            (r#"{"jsonrpc":"2.0","method":1}"#, "`method` is a text"),
            (r#"{"jsonrpc":"2.0"}"#, "neither"),
        ] {
            let problem = of(text).unwrap_err().to_string();
            assert!(problem.contains(expected), "{problem} does not have {expected}");
        }
    }

    #[test]
    fn a_request_begins_as_a_shell_expects_it() {
        let line = request(7, "event/tool_call", &json!({"type": "tool_call"})).unwrap();
        assert_eq!(
            String::from_utf8(line).unwrap(),
            "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"event/tool_call\",\"params\":{\"type\":\"tool_call\"}}\n"
        );
    }
}
