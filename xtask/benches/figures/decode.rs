//! What decoding 200,000 text deltas costs, from bytes to events, against the least that it can cost.
//!
//! The floor finds the events by their blank lines and reads each into typed fields of its own, which do not change
//! with ours: if our decoder gets slower, the floor does not get slower with it.

use std::borrow::Cow;
use std::hint::black_box;

use memchr::memmem;
use pi_ai::api::{BodyReader, EncodeRequest, Progress, builtin_wire};
use pi_ai::stream::MessageBuilder;
use pi_ai::{AssistantEvent, Context, Message, Model, StreamOptions, Timestamp};
use serde::Deserialize;
use serde_json::json;
use xtask::Error;
use xtask::measure::{median, nanos_per};
use xtask::row::{Goal, Row};

use crate::{Finding, Size};

/// Deltas in the answer.
pub(crate) const DELTAS: usize = 200_000;

/// A body arrives in pieces of this size.
const PIECE: usize = 16 * 1024;

pub(crate) fn run(size: Size) -> Result<Vec<Finding>, Error> {
    let wires = [("openai-completions", chat_body(), chat_floor as fn(&[u8]))];
    let mut findings = Vec::new();
    for (wire, body, floor) in wires {
        let (mut ours, mut least) = (Vec::new(), Vec::new());
        // By turns, so that a busy moment of the machine meets both.
        for _ in 0..size.pick(9, 31) {
            ours.push(nanos_per(1, DELTAS, || assert_eq!(decode(wire, &body), DELTAS, "{wire} lost deltas")));
            least.push(nanos_per(1, DELTAS, || floor(&body)));
        }
        let name = format!("decode.{wire}_200k_deltas");
        let row = Row::new(name, median(ours), "ns/delta").floor(median(least)).goal(Goal::Ratio(2.0));
        findings.push(Finding::Row(row));
    }
    Ok(findings)
}

/// Decodes a body into events and counts the text deltas.
fn decode(wire: &str, body: &[u8]) -> usize {
    let model = json!({"id": "m", "api": wire, "provider": "local", "baseUrl": "http://localhost"});
    let model: Model = serde_json::from_value(model).expect("a model has these fields");
    let context = Context::from(vec![Message::user("Count.")]).normalize();
    let options = StreamOptions::default();
    let request = EncodeRequest { model: &model, context: &context, options: &options };
    let wire = builtin_wire(&model.api).expect("the wire is built in");
    let mut reader = BodyReader::new(wire.framing(), wire.decoder(&request));
    let mut answer = MessageBuilder::new(&model, Timestamp::from_millis(0));
    answer.start();
    let mut deltas = 0;
    let mut advance = |reader: &mut BodyReader| {
        while reader.advance(&mut answer) == Progress::Decoded {
            while let Some(event) = answer.pop_event() {
                deltas += usize::from(matches!(black_box(event), AssistantEvent::TextDelta { .. }));
            }
        }
    };
    for piece in body.chunks(PIECE) {
        reader.push(piece);
        advance(&mut reader);
    }
    reader.finish();
    advance(&mut reader);
    deltas
}

/// The deltas of the answer: four digits and a space each.
pub(crate) fn deltas() -> impl Iterator<Item = String> {
    (0..DELTAS).map(|number| format!("{:04} ", number % 10_000))
}

/// The answer as a chat completions service streams it.
pub(crate) fn chat_body() -> Vec<u8> {
    let event = |choice: &str| {
        format!(
            "data: {{\"id\":\"chatcmpl-0\",\"object\":\"chat.completion.chunk\",\"created\":1700000000,\"model\":\"m\",\
             \"choices\":[{{\"index\":0,{choice}}}]}}\n\n"
        )
    };
    let mut body: Vec<u8> = deltas()
        .flat_map(|text| event(&format!("\"delta\":{{\"content\":\"{text}\"}},\"finish_reason\":null")).into_bytes())
        .collect();
    body.extend_from_slice(event("\"delta\":{},\"finish_reason\":\"stop\"").as_bytes());
    body.extend_from_slice(b"data: [DONE]\n\n");
    body
}

/// The floor of the chat completions wire.
pub(crate) fn chat_floor(body: &[u8]) {
    for event in events(body) {
        if let Some(data) = event.strip_prefix(b"data: ").filter(|data| *data != b"[DONE]") {
            // A broken event would make the floor too low without anybody noticing.
            black_box(serde_json::from_slice::<Chunk<'_>>(data).expect("the body above is JSON"));
        }
    }
}

fn events(mut body: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let end = memmem::find(body, b"\n\n")?;
        let event = &body[..end];
        body = &body[end + 2..];
        Some(event)
    })
}

/// The fields of a chunk that a client has to know.
#[derive(Deserialize)]
#[expect(dead_code, reason = "reading the fields is what is measured")]
struct Chunk<'a> {
    #[serde(borrow)]
    id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    model: Option<Cow<'a, str>>,
    #[serde(default)]
    choices: Vec<Choice>,
    usage: Option<Usage>,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "reading the fields is what is measured")]
struct Choice {
    delta: Option<Delta>,
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "reading the fields is what is measured")]
struct Delta {
    content: Option<String>,
    reasoning_content: Option<String>,
    tool_calls: Option<Vec<ToolCall>>,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "reading the fields is what is measured")]
struct ToolCall {
    index: Option<usize>,
    id: Option<String>,
    function: Option<Function>,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "reading the fields is what is measured")]
struct Function {
    name: Option<String>,
    arguments: Option<String>,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "reading the fields is what is measured")]
struct Usage {
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
}
