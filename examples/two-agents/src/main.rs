//! Two agents in one process, one of them a tool of the other: `cargo run -p example-two-agents`.

use pi_agent_core::prelude::*;
use pi_ai::faux::{FauxProvider, FauxReply};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

#[derive(Deserialize, JsonSchema)]
struct Question {
    /// What the expert should answer.
    question: String,
}

/// A tool that asks another agent. When the caller is aborted, so is the expert: its run is dropped.
fn ask(expert: Agent) -> Tool {
    Tool::new("ask_expert", "Asks an expert for birds.", async move |Question { question }, context| {
        let answer = tokio::select! {
            answer = expert.prompt(question) => answer?.into_text()?,
            () = context.signal.cancelled() => return Err(ToolError::new("The question was withdrawn.")),
        };
        // The expert forgets the conversation; its prompt stays.
        expert.reset()?;
        Ok(answer)
    })
    // One expert answers one question at a time.
    .sequential()
}

fn talker(talks: FauxProvider, knows: FauxProvider) -> Agent {
    let expert = Agent::builder(knows).system_prompt("You know everything about birds.").build();
    Agent::builder(talks).system_prompt("You chat.").tool(ask(expert)).build()
}

fn scripts() -> (FauxProvider, FauxProvider) {
    let question = json!({"question": "How fast is a swift?"});
    let talks = [FauxReply::tool_call("ask_expert", question), FauxReply::text("About 110 km/h, I am told.")];
    (FauxProvider::new(talks), FauxProvider::new([FauxReply::text("Up to 110 km/h in level flight.")]))
}

#[tokio::main]
async fn main() -> Result<(), AgentError> {
    let (talks, knows) = scripts();
    println!("{}", talker(talks, knows).prompt("How fast do swifts fly?").await?.into_text()?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn each_agent_has_its_own_conversation() {
        let (talks, knows) = scripts();
        let agent = talker(talks.clone(), knows.clone());
        let reply = agent.prompt("How fast do swifts fly?").await.unwrap();
        assert_eq!(reply.into_text().unwrap(), "About 110 km/h, I am told.");
        let asked = &knows.requests()[0];
        let text = |message: &Message| message.as_user().map(|message| message.content.text().into_owned());
        assert_eq!(asked.context.messages().iter().filter_map(text).collect::<Vec<_>>(), ["How fast is a swift?"]);
        assert_eq!(talks.requests().len(), 2);
    }
}
