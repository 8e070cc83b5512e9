//! A long transcript and short requests: `cargo run -p example-context-pruning`.

use pi_agent_core::{KeepRecent, prelude::*};
use pi_ai::{
    SystemMessage,
    faux::{FauxProvider, FauxReply},
    transcript::current_system_prompt,
};

const MOST_MESSAGES: usize = 40;

/// What each request had: how many messages, and which prompt.
async fn talk(turns: usize) -> Result<Vec<(usize, String)>, AgentError> {
    let model = FauxProvider::new((0..turns).map(|turn| FauxReply::text(format!("answer {turn}"))));
    let agent = Agent::builder(model.clone())
        .messages([SystemMessage::new("You help.").section("tone", "Be formal.")])
        .transform_context_with(KeepRecent::at_most(MOST_MESSAGES))
        .build();
    for turn in 0..turns {
        let question = Message::user(format!("question {turn}"));
        match turn {
            // The prompt changes early, in a message that is left out later. It still counts.
            3 => agent.prompt([SystemMessage::default().section("tone", "Be brief.").into(), question]).await?,
            _ => agent.prompt(question).await?,
        };
    }
    assert_eq!(agent.state().messages.len(), 2 * turns + 2, "the record keeps everything");
    let seen = |messages: &[Message]| (messages.len(), current_system_prompt(messages));
    Ok(model.requests().iter().map(|request| seen(request.context.messages())).collect())
}

#[tokio::main]
async fn main() -> Result<(), AgentError> {
    for (turn, (messages, prompt)) in talk(30).await?.iter().enumerate() {
        println!("request {turn}: {messages} messages, prompt {prompt:?}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn requests_stay_short_and_keep_the_prompt() {
        let requests = talk(30).await.unwrap();
        assert_eq!(requests[29], (MOST_MESSAGES, "You help.\n\nBe brief.".to_owned()));
        assert!(requests.iter().all(|(messages, _)| *messages <= MOST_MESSAGES));
        assert_eq!(requests[0].1, "You help.\n\nBe formal.");
    }
}
