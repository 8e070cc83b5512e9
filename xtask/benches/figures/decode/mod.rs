//! What decoding 200,000 text deltas costs, from bytes to events, against the least that it can cost.
//!
//! The floor finds the events by their blank lines and reads each into typed fields of its own, which do not change
//! with ours: if our decoder gets slower, the floor does not get slower with it.

mod bodies;
mod floors;

use std::hint::black_box;
use std::sync::Arc;

use pi_ai::api::{BodyReader, BuiltinWires, Exchange, Progress};
use pi_ai::stream::MessageBuilder;
use pi_ai::{AssistantEvent, Context, Message, Model, StreamOptions, Timestamp};
use xtask::Error;
use xtask::measure::{median, nanos_per};
use xtask::row::{Goal, Row};

use crate::{Finding, Size};

pub(crate) use bodies::{chat_body, deltas};
pub(crate) use floors::chat_floor;

/// Deltas in the answer.
pub(crate) const DELTAS: usize = 200_000;

/// A body arrives in pieces of this size.
const PIECE: usize = 16 * 1024;

pub(crate) fn run(size: Size) -> Result<Vec<Finding>, Error> {
    let wires = [
        ("openai-completions", chat_body(), chat_floor as fn(&[u8])),
        ("anthropic-messages", bodies::messages_body(), floors::messages_floor as fn(&[u8])),
        ("openai-responses", bodies::responses_body(), floors::responses_floor as fn(&[u8])),
        ("google-generative-ai", bodies::gemini_body(), floors::gemini_floor as fn(&[u8])),
        // Mistral's chunks have the shape of chat completions.
        ("mistral-conversations", chat_body(), chat_floor as fn(&[u8])),
        ("bedrock-converse-stream", bodies::bedrock_body(), floors::bedrock_floor as fn(&[u8])),
        ("pi-messages", bodies::pi_body(), floors::pi_floor as fn(&[u8])),
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
    findings.push(Finding::Row(long_line(size)?));
    Ok(findings)
}

/// What a byte costs in one line of 16 MB that comes in network packets, against one in a line of 1 MB.
fn long_line(size: Size) -> Result<Row, Error> {
    const PACKET: usize = 1_400;
    const MEGABYTE: usize = 1024 * 1024;
    let body = |megabytes: usize| bodies::one_delta(&"let answer = \\\"42\\\"; ".repeat(megabytes * MEGABYTE / 20));
    let (short, long) = (body(1), body(16));
    let (mut short_nanos, mut long_nanos) = (Vec::new(), Vec::new());
    for _ in 0..size.pick(5, 21) {
        for (body, nanos) in [(&short, &mut short_nanos), (&long, &mut long_nanos)] {
            let mut decoded = Ok(0);
            nanos.push(nanos_per(1, body.len(), || decoded = decode_in("openai-completions", body, PACKET)));
            if decoded? != 1 {
                return Err("the long line was not decoded as one delta".into());
            }
        }
    }
    let row = Row::new("decode.16_mb_line_in_1400_byte_reads", median(long_nanos), "ns/byte");
    Ok(row.floor(median(short_nanos)).goal(Goal::Ratio(1.5)))
}

/// Decodes a body into events and counts the text deltas.
fn decode(api: &str, body: &[u8]) -> Result<usize, Error> {
    decode_in(api, body, PIECE)
}

/// Decodes a body that comes in pieces of this size.
fn decode_in(api: &str, body: &[u8], piece: usize) -> Result<usize, Error> {
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
    for piece in body.chunks(piece) {
        reader.push(piece);
        advance(&mut reader);
    }
    reader.finish();
    advance(&mut reader);
    Ok(deltas)
}
