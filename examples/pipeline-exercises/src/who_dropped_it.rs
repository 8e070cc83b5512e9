//! 5. Which of the two hooks dropped a message?
//!
//! An observer sees both lists of every stage. For the first hook, `provenance` compares by pointer; for the second, the
//! origins of its outputs tell which inputs have none.

use std::sync::{Arc, Mutex, PoisonError};

use pi_agent_core::{
    Agent, AgentError, AgentMessage, NoCustom, RequestId, RequestObserver, Stage,
    observe::{Fate, provenance},
};
use pi_ai::{
    Message,
    faux::{FauxProvider, FauxReply},
};

use crate::line;

#[derive(Clone, Default)]
struct Detective(Arc<Mutex<Vec<String>>>);

impl Detective {
    fn note(&self, hook: &str, message: &AgentMessage) {
        let line = format!("{hook} dropped \"{}\"", message.as_llm().map(line).unwrap_or_default());
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(line);
    }
}

impl RequestObserver<NoCustom> for Detective {
    fn stage(&self, _request: RequestId, stage: Stage<'_, NoCustom>) {
        match stage {
            Stage::Transformed { before, after } => {
                for fate in provenance(before, after).fates() {
                    if let Fate::Gone { from } = fate {
                        self.note("transform_context", &before[from]);
                    }
                }
            }
            Stage::Converted { before, origins: Some(origins), .. } => {
                let dropped = before.iter().enumerate().filter(|(index, _)| !origins.contains(index));
                dropped.for_each(|(_, message)| self.note("convert_to_llm", message));
            }
            _ => {}
        }
    }
}

struct OnlyUsers;

impl pi_agent_core::ConvertToLlm<NoCustom> for OnlyUsers {
    fn convert(&self, custom: &NoCustom) -> Vec<Message> {
        match *custom {}
    }

    fn convert_model(&self, message: Message) -> Option<Message> {
        (message.role() == "user").then_some(message)
    }
}

pub(crate) async fn solve() -> Result<Vec<String>, AgentError> {
    let detective = Detective::default();
    let agent = Agent::builder(FauxProvider::new([FauxReply::text("ok")]))
        .system_prompt("You help.")
        .transform_context(async |messages: Vec<AgentMessage>, _signal| {
            messages
                .into_iter()
                .filter(|message| !message.as_llm().is_some_and(|m| line(m).contains("secret")))
                .collect()
        })
        .convert_to_llm_with(OnlyUsers)
        .observer(detective.clone())
        .build();
    agent.prompt([Message::user("the secret"), Message::user("the question")]).await?;
    let lines = detective.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
    Ok(lines)
}

#[cfg(test)]
#[tokio::test]
async fn both_are_caught() {
    let caught = solve().await.unwrap();
    assert_eq!(
        caught,
        ["transform_context dropped \"user: the secret\"", "convert_to_llm dropped \"system: You help.\""]
    );
}
