//! Prompts whose answer is a value of a type.

use pi_ai::{
    faux::{FauxProvider, FauxReply},
    transcript::current_tools,
};
use pi_coding_agent::{agent_session::AgentSessionError, sdk::create_agent_session};
use pretty_assertions::assert_eq;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{Place, waiting_tool};

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Finding {
    /// The file.
    file: String,
    severity: Severity,
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
enum Severity {
    Low,
    High,
}

fn answer(value: serde_json::Value) -> FauxReply {
    FauxReply::tool_call("final_answer", json!({"answer": value}))
}

#[tokio::test]
async fn tools_are_used_and_the_answer_has_the_type() {
    let place = Place::new();
    std::fs::write(place.cwd().join("a.txt"), "content").unwrap();
    let provider = FauxProvider::new([
        FauxReply::tool_call("read", json!({"path": "a.txt"})),
        answer(json!([{"file": "a.txt", "severity": "high"}])),
        FauxReply::text("You are welcome."),
    ]);
    let session = create_agent_session(place.options(&provider)).await.unwrap();
    let offered = session.active_tools();
    let findings: Vec<Finding> = session.prompt_as("Review a.txt").await.unwrap();
    assert_eq!(findings, [Finding { file: "a.txt".into(), severity: Severity::High }]);
    // The schema came along, and the tool is gone afterwards.
    let requests = provider.requests();
    let tool =
        |at: usize| current_tools(requests[at].context.messages()).into_iter().find(|tool| tool.name == "final_answer");
    let schema = tool(0).unwrap().parameters.to_string();
    assert!(schema.contains("severity") && schema.contains("The file."), "{schema}");
    assert_eq!(session.active_tools(), offered);
    session.prompt("Thanks").await.unwrap();
    assert!(!current_tools(provider.requests()[2].context.messages()).iter().any(|tool| tool.name == "final_answer"));
    session.dispose().await.unwrap();
}

#[tokio::test]
async fn a_value_that_does_not_fit_goes_back_to_the_model() {
    let place = Place::new();
    let provider = FauxProvider::new([answer(json!({"file": "a", "severity": "dire"})), answer(json!("low"))]);
    let session = create_agent_session(place.options(&provider)).await.unwrap();
    let severity: Severity = session.prompt_as("How bad is it?").await.unwrap();
    assert_eq!(severity, Severity::Low);
    session.dispose().await.unwrap();
}

#[tokio::test]
async fn a_model_that_only_talks_is_reminded_and_then_given_up() {
    let place = Place::new();
    let provider = FauxProvider::new([FauxReply::text("Quite bad."), answer(json!("high"))]);
    let session = create_agent_session(place.options(&provider)).await.unwrap();
    assert_eq!(session.prompt_as::<Severity>("How bad is it?").await.unwrap(), Severity::High);
    provider.append(["Bad.", "Very bad.", "I said so."].map(FauxReply::text));
    let error = session.prompt_as::<Severity>("And now?").await.unwrap_err();
    assert!(matches!(&error, AgentSessionError::NoAnswer { said } if said == "I said so."), "{error}");
    assert!(!session.known_tools().contains(&"final_answer".to_owned()));
    session.dispose().await.unwrap();
}

#[tokio::test]
async fn a_session_that_is_busy_refuses_and_keeps_its_tools() {
    let place = Place::new();
    let (tool, begun, _) = waiting_tool();
    let provider = FauxProvider::new([FauxReply::tool_call("wait", json!({}))]);
    let session = create_agent_session(place.options(&provider).tool(tool)).await.unwrap();
    let run = session.prompt("wait");
    begun.notified().await;
    assert!(matches!(session.prompt_as::<String>("now?").await, Err(AgentSessionError::Busy)));
    assert!(!session.active_tools().contains(&"final_answer".to_owned()));
    session.abort();
    run.await.unwrap();
    session.dispose().await.unwrap();
}
