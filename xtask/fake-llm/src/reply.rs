//! How the server replies: status, headers, the body's pieces and how it ends.

use std::time::Duration;

use serde_json::Value;
use tokio::sync::watch;

use crate::answer::Answer;

/// One scripted reply to one request.
///
/// ```
/// use std::time::Duration;
/// use fake_llm::{Answer, End, Pieces, Reply};
///
/// // An answer that arrives in pieces of seven bytes and is reset after the third event.
/// let reply = Reply::from(Answer::new().text("Hello"))
///     .pieces(Pieces::Every(7))
///     .cut_after_events(3)
///     .end(End::Reset);
///
/// // A rate limit with a hint.
/// let limited = Reply::error(429, "slow down").header("retry-after", "1");
///
/// // A server that takes its time before the first byte.
/// let slow = Reply::from("at last").delay(Duration::from_millis(50));
/// # let _ = (reply, limited, slow);
/// ```
#[derive(Clone, Debug)]
pub struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) before_head: Vec<Wait>,
    pub(crate) content: Content,
    pub(crate) pieces: Pieces,
    pub(crate) framing: Framing,
    pub(crate) cut: Option<Cut>,
    pub(crate) end: End,
}

/// What the body is made of.
#[derive(Clone, Debug)]
pub(crate) enum Content {
    /// Encoded for the wire of the request.
    Answer(Answer),
    /// An error body in the shape of the wire.
    Error(String),
    /// Sent as it stands.
    Steps(Vec<Step>),
}

/// One piece of a body, or a wait between two.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// One event of a stream, or any run of bytes.
    Bytes(Vec<u8>),
    Wait(Wait),
}

/// Where a body breaks off.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Cut {
    Events(usize),
    Bytes(usize),
}

impl Reply {
    fn new(status: u16, content_type: &str, content: Content) -> Self {
        Self {
            status,
            headers: vec![("content-type".to_owned(), content_type.to_owned())],
            before_head: Vec::new(),
            content,
            pieces: Pieces::Bulk,
            framing: Framing::Chunked,
            cut: None,
            end: End::Complete,
        }
    }

    /// A provider error: this status, and `message` in the wire's own error body.
    pub fn error(status: u16, message: impl Into<String>) -> Self {
        let mut reply = Self::new(status, "application/json", Content::Error(message.into()));
        reply.framing = Framing::ContentLength;
        reply
    }

    /// A JSON document.
    pub fn json(status: u16, body: Value) -> Self {
        let mut reply = Self::raw(status, "application/json", body.to_string());
        reply.framing = Framing::ContentLength;
        reply
    }

    /// Any body, sent as it stands.
    pub fn raw(status: u16, content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        Self::new(status, content_type, Content::Steps(vec![Step::Bytes(body.into())]))
    }

    /// Adds to a body that is sent as it stands, after a wait.
    ///
    /// # Panics
    ///
    /// When the body is an answer or an error of the wire.
    pub fn then(mut self, wait: impl Into<Wait>, bytes: impl Into<Vec<u8>>) -> Self {
        let Content::Steps(steps) = &mut self.content else { panic!("only raw bodies can be added to") };
        steps.push(Step::Wait(wait.into()));
        steps.push(Step::Bytes(bytes.into()));
        self
    }

    /// An event stream of `data:` events, each sent as it stands.
    pub fn data_events<D: AsRef<str>>(events: impl IntoIterator<Item = D>) -> Self {
        let steps =
            events.into_iter().map(|data| Step::Bytes(format!("data: {}\n\n", data.as_ref()).into_bytes())).collect();
        Self::new(200, "text/event-stream", Content::Steps(steps))
    }

    /// Sets the status.
    pub fn status(mut self, status: u16) -> Self {
        self.status = status;
        self
    }

    /// Sets a header; an earlier value of the same name is replaced.
    pub fn header(mut self, name: &str, value: impl Into<String>) -> Self {
        let name = name.to_ascii_lowercase();
        self.headers.retain(|(known, _)| *known != name);
        self.headers.push((name, value.into()));
        self
    }

    /// Waits before the response's head is sent (a slow first byte).
    pub fn delay(mut self, wait: impl Into<Wait>) -> Self {
        self.before_head.push(wait.into());
        self
    }

    /// Holds the whole response back until the gate is opened.
    pub fn hold(self, gate: &Gate) -> Self {
        self.delay(Wait::Until(gate.clone()))
    }

    /// Sets how the body is cut into pieces.
    pub fn pieces(mut self, pieces: Pieces) -> Self {
        self.pieces = pieces;
        self
    }

    /// Sets how the body's length is told.
    pub fn framing(mut self, framing: Framing) -> Self {
        self.framing = framing;
        self
    }

    /// Breaks the body off after so many events; how is told by [`Reply::end`] (default: closed).
    pub fn cut_after_events(self, events: usize) -> Self {
        self.cut(Cut::Events(events))
    }

    /// Breaks the body off after so many bytes; how is told by [`Reply::end`] (default: closed).
    pub fn cut_after_bytes(self, bytes: usize) -> Self {
        self.cut(Cut::Bytes(bytes))
    }

    fn cut(mut self, cut: Cut) -> Self {
        self.cut = Some(cut);
        if self.end == End::Complete {
            self.end = End::Close;
        }
        self
    }

    /// Sets how the response ends.
    pub fn end(mut self, end: End) -> Self {
        self.end = end;
        self
    }
}

impl From<Answer> for Reply {
    fn from(answer: Answer) -> Self {
        Self::new(200, "text/event-stream", Content::Answer(answer))
    }
}

impl From<&str> for Reply {
    fn from(text: &str) -> Self {
        Answer::from(text).into()
    }
}

impl From<String> for Reply {
    fn from(text: String) -> Self {
        Answer::from(text).into()
    }
}

/// How a body is cut into the pieces that the client sees.
///
/// With [`Framing::Chunked`] each piece is one HTTP chunk and one write, so the boundaries are exact
/// for a client that hands on the frames of the transfer encoding (hyper and reqwest do).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Pieces {
    /// As fast as the socket takes them, 16 KiB each; the default.
    #[default]
    Bulk,
    /// One piece per event.
    Events,
    /// Pieces of so many bytes.
    Every(usize),
    /// Cut at these byte offsets of the body, in ascending order.
    At(Vec<usize>),
}

/// How the client learns where the body ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Framing {
    /// `transfer-encoding: chunked`; the default for streams.
    #[default]
    Chunked,
    /// `content-length`; a body that is cut announces its full length.
    ContentLength,
    /// Neither: the body lasts until the connection closes.
    UntilClose,
}

/// How a response ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum End {
    /// In order; the connection is kept for the next request.
    #[default]
    Complete,
    /// The connection is closed (FIN) without the body's proper end.
    Close,
    /// The connection is reset (RST), after the client had time to read what was sent.
    Reset,
    /// Nothing more comes and nothing is closed, until the client leaves or the server is dropped.
    StayOpen,
}

/// A wait between two pieces.
#[derive(Clone, Debug)]
pub enum Wait {
    /// For this long.
    For(Duration),
    /// Until the gate is opened.
    Until(Gate),
}

impl From<Duration> for Wait {
    fn from(duration: Duration) -> Self {
        Self::For(duration)
    }
}

impl From<&Gate> for Wait {
    fn from(gate: &Gate) -> Self {
        Self::Until(gate.clone())
    }
}

impl Wait {
    pub(crate) async fn pass(&self) {
        match self {
            Self::For(duration) => tokio::time::sleep(*duration).await,
            Self::Until(gate) => gate.opened().await,
        }
    }
}

/// Something that a test opens once, to let a reply go on. Clones are the same gate.
#[derive(Clone, Debug)]
pub struct Gate {
    open: watch::Sender<bool>,
}

impl Gate {
    /// A closed gate.
    pub fn new() -> Self {
        Self { open: watch::Sender::new(false) }
    }

    /// Lets everything through that waits here, now and later.
    pub fn open(&self) {
        self.open.send_replace(true);
    }

    async fn opened(&self) {
        // The sender lives in `self`, so the wait cannot fail.
        let _ = self.open.subscribe().wait_for(|open| *open).await;
    }
}

impl Default for Gate {
    fn default() -> Self {
        Self::new()
    }
}
