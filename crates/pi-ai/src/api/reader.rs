//! A response's body, as it arrives → the events of an answer.

use std::fmt;

#[cfg(feature = "bedrock")]
use super::aws_event_stream::EventStreamFramer;
use super::{Decoder, Flow, Frame, Framing, sse::SseFramer};
use crate::{
    error::{ErrorKind, ProviderError},
    options::RawStreamEvent,
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
    #[cfg(feature = "bedrock")]
    Aws(EventStreamFramer),
}

impl Framer {
    fn next_frame(&mut self) -> Result<Option<Frame<'_>>, ProviderError> {
        match self {
            Self::Sse(framer) => {
                framer.next_frame().map_err(|error| ProviderError::new(ErrorKind::Protocol, error.to_string()))
            }
            #[cfg(feature = "bedrock")]
            Self::Aws(framer) => framer.next_frame(),
        }
    }

    fn push(&mut self, bytes: &[u8]) {
        match self {
            Self::Sse(framer) => framer.push(bytes),
            #[cfg(feature = "bedrock")]
            Self::Aws(framer) => framer.push(bytes),
        }
    }

    fn finish(&mut self) {
        match self {
            Self::Sse(framer) => framer.finish(),
            // A frame tells its length: what is cut is not whole.
            #[cfg(feature = "bedrock")]
            Self::Aws(_) => {}
        }
    }
}

impl BodyReader {
    /// A reader for one response.
    pub fn new(framing: Framing, decoder: Box<dyn Decoder>) -> Self {
        let framer = match framing {
            Framing::ServerSentEvents => Framer::Sse(SseFramer::default()),
            #[cfg(feature = "bedrock")]
            Framing::AwsEventStream => Framer::Aws(EventStreamFramer::default()),
        };
        Self { framer, decoder, state: State::Open }
    }

    /// Takes the next bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.state == State::Open {
            self.framer.push(bytes);
        }
    }

    /// The body ended. Call it when the frames that had come are decoded.
    pub fn finish(&mut self) {
        if self.state == State::Open {
            self.state = State::BodyEnded;
            self.framer.finish();
        }
    }

    /// Whether the answer needs nothing more, although it has not ended: see [`Decoder::is_settled`].
    pub fn is_settled(&self) -> bool {
        self.state == State::Open && self.decoder.is_settled()
    }

    /// Decodes the next frame, if it is there. A failure ends the answer.
    pub fn advance(&mut self, answer: &mut MessageBuilder) -> Progress {
        self.try_advance(answer).unwrap_or_else(|error| {
            answer.fail(error);
            Progress::Ended
        })
    }

    /// As [`advance`](Self::advance), but a failure is given to the caller, who may know better why it came to that, or
    /// try again. The answer has not ended then, and the reader gives nothing more.
    ///
    /// # Errors
    /// When the answer failed or is not complete.
    pub fn try_advance(&mut self, answer: &mut MessageBuilder) -> Result<Progress, ProviderError> {
        if self.state == State::Done {
            return Ok(Progress::Ended);
        }
        let flow = match self.framer.next_frame() {
            Ok(Some(frame)) => self.decoder.frame(frame, answer),
            Ok(None) if self.state == State::Open => return Ok(Progress::Starved),
            Ok(None) => Ok(Flow::Complete),
            Err(error) => Err(error),
        };
        self.settle(flow, answer)
    }

    /// Takes the next frame, if it is there, without decoding it: for whoever must look at it first. Give it to
    /// [`decode`](Self::decode) then.
    ///
    /// # Errors
    /// When the body does not follow its framing.
    pub fn take_frame(&mut self) -> Result<Option<RawStreamEvent>, ProviderError> {
        if self.state == State::Done {
            return Ok(None);
        }
        let frame = self.framer.next_frame()?;
        Ok(frame.map(|frame| RawStreamEvent { name: frame.name.map(str::to_owned), data: frame.data.to_owned() }))
    }

    /// Decodes a frame that was [taken](Self::take_frame).
    ///
    /// # Errors
    /// As [`try_advance`](Self::try_advance).
    pub fn decode(&mut self, frame: &RawStreamEvent, answer: &mut MessageBuilder) -> Result<Progress, ProviderError> {
        if self.state == State::Done {
            return Ok(Progress::Ended);
        }
        let flow = self.decoder.frame(Frame { name: frame.name.as_deref(), data: &frame.data }, answer);
        self.settle(flow, answer)
    }

    fn settle(
        &mut self,
        flow: Result<Flow, ProviderError>,
        answer: &mut MessageBuilder,
    ) -> Result<Progress, ProviderError> {
        let outcome = match flow {
            Ok(Flow::More) => return Ok(Progress::Decoded),
            Ok(Flow::Complete) => self.decoder.finish(answer),
            // What the server was cut off in is not a whole event: what counts is whether the answer was complete.
            Err(error) if self.state == State::BodyEnded && error.kind() == ErrorKind::Protocol => {
                self.decoder.finish(answer)
            }
            Err(error) => Err(error),
        };
        self.state = State::Done;
        outcome?;
        match answer.has_ended() {
            true => Ok(Progress::Ended),
            false => Err(ProviderError::new(ErrorKind::Protocol, "The answer ended without a stop reason.")),
        }
    }
}

impl fmt::Debug for BodyReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BodyReader").field("state", &self.state).finish_non_exhaustive()
    }
}
