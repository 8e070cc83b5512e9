//! What encoding a transcript of 10 MB costs on each wire, against writing the same body as JSON.

use std::hint::black_box;

use pi_ai::api::{BuiltinWires, Concessions, EncodeRequest};
use pi_ai::{
    AssistantBlock, AssistantMessage, Context, InputBlock, Message, Model, StopReason, StreamOptions, ToolCall,
    ToolResultMessage,
};
use serde_json::{Value, json};

use xtask::Error;
use xtask::measure::{median, nanos_per};
use xtask::row::{Goal, Row};

use crate::{Finding, Size};

const WIRES: [&str; 6] = [
    "openai-completions",
    "openai-responses",
    "anthropic-messages",
    "google-generative-ai",
    "mistral-conversations",
    "bedrock-converse-stream",
];

/// The texts of the transcript together.
const BYTES: usize = 10 * 1024 * 1024;

pub(crate) fn run(size: Size) -> Result<Vec<Finding>, Error> {
    WIRES.iter().map(|api| Ok(Finding::Row(encoded(api, size)?))).collect()
}

fn encoded(api: &str, size: Size) -> Result<Row, Error> {
    let model = Model {
        id: "m".into(),
        provider: "p".into(),
        api: api.into(),
        base_url: "http://localhost".into(),
        context_window: 100_000_000,
        max_tokens: 1000,
        ..Model::default()
    };
    let wire = BuiltinWires::default().get(&model.api)?;
    let context = Context { system_prompt: Some("Be brief.".into()), ..Context::from(transcript(&model)) }.normalize();
    let options = StreamOptions { api_key: Some("k".into()), ..StreamOptions::default() };
    let request =
        EncodeRequest { model: &model, context: &context, options: &options, concessions: &Concessions::default() };
    let body: Value = serde_json::from_slice(&wire.encode(&request)?.body)?;
    let (mut ours, mut least) = (Vec::new(), Vec::new());
    for _ in 0..size.pick(7, 31) {
        let mut sent = Ok(0);
        ours.push(nanos_per(1, 1, || sent = wire.encode(&request).map(|http| black_box(http).body.len())));
        if sent? < BYTES {
            return Err(format!("{api}: the body is shorter than the transcript").into());
        }
        let mut written = Ok(Vec::new());
        least.push(nanos_per(1, 1, || written = serde_json::to_vec(black_box(&body))));
        black_box(written?);
    }
    let millis = |nanos: Vec<f64>| median(nanos) / 1_000_000.0;
    Ok(Row::new(format!("encode.{api}_10_mb"), millis(ours), "ms").floor(millis(least)).goal(Goal::Ratio(2.0)))
}

/// Questions, calls, results and answers, of a few kilobytes each.
fn transcript(model: &Model) -> Vec<Message> {
    let line = "let answer = \"42\"; // the usual, Grüße\n";
    let text = line.repeat(4096 / line.len());
    let answer = |content: Vec<AssistantBlock>, stop_reason| -> Message {
        AssistantMessage {
            content,
            api: model.api.clone(),
            provider: model.provider.clone(),
            model: model.id.clone(),
            stop_reason,
            ..AssistantMessage::default()
        }
        .into()
    };
    let rounds = BYTES / (4 * text.len()) + 1;
    let round = |number: usize| {
        let id = format!("call{number:05}");
        let call = ToolCall::new(id.as_str(), "edit", json!({"path": "src/main.rs", "text": text}));
        [
            Message::user(text.clone()),
            answer(vec![AssistantBlock::text("I see."), call.into()], StopReason::ToolUse),
            ToolResultMessage {
                tool_call_id: id.into(),
                tool_name: "edit".into(),
                content: vec![InputBlock::text(text.clone())],
                ..ToolResultMessage::default()
            }
            .into(),
            answer(vec![AssistantBlock::text(text.clone())], StopReason::Stop),
        ]
    };
    (0..rounds).flat_map(round).chain([Message::user("And now?")]).collect()
}
