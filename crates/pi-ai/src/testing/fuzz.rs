//! Fuzz entry points: one function over bytes per reader of foreign text. Each panics when a law is broken.
//!
//! The test run drives them from a fixed seed for a short time; cargo-fuzz can call them as they are.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::schema::CompiledSchema;
use crate::{
    api::{BuiltinWires, Exchange, Progress},
    context::Context,
    json::{ArgumentsBuilder, StreamingJson, from_str_repaired},
    message::{AssistantMessage, Message},
    model::Model,
    options::StreamOptions,
    stream::{MessageBuilder, MessageFold},
    time::Timestamp,
};

/// The arguments of a tool call: what they are in the end does not depend on where the text was cut, and finished
/// text is judged as the whole-text reader judges it.
///
/// The first byte chooses the cuts, the rest is the text.
pub fn arguments(data: &[u8]) {
    let (seed, text) = data.split_first().unwrap_or((&0, data));
    let text = String::from_utf8_lossy(text);
    let mut whole = StreamingJson::default();
    whole.push(&text);

    let mut arguments = Map::new();
    let mut builder = ArgumentsBuilder::default();
    for piece in cut(&text, *seed) {
        builder.push(&mut arguments, piece);
    }
    assert_eq!(builder.text(), text);
    let too_deep = whole.too_deep();
    let shown = match whole.into_value() {
        Some(Value::Object(shown)) => shown,
        _ => Map::new(),
    };
    assert_eq!(arguments, shown, "the cuts changed what is shown");

    match (builder.finish(), from_str_repaired::<Value>(&text)) {
        (Ok(finished), Ok(Value::Object(read))) => {
            assert_eq!(finished, read);
            assert_eq!(finished, shown, "what was shown is not what came of it");
        }
        (Ok(finished), _) => assert!(finished.is_empty() && text.chars().all(is_blank), "accepted what is no object"),
        (Err(_), read) => assert!(too_deep || !matches!(read, Ok(Value::Object(_))), "refused an object"),
    }
}

/// A schema and arguments, both from others: the check ends, its verdict and its reasons agree, and what it accepts
/// after coercion is valid.
///
/// The text goes on with the schema, and then the arguments, after `[{`; it is read as far as it goes.
pub fn schema(data: &[u8]) {
    let mut json = StreamingJson::default();
    json.push("[{");
    json.push(&String::from_utf8_lossy(data));
    let Some(Value::Array(parts)) = json.into_value() else { return };
    let [schema, value, ..] = parts.as_slice() else { return };
    let compiled = CompiledSchema::new(schema);
    assert_eq!(compiled.is_valid(value), compiled.issues(value).is_empty());
    if let Value::Object(arguments) = value {
        match compiled.validate("tool", arguments) {
            Ok(accepted) => assert!(compiled.is_valid(&Value::Object(accepted)), "accepted what is not valid"),
            Err(error) => assert!(!error.issues().is_empty(), "refused without a reason"),
        }
    }
}

/// A response of the wire `openai-completions`.
///
/// The first byte chooses how the rest arrives, as for all responses: what comes of it does not depend on that, always
/// ends, is what the events say, and takes no more memory than the body warrants.
pub fn openai_completions(data: &[u8]) {
    response("openai-completions", data);
}

/// A response of the wire `anthropic-messages`.
pub fn anthropic_messages(data: &[u8]) {
    response("anthropic-messages", data);
}

/// A response of the wire `openai-responses`, whose decoder is also that of Azure and ChatGPT.
pub fn openai_responses(data: &[u8]) {
    response("openai-responses", data);
}

/// A response of the wire `google-generative-ai`, whose decoder is also that of Vertex.
pub fn google_generative_ai(data: &[u8]) {
    response("google-generative-ai", data);
}

/// A response of the wire `mistral-conversations`.
pub fn mistral_conversations(data: &[u8]) {
    response("mistral-conversations", data);
}

/// A response of the wire `pi-messages`, whose decoder is also that of the proxy's client.
pub fn pi_messages(data: &[u8]) {
    response("pi-messages", data);
}

/// A response of the wire `bedrock-converse-stream`. What follows the first byte is the body when that byte is odd;
/// else each line `kind type payload` of it becomes a frame.
#[cfg(feature = "bedrock")]
pub fn bedrock_converse_stream(data: &[u8]) {
    let (first, rest) = data.split_first().unwrap_or((&0, data));
    if first % 2 == 1 {
        return response("bedrock-converse-stream", data);
    }
    let text = String::from_utf8_lossy(rest);
    let mut body = vec![*first];
    for line in text.lines() {
        let mut parts = line.splitn(3, ' ');
        let mut part = || parts.next().unwrap_or_default();
        let (kind, name, payload) = (part(), part(), part());
        // Longer names fit no frame.
        if kind.len() < 100 && name.len() < 1000 {
            body.extend(super::aws_frame(kind, name, payload.as_bytes()));
        }
    }
    response("bedrock-converse-stream", &body);
}

fn response(api: &str, data: &[u8]) {
    let (length, body) = data.split_first().unwrap_or((&0, data));
    let whole = read_response(api, std::iter::once(body));
    let pieces = read_response(api, body.chunks(usize::from(*length).max(1)));
    assert_eq!(pieces, whole, "the pieces changed the answer");
    let size = json!(whole).to_string().len();
    assert!(size <= 4096 + 16 * body.len(), "an answer of {size} bytes from {} bytes", body.len());
}

fn read_response<'a>(api: &str, pieces: impl Iterator<Item = &'a [u8]>) -> AssistantMessage {
    let model = Model { id: "m".into(), api: api.into(), base_url: "http://x".into(), ..Model::default() };
    let Ok(wire) = BuiltinWires::default().get(&model.api) else { panic!("no wire {api}") };
    let context = Context::from(vec![Message::user("go")]).normalize();
    let options = StreamOptions { api_key: Some("k".into()), ..StreamOptions::default() };
    let exchange = Exchange::new(wire, Arc::new(model.clone()), context, options);
    let Ok(sent) = exchange.encode() else { panic!("the request cannot be made") };
    let mut answer = MessageBuilder::new(&model, Timestamp::default());
    let mut reader = exchange.begin(&sent, &mut answer);
    for piece in pieces {
        reader.push(piece);
        while reader.advance(&mut answer) == Progress::Decoded {}
    }
    reader.finish();
    while reader.advance(&mut answer) == Progress::Decoded {}
    assert!(answer.has_ended(), "the answer did not end");
    let mut fold = MessageFold::new(&model, Timestamp::default());
    while let Some(event) = answer.pop_event() {
        fold.apply(&event);
    }
    let message = answer.into_message();
    let mut said = fold.into_message();
    if message.is_failed() {
        // Signatures and ids may come late, without an event of their own, when an answer fails.
        said.content.clone_from(&message.content);
    }
    assert_eq!(said, message, "the events do not add up to the message");
    message
}

fn is_blank(character: char) -> bool {
    character.is_whitespace() || character == '\u{feff}'
}

/// Pieces of 1 to `seed` characters, in lengths that vary.
fn cut(text: &str, seed: u8) -> impl Iterator<Item = &str> {
    let mut state = u32::from(seed);
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let length = 1 + (state >> 16) as usize % usize::from(seed).max(1);
        let at = rest.char_indices().nth(length).map_or(rest.len(), |(at, _)| at);
        let (piece, more) = rest.split_at(at);
        rest = more;
        Some(piece)
    })
}
