//! The arguments of a tool call, read while they stream in.

use std::mem;

use serde_json::{Map, Value};
use thiserror::Error;

use super::repair::from_str_repaired;
use super::streaming::{MAX_DEPTH, StreamingJson};

/// Reads the arguments of one tool call in pieces, and keeps an arguments object up to date with them.
///
/// The object stays with the caller, usually in a message that others read; each piece costs its own length. See
/// [`StreamingJson`] for how unfinished text shows. Arguments are an object: while the text is something else, or has
/// not begun, the object is as the caller made it.
///
/// ```
/// use pi_ai::json::ArgumentsBuilder;
/// use serde_json::{Map, json};
///
/// let mut arguments = Map::new();
/// let mut builder = ArgumentsBuilder::default();
/// for piece in [r#"{"path": "a.t"#, r#"xt", "limit""#, ": 20}"] {
///     builder.push(&mut arguments, piece);
/// }
/// assert_eq!(json!(arguments), json!({"path": "a.txt", "limit": 20}));
/// assert_eq!(builder.finish()?, arguments);
/// # Ok::<(), pi_ai::json::MalformedArguments>(())
/// ```
#[derive(Debug, Default)]
pub struct ArgumentsBuilder {
    text: String,
    json: StreamingJson,
}

impl ArgumentsBuilder {
    /// Reads the next piece into `arguments`, which must be the same object for every piece of a call.
    pub fn push(&mut self, arguments: &mut Map<String, Value>, piece: &str) {
        self.text.push_str(piece);
        if let Some(Value::Object(root)) = self.json.root_mut() {
            *root = mem::take(arguments);
        }
        self.json.push(piece);
        if let Some(Value::Object(root)) = self.json.root_mut() {
            *arguments = mem::take(root);
        }
    }

    /// Takes the complete text, which some providers send again after the pieces.
    ///
    /// When it only goes on from what has come so far, the rest is read as one more piece. Else the text so far is
    /// forgotten and `arguments` is made from this one.
    pub fn replace<'text>(&mut self, arguments: &mut Map<String, Value>, text: &'text str) -> Replaced<'text> {
        if let Some(rest) = text.strip_prefix(self.text.as_str()) {
            self.push(arguments, rest);
            return Replaced::Extended(rest);
        }
        *self = Self::default();
        arguments.clear();
        self.push(arguments, text);
        Replaced::Restarted
    }

    /// The text that has come so far.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The arguments that the finished text stands for; empty text stands for none.
    ///
    /// # Errors
    ///
    /// When the text is not a JSON object, however close: a call whose arguments had to be guessed must not run.
    pub fn finish(self) -> Result<Map<String, Value>, MalformedArguments> {
        let malformed = |reason| MalformedArguments::new(reason, &self.text);
        if self.json.too_deep() {
            return Err(malformed(format!("nested deeper than {MAX_DEPTH} levels")));
        }
        parse_text(&self.text).map_err(malformed)
    }
}

/// What the complete text of [`ArgumentsBuilder::replace`] was to the pieces before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replaced<'text> {
    /// It went on from them with this, which may be empty.
    Extended(&'text str),
    /// It was another text.
    Restarted,
}

/// The arguments that a call's complete text stands for.
///
/// # Errors
///
/// As [`ArgumentsBuilder::finish`].
pub fn parse_arguments(text: &str) -> Result<Map<String, Value>, MalformedArguments> {
    let mut builder = ArgumentsBuilder::default();
    builder.push(&mut Map::new(), text);
    builder.finish()
}

fn parse_text(text: &str) -> Result<Map<String, Value>, String> {
    if text.trim_matches(|c: char| c.is_whitespace() || c == '\u{feff}').is_empty() {
        return Ok(Map::new());
    }
    match from_str_repaired(text) {
        Ok(Value::Object(arguments)) => Ok(arguments),
        Ok(other) => Err(format!("found {}", kind(&other))),
        Err(error) if error.is_eof() => Err(format!("the text ends too early ({error})")),
        Err(error) => Err(error.to_string()),
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// The finished text of a tool call's arguments was not a JSON object.
///
/// The text of this error is what a message keeps as `argumentsError` and what the model is told, so it shows what
/// was received: all of it up to 8 KiB, else its beginning and end.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("expected the arguments as one JSON object: {reason}\n\nReceived arguments:\n{received}")]
pub struct MalformedArguments {
    reason: String,
    received: String,
}

impl MalformedArguments {
    fn new(reason: String, text: &str) -> Self {
        Self { reason, received: excerpt(text) }
    }
}

fn excerpt(text: &str) -> String {
    const HEAD: usize = 6 * 1024;
    const TAIL: usize = 2 * 1024;
    if text.len() <= HEAD + TAIL {
        return text.to_owned();
    }
    let head = text.floor_char_boundary(HEAD);
    let tail = text.ceil_char_boundary(text.len() - TAIL);
    format!("{}\n[… {} bytes left out …]\n{}", &text[..head], tail - head, &text[tail..])
}
