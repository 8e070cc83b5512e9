//! A crate that works in a folder: it has the tools, the sessions and the settings of the coding agent.

use pi_coding_agent::{
    agent_session::AgentSessionError,
    sdk::{CreateSessionError, SessionOptions, create_agent_session},
    tool_selection::{ToolList, ToolSelection},
};
use schemars::JsonSchema;
use serde::Deserialize;

/// What a review came to.
#[derive(Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct Review {
    /// One sentence.
    pub summary: String,
    /// Files that need another look.
    pub files: Vec<String>,
}

/// Why there is no review.
#[derive(Debug)]
pub enum ReviewError {
    /// The session could not be made.
    Create(CreateSessionError),
    /// The session failed.
    Session(AgentSessionError),
}

/// Reviews the folder that the options name, without changing anything in it.
///
/// # Errors
/// When the session cannot be made, or the model gives no review.
pub async fn review(options: SessionOptions) -> Result<Review, ReviewError> {
    let reading = ["read", "grep", "find", "ls"].map(str::to_owned).to_vec();
    let tools = ToolSelection { only: Some(ToolList::Exactly(reading)), ..ToolSelection::default() };
    let session = create_agent_session(options.tool_selection(tools)).await.map_err(ReviewError::Create)?;
    let review = session.prompt_as("Review this folder. Which files need another look?").await;
    session.dispose().await.map_err(ReviewError::Session)?;
    review.map_err(ReviewError::Session)
}
