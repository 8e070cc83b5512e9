//! `application/vnd.amazon.eventstream`: bytes, cut anywhere → whole events.

use aws_smithy_eventstream::frame::read_message_from;

use super::{Frame, sse::MAX_EVENT_BYTES};
use crate::error::{ErrorKind, ProviderError};

/// The bytes of a frame that carries nothing: lengths and check sums.
const SMALLEST: usize = 16;

/// Memory beyond this is given back once what it held is done with.
const KEPT_CAPACITY: usize = 256 * 1024;

/// Cuts a byte stream into events. The result does not depend on how the bytes arrive.
///
/// An event's frame has its type as the name and its payload as the data. That of an exception has the exception's
/// type; that of an error that the service does not model is named `error`, and its data is the JSON of its code and
/// message.
#[derive(Debug, Default)]
pub(super) struct EventStreamFramer {
    buffer: Vec<u8>,
    /// What is before it is done with.
    at: usize,
    /// What the frame that was last given borrows.
    name: String,
    data: String,
}

impl EventStreamFramer {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        if self.at == self.buffer.len() {
            self.buffer.clear();
            self.at = 0;
            self.buffer.shrink_to(KEPT_CAPACITY);
        } else if self.at > self.buffer.len() / 2 {
            self.buffer.drain(..self.at);
            self.at = 0;
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// The next whole event. What is left at the end of the body is not one.
    pub(super) fn next_frame(&mut self) -> Result<Option<Frame<'_>>, ProviderError> {
        let rest = &self.buffer[self.at..];
        let Some(length) = rest.first_chunk().map(|bytes| u32::from_be_bytes(*bytes) as usize) else { return Ok(None) };
        if !(SMALLEST..=MAX_EVENT_BYTES).contains(&length) {
            return Err(broken(&format!("a frame of {length} bytes")));
        }
        let Some(mut bytes) = rest.get(..length) else { return Ok(None) };
        self.at += length;
        let message = read_message_from(&mut bytes).map_err(|error| broken(&error.to_string()))?;
        let header = |wanted: &str| {
            let found = message.headers().iter().find(|header| header.name().as_str() == wanted)?;
            Some(found.value().as_string().ok()?.as_str().to_owned())
        };
        let payload = || String::from_utf8_lossy(message.payload()).into_owned();
        (self.name, self.data) = match header(":message-type").as_deref() {
            Some("exception") => (header(":exception-type").unwrap_or_else(|| "error".into()), payload()),
            Some("error") => {
                let said = serde_json::json!({ "code": header(":error-code"), "message": header(":error-message") });
                ("error".into(), said.to_string())
            }
            _ => (header(":event-type").unwrap_or_default(), payload()),
        };
        Ok(Some(Frame { name: Some(&self.name), data: &self.data }))
    }
}

fn broken(reason: &str) -> ProviderError {
    let message = format!("The answer is not an event stream of AWS, or was damaged on its way: {reason}.");
    ProviderError::new(ErrorKind::Protocol, message)
}
