//! A gate that asks the user before a dangerous call: `cargo run -p example-permission-gate`.
//!
//! Where nobody can be asked, the answer is no. A gate that fails blocks, too: the session never goes on by accident.

use std::{error::Error, time::Duration};

use async_trait::async_trait;
use pi_agent_core::{Tool, ToolArguments, ToolContext};
use pi_ai::{
    CancellationToken, ToolDeclaration,
    faux::{FauxProvider, FauxReply},
};
use pi_coding_agent::{
    extensions::{
        ExtensionApi, ExtensionUi, Mode, UiAnswer, UiQuestion, UiUpdate,
        event::{self, ToolCallDecision},
    },
    sdk::{SessionOptions, create_agent_session},
    session::SessionManager,
};
use serde_json::json;

fn ask_before_deleting(pi: &mut ExtensionApi) {
    pi.on(event::ToolCall, async |event, ctx| {
        if event.tool_name != "delete" {
            return ToolCallDecision::Allow;
        }
        let path = event.input.get("path").and_then(|path| path.as_str()).unwrap_or("something");
        let ui = ctx.ui().within(Duration::from_secs(60));
        match ui.confirm("Delete?", format!("The model wants to delete {path}.")).await {
            true => ToolCallDecision::Allow,
            false => ToolCallDecision::block(format!("The user does not want {path} to be deleted.")),
        }
    });
}

/// A user who always gives the same answer, in the place of a terminal.
#[derive(Clone, Copy)]
struct User {
    says: bool,
}

#[async_trait]
impl ExtensionUi for User {
    async fn ask(&self, question: UiQuestion, _signal: CancellationToken) -> Option<UiAnswer> {
        println!("{question:?} -> {}", self.says);
        Some(UiAnswer::Confirmed(self.says))
    }

    fn mode(&self) -> Mode {
        Mode::Tui
    }

    fn show(&self, update: UiUpdate) {
        println!("{update:?}");
    }
}

fn delete() -> Tool {
    let parameters = json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]});
    let declaration = ToolDeclaration::new("delete", "Deletes a file.", parameters);
    Tool::from_declaration(declaration, async |_: ToolArguments, _: ToolContext| Ok("deleted"))
}

/// What the tool call came to, as the model was told.
async fn try_to_delete(user: Option<User>) -> Result<String, Box<dyn Error>> {
    let model =
        FauxProvider::new([FauxReply::tool_call("delete", json!({"path": "notes.txt"})), FauxReply::text("I see.")]);
    let mut options = SessionOptions::default()
        .stream_fn(model)
        .model(FauxProvider::model())
        .session_manager(SessionManager::in_memory())
        .tool(delete())
        .extension(ask_before_deleting);
    if let Some(user) = user {
        options = options.ui(user);
    }
    let session = create_agent_session(options).await?;
    session.prompt("Delete my notes.").await?;
    let told = session.messages().iter().find_map(|message| {
        Some(message.as_tool_result()?.content.iter().filter_map(|block| block.as_text()).collect::<String>())
    });
    session.dispose().await?;
    Ok(told.unwrap_or_default())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    for user in [Some(User { says: true }), Some(User { says: false }), None] {
        println!("{}", try_to_delete(user).await?);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_a_yes_lets_the_call_run() {
        assert_eq!(try_to_delete(Some(User { says: true })).await.unwrap(), "deleted");
        for user in [Some(User { says: false }), None] {
            assert_eq!(try_to_delete(user).await.unwrap(), "The user does not want notes.txt to be deleted.");
        }
    }
}
