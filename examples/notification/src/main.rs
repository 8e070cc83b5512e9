//! A role that the model sees as a user message: `cargo run -p example-notification`.
//!
//! The screen shows a notification as what it is, with its level; the model reads one line of text.

use pi_agent_core::prelude::*;
use pi_ai::faux::{FauxProvider, FauxReply};
use serde::{Deserialize, Serialize};

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "camelCase")]
enum Role {
    Notification { level: Level, text: String },
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Level {
    Info,
    Alarm,
}

impl CustomMessage for Role {}

fn for_the_model(message: &Role) -> Option<Message> {
    match message {
        Role::Notification { level: Level::Alarm, text } => Some(Message::user(format!("[alarm] {text}"))),
        // What is merely interesting stays on the screen.
        Role::Notification { level: Level::Info, .. } => None,
    }
}

fn watcher(model: FauxProvider) -> Agent<Role> {
    Agent::with_roles::<Role>(model)
        .system_prompt("You watch over a power station.")
        .convert_to_llm(for_the_model)
        .build()
}

async fn notify(agent: &Agent<Role>) -> Result<String, AgentError> {
    let info = Role::Notification { level: Level::Info, text: "shift change".to_owned() };
    let alarm = Role::Notification { level: Level::Alarm, text: "pressure is rising".to_owned() };
    agent.prompt([info, alarm]).await?.into_text()
}

#[tokio::main]
async fn main() -> Result<(), AgentError> {
    let agent = watcher(FauxProvider::new([FauxReply::text("Open valve 3.")]));
    println!("{}", notify(&agent).await?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_model_reads_alarms_as_text() {
        let model = FauxProvider::new([FauxReply::text("Open valve 3.")]);
        let agent = watcher(model.clone());
        assert_eq!(notify(&agent).await.unwrap(), "Open valve 3.");
        assert_eq!(agent.state().messages.iter().filter_map(AgentMessage::as_custom).count(), 2);
        let requests = model.requests();
        let sent: Vec<_> = requests[0].context.messages().iter().filter_map(Message::as_user).collect();
        assert_eq!(sent.len(), 1);
        assert_eq!(sent[0].content.text(), "[alarm] pressure is rising");
    }
}
