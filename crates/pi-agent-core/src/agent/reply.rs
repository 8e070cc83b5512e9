//! A run in progress, and what it came to.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use pi_ai::{AssistantMessage, CancellationToken, ProviderError, StopReason};
use tokio::task::JoinHandle;

use super::AgentError;
use crate::{
    agent_loop::Outcome,
    message::{AgentMessage, NoCustom},
};

/// A run. It has already begun, in a task of its own: await it for the [`Reply`], drop it to abort, or
/// [detach](Self::detach) it. However it ends, its events are complete.
#[derive(Debug)]
#[must_use = "dropping a run aborts it: await it, or call `detach`"]
pub struct Run<C = NoCustom> {
    state: State<C>,
    /// Cancelled when the run is dropped.
    signal: Option<CancellationToken>,
}

#[derive(Debug)]
enum State<C> {
    Refused(Option<AgentError>),
    Running(JoinHandle<Outcome<C>>),
}

impl<C> Run<C> {
    pub(super) fn refused(error: AgentError) -> Self {
        Self { state: State::Refused(Some(error)), signal: None }
    }

    pub(super) fn running(task: JoinHandle<Outcome<C>>, signal: CancellationToken) -> Self {
        Self { state: State::Running(task), signal: Some(signal) }
    }

    /// Lets the run go on by itself.
    ///
    /// # Errors
    /// When the run was refused in the first place.
    pub fn detach(mut self) -> Result<(), AgentError> {
        self.signal = None;
        match &mut self.state {
            State::Refused(error) => error.take().map_or(Ok(()), Err),
            State::Running(_) => Ok(()),
        }
    }
}

impl<C> Unpin for Run<C> {}

impl<C> Future for Run<C> {
    type Output = Result<Reply<C>, AgentError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.state {
            State::Refused(error) => Poll::Ready(Err(error.take().unwrap_or(AgentError::NoAnswer))),
            State::Running(task) => {
                let ended = ready!(Pin::new(task).poll(cx));
                self.signal = None;
                Poll::Ready(match ended {
                    Ok(outcome) => Ok(Reply { messages: outcome.messages.into(), cause: outcome.cause }),
                    Err(_) => Err(AgentError::CutOff),
                })
            }
        }
    }
}

impl<C> Drop for Run<C> {
    fn drop(&mut self) {
        if let Some(signal) = self.signal.take() {
            signal.cancel();
        }
    }
}

/// What a run came to. A run that failed has a reply too: the answer in it says why.
#[derive(Clone, Debug)]
pub struct Reply<C = NoCustom> {
    messages: Arc<[AgentMessage<C>]>,
    cause: Option<ProviderError>,
}

impl<C> Reply<C> {
    /// Everything that the run added to the transcript.
    pub fn messages(&self) -> &[AgentMessage<C>] {
        &self.messages
    }

    /// The last answer.
    pub fn answer(&self) -> Option<&AssistantMessage> {
        self.messages.iter().rev().find_map(AgentMessage::as_assistant)
    }

    /// The text of the last answer, as far as it came; empty when there is none.
    pub fn text(&self) -> String {
        self.answer().map(AssistantMessage::text).unwrap_or_default()
    }

    /// The text of the last answer.
    ///
    /// # Errors
    /// When the run failed, was aborted, or has no answer.
    pub fn into_text(self) -> Result<String, AgentError> {
        self.check()?;
        Ok(self.text())
    }

    /// Why the run failed.
    pub fn error(&self) -> Option<&ProviderError> {
        self.cause.as_ref()
    }

    /// Whether the run has a proper answer.
    ///
    /// # Errors
    /// When it failed, was aborted, or has no answer.
    pub fn check(&self) -> Result<(), AgentError> {
        let answer = self.answer().ok_or(AgentError::NoAnswer)?;
        let message = || answer.error_message.clone().unwrap_or_else(|| "no reason was given".to_owned());
        match answer.stop_reason {
            StopReason::Error => Err(AgentError::Failed { message: message(), cause: self.cause.clone() }),
            StopReason::Aborted => Err(AgentError::Aborted { message: message() }),
            _ => Ok(()),
        }
    }
}
