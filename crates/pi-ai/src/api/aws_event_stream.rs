//! `application/vnd.amazon.eventstream`: bytes, cut anywhere → whole events.

use std::str;

use aws_smithy_eventstream::frame::read_message_from;
use aws_smithy_types::event_stream::Message;
use bytes::BytesMut;

use super::{Frame, sse::MAX_EVENT_BYTES};
use crate::error::{ErrorKind, ProviderError};

/// The bytes of a frame that carries nothing: lengths and check sums.
const SMALLEST: usize = 16;

/// Cuts a byte stream into events. The result does not depend on how the bytes arrive.
///
/// An event's frame has its type as the name and its payload as the data. That of an exception has the exception's
/// type; that of an error that the service does not model is named `error`, and its data is the JSON of its code and
/// message.
#[derive(Debug, Default)]
pub(super) struct EventStreamFramer {
    buffer: BytesMut,
    /// The frame that was last given.
    given: Option<Message>,
    /// Its data, where that is not the payload as it came.
    data: String,
}

impl EventStreamFramer {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The next whole event. What is left at the end of the body is not one.
    pub(super) fn next_frame(&mut self) -> Result<Option<Frame<'_>>, ProviderError> {
        let Some(length) = self.buffer.first_chunk().map(|bytes| u32::from_be_bytes(*bytes) as usize) else {
            return Ok(None);
        };
        if !(SMALLEST..=MAX_EVENT_BYTES).contains(&length) {
            return Err(broken(&format!("a frame of {length} bytes")));
        }
        if self.buffer.len() < length {
            return Ok(None);
        }
        // The message borrows from the buffer: nothing is copied.
        let bytes = self.buffer.split_to(length).freeze();
        let message = self.given.insert(read_message_from(bytes).map_err(|error| broken(&error.to_string()))?);
        let name = match header(message, ":message-type") {
            Some("exception") => header(message, ":exception-type").unwrap_or("error"),
            Some("error") => {
                let (code, said) = (header(message, ":error-code"), header(message, ":error-message"));
                self.data = serde_json::json!({ "code": code, "message": said }).to_string();
                return Ok(Some(Frame { name: Some("error"), data: &self.data }));
            }
            _ => header(message, ":event-type").unwrap_or_default(),
        };
        let data = match str::from_utf8(message.payload()) {
            Ok(data) => data,
            Err(_) => {
                self.data = String::from_utf8_lossy(message.payload()).into_owned();
                &self.data
            }
        };
        Ok(Some(Frame { name: Some(name), data }))
    }
}

/// A header whose value is text.
fn header<'m>(message: &'m Message, wanted: &str) -> Option<&'m str> {
    let found = message.headers().iter().find(|header| header.name().as_str() == wanted)?;
    Some(found.value().as_string().ok()?.as_str())
}

fn broken(reason: &str) -> ProviderError {
    let message = format!("The answer is not an event stream of AWS, or was damaged on its way: {reason}.");
    ProviderError::new(ErrorKind::Protocol, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::aws_frame;

    #[test]
    fn what_was_damaged_on_its_way_is_not_taken_for_an_event() {
        let whole = aws_frame("event", "messageStop", b"{}");
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 1;
            let mut framer = EventStreamFramer::default();
            framer.push(&damaged);
            // A length that grew makes it wait for more; all else is an error.
            assert!(!matches!(framer.next_frame(), Ok(Some(_))), "byte {at}");
        }
    }

    #[test]
    fn errors_that_the_service_does_not_model_have_their_words_in_headers() {
        let text = |text: &str| aws_smithy_types::event_stream::HeaderValue::String(text.to_owned().into());
        let header = |name: &'static str, value| aws_smithy_types::event_stream::Header::new(name, text(value));
        let message = Message::new(Vec::new())
            .add_header(header(":message-type", "error"))
            .add_header(header(":error-code", "InternalFailure"))
            .add_header(header(":error-message", "it broke"));
        let mut bytes = Vec::new();
        aws_smithy_eventstream::frame::write_message_to(&message, &mut bytes).unwrap();
        let mut framer = EventStreamFramer::default();
        framer.push(&bytes);
        let frame = framer.next_frame().unwrap().unwrap();
        assert_eq!((frame.name, frame.data), (Some("error"), r#"{"code":"InternalFailure","message":"it broke"}"#));
    }
}
