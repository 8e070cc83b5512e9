//! A crate that only reads transcripts: it needs messages and their replay, and no network.

use pi_ai::{
    Message,
    transcript::{current_system_prompt, current_tools},
};

/// What a transcript of one JSON message per line holds when its last line is reached: the prompt, the tools that are
/// offered, and how many answers there were.
///
/// # Errors
/// When a line is no message.
pub fn describe(transcript: &str) -> Result<String, serde_json::Error> {
    let messages = transcript.lines().map(serde_json::from_str).collect::<Result<Vec<Message>, _>>()?;
    let answers = messages.iter().filter(|message| message.as_assistant().is_some()).count();
    let tools: Vec<String> = current_tools(&messages).into_iter().map(|tool| tool.name).collect();
    Ok(format!("prompt: {}; tools: {}; answers: {answers}", current_system_prompt(&messages), tools.join(", ")))
}
