//! What the default converter leaves of a transcript.

use pi_ai::{CancellationToken, Context};
use serde_json::{Value, json};

use crate::{AgentMessage, Converter, NoCustom};

/// Runs a case of `agent_core_default`.
pub async fn run(file_stem: &str, input: &Value) -> Option<Value> {
    if file_stem != "agent_core_default" {
        return None;
    }
    let messages: Vec<AgentMessage> = serde_json::from_value(input.get("messages")?.clone()).ok()?;
    let converter = Converter::<NoCustom>::default();
    let converted = converter.convert(messages, &CancellationToken::new(), None).await;
    let context = Context::from(converted).normalize();
    Some(json!({"messages": context.messages()}))
}
