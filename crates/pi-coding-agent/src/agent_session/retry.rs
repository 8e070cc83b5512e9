//! Trying a failed turn again.

use std::time::Duration;

use pi_ai::{
    AssistantMessage, CancellationToken,
    recovery::{is_context_overflow, is_retryable_assistant_error, retry_delay},
};

use super::{AgentSessionError, Inner, RetryOutcome, SessionEvent, WillRetry};
use crate::{
    resources::Retry,
    session::{EntryId, Replacement},
};

/// How often the current turn was tried again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Attempts(u32);

/// An attempt that will be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PlannedRetry {
    attempt: u32,
    delay: Duration,
    error_message: String,
}

impl Attempts {
    /// The next attempt at a turn that ended in `answer`, if there should be one.
    pub(super) fn next(self, answer: &AssistantMessage, window: Option<u64>, settings: &Retry) -> Option<PlannedRetry> {
        let can_help = !is_context_overflow(answer, window) && is_retryable_assistant_error(answer);
        let attempt = self.0 + 1;
        (settings.enabled && can_help && attempt <= settings.max_retries).then(|| PlannedRetry {
            attempt,
            delay: retry_delay(settings.base_delay, attempt, settings.max_agent_delay),
            error_message: answer.error_message.clone().unwrap_or_default(),
        })
    }
}

impl Inner {
    /// What will be tried again after the run that just ended.
    pub(super) fn planned_retry(&self) -> Option<PlannedRetry> {
        let settings = self.settings.settings();
        let state = self.state();
        if state.run.signal.is_cancelled() || state.run.failure.is_some() {
            return None;
        }
        let (_, answer) = state.run.last_turn.answer.as_ref()?;
        let window = state.selection.model.as_ref().map(|model| model.context_window).filter(|window| *window > 0);
        state.run.attempts.next(answer, window, &settings.retry)
    }

    pub(super) fn will_retry(&self) -> WillRetry {
        match self.planned_retry() {
            Some(_) => WillRetry::Yes,
            None => WillRetry::No,
        }
    }

    /// Takes the failed attempt out of the context and waits. `false`: it was aborted meanwhile.
    pub(super) async fn prepare_retry(
        &self,
        planned: &PlannedRetry,
        signal: &CancellationToken,
    ) -> Result<bool, AgentSessionError> {
        self.state().run.attempts = Attempts(planned.attempt);
        self.tell(SessionEvent::AutoRetryStart {
            attempt: planned.attempt,
            max_attempts: self.settings.settings().retry.max_retries,
            delay: planned.delay,
            error_message: planned.error_message.clone(),
        })
        .await;
        let failed = self.state().run.last_turn.entries();
        self.omit(&failed).await?;
        tokio::select! {
            () = tokio::time::sleep(planned.delay) => Ok(true),
            () = signal.cancelled() => {
                self.end_retries(RetryOutcome::GaveUp { final_error: Some("The wait was aborted.".to_owned()) }).await;
                Ok(false)
            }
        }
    }

    /// Takes entries out of the context; the record keeps them.
    pub(super) async fn omit(&self, entries: &[EntryId]) -> Result<(), AgentSessionError> {
        for entry in entries {
            self.edit(entry, None).await?;
        }
        Ok(())
    }

    /// Has the context show something else of an entry, or nothing; the record keeps it.
    pub(super) async fn edit(&self, entry: &EntryId, shown: Option<Replacement>) -> Result<(), AgentSessionError> {
        let edit = self.manager.append_context_edit(entry, shown).await?;
        let entry = Box::new(self.manager.entry(edit.id.as_str())?);
        self.tell(SessionEvent::EntryAppended { entry }).await;
        Ok(())
    }

    /// An answer came: if it is no failure, whatever was tried again has succeeded.
    pub(super) async fn note_answer(&self, answer: &AssistantMessage) {
        {
            let mut state = self.state();
            state.run.recovery = state.run.recovery.after(answer);
        }
        if !answer.is_failed() {
            self.end_retries(RetryOutcome::Succeeded).await;
        }
    }

    /// The last failure is final.
    pub(super) async fn give_up(&self) {
        let final_error =
            self.state().run.last_turn.answer.as_ref().and_then(|(_, answer)| answer.error_message.clone());
        self.end_retries(RetryOutcome::GaveUp { final_error }).await;
    }

    async fn end_retries(&self, outcome: RetryOutcome) {
        let Attempts(attempt) = std::mem::take(&mut self.state().run.attempts);
        if attempt > 0 {
            self.tell(SessionEvent::AutoRetryEnd { attempt, outcome }).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use pi_ai::StopReason;

    use super::*;

    fn failed(text: &str) -> AssistantMessage {
        AssistantMessage {
            stop_reason: StopReason::Error,
            error_message: Some(text.to_owned()),
            ..AssistantMessage::default()
        }
    }

    fn settings() -> Retry {
        Retry {
            enabled: true,
            max_retries: 2,
            base_delay: Duration::from_secs(2),
            max_agent_delay: Duration::from_secs(60),
            ..Retry::default()
        }
    }

    #[test]
    fn waits_grow_until_the_attempts_are_used_up() {
        let answer = failed("503 overloaded");
        let delays = [0, 1, 2].map(|made| Attempts(made).next(&answer, None, &settings()).map(|retry| retry.delay));
        assert_eq!(delays, [Some(Duration::from_secs(2)), Some(Duration::from_secs(4)), None]);
    }

    #[test]
    fn what_waiting_does_not_help_is_not_tried_again() {
        for text in ["insufficient_quota", "prompt is too long: 9 tokens > 8 maximum", "invalid api key"] {
            assert_eq!(Attempts::default().next(&failed(text), None, &settings()), None, "{text}");
        }
    }
}
