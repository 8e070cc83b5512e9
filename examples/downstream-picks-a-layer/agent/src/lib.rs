//! A crate that runs an agent: it brings a tool, and its user brings whatever answers.

use std::sync::Arc;

use pi_agent_core::prelude::*;
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
struct Sum {
    /// The numbers to add.
    numbers: Vec<f64>,
}

/// Has a question answered by a model that can add.
///
/// # Errors
/// When the model fails.
pub async fn calculate(answers: impl StreamFn, model: Arc<Model>, question: &str) -> Result<String, AgentError> {
    let add = Tool::new("add", "Adds numbers.", async |sum: Sum, _context: ToolContext| {
        Ok::<_, ToolError>(sum.numbers.iter().sum::<f64>().to_string())
    });
    let agent = Agent::builder(answers).model(model).system_prompt("You calculate. Use `add`.").tool(add).build();
    agent.prompt(question).await?.into_text()
}
