//! A typed tool that an extension brings: `cargo run -p example-custom-tool`.
//!
//! The schema comes from the type of the arguments, the system prompt gets a line and a rule, and a command of the user
//! offers or withdraws the tool while the session runs.

use std::error::Error;

use pi_agent_core::{Tool, ToolContext, ToolError};
use pi_ai::faux::{FauxProvider, FauxReply};
use pi_coding_agent::{
    agent_session::{AgentSession, SessionTool},
    extensions::{Command, ExtensionApi},
    sdk::{SessionOptions, create_agent_session},
    session::SessionManager,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

#[derive(Deserialize, JsonSchema)]
struct Convert {
    /// The amount.
    amount: f64,
    /// The unit: `km` or `mi`.
    from: String,
}

fn convert() -> Tool {
    Tool::new("convert", "Converts between kilometres and miles.", async |arguments: Convert, _: ToolContext| {
        let Convert { amount, from } = arguments;
        match from.as_str() {
            "km" => Ok(format!("{:.1} mi", amount / 1.609_344)),
            "mi" => Ok(format!("{:.1} km", amount * 1.609_344)),
            other => Err(ToolError::new(format!("`{other}` is no unit; expected km or mi"))),
        }
    })
}

fn units(pi: &mut ExtensionApi) {
    pi.register_session_tool(SessionTool {
        snippet: Some("Converts kilometres and miles".to_owned()),
        guidelines: vec!["Use convert for distances; do not reckon yourself.".to_owned()],
        ..SessionTool::custom(convert())
    });
    pi.register_command(
        Command::new("units", async |state, ctx| {
            let others = ctx.active_tools().into_iter().filter(|name| name != "convert");
            let wanted: Vec<String> = others.chain((state == "on").then(|| "convert".to_owned())).collect();
            ctx.set_active_tools(wanted)
        })
        .description("Offers the conversion of units or withdraws it: /units on, /units off"),
    );
}

async fn session(model: FauxProvider) -> Result<AgentSession, Box<dyn Error>> {
    let options = SessionOptions::default()
        .stream_fn(model)
        .model(FauxProvider::model())
        .session_manager(SessionManager::in_memory())
        .extension(units);
    Ok(create_agent_session(options).await?)
}

fn script() -> FauxProvider {
    FauxProvider::new([
        FauxReply::tool_call("convert", json!({"amount": 10, "from": "mi"})),
        FauxReply::text("Ten miles are about 16 km."),
        FauxReply::text("I cannot convert any more."),
    ])
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let session = session(script()).await?;
    println!("{}", session.prompt("How far are ten miles?").await?.text());
    session.prompt("/units off").await?;
    println!("{}", session.prompt("And eleven?").await?.text());
    session.dispose().await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use pi_ai::transcript::current_tools;

    use super::*;

    #[tokio::test]
    async fn the_model_calls_the_tool_until_it_is_withdrawn() {
        let model = script();
        let session = session(model.clone()).await.unwrap();
        session.prompt("How far are ten miles?").await.unwrap();
        let result = session.messages().iter().find_map(|message| message.as_tool_result().cloned()).unwrap();
        assert_eq!(result.content[0].as_text(), Some("16.1 km"));
        assert!(session.system_prompt().contains("do not reckon yourself"));
        session.prompt("/units off").await.unwrap();
        session.prompt("And eleven?").await.unwrap();
        let offered = |nth: usize| current_tools(model.requests()[nth].context.messages());
        assert!(offered(0).iter().any(|tool| tool.name == "convert"));
        assert!(!offered(2).iter().any(|tool| tool.name == "convert"));
    }
}
