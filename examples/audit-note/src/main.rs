//! A role that is kept in the transcript and never reaches the model: `cargo run -p example-audit-note`.
//!
//! Each tool call leaves a note: who called what, and whether it failed. The notes are saved and shown with the
//! conversation, but the model has no use for them, so the converter gives nothing for them.

use pi_agent_core::prelude::*;
use pi_ai::faux::{FauxProvider, FauxReply};
use serde::{Deserialize, Serialize};
use serde_json::json;

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "camelCase")]
enum Role {
    AuditNote { tool: String, failed: bool },
}

impl CustomMessage for Role {}

/// An agent that notes every tool call in its own transcript.
fn audited(model: FauxProvider) -> Agent<Role> {
    let list = Tool::from_declaration(
        ToolDeclaration::new("list", "Lists the files.", json!({"type": "object"})),
        async |_arguments: ToolArguments, _context| Ok("Cargo.toml\nsrc"),
    );
    let agent = Agent::with_roles::<Role>(model)
        .tool(list)
        // Saying nothing is a decision too. A role that is added later does not compile until it is decided.
        .convert_to_llm(|message: &Role| -> Option<Message> {
            match message {
                Role::AuditNote { .. } => None,
            }
        })
        .build();
    let weak = agent.downgrade();
    agent
        .subscribe(async move |event, _context| {
            if let (AgentEvent::ToolExecutionEnd { call, is_error, .. }, Some(agent)) = (event, weak.upgrade()) {
                agent.steer(Role::AuditNote { tool: call.name.clone(), failed: is_error });
            }
        })
        .detach();
    agent
}

#[tokio::main]
async fn main() -> Result<(), AgentError> {
    let model = FauxProvider::new([FauxReply::tool_call("list", json!({})), FauxReply::text("There are two.")]);
    let agent = audited(model.clone());
    println!("{}", agent.prompt("Which files are there?").await?.into_text()?);
    println!("kept:");
    for message in agent.state().messages.iter() {
        println!("  {}", serde_json::to_string(message).unwrap_or_default());
    }
    println!("the model saw:");
    for message in model.requests().last().map(|request| request.context.messages()).unwrap_or_default() {
        println!("  {}", message.role());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_note_is_kept_and_the_model_never_sees_it() {
        let model = FauxProvider::new([FauxReply::tool_call("list", json!({})), FauxReply::text("There are two.")]);
        let agent = audited(model.clone());
        agent.prompt("Which files are there?").await.unwrap().into_text().unwrap();
        let state = agent.state();
        let kept = state.messages.iter().filter_map(AgentMessage::as_custom).collect::<Vec<_>>();
        assert!(matches!(kept[..], [Role::AuditNote { tool, failed: false }] if tool == "list"));
        let roles: Vec<_> = model.requests()[1].context.messages().iter().map(Message::role).collect();
        assert_eq!(roles, ["system", "user", "assistant", "toolResult"]);
    }
}
