//! The least that decoding can cost: finding the events and reading each into typed fields.

use std::borrow::Cow;
use std::hint::black_box;

use aws_smithy_eventstream::frame::read_message_from;
use bytes::Bytes;
use memchr::memmem;
use serde::Deserialize;

/// The floor of the chat completions wire.
pub(crate) fn chat_floor(body: &[u8]) {
    for event in events(body) {
        if let Some(data) = event.strip_prefix(b"data: ").filter(|data| *data != b"[DONE]") {
            // A broken event would make the floor too low without anybody noticing.
            black_box(serde_json::from_slice::<Chunk<'_>>(data).expect("the body above is JSON"));
        }
    }
}

/// The floor of the Anthropic wire.
pub(super) fn messages_floor(body: &[u8]) {
    each::<MessageEvent<'_>>(body);
}

/// The floor of the Responses wire.
pub(super) fn responses_floor(body: &[u8]) {
    each::<ResponseEvent<'_>>(body);
}

/// The floor of the Gemini wire.
pub(super) fn gemini_floor(body: &[u8]) {
    each::<GeminiChunk<'_>>(body);
}

/// The floor of the wire of our own events.
pub(super) fn pi_floor(body: &[u8]) {
    each::<PiEvent<'_>>(body);
}

/// The floor of the Bedrock wire, whose frames are read by the same crate: that a frame is whole has to be checked.
pub(super) fn bedrock_floor(body: &[u8]) {
    let mut body = Bytes::copy_from_slice(body);
    let length = |at: &[u8]| at.first_chunk().map_or(0, |bytes| u32::from_be_bytes(*bytes) as usize);
    while !body.is_empty() {
        let frame = read_message_from(body.split_to(length(&body))).expect("the frames are whole");
        black_box(serde_json::from_slice::<ConverseEvent<'_>>(frame.payload()).expect("the payloads are JSON"));
    }
}

/// Reads the data of each event.
fn each<'a, T: Deserialize<'a>>(body: &'a [u8]) {
    for event in events(body) {
        let data = memmem::find(event, b"data: ").map(|at| &event[at + 6..]).unwrap_or_default();
        // A broken event would make the floor too low without anybody noticing.
        black_box(serde_json::from_slice::<T>(data).expect("the bodies are JSON"));
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

/// The fields of a Responses event that a client has to know while text comes.
#[derive(Deserialize)]
#[expect(dead_code, reason = "reading the fields is what is measured")]
struct ResponseEvent<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    output_index: Option<usize>,
    content_index: Option<usize>,
    delta: Option<String>,
    #[serde(borrow)]
    item: Option<ResponseItem<'a>>,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "reading the fields is what is measured")]
struct ResponseItem<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    call_id: Option<Cow<'a, str>>,
}

/// The fields of a Gemini chunk that a client has to know.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "reading the fields is what is measured")]
struct GeminiChunk<'a> {
    #[serde(borrow)]
    candidates: Vec<Candidate<'a>>,
    #[serde(borrow)]
    response_id: Option<Cow<'a, str>>,
    usage_metadata: Option<UsageMetadata>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "reading the fields is what is measured")]
struct Candidate<'a> {
    content: Option<GeminiContent>,
    #[serde(borrow)]
    finish_reason: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "reading the fields is what is measured")]
struct GeminiContent {
    parts: Vec<GeminiPart>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "reading the fields is what is measured")]
struct GeminiPart {
    text: Option<String>,
    thought: Option<bool>,
    thought_signature: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "reading the fields is what is measured")]
struct UsageMetadata {
    prompt_token_count: Option<u64>,
    total_token_count: Option<u64>,
}

/// The fields of a Bedrock event that a client has to know while text comes.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "reading the fields is what is measured")]
struct ConverseEvent<'a> {
    content_block_index: Option<usize>,
    delta: Option<ConverseDelta>,
    #[serde(borrow)]
    stop_reason: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "reading the fields is what is measured")]
struct ConverseDelta {
    text: Option<String>,
}

/// The fields of one of our own events that a client has to know while text comes.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "reading the fields is what is measured")]
struct PiEvent<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    content_index: Option<usize>,
    delta: Option<String>,
}
