//! A gate that decides about each tool call before it runs: `cargo run -p example-permission-gate-core`.

use async_trait::async_trait;
use pi_agent_core::{
    hooks::{BeforeToolCall, HookError, Permission},
    prelude::*,
};
use pi_ai::faux::{FauxProvider, FauxReply};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

#[derive(Deserialize, JsonSchema)]
struct RemoveArguments {
    /// What to remove.
    path: String,
}

/// Asks before something is removed, and never lets anything outside of the project be removed.
struct Gate<Ask> {
    ask: Ask,
}

#[async_trait]
impl<Ask: AsyncHook<String, CancellationToken, bool>> AgentHooks<NoCustom> for Gate<Ask> {
    async fn before_tool_call(&self, call: &mut BeforeToolCall<'_, NoCustom>) -> Result<Permission, HookError> {
        if call.call.name != "remove" {
            return Ok(Permission::Allow);
        }
        let path = call.arguments.get("path").and_then(|path| path.as_str()).unwrap_or_default();
        if path.starts_with('/') || path.split('/').any(|part| part == "..") {
            return Ok(Permission::block(format!("{path} is outside of the project. Nothing there may be removed.")));
        }
        // The question ends with the run: an abort cancels the signal.
        Ok(match self.ask.run(format!("Remove {path}?"), call.signal.clone()).await {
            true => Permission::Allow,
            false => Permission::block("The user said no. Ask what to do instead."),
        })
    }
}

fn tidy_agent(model: FauxProvider, ask: impl AsyncHook<String, CancellationToken, bool>) -> Agent {
    let remove = Tool::new("remove", "Removes a file.", async |arguments: RemoveArguments, _context| {
        Ok(format!("removed {}", arguments.path))
    });
    Agent::builder(model).tool(remove).hooks(Gate { ask }).build()
}

/// Three attempts in one answer.
fn script() -> FauxProvider {
    let call = |id: &str, path: &str| pi_ai::ToolCall::new(id, "remove", json!({"path": path})).into();
    let attempts = [call("1", "/etc/passwd"), call("2", "notes.txt"), call("3", "target/cache")];
    FauxProvider::new([FauxReply::blocks(attempts), FauxReply::text("I removed the cache.")])
}

/// Somebody who gives up the cache, and nothing else.
async fn careful(question: String, _signal: CancellationToken) -> bool {
    question.contains("cache")
}

#[tokio::main]
async fn main() -> Result<(), AgentError> {
    let reply = tidy_agent(script(), careful).prompt("Tidy up.").await?;
    for result in reply.messages().iter().filter_map(AgentMessage::as_tool_result) {
        println!("{} {:?}", if result.is_error { "refused:" } else { "done:   " }, result.content);
    }
    println!("{}", reply.into_text()?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_what_is_allowed_runs() {
        let reply = tidy_agent(script(), careful).prompt("Tidy up.").await.unwrap();
        let results: Vec<_> = reply.messages().iter().filter_map(AgentMessage::as_tool_result).collect();
        let texts: Vec<_> = results.iter().filter_map(|result| result.content[0].as_text()).collect();
        assert!(texts[0].contains("outside of the project"));
        assert!(texts[1].contains("said no"));
        assert_eq!(texts[2], "removed target/cache");
        assert_eq!(results.iter().map(|result| result.is_error).collect::<Vec<_>>(), [true, true, false]);
    }
}
