//! pi-ai alone: a model calls a tool, gets its result and answers.
//!
//! ```text
//! cargo run -p example-ai-tool-call
//! cargo run -p example-ai-tool-call -- anthropic/claude-sonnet-4-5
//! ```
//!
//! Without arguments the model is a scripted one, so that it runs anywhere. With an agent loop ready-made, see
//! `pi-agent-core`.

use std::{error::Error, sync::Arc};

use pi_ai::{
    AssistantMessage, Context, InputBlock, Message, Model, Models, StopReason, StreamFn, StreamOptions, ToolCall,
    ToolDeclaration, ToolResultMessage,
    faux::{FauxProvider, FauxReply},
    models::ModelChoice,
    schema::validate_arguments,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

/// What the tool takes. Its JSON Schema goes to the model.
#[derive(Deserialize, JsonSchema)]
struct Forecast {
    /// A town
    town: String,
    /// How many days, from 1 to 7
    #[schemars(range(min = 1, max = 7))]
    days: u8,
}

fn forecast() -> ToolDeclaration {
    ToolDeclaration::typed::<Forecast>("forecast", "Tells the weather of the next days.")
}

/// Runs a call. What is wrong with its arguments is said so that the model can do better.
fn run(tool: &ToolDeclaration, call: &ToolCall) -> Result<String, String> {
    if call.name != tool.name {
        return Err(format!("There is no tool `{}`. Tools: {}.", call.name, tool.name));
    }
    let arguments =
        validate_arguments(&tool.parameters, &tool.name, &call.arguments).map_err(|error| error.to_string())?;
    let Forecast { town, days } =
        serde_json::from_value(Value::Object(arguments)).map_err(|error| error.to_string())?;
    Ok((1..=days).map(|day| format!("day {day} in {town}: {} °C\n", 17 + i16::from(day))).collect())
}

/// Asks until the model has an answer.
async fn converse(
    models: &impl StreamFn,
    model: &Arc<Model>,
    question: &str,
) -> Result<AssistantMessage, Box<dyn Error>> {
    const MOST_TURNS: usize = 8;
    let tool = forecast();
    let mut messages = vec![Message::user(question)];
    for _ in 0..MOST_TURNS {
        let context = Context { tools: vec![tool.clone()], ..Context::from(messages.clone()) };
        let answer = models.stream(model, context.normalize(), StreamOptions::default()).result().await;
        if answer.stop_reason != StopReason::ToolUse {
            return match &answer.error_message {
                Some(error) => Err(error.clone().into()),
                None => Ok(answer),
            };
        }
        messages.push(answer.clone().into());
        for call in answer.tool_calls() {
            println!("→ {}({})", call.name, json!(call.arguments));
            let outcome = run(&tool, call);
            let is_error = outcome.is_err();
            let text = outcome.unwrap_or_else(|reason| reason);
            println!("← {}", text.trim_end().replace('\n', "\n  "));
            messages.push(
                ToolResultMessage {
                    tool_call_id: call.id.clone(),
                    tool_name: call.name.clone(),
                    content: vec![InputBlock::text(text)],
                    is_error,
                    ..ToolResultMessage::default()
                }
                .into(),
            );
        }
    }
    Err(format!("no answer after {MOST_TURNS} turns").into())
}

const QUESTION: &str = "Shall I need a coat in Turin tomorrow?";

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let answer = match std::env::args().nth(1) {
        Some(model) => {
            let models = Models::from_env();
            let selected = models.select(&ModelChoice { model, ..ModelChoice::default() }).await?;
            converse(&models, &selected.model, QUESTION).await?
        }
        None => converse(&scripted(), &FauxProvider::model(), QUESTION).await?,
    };
    println!("{}", answer.text());
    Ok(())
}

/// A model that forgets an argument at first.
fn scripted() -> FauxProvider {
    FauxProvider::new([
        FauxReply::tool_call("forecast", json!({"town": "Turin"})),
        FauxReply::tool_call("forecast", json!({"town": "Turin", "days": "2"})),
        FauxReply::text("18 °C: leave it at home."),
    ])
}

#[cfg(test)]
mod tests {
    use fake_llm::{Answer, Script, Server, Wire};
    use pi_ai::models::Provider;

    use super::*;

    #[tokio::test]
    async fn a_model_learns_what_was_wrong_with_its_call() {
        let models = scripted();
        let answer = converse(&models, &FauxProvider::model(), QUESTION).await.unwrap();
        assert_eq!(answer.text(), "18 °C: leave it at home.");
        let requests = models.requests();
        let results: Vec<_> = requests[2]
            .context
            .messages()
            .iter()
            .filter_map(|message| match message {
                Message::ToolResult(result) => Some((result.is_error, result.content[0].as_text().unwrap())),
                _ => None,
            })
            .collect();
        assert!(results[0].0 && results[0].1.contains("days: is required"), "{results:?}");
        assert_eq!(results[1], (false, "day 1 in Turin: 18 °C\nday 2 in Turin: 19 °C\n"));
    }

    #[tokio::test]
    async fn the_same_over_a_socket() {
        let calls = Answer::new().tool_call("forecast", json!({"town": "Oslo", "days": 1}));
        let server = Server::start(Script::new(Wire::AnthropicMessages).reply(calls).reply("Take two."));
        let model = Model { id: "m".into(), max_tokens: 1000, ..Model::default() };
        let provider = Provider::new("local", server.base_url()).api("anthropic-messages").api_key("k").model(model);
        let models = Models::builder().provider(provider).build();
        let model = models.find("local", "m").unwrap();
        assert_eq!(converse(&models, &model, QUESTION).await.unwrap().text(), "Take two.");
        assert_eq!(server.request(0).await.tool_names(), ["forecast"]);
    }
}
