//! A response's body, as it arrives → the events of an answer.

use std::fmt;

use super::{Decoder, Flow, Frame, Framing, sse::SseFramer};
use crate::{
    error::{ErrorKind, ProviderError},
    stream::MessageBuilder,
};

/// Cuts a body into frames and decodes them, without I/O: whoever has the bytes drives it. The built-in transport
/// does; so can a test, or a program with a transport of its own.
///
/// Push bytes, [advance](Self::advance) until it is starved, and push again; [finish](Self::finish) when the body ends
/// and advance until it has ended. The answer then has its last event.
pub struct BodyReader {
    framer: Framer,
    decoder: Box<dyn Decoder>,
    state: State,
}

/// How far a [`BodyReader`] got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// A frame was decoded; there may be more.
    Decoded,
    /// More bytes are needed, or the end of the body.
    Starved,
    /// The answer has ended. What else the server may send does not matter: drop the connection.
    Ended,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    /// The body ended; a last frame may wait.
    BodyEnded,
    Done,
}

enum Framer {
    Sse(SseFramer),
}

impl Framer {
    fn next_frame(&mut self) -> Result<Option<Frame<'_>>, ProviderError> {
        match self {
            Self::Sse(framer) => {
                framer.next_frame().map_err(|error| ProviderError::new(ErrorKind::Protocol, error.to_string()))
            }
        }
    }
}

impl BodyReader {
    /// A reader for one response.
    pub fn new(framing: Framing, decoder: Box<dyn Decoder>) -> Self {
        let framer = match framing {
            Framing::ServerSentEvents => Framer::Sse(SseFramer::default()),
        };
        Self { framer, decoder, state: State::Open }
    }

    /// Takes the next bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.state == State::Open {
            match &mut self.framer {
                Framer::Sse(framer) => framer.push(bytes),
            }
        }
    }

    /// The body ended. Call it when the frames that had come are decoded.
    pub fn finish(&mut self) {
        if self.state == State::Open {
            self.state = State::BodyEnded;
            match &mut self.framer {
                Framer::Sse(framer) => framer.finish(),
            }
        }
    }

    /// Decodes the next frame, if it is there.
    pub fn advance(&mut self, answer: &mut MessageBuilder) -> Progress {
        self.advance_seen(answer, |_| {})
    }

    /// As [`advance`](Self::advance); `see` sees the frame before it is decoded.
    pub fn advance_seen(&mut self, answer: &mut MessageBuilder, see: impl FnOnce(Frame<'_>)) -> Progress {
        if self.state == State::Done {
            return Progress::Ended;
        }
        let flow = match self.framer.next_frame() {
            Ok(Some(frame)) => {
                see(frame);
                self.decoder.frame(frame, answer)
            }
            Ok(None) if self.state == State::Open => return Progress::Starved,
            Ok(None) => Ok(Flow::Complete),
            Err(error) => Err(error),
        };
        let outcome = match flow {
            Ok(Flow::More) => return Progress::Decoded,
            Ok(Flow::Complete) => self.decoder.finish(answer),
            // What the server was cut off in is not a whole event: what counts is whether the answer was complete.
            Err(error) if self.state == State::BodyEnded && error.kind() == ErrorKind::Protocol => {
                self.decoder.finish(answer)
            }
            Err(error) => Err(error),
        };
        self.state = State::Done;
        if let Err(error) = outcome {
            answer.fail(error);
        }
        if !answer.has_ended() {
            answer.fail(ProviderError::new(ErrorKind::Protocol, "The answer ended without a stop reason."));
        }
        Progress::Ended
    }
}

impl fmt::Debug for BodyReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BodyReader").field("state", &self.state).finish_non_exhaustive()
    }
}
