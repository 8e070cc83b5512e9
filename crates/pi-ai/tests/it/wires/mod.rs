//! Kinds of fault that servers and transcripts of the wild have had, one test each.

mod requests;
mod streams;

use std::{path::PathBuf, sync::Arc};

use pi_ai::api::{BuiltinWires, Concessions, EncodeRequest, Exchange, HttpRequest, Progress, Wire};
use pi_ai::json::from_str_lenient;
use pi_ai::stream::MessageBuilder;
use pi_ai::{AssistantMessage, Context, Message, Model, ProviderError, StreamOptions, Timestamp, TranscriptContext};
use serde_json::{Value, json};

fn data(name: &str) -> Vec<u8> {
    std::fs::read(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)).unwrap()
}

/// A model of this wire; `changes` set fields of it.
fn model(api: &str, changes: Value) -> Arc<Model> {
    let provider = match api {
        "anthropic-messages" => "anthropic",
        "google-generative-ai" => "google",
        "mistral-conversations" => "mistral",
        "bedrock-converse-stream" => "amazon-bedrock",
        _ => "openai",
    };
    let mut fields = json!({
        "id": "m", "name": "M", "api": api, "provider": provider, "baseUrl": "http://127.0.0.1:9/v1",
        "reasoning": true, "input": ["text", "image"], "contextWindow": 100_000, "maxTokens": 1000,
    });
    fields.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
    Arc::new(serde_json::from_value(fields).unwrap())
}

fn wire(model: &Model) -> Arc<dyn Wire> {
    BuiltinWires::default().get(&model.api).unwrap()
}

/// What comes of a response's body that arrives in these pieces.
fn read(model: &Model, pieces: &[&[u8]]) -> (AssistantMessage, Option<ProviderError>) {
    let wire = wire(model);
    let context = Context::from(vec![Message::user("go")]).normalize();
    let options = StreamOptions { api_key: Some("k".into()), ..StreamOptions::default() };
    let exchange = Exchange::new(wire, Arc::new(model.clone()), context, options);
    let mut answer = MessageBuilder::new(model, Timestamp::default());
    let mut reader = exchange.begin(&exchange.encode().unwrap(), &mut answer);
    for piece in pieces {
        reader.push(piece);
        while reader.advance(&mut answer) == Progress::Decoded {}
    }
    reader.finish();
    while reader.advance(&mut answer) == Progress::Decoded {}
    let error = answer.error().cloned();
    (answer.into_message(), error)
}

fn read_file(api: &str, name: &str) -> (AssistantMessage, Option<ProviderError>) {
    read(&model(api, json!({})), &[&data(&format!("streams/{name}.sse"))])
}

fn encode(model: &Model, context: &TranscriptContext) -> HttpRequest {
    let options = StreamOptions { api_key: Some("k".into()), ..StreamOptions::default() };
    let request = EncodeRequest { model, context, options: &options, concessions: &Concessions::default() };
    wire(model).encode(&request).unwrap()
}

/// The body of a request for this conversation.
fn body(model: &Model, messages: Vec<Message>) -> Value {
    serde_json::from_slice(&encode(model, &Context::from(messages).normalize()).body).unwrap()
}

/// The messages of a session file.
fn transcript(name: &str) -> Vec<Message> {
    let file = String::from_utf8(data(&format!("transcripts/{name}.jsonl"))).unwrap();
    let lines = file.lines().map(|line| from_str_lenient::<Value>(line).unwrap());
    lines
        .filter(|line| line["type"] == "message")
        .map(|line| serde_json::from_value(line["message"].clone()).unwrap())
        .collect()
}
