//! The exercises of `docs/message-pipeline.md`, solved: `cargo run -p example-pipeline-exercises -- 1`.

mod budget;
mod secret;
mod time_of_day;
mod two_audiences;
mod who_dropped_it;

use pi_agent_core::AgentError;
use pi_ai::Message;

#[tokio::main]
async fn main() -> Result<(), AgentError> {
    let lines = match std::env::args().nth(1).as_deref() {
        Some("1") => time_of_day::solve().await?,
        Some("2") => two_audiences::solve().await?,
        Some("3") => secret::solve().await?,
        Some("4") => budget::solve().await?,
        Some("5") => who_dropped_it::solve().await?,
        _ => vec!["Which exercise? Give a number from 1 to 5.".to_owned()],
    };
    lines.iter().for_each(|line| println!("{line}"));
    Ok(())
}

/// A message of a request in one line.
fn line(message: &Message) -> String {
    let text = match message {
        Message::System(message) => message.content.text().into_owned(),
        Message::User(message) => message.content.text().into_owned(),
        Message::Assistant(message) => message.text(),
        Message::ToolResult(result) => result.content.iter().filter_map(|block| block.as_text()).collect(),
    };
    format!("{}: {text}", message.role())
}
