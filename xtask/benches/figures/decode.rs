//! What decoding 200,000 text deltas costs, from bytes to events, against the least that it can cost.
//!
//! The floor finds the events by their blank lines and reads each into typed fields of its own, which do not change
//! with ours: if our decoder gets slower, the floor does not get slower with it.

use std::borrow::Cow;
use std::hint::black_box;
use std::sync::Arc;

use memchr::memmem;
use pi_ai::api::{BodyReader, BuiltinWires, Exchange, Progress};
use pi_ai::stream::MessageBuilder;
use pi_ai::{AssistantEvent, Context, Message, Model, StreamOptions, Timestamp};
use serde::Deserialize;
use xtask::Error;
use xtask::measure::{median, nanos_per};
use xtask::row::{Goal, Row};

use crate::{Finding, Size};

/// Deltas in the answer.
pub(crate) const DELTAS: usize = 200_000;

/// A body arrives in pieces of this size.
const PIECE: usize = 16 * 1024;

pub(crate) fn run(size: Size) -> Result<Vec<Finding>, Error> {
    let wires = [
        ("openai-completions", chat_body(), chat_floor as fn(&[u8])),
        ("anthropic-messages", messages_body(), messages_floor as fn(&[u8])),
    ];
    let mut findings = Vec::new();
    for (wire, body, floor) in wires {
        let (mut ours, mut least) = (Vec::new(), Vec::new());
        // By turns, so that a busy moment of the machine meets both.
        for _ in 0..size.pick(9, 31) {
            let mut decoded = Ok(0);
            ours.push(nanos_per(1, DELTAS, || decoded = decode(wire, &body)));
            let decoded = decoded?;
            if decoded != DELTAS {
                return Err(format!("{wire}: {decoded} text deltas were decoded, {DELTAS} were sent").into());
            }
            least.push(nanos_per(1, DELTAS, || floor(&body)));
        }
        let name = format!("decode.{wire}_200k_deltas");
        let row = Row::new(name, median(ours), "ns/delta").floor(median(least)).goal(Goal::Ratio(2.0));
        findings.push(Finding::Row(row));
    }
    Ok(findings)
}

/// Decodes a body into events and counts the text deltas.
fn decode(api: &str, body: &[u8]) -> Result<usize, Error> {
    let model = Model { id: "m".into(), api: api.into(), base_url: "http://localhost".into(), ..Model::default() };
    let model = Arc::new(model);
    let wire = BuiltinWires::default().get(&model.api)?;
    let context = Context::from(vec![Message::user("Count.")]).normalize();
    let options = StreamOptions { api_key: Some("k".into()), ..StreamOptions::default() };
    let exchange = Exchange::new(wire, model.clone(), context, options);
    let mut answer = MessageBuilder::new(&model, Timestamp::default());
    let mut reader = exchange.begin(&exchange.encode()?, &mut answer);
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
    Ok(deltas)
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

/// The answer as an Anthropic service streams it.
fn messages_body() -> Vec<u8> {
    let event = |name: &str, fields: &str| format!("event: {name}\ndata: {{\"type\":\"{name}\"{fields}}}\n\n");
    let message = "\"id\":\"msg_0\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"m\",\"content\":[]";
    let usage = "\"usage\":{\"input_tokens\":100,\"output_tokens\":1}";
    let mut body = event("message_start", &format!(",\"message\":{{{message},{usage}}}"));
    body += &event("content_block_start", ",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}");
    for text in deltas() {
        let delta = format!(",\"index\":0,\"delta\":{{\"type\":\"text_delta\",\"text\":\"{text}\"}}");
        body += &event("content_block_delta", &delta);
    }
    body += &event("content_block_stop", ",\"index\":0");
    let delta = "\"delta\":{\"stop_reason\":\"end_turn\",\"stop_sequence\":null}";
    body += &event("message_delta", &format!(",{delta},\"usage\":{{\"output_tokens\":20}}"));
    body += &event("message_stop", "");
    body.into_bytes()
}

/// The floor of the Anthropic wire.
fn messages_floor(body: &[u8]) {
    for event in events(body) {
        let data = memmem::find(event, b"data: ").map(|at| &event[at + 6..]).unwrap_or_default();
        // A broken event would make the floor too low without anybody noticing.
        black_box(serde_json::from_slice::<MessageEvent<'_>>(data).expect("the body above is JSON"));
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

/// The fields of an Anthropic event that a client has to know while text comes.
#[derive(Deserialize)]
#[expect(dead_code, reason = "reading the fields is what is measured")]
struct MessageEvent<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    index: Option<usize>,
    delta: Option<BlockDelta<'a>>,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "reading the fields is what is measured")]
struct BlockDelta<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<Cow<'a, str>>,
    text: Option<String>,
    thinking: Option<String>,
    partial_json: Option<String>,
    signature: Option<String>,
    #[serde(borrow)]
    stop_reason: Option<Cow<'a, str>>,
}
