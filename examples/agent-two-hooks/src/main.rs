//! The two hooks, with `pi-agent-core` alone: `cargo run -p example-agent-two-hooks`.
//!
//! The transcript holds notifications, a role of this program. Without a converter the model does not see them (and
//! the log says so); with one it does. Before that, `transform_context` keeps the request short.

use pi_agent_core::prelude::*;
use pi_ai::faux::{FauxProvider, FauxReply};
use serde::{Deserialize, Serialize};

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "camelCase")]
enum Role {
    Notification { text: String },
}

impl CustomMessage for Role {}

/// The record keeps everything, the request is short.
const MOST_MESSAGES: usize = 4;

fn prune(messages: Vec<AgentMessage<Role>>) -> Vec<AgentMessage<Role>> {
    let head = messages.first().filter(|first| first.is_system()).cloned();
    let oldest = messages.len().saturating_sub(MOST_MESSAGES - 1).max(head.iter().len());
    head.into_iter().chain(messages.into_iter().skip(oldest)).collect()
}

/// What the model was sent in its last request.
async fn what_the_model_sees(with_converter: bool) -> Result<Vec<String>, AgentError> {
    let model = FauxProvider::new(["one", "two", "three"].map(FauxReply::text));
    let mut agent = Agent::with_roles::<Role>(model.clone())
        .system_prompt("You watch over a build server.")
        .transform_context(async |messages: Vec<AgentMessage<Role>>, _signal| prune(messages));
    if with_converter {
        agent = agent.convert_to_llm(|message: &Role| match message {
            Role::Notification { text } => Some(Message::user(format!("[notification] {text}"))),
        });
    }
    let agent = agent.build();
    agent.prompt("Hello!").await?;
    agent.prompt("Anything new?").await?;
    let notification = Role::Notification { text: "build 7 failed".to_owned() };
    agent.prompt([notification.into(), AgentMessage::user("And now?")]).await?;

    let requests = model.requests();
    let last = requests.last().map(|request| request.context.messages()).unwrap_or_default();
    Ok(last
        .iter()
        .map(Message::role)
        .zip(last.iter().map(text))
        .map(|(role, text)| format!("{role}: {text}"))
        .collect())
}

fn text(message: &Message) -> String {
    match message {
        Message::System(message) => message.content.text().into_owned(),
        Message::User(message) => message.content.text().into_owned(),
        Message::Assistant(message) => message.text(),
        Message::ToolResult(_) => String::new(),
    }
}

#[tokio::main]
async fn main() -> Result<(), AgentError> {
    for with_converter in [false, true] {
        println!("with a converter: {with_converter}");
        for line in what_the_model_sees(with_converter).await? {
            println!("  {line}");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_model_sees_notifications_when_a_converter_says_so() {
        let head = "system: You watch over a build server.";
        let without = what_the_model_sees(false).await.unwrap();
        assert_eq!(without, [head, "assistant: two", "user: And now?"]);
        let with = what_the_model_sees(true).await.unwrap();
        assert_eq!(with, [head, "assistant: two", "user: [notification] build 7 failed", "user: And now?"]);
    }
}
