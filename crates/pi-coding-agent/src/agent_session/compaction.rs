//! Keeping the conversation within what the model can take.

use std::sync::{Arc, Weak};

use pi_ai::{
    AssistantMessage, CancellationToken, Model,
    recovery::{RetryEvent, RetryPolicy},
};

use super::{
    Activity, AgentSession, AgentSessionError, CompactionOutcome, Inner, SessionEvent, SummarySource, WillRetry,
    lifetime::EndActivity,
};
use crate::{
    compaction::{
        CheckTime, CompactionPreparation, CompactionReason, CompactionResult, ContextAction, ContextCheck,
        RetryObserver, SummaryError, SummaryInstructions, SummaryOptions, check_context, compact, estimate_projection,
        plan_shrink, prepare_compaction,
    },
    extensions::{
        EventKind,
        event::{
            self, CompactDecision, CompactionDraft, SessionBeforeCompactEvent, SessionCompactEvent,
            SessionCompactFailedEvent,
        },
    },
    resources::CompactionSettings,
    session::{Compaction, EntryId, EntryKind, MessageRole, Projection},
};

impl AgentSession {
    /// Summarises the beginning of the conversation, so that the next request is shorter; also when automatic
    /// compaction is off. A prompt that is being answered is aborted first. The record keeps everything.
    ///
    /// # Errors
    /// When there is nothing to shorten, or the model gives no usable summary. Then nothing has changed.
    pub async fn compact(&self, instructions: SummaryInstructions) -> Result<CompactionResult, AgentSessionError> {
        self.abort();
        self.wait_for_idle().await;
        self.inner.begin(Activity::Compacting)?;
        let _activity = EndActivity(self.inner.clone());
        let signal = self.inner.lifetime.child_token();
        self.inner.state().run.begin(signal.clone());
        self.inner.compact(CompactionReason::Manual, instructions, WillRetry::No, &signal).await
    }
}

/// What to do after a run, beside trying a failed turn again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum AfterRun {
    /// Nothing.
    Settle,
    /// Ask once more.
    AskAgain,
    /// Say this.
    Advise(String),
}

/// Whether something was cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shrunk {
    Yes,
    No,
}

impl Inner {
    /// Compacts before a prompt, when the conversation is too long for one more.
    pub(super) async fn make_room(&self, signal: &CancellationToken) -> Result<(), AgentSessionError> {
        if let ContextAction::Compact(reason) = self.check(CheckTime::BeforePrompt)? {
            self.try_compact(reason, signal).await?;
        }
        Ok(())
    }

    /// Compacts between two turns.
    pub(super) async fn make_room_for_next_turn(&self) -> Result<(), AgentSessionError> {
        let signal = self.state().run.signal.clone();
        if let ContextAction::Compact(reason) = self.check(CheckTime::AfterRun)? {
            self.try_compact(reason, &signal).await?;
        }
        Ok(())
    }

    /// Recovers from a request that was too large, or compacts for the next one.
    pub(super) async fn recover(&self, signal: &CancellationToken) -> Result<AfterRun, AgentSessionError> {
        match self.check(CheckTime::AfterRun)? {
            ContextAction::Nothing => Ok(AfterRun::Settle),
            ContextAction::GiveUp { message } => Ok(AfterRun::Advise(message)),
            ContextAction::Compact(reason) => {
                self.try_compact(reason, signal).await?;
                Ok(if self.agent.has_queued_messages() { AfterRun::AskAgain } else { AfterRun::Settle })
            }
            ContextAction::Recover { leave_out } => {
                self.state().run.recovery = crate::compaction::RecoveryAttempt::Made;
                self.omit(&leave_out).await?;
                let reason = CompactionReason::Overflow;
                match self.compact(reason, SummaryInstructions::Usual, WillRetry::Yes, signal).await {
                    Ok(_) => {
                        self.shrink().await?;
                        Ok(AfterRun::AskAgain)
                    }
                    // There is no beginning to summarise: one message alone is too large.
                    Err(AgentSessionError::NothingToCompact(_)) if self.shrink().await? == Shrunk::Yes => {
                        Ok(AfterRun::AskAgain)
                    }
                    Err(error) if error.is_storage() => Err(error),
                    Err(_) if self.agent.has_queued_messages() => Ok(AfterRun::AskAgain),
                    Err(error) => Ok(AfterRun::Advise(error.to_string())),
                }
            }
        }
    }

    /// Compacts; that it could not be done is told by its event, and does not end the run.
    async fn try_compact(&self, reason: CompactionReason, signal: &CancellationToken) -> Result<(), AgentSessionError> {
        match self.compact(reason, SummaryInstructions::Usual, WillRetry::No, signal).await {
            Err(error) if error.is_storage() => Err(error),
            Ok(_) | Err(_) => Ok(()),
        }
    }

    async fn compact(
        &self,
        reason: CompactionReason,
        instructions: SummaryInstructions,
        will_retry: WillRetry,
        signal: &CancellationToken,
    ) -> Result<CompactionResult, AgentSessionError> {
        // Nobody asked for one that comes by itself: that there is nothing to do is not told.
        if reason != CompactionReason::Manual {
            self.prepare_compaction()?;
        }
        self.tell(SessionEvent::CompactionStart { reason }).await;
        let made = self.compact_silently(reason, instructions, will_retry, signal).await;
        self.tell_compaction(reason, will_retry, &made).await;
        let result = made.result;
        let (outcome, will_retry) = match &result {
            Ok(result) => (CompactionOutcome::Done(Box::new(result.clone())), will_retry),
            Err(AgentSessionError::Cancelled | AgentSessionError::Summary(SummaryError::Aborted)) => {
                (CompactionOutcome::Aborted, WillRetry::No)
            }
            Err(error) => (CompactionOutcome::Failed { error_message: error.to_string() }, WillRetry::No),
        };
        self.tell(SessionEvent::CompactionEnd { reason, outcome, will_retry }).await;
        result
    }

    async fn compact_silently(
        &self,
        reason: CompactionReason,
        instructions: SummaryInstructions,
        will_retry: WillRetry,
        signal: &CancellationToken,
    ) -> MadeCompaction {
        let (mut by, mut entry) = (SummaryBy::Model, None);
        let result = self.make_compaction(reason, instructions, will_retry, signal, (&mut by, &mut entry)).await;
        MadeCompaction { by, entry, result }
    }

    async fn make_compaction(
        &self,
        reason: CompactionReason,
        instructions: SummaryInstructions,
        will_retry: WillRetry,
        signal: &CancellationToken,
        (by, entry): (&mut SummaryBy, &mut Option<EntryId>),
    ) -> Result<CompactionResult, AgentSessionError> {
        let (model, preparation) = self.prepare_compaction()?;
        let asked = self.before_compact(&preparation, &instructions, reason, will_retry, signal).await?;
        let compaction = match asked {
            CompactDecision::Proceed => self.summarize(&model, &preparation, reason, instructions, signal).await?,
            CompactDecision::Replace(draft) => {
                *by = SummaryBy::Extension;
                compaction_of(*draft, preparation.tokens_before)
            }
            CompactDecision::Cancel => return Err(AgentSessionError::Cancelled),
        };
        let appended = self.manager.append_compaction(compaction.clone()).await?;
        *entry = Some(appended.id.clone());
        Ok(CompactionResult {
            first_kept_entry_id: compaction.first_kept_entry_id.unwrap_or(appended.id),
            summary: compaction.summary,
            tokens_before: compaction.tokens_before,
            estimated_tokens_after: self.manager.with(|session| estimate_projection(session.projection()).tokens),
            usage: compaction.usage,
            details: compaction.details,
        })
    }

    fn prepare_compaction(&self) -> Result<(Arc<Model>, CompactionPreparation), AgentSessionError> {
        let model = self.state().selection.model.clone().ok_or(AgentSessionError::NoModel)?;
        let settings = self.compaction_settings(&model)?;
        let preparation = self.manager.with(|session| prepare_compaction(session.projection(), &settings))?;
        Ok((model, preparation))
    }

    /// Asks the extensions whether the conversation may be compacted, and by whom.
    async fn before_compact(
        &self,
        preparation: &CompactionPreparation,
        instructions: &SummaryInstructions,
        reason: CompactionReason,
        will_retry: WillRetry,
        signal: &CancellationToken,
    ) -> Result<CompactDecision, AgentSessionError> {
        if !self.extensions.has_handlers(EventKind::SessionBeforeCompact) {
            return Ok(CompactDecision::Proceed);
        }
        let branch = self.manager.branch_entries();
        let branch: Vec<_> =
            branch.iter().map(|entry| self.manager.entry(entry.id.as_str())).collect::<Result<_, _>>()?;
        let custom_instructions = match instructions {
            SummaryInstructions::Usual => None,
            SummaryInstructions::Focus(text) | SummaryInstructions::Instead(text) => Some(text.clone()),
        };
        let event = SessionBeforeCompactEvent::new(
            preparation.clone(),
            branch,
            custom_instructions,
            reason,
            will_retry == WillRetry::Yes,
            signal.clone(),
        );
        Ok(self.extensions.session_before_compact(signal, || event).await)
    }

    /// Tells the extensions what a compaction came to.
    async fn tell_compaction(&self, reason: CompactionReason, will_retry: WillRetry, made: &MadeCompaction) {
        let from_extension = made.by == SummaryBy::Extension;
        let will_retry = will_retry == WillRetry::Yes;
        match (&made.result, &made.entry) {
            (Ok(_), Some(id)) => {
                let Ok(entry) = self.manager.entry(id.as_str()) else { return };
                let payload = || SessionCompactEvent::new(entry, from_extension, reason, will_retry);
                self.extensions.notify(event::SessionCompact, &self.lifetime, payload).await;
            }
            (Err(error), _) => {
                let aborted =
                    matches!(error, AgentSessionError::Cancelled | AgentSessionError::Summary(SummaryError::Aborted));
                let error = (!aborted).then(|| error.to_string());
                let payload = || SessionCompactFailedEvent::new(reason, error, aborted, from_extension);
                self.extensions.notify(event::SessionCompactFailed, &self.lifetime, payload).await;
            }
            (Ok(_), None) => {}
        }
    }

    async fn summarize(
        &self,
        model: &Arc<Model>,
        preparation: &CompactionPreparation,
        reason: CompactionReason,
        instructions: SummaryInstructions,
        signal: &CancellationToken,
    ) -> Result<Compaction, AgentSessionError> {
        let options = SummaryOptions {
            request: self.agent.stream_options(),
            thinking_level: self.state().selection.level,
            instructions,
            session_id: Some(self.manager.id()),
            retry: self.summary_retries(),
            observer: Some(observer(self.this.clone(), SummarySource::Compaction(reason))),
            clock: self.clock.clone(),
            ..SummaryOptions::default()
        };
        Ok(compact(&*self.stream, model, preparation, &options, signal).await?)
    }

    /// How often a failed request for a summary is sent again.
    pub(super) fn summary_retries(&self) -> Option<RetryPolicy> {
        let settings = self.settings.settings();
        let retry = &settings.retry;
        retry.enabled.then_some(RetryPolicy {
            max_retries: retry.max_retries,
            base_delay: retry.base_delay,
            max_delay: retry.max_agent_delay,
        })
    }

    /// Cuts what a compaction had to keep, when it alone is larger than the model's context.
    async fn shrink(&self) -> Result<Shrunk, AgentSessionError> {
        let Some(model) = self.state().selection.model.clone() else { return Ok(Shrunk::No) };
        let limit = model.context_window.saturating_sub(self.compaction_settings(&model)?.reserve_tokens);
        if model.context_window == 0 || limit == 0 {
            return Ok(Shrunk::No);
        }
        let mut shrunk = Shrunk::No;
        for (entry, replacement) in self.manager.with(|session| plan_shrink(session.projection(), limit)) {
            self.edit(&entry, Some(replacement)).await?;
            shrunk = Shrunk::Yes;
        }
        Ok(shrunk)
    }

    fn check(&self, time: CheckTime) -> Result<ContextAction, AgentSessionError> {
        let Some(model) = self.state().selection.model.clone() else { return Ok(ContextAction::Nothing) };
        if model.context_window == 0 {
            return Ok(ContextAction::Nothing);
        }
        let settings = self.compaction_settings(&model)?;
        let attempt = self.state().run.recovery;
        let last_turn = self.state().run.last_turn.answer.clone();
        Ok(self.manager.with(|session| {
            let projection = session.projection();
            let Some((entry, answer)) = last_turn.or_else(|| last_answer(projection)) else {
                return ContextAction::Nothing;
            };
            let same_model = answer.provider == model.provider && answer.model == model.id;
            check_context(&ContextCheck {
                answer: &answer,
                entry: Some(&entry),
                projection,
                answered_by: same_model.then_some(&*model),
                context_window: model.context_window,
                settings: &settings,
                time,
                attempt,
            })
        }))
    }

    fn compaction_settings(&self, model: &Model) -> Result<CompactionSettings, AgentSessionError> {
        let name = format!("{}/{}", model.provider, model.id);
        Ok(self.settings.settings().compaction_for(Some(&name))?)
    }
}

/// A compaction that was tried.
struct MadeCompaction {
    by: SummaryBy,
    entry: Option<EntryId>,
    result: Result<CompactionResult, AgentSessionError>,
}

/// Who wrote a summary.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SummaryBy {
    Model,
    Extension,
}

fn compaction_of(draft: CompactionDraft, tokens_before: u64) -> Compaction {
    Compaction {
        summary: draft.summary,
        first_kept_entry_id: draft.first_kept_entry_id,
        tokens_before: draft.tokens_before.unwrap_or(tokens_before),
        details: draft.details,
        usage: draft.usage,
        from_hook: Some(true),
        system_message: None,
    }
}

/// The last answer of the context, with its entry.
fn last_answer(projection: &Projection) -> Option<(EntryId, Arc<AssistantMessage>)> {
    let is_answer = |kind| matches!(kind, EntryKind::Message(MessageRole::Assistant));
    let entry = projection.entries().iter().rev().find(|entry| is_answer(entry.kind))?;
    entry.messages().iter().find_map(|message| match message.as_llm() {
        Some(pi_ai::Message::Assistant(answer)) => Some((entry.id.clone(), answer.clone())),
        _ => None,
    })
}

/// Tells the listeners when a request for a summary is sent again.
pub(super) fn observer(session: Weak<Inner>, source: SummarySource) -> RetryObserver {
    Arc::new(move |event| {
        let session = session.clone();
        Box::pin(async move {
            let Some(session) = session.upgrade() else { return };
            let event = match event {
                RetryEvent::Scheduled { attempt, max_attempts, delay, error } => {
                    SessionEvent::SummarizationRetryScheduled { attempt, max_attempts, delay, error_message: error }
                }
                RetryEvent::AttemptStart => SessionEvent::SummarizationRetryAttemptStart { source },
                RetryEvent::Finished { .. } => SessionEvent::SummarizationRetryFinished,
                _ => return,
            };
            session.tell(event).await;
        })
    })
}
