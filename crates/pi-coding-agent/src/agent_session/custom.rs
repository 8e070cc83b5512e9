//! What an application says in the conversation.

use pi_ai::Content;
use serde_json::Value;

use super::{AgentSession, AgentSessionError, Inner, SessionRun, prompt::Opening};
use crate::messages::{CodingMessage, CustomContent};

/// Something that an application says. The model sees the content as the user's words; `display` and `details` are for
/// the screen and the program, and never reach it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CustomMessage {
    /// The application's name for this kind of message.
    pub custom_type: String,
    /// What the model sees.
    pub content: Content,
    /// Whether people see it.
    pub display: Display,
    /// What the application keeps with it.
    pub details: Option<Value>,
}

/// Whether people see a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Display {
    /// They do.
    #[default]
    Shown,
    /// They do not.
    Hidden,
}

impl AgentSession {
    /// Says something on the application's behalf and has it answered.
    pub fn prompt_with(&self, message: CustomMessage) -> SessionRun {
        let message = CodingMessage::Custom(self.inner.stamped(message));
        self.start(Opening::Messages(vec![message.into()]))
    }

    /// Says something on the application's behalf; the model sees it with the next request. While a prompt is answered
    /// it is kept until the current turn ends, so that it does not come between a tool call and its result.
    ///
    /// # Errors
    /// When it cannot be stored.
    pub async fn add_message(&self, message: CustomMessage) -> Result<(), AgentSessionError> {
        let message = self.inner.stamped(message);
        self.inner.add_custom(message).await
    }
}

impl Inner {
    /// What an application says, as a message of now.
    pub(super) fn stamped(&self, message: CustomMessage) -> CustomContent {
        CustomContent {
            custom_type: message.custom_type,
            content: message.content,
            display: message.display == Display::Shown,
            details: message.details,
            timestamp: self.clock.now(),
        }
    }
}
