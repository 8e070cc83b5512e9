//! Frames of `application/vnd.amazon.eventstream`, as a server writes them.

use aws_smithy_eventstream::frame::write_message_to;
use aws_smithy_types::event_stream::{Header, HeaderValue, Message};

/// The bytes of one frame: `kind` is `event` or `exception`, `name` its type.
///
/// # Panics
/// When a part is longer than a frame can hold.
pub fn aws_frame(kind: &str, name: &str, payload: &[u8]) -> Vec<u8> {
    let text = |text: &str| HeaderValue::String(text.to_owned().into());
    let message = Message::new(payload.to_vec())
        .add_header(Header::new(":message-type", text(kind)))
        .add_header(Header::new(format!(":{kind}-type"), text(name)))
        .add_header(Header::new(":content-type", text("application/json")));
    let mut frame = Vec::new();
    match write_message_to(&message, &mut frame) {
        Ok(()) => frame,
        Err(error) => panic!("no frame can hold it: {error}"),
    }
}
