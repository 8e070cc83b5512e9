//! pi-ai alone: a conversation begins with one model and goes on with another, over another wire.
//!
//! ```text
//! cargo run -p example-ai-switch-model
//! ```
//!
//! The stored transcript never changes. What the second provider would refuse of what the first one wrote is put right
//! in the request: ids of calls, thinking, signatures, pictures, calls without a result. It is shown here for every wire
//! by encoding the request, without sending it.

use std::error::Error;

use pi_ai::{
    AssistantBlock, AssistantMessage, Context, InputBlock, Message, Model, StopReason, StreamOptions, ThinkingContent,
    ToolCall, ToolResultMessage,
    api::{BuiltinWires, Concessions, EncodeRequest},
    model::InputKind,
};
use serde_json::{Value, json};

/// A conversation with a model of OpenAI, interrupted while the second of two calls ran.
fn begun_elsewhere() -> Vec<Message> {
    let thinking = ThinkingContent {
        thinking: "I should look at both.".into(),
        thinking_signature: Some(json!({"type": "reasoning", "id": "rs_1", "encrypted_content": "…"}).to_string()),
        redacted: None,
    };
    let calls = ["a.png", "b.png"].map(|path| {
        let id = format!("call_{path}|fc_0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef");
        AssistantBlock::from(ToolCall::new(id, "read", json!({ "path": path })))
    });
    let answer = AssistantMessage {
        content: [vec![thinking.into()], calls.to_vec()].concat(),
        api: "openai-responses".into(),
        provider: "openai".into(),
        model: "gpt-6".into(),
        stop_reason: StopReason::ToolUse,
        ..AssistantMessage::default()
    };
    let first = answer.tool_calls().next().map(|call| call.id.clone()).unwrap_or_default();
    vec![
        Message::user("Compare the two pictures."),
        answer.into(),
        ToolResultMessage {
            tool_call_id: first,
            tool_name: "read".into(),
            content: vec![InputBlock::image("iVBORw0KGgo=", "image/png")],
            ..ToolResultMessage::default()
        }
        .into(),
        Message::user("Never mind the second one. What is on the first?"),
    ]
}

/// The request with which a model of this wire would go on.
fn request(wires: &BuiltinWires, model: &Model, messages: Vec<Message>) -> Result<Value, Box<dyn Error>> {
    let context = Context::from(messages).normalize();
    let options = StreamOptions { api_key: Some("key".into()), ..StreamOptions::default() };
    let request = EncodeRequest { model, context: &context, options: &options, concessions: &Concessions::default() };
    Ok(serde_json::from_slice(&wires.get(&model.api)?.encode(&request)?.body)?)
}

fn model(api: &str, input: Vec<InputKind>) -> Model {
    Model {
        id: "another-model".into(),
        provider: "another-provider".into(),
        api: api.into(),
        base_url: "https://models.example.com/v1".into(),
        max_tokens: 1000,
        input,
        ..Model::default()
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let wires = BuiltinWires::default();
    for api in ["anthropic-messages", "google-generative-ai", "mistral-conversations", "openai-completions"] {
        let model = model(api, vec![InputKind::Text, InputKind::Image]);
        let body = request(&wires, &model, begun_elsewhere())?;
        let messages = if body["contents"].is_null() { &body["messages"] } else { &body["contents"] };
        println!("{api}:\n{messages:#}\n");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use fake_llm::{Answer, Script, Server, Wire};
    use pi_ai::{Models, StreamFn, models::Provider};

    use super::*;

    #[test]
    fn each_wire_gets_what_it_takes() {
        let wires = BuiltinWires::default();
        let seeing = |api: &str| model(api, vec![InputKind::Text, InputKind::Image]);
        let body = request(&wires, &seeing("anthropic-messages"), begun_elsewhere()).unwrap();
        let (calls, results) = (&body["messages"][1]["content"], &body["messages"][2]["content"]);
        for index in [0, 1] {
            let id = calls[index]["id"].as_str().unwrap();
            assert!(id.len() <= 64 && !id.contains('|'));
            assert_eq!(results[index]["tool_use_id"], id);
        }
        assert_eq!(results[1]["is_error"], true, "the call without a result has one now");
        assert!(!body.to_string().contains("rs_1"), "thinking is not another model's");
        let body = request(&wires, &seeing("mistral-conversations"), begun_elsewhere()).unwrap();
        assert_eq!(body["messages"][1]["tool_calls"][0]["id"].as_str().unwrap().len(), 9);
        let blind = model("openai-completions", vec![InputKind::Text]);
        let body = request(&wires, &blind, begun_elsewhere()).unwrap();
        assert!(!body.to_string().contains("iVBORw0KGgo="));
    }

    #[tokio::test]
    async fn the_conversation_goes_round_all_wires_and_comes_home() {
        const ROUND: [(Wire, &str); 6] = [
            (Wire::OpenAiResponses, "openai-responses"),
            (Wire::AnthropicMessages, "anthropic-messages"),
            (Wire::GoogleGenerativeAi, "google-generative-ai"),
            (Wire::MistralConversations, "mistral-conversations"),
            (Wire::OpenAiCompletions, "openai-completions"),
            (Wire::OpenAiResponses, "openai-responses"),
        ];
        let mut messages = begun_elsewhere();
        for (wire, api) in ROUND {
            let said = Answer::new().thinking("Hm.").text("A cat.").tool_call("read", json!({"path": "c.png"}));
            let server = Server::start(Script::new(wire).reply(said));
            let model = Model { provider: api.into(), ..model(api, vec![InputKind::Text, InputKind::Image]) };
            let provider = Provider::new(api, server.base_url())
                .api_key("k")
                .model(Model { base_url: server.base_url(), ..model });
            let models = Models::builder().provider(provider).build();
            let model: Arc<Model> = models.find(api, "another-model").unwrap();
            let context = Context::from(messages.clone()).normalize();
            let answer = models.stream(&model, context, StreamOptions::default()).result().await;
            assert_eq!((answer.text().as_str(), &answer.error_message), ("A cat.", &None), "{api}");
            // The server has checked that it could have been its own conversation.
            messages.push(answer.into());
            messages.push(Message::user("Go on."));
        }
    }
}
