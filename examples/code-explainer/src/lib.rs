//! An agent that explains code to beginners. It has no tools: it reads what it is handed, and nothing else.

use std::{sync::Arc, time::Duration};

use pi_agent_core::{Agent, AgentError};
use pi_ai::{Model, StreamFn};

/// How long an explanation may take.
pub const TIME_LIMIT: Duration = Duration::from_secs(30);

const INSTRUCTIONS: &str = "You explain source code to people who are new to it. Say first what the code is for, then \
                            how it does it, step by step, in plain words. You cannot run anything: never claim to have \
                            run or tested the code.";

/// What came of a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Explanation {
    /// The model has explained the code.
    Complete(String),
    /// The time was over. This is how far it came.
    CutShort(String),
}

/// Makes the agent, for any stream function and model.
pub fn explainer(stream: impl StreamFn, model: impl Into<Arc<Model>>) -> Agent {
    Agent::builder(stream).model(model).system_prompt(INSTRUCTIONS).build()
}

/// Explains one piece of code, within a time limit. Afterwards the agent is idle, whatever happened.
///
/// # Errors
/// When the model cannot be asked or fails.
pub async fn explain(agent: &Agent, code: &str, limit: Duration) -> Result<Explanation, AgentError> {
    let mut run = agent.prompt(format!("Explain this code:\n\n```\n{code}\n```"));
    tokio::select! {
        reply = &mut run => return reply?.into_text().map(Explanation::Complete),
        () = tokio::time::sleep(limit) => {}
    }
    agent.abort();
    // Nothing runs any more when this returns, and the transcript has what came.
    agent.wait_for_idle().await;
    Ok(Explanation::CutShort(run.await?.text()))
}

#[cfg(test)]
mod tests {
    use pi_ai::{
        Message, StopReason,
        faux::{FauxProvider, FauxReply},
        transcript::current_tools,
    };

    use super::*;

    #[tokio::test]
    async fn the_model_gets_the_instructions_and_the_code_and_no_tools() {
        let model = FauxProvider::new([FauxReply::text("It adds two numbers.")]);
        let agent = explainer(model.clone(), FauxProvider::model());
        let explanation = explain(&agent, "fn add(a: i32, b: i32) -> i32 { a + b }", TIME_LIMIT).await.unwrap();
        assert_eq!(explanation, Explanation::Complete("It adds two numbers.".to_owned()));

        let requests = model.requests();
        let [request] = &requests[..] else { panic!("one request was expected, not {}", requests.len()) };
        assert_eq!(request.model.id, "faux-1");
        let messages = request.context.messages();
        let [Message::System(system), Message::User(user)] = messages else { panic!("unexpected: {messages:?}") };
        assert!(system.content.text().contains("never claim"));
        assert!(user.content.text().contains("fn add(a: i32, b: i32)"));
        assert!(current_tools(messages).is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn after_the_time_limit_the_run_is_aborted_and_the_agent_is_idle() {
        let model = FauxProvider::new([FauxReply::text("First of all").hang()]);
        let agent = explainer(model.clone(), FauxProvider::model());
        let explanation = explain(&agent, "loop {}", TIME_LIMIT).await.unwrap();
        assert_eq!(explanation, Explanation::CutShort("First of all".to_owned()));
        let state = agent.state();
        assert!(!state.is_streaming);
        let answer = state.messages.last().and_then(|message| message.as_assistant()).unwrap();
        assert_eq!(answer.stop_reason, StopReason::Aborted);
        assert!(model.requests()[0].options.signal.is_cancelled());
    }

    #[tokio::test]
    async fn a_failure_is_an_error() {
        let agent = explainer(FauxProvider::new([]), FauxProvider::model());
        assert!(matches!(explain(&agent, "", TIME_LIMIT).await, Err(AgentError::Failed { .. })));
    }
}
