//! A session that nothing on disk knows of, with a typed tool, run to its end.
//!
//! The model is a scripted one, so that the example runs anywhere. Leave out `stream_fn` and `model`, and the session
//! asks whatever model your environment has a key for.

use std::error::Error;

use pi_agent_core::{Tool, ToolContext};
use pi_ai::faux::{FauxProvider, FauxReply};
use pi_coding_agent::{
    sdk::{SessionOptions, create_agent_session},
    session::SessionManager,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

#[derive(Deserialize, JsonSchema)]
struct CheckArguments {
    /// Only this package.
    package: Option<String>,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    println!("{}", run_checks().await?);
    Ok(())
}

/// Has the checks run by a scripted model, and gives its answer and the length of the session's record.
async fn run_checks() -> Result<String, Box<dyn Error>> {
    let model = FauxProvider::new([
        FauxReply::tool_call("check", json!({"package": "pi-ai"})),
        FauxReply::text("All checks passed."),
    ]);
    let check =
        Tool::new("check", "Runs the project's checks.", async |arguments: CheckArguments, context: ToolContext| {
            let package = arguments.package.as_deref().unwrap_or("every package");
            context.update(format!("checking {package} …"));
            Ok(format!("{package}: 12 checks passed"))
        });
    let options = SessionOptions::default()
        .stream_fn(model)
        .model(FauxProvider::model())
        .session_manager(SessionManager::in_memory())
        .tool(check);
    let session = create_agent_session(options).await?;
    let answer = session.prompt("Run the checks of pi-ai.").await?.into_text()?;
    let entries = session.session_manager().branch_entries().len();
    session.dispose().await?;
    Ok(format!("{answer} ({entries} entries)"))
}

#[cfg(test)]
mod tests {
    #[tokio::test]
    async fn the_session_runs_the_tool_and_records_every_step() {
        let answer = super::run_checks().await.unwrap();
        // Model, level, prompt, question, call, result, answer.
        assert_eq!(answer, "All checks passed. (7 entries)");
    }
}
