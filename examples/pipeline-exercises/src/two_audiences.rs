//! 2. The model reads a summary, the screen shows the whole table.
//!
//! Neither hook: a tool's result has two parts. `content` is for the model, `details` for programs and the screen, and
//! no details ever reach a model.

use pi_agent_core::{Agent, AgentError, Tool, ToolArguments, ToolOutput};
use pi_ai::{
    ToolDeclaration,
    faux::{FauxProvider, FauxReply},
};
use serde_json::json;

use crate::line;

pub(crate) async fn solve() -> Result<Vec<String>, AgentError> {
    let declaration = ToolDeclaration::new("sales", "Sales of the year.", json!({"type": "object"}));
    let sales = Tool::from_declaration(declaration, async |_arguments: ToolArguments, _context| {
        let table = json!([["Q1", 10], ["Q2", 30], ["Q3", 20], ["Q4", 40]]);
        Ok(ToolOutput::text("100 in all, best quarter Q4").details(table))
    });
    let model = FauxProvider::new([FauxReply::tool_call("sales", json!({})), FauxReply::text("A good year.")]);
    let agent = Agent::builder(model.clone()).tool(sales).build();
    let reply = agent.prompt("How was the year?").await?;
    let mut lines = vec!["the model reads".to_owned()];
    lines.extend(model.requests().last().and_then(|request| request.context.messages().last().map(line)));
    lines.push("the screen shows".to_owned());
    let results = reply.messages().iter().filter_map(|message| message.as_tool_result());
    lines.extend(results.filter_map(|result| result.details.as_ref()).map(ToString::to_string));
    Ok(lines)
}

#[cfg(test)]
#[tokio::test]
async fn each_gets_what_it_needs() {
    let lines = solve().await.unwrap();
    assert_eq!(lines[1], "toolResult: 100 in all, best quarter Q4");
    assert!(lines[3].contains(r#"["Q2",30]"#));
}
