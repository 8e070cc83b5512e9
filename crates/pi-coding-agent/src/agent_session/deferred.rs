//! What is said while a run goes on, and may not stand between a tool call and its result.

use pi_agent_core::AgentEvent;

use super::{Activity, AgentSessionError, Inner, SessionEvent};
use crate::{
    messages::{BashExecution, CodingMessage, CustomContent, SessionMessage},
    session::SessionError,
};

/// What waits for its place.
#[derive(Debug, Default)]
pub(super) struct Deferred {
    /// Messages of the application: they go in when the turn ends.
    messages: Vec<CustomContent>,
    /// Commands of the user: they go in when the run ends.
    commands: Vec<BashExecution>,
}

impl Inner {
    /// Adds a message of the application, now or when the turn ends.
    pub(super) async fn add_custom(&self, message: CustomContent) -> Result<(), AgentSessionError> {
        if self.is_running() {
            self.state().deferred.messages.push(message);
            return Ok(());
        }
        Ok(self.append_custom(message).await?)
    }

    /// Records a command of the user, now or when the run ends.
    pub(super) async fn add_command(&self, command: BashExecution) -> Result<(), AgentSessionError> {
        if self.is_running() {
            self.state().deferred.commands.push(command);
            return Ok(());
        }
        self.manager.append_message(CodingMessage::BashExecution(command)).await?;
        Ok(())
    }

    pub(super) fn is_running(&self) -> bool {
        *self.activity.borrow() == Activity::Running
    }

    /// Whether messages of the application wait for the turn to end.
    pub(super) fn has_deferred_messages(&self) -> bool {
        !self.state().deferred.messages.is_empty()
    }

    /// Adds the messages that waited for the turn to end. Whether there were any.
    pub(super) async fn add_deferred_messages(&self) -> Result<bool, SessionError> {
        let messages = std::mem::take(&mut self.state().deferred.messages);
        let is_some = !messages.is_empty();
        for message in messages {
            self.append_custom(message).await?;
        }
        Ok(is_some)
    }

    /// Adds everything that waited for the run to end.
    pub(super) async fn add_deferred(&self) -> Result<(), SessionError> {
        let commands = std::mem::take(&mut self.state().deferred.commands);
        for command in commands {
            self.manager.append_message(CodingMessage::BashExecution(command)).await?;
        }
        self.add_deferred_messages().await?;
        Ok(())
    }

    async fn append_custom(&self, message: CustomContent) -> Result<(), SessionError> {
        let message: SessionMessage = CodingMessage::Custom(message).into();
        self.manager.append_message(message.clone()).await?;
        self.tell(SessionEvent::Agent(AgentEvent::MessageStart { message: message.clone() })).await;
        self.tell(SessionEvent::Agent(AgentEvent::MessageEnd { message })).await;
        Ok(())
    }
}
