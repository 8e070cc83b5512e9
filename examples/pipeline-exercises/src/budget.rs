//! 4. As many of the most recent messages as fit into a budget, with the prompt.
//!
//! The list must never begin with a tool result whose call was left out. Counting messages is `KeepRecent`; counting
//! characters is up to you, and the same rule holds.

use pi_agent_core::{Agent, AgentError, AgentMessage};
use pi_ai::{
    Message,
    faux::{FauxProvider, FauxReply},
    transcript::current_system_message,
};

use crate::line;

const BUDGET: usize = 2_000;

fn within_budget(messages: Vec<AgentMessage>) -> Vec<AgentMessage> {
    let size = |message: &AgentMessage| message.as_llm().map(line).unwrap_or_default().chars().count();
    let head = current_system_message(&messages).map(AgentMessage::from);
    let mut left = BUDGET.saturating_sub(head.as_ref().map(size).unwrap_or_default());
    let mut recent: Vec<AgentMessage> = Vec::new();
    // The last message always goes along: without it there is nothing to answer.
    for message in messages.into_iter().rev().filter(|message| !message.is_system()) {
        match left.checked_sub(size(&message)) {
            Some(rest) => left = rest,
            None if recent.is_empty() => left = 0,
            None => break,
        }
        recent.push(message);
    }
    // Oldest last here: results at the end have lost their calls.
    while recent.len() > 1 && recent.last().is_some_and(|oldest| oldest.as_tool_result().is_some()) {
        recent.pop();
    }
    head.into_iter().chain(recent.into_iter().rev()).collect()
}

pub(crate) async fn solve() -> Result<Vec<String>, AgentError> {
    let model = FauxProvider::new((0..20).map(|turn| FauxReply::text(format!("answer {turn} {}", "x".repeat(200)))));
    let agent = Agent::builder(model.clone())
        .system_prompt("You are long-winded.")
        .transform_context(async |messages, _signal| within_budget(messages))
        .build();
    for turn in 0..20 {
        agent.prompt(format!("question {turn}")).await?;
    }
    let size = |messages: &[Message]| messages.iter().map(|message| line(message).chars().count()).sum::<usize>();
    let requests = model.requests();
    let sizes = requests.iter().map(|request| request.context.messages()).enumerate();
    Ok(sizes
        .map(|(turn, messages)| format!("request {turn}: {} messages, {} characters", messages.len(), size(messages)))
        .collect())
}

#[cfg(test)]
#[tokio::test]
async fn no_request_is_over_budget() {
    let lines = solve().await.unwrap();
    let characters = |line: &String| line.rsplit(' ').nth(1).unwrap().parse::<usize>().unwrap();
    assert!(lines.iter().map(characters).all(|size| size <= BUDGET));
    assert!(characters(lines.last().unwrap()) > BUDGET / 2);
}

#[cfg(test)]
#[test]
fn it_never_begins_with_a_lone_result() {
    use pi_ai::{AssistantMessage, InputBlock, ToolCall, ToolResultMessage};
    let call = ToolCall::new("1", "t", serde_json::json!({})).into();
    let answer =
        AssistantMessage { content: vec![pi_ai::AssistantBlock::text("y".repeat(BUDGET)), call], ..Default::default() };
    let result =
        ToolResultMessage { tool_call_id: "1".into(), content: vec![InputBlock::text("r")], ..Default::default() };
    let pruned = within_budget(vec![answer.into(), result.into(), AgentMessage::user("go on")]);
    assert_eq!(pruned, [AgentMessage::user("go on")]);
}
