//! What the model says, independent of the wire that carries it.

use serde_json::Value;

use crate::reply::{Gate, Wait};

/// A model's answer: text, thinking and tool calls in order, with usage and a stop reason.
///
/// Adjacent deltas of one kind make one block.
///
/// ```
/// use fake_llm::{Answer, Usage};
///
/// let answer = Answer::new()
///     .thinking("The user greets me.")
///     .text("Hel")
///     .text("lo")
///     .usage(Usage { input: 12, output: 2, ..Usage::default() });
/// # let _ = answer;
/// ```
#[derive(Clone, Debug, Default)]
pub struct Answer {
    pub(crate) parts: Vec<Part>,
    pub(crate) usage: Option<Usage>,
    pub(crate) stop: Option<Stop>,
    pub(crate) model: Option<String>,
    pub(crate) id: Option<String>,
}

/// One scripted piece of an answer.
#[derive(Clone, Debug)]
pub(crate) enum Part {
    Text(String),
    Thinking(String),
    ToolCall(ToolCall),
    Wait(Wait),
}

impl Answer {
    /// An empty answer: it stops at once, with the default usage.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds one text delta.
    pub fn text(mut self, delta: impl Into<String>) -> Self {
        self.parts.push(Part::Text(delta.into()));
        self
    }

    /// Adds many text deltas.
    pub fn text_deltas<D: Into<String>>(mut self, deltas: impl IntoIterator<Item = D>) -> Self {
        self.parts.extend(deltas.into_iter().map(|delta| Part::Text(delta.into())));
        self
    }

    /// Adds one thinking delta.
    pub fn thinking(mut self, delta: impl Into<String>) -> Self {
        self.parts.push(Part::Thinking(delta.into()));
        self
    }

    /// Adds a tool call with an id of the server's choice, its arguments in one piece.
    pub fn tool_call(self, name: impl Into<String>, arguments: Value) -> Self {
        self.call(ToolCall::new(name, arguments))
    }

    /// Adds a tool call with all its options.
    pub fn call(mut self, call: ToolCall) -> Self {
        self.parts.push(Part::ToolCall(call));
        self
    }

    /// Waits before what follows is sent.
    pub fn wait(mut self, wait: impl Into<Wait>) -> Self {
        self.parts.push(Part::Wait(wait.into()));
        self
    }

    /// Holds back what follows until the gate is opened.
    pub fn wait_for(self, gate: &Gate) -> Self {
        self.wait(Wait::Until(gate.clone()))
    }

    /// Sets the token counts that the answer reports.
    pub fn usage(mut self, usage: Usage) -> Self {
        self.usage = Some(usage);
        self
    }

    /// Sets the stop reason; without it, `ToolUse` after a tool call and `EndTurn` otherwise.
    pub fn stop(mut self, stop: Stop) -> Self {
        self.stop = Some(stop);
        self
    }

    /// Sets the model name that the answer reports; without it, the one that was asked for.
    pub fn model(mut self, model: impl Into<String>) -> Self {
        self.model = Some(model.into());
        self
    }

    /// Sets the response id; without it, one made from the request's number.
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// The stop reason as it is sent.
    pub(crate) fn effective_stop(&self) -> Stop {
        let has_call = || self.parts.iter().any(|part| matches!(part, Part::ToolCall(_)));
        match &self.stop {
            Some(stop) => stop.clone(),
            None if has_call() => Stop::ToolUse,
            None => Stop::EndTurn,
        }
    }

    /// The usage as it is sent.
    pub(crate) fn effective_usage(&self) -> Usage {
        self.usage.clone().unwrap_or_default()
    }
}

impl From<&str> for Answer {
    fn from(text: &str) -> Self {
        Self::new().text(text)
    }
}

impl From<String> for Answer {
    fn from(text: String) -> Self {
        Self::new().text(text)
    }
}

/// One tool call of an [`Answer`].
#[derive(Clone, Debug)]
pub struct ToolCall {
    pub(crate) id: Option<String>,
    pub(crate) name: String,
    pub(crate) arguments: String,
    pub(crate) fragments: usize,
}

impl ToolCall {
    /// A call with these arguments.
    pub fn new(name: impl Into<String>, arguments: Value) -> Self {
        Self::with_argument_text(name, arguments.to_string())
    }

    /// A call whose argument text is sent as it stands, so that it may be broken JSON.
    pub fn with_argument_text(name: impl Into<String>, arguments: impl Into<String>) -> Self {
        Self { id: None, name: name.into(), arguments: arguments.into(), fragments: 1 }
    }

    /// Sets the call's id; without it, one made from the request's number.
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// Sends the arguments in about this many pieces.
    pub fn fragments(mut self, fragments: usize) -> Self {
        self.fragments = fragments.max(1);
        self
    }

    /// The argument text cut into its pieces, at character boundaries.
    pub(crate) fn argument_pieces(&self) -> Vec<&str> {
        let step = self.arguments.len().div_ceil(self.fragments).max(1);
        let mut pieces = Vec::with_capacity(self.fragments);
        let mut rest = self.arguments.as_str();
        while rest.len() > step {
            let (piece, tail) = rest.split_at(rest.ceil_char_boundary(step));
            pieces.push(piece);
            rest = tail;
        }
        pieces.push(rest);
        pieces
    }
}

/// Token counts of an answer, each kind counted once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Input tokens that were neither read from nor written to the cache.
    pub input: u64,
    /// Output tokens, reasoning included.
    pub output: u64,
    /// Input tokens read from the cache.
    pub cache_read: u64,
    /// Input tokens written to the cache.
    pub cache_write: u64,
    /// Those of the output tokens that were reasoning.
    pub reasoning: u64,
}

impl Default for Usage {
    fn default() -> Self {
        Self { input: 100, output: 20, cache_read: 0, cache_write: 0, reasoning: 0 }
    }
}

/// Why the answer ends.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stop {
    /// The model is done.
    EndTurn,
    /// The model wants tool results.
    ToolUse,
    /// The token limit cut the answer.
    Length,
    /// The provider refused to go on.
    Refusal,
    /// The wire's own word, sent as it stands.
    Raw(String),
    /// No stop reason at all.
    Missing,
}
