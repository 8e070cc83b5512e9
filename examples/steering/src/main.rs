//! A person who changes their mind while a tool runs: `cargo run -p example-steering`.
//!
//! The tool is not interrupted. When it is done, the model reads its result and then the new message.

use std::time::Duration;

use pi_agent_core::prelude::*;
use pi_ai::faux::{FauxProvider, FauxReply};
use serde_json::json;

fn slow_search() -> Tool {
    Tool::from_declaration(
        ToolDeclaration::new("search", "Searches everything.", json!({"type": "object"})),
        async |_arguments: ToolArguments, context| {
            context.update("searching …");
            tokio::time::sleep(Duration::from_millis(50)).await;
            Ok("found 3 flights to Rome")
        },
    )
}

async fn travel(model: FauxProvider) -> Result<Reply, AgentError> {
    let agent = Agent::builder(model).tool(slow_search()).build();
    let weak = agent.downgrade();
    agent
        .subscribe(async move |event, _context| {
            // The moment at which somebody types.
            if let (AgentEvent::ToolExecutionUpdate { .. }, Some(agent)) = (event, weak.upgrade()) {
                agent.steer("No, to Oslo please.");
            }
        })
        .detach();
    agent.prompt("Find a flight to Rome.").await
}

fn script() -> FauxProvider {
    FauxProvider::new([FauxReply::tool_call("search", json!({})), FauxReply::text("To Oslo, then.")])
}

#[tokio::main]
async fn main() -> Result<(), AgentError> {
    let reply = travel(script()).await?;
    for message in reply.messages() {
        println!("{}", serde_json::to_string(message).unwrap_or_default());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_message_comes_after_the_result_and_before_the_next_answer() {
        let reply = travel(script()).await.unwrap();
        let roles: Vec<_> = reply.messages().iter().map(AgentMessage::role).collect();
        assert_eq!(roles, ["user", "assistant", "toolResult", "user", "assistant"]);
        assert_eq!(reply.into_text().unwrap(), "To Oslo, then.");
    }
}
