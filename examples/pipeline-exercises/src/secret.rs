//! 3. The transcript keeps what users wrote, the model sees `[key]` for keys.
//!
//! It is about what the model sees of a message, whatever the request: `convert_to_llm`. And it is about the model's own
//! roles, so it is the method `convert_model`, which a closure over custom roles does not have: a struct does.

use pi_agent_core::{Agent, AgentError, ConvertToLlm, NoCustom};
use pi_ai::{
    Content, InputBlock, Message, TextContent, UserMessage,
    faux::{FauxProvider, FauxReply},
};

use crate::line;

struct HidesKeys;

impl ConvertToLlm<NoCustom> for HidesKeys {
    fn convert(&self, custom: &NoCustom) -> Vec<Message> {
        match *custom {}
    }

    fn convert_model(&self, message: Message) -> Option<Message> {
        let Message::User(user) = &message else { return Some(message) };
        let content = match &user.content {
            Content::Text(text) => Content::Text(hide(text)),
            Content::Blocks(blocks) => Content::Blocks(blocks.iter().map(hide_in_block).collect()),
        };
        // A message without a key is handed on as it is: the same pointer, no copy.
        if content == user.content {
            return Some(message);
        }
        Some(UserMessage { content, ..UserMessage::clone(user) }.into())
    }
}

fn hide_in_block(block: &InputBlock) -> InputBlock {
    match block {
        InputBlock::Text(text) => InputBlock::Text(TextContent { text: hide(&text.text), ..text.clone() }),
        other => other.clone(),
    }
}

fn hide(text: &str) -> String {
    let words = text.split(' ').map(|word| if word.starts_with("sk-") { "[key]" } else { word });
    words.collect::<Vec<_>>().join(" ")
}

pub(crate) async fn solve() -> Result<Vec<String>, AgentError> {
    let model = FauxProvider::new([FauxReply::text("It is a key.")]);
    let agent = Agent::builder(model.clone()).convert_to_llm_with(HidesKeys).build();
    agent.prompt("What is sk-12345 for?").await?;
    let kept = agent.state().messages[0].as_llm().map(line);
    let seen = model.requests()[0].context.messages().first().map(line);
    Ok(kept.into_iter().chain(seen).collect())
}

#[cfg(test)]
#[tokio::test]
async fn the_key_stays_here() {
    assert_eq!(solve().await.unwrap(), ["user: What is sk-12345 for?", "user: What is [key] for?"]);
}
