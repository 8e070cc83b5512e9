//! Where extensions may add entries to a session and have a run go on.

use std::sync::Arc;

use pi_ai::{AssistantMessage, CancellationToken, StopReason, ToolResultMessage};

use super::{AgentSessionError, Inner};
use crate::{
    extensions::{
        AtBoundary, EventKind, ExtensionError,
        event::{self, ActivityOutcome, AgentBeforeSettleEvent, BoundaryContext, EntryDraft, TurnEndEvent},
    },
    messages::CodingConverter,
    session::{
        Compaction, ContextEdit, CustomMessageEntry, Entry, EntryBody, EntryId, EntryKind, MessageRole, ProjectedEntry,
    },
};

impl Inner {
    /// A turn is over and stored. Whether an extension wants another request.
    pub(super) async fn turn_end_boundary(
        &self,
        message: &Arc<AssistantMessage>,
        results: &[Arc<ToolResultMessage>],
        signal: &CancellationToken,
    ) -> bool {
        let (index, stored) = {
            let state = self.state();
            (state.run.turn.index, state.run.last_turn.clone())
        };
        let results: Arc<[_]> = results.into();
        let payload = |boundary| {
            TurnEndEvent::new(
                index,
                message.clone(),
                results.clone(),
                stored.answer.as_ref().map(|(id, _)| id.clone()),
                stored.results.clone(),
                boundary,
            )
        };
        let outcome = outcome_of(message, signal);
        let context = |drafts: &[EntryDraft]| self.boundary_context(drafts);
        let agreed = self.extensions.boundary::<event::TurnEnd>(signal, outcome, payload, context).await;
        self.commit(agreed, signal).await
    }

    /// Nothing automatic remains. Whether an extension wants another run.
    pub(super) async fn before_settle(&self, signal: &CancellationToken) -> Result<bool, AgentSessionError> {
        if !self.extensions.has_handlers(EventKind::AgentBeforeSettle) {
            return Ok(self.agent.has_queued_messages());
        }
        let outcome = match &self.state().run.last_turn.answer {
            Some((_, answer)) => outcome_of(answer, signal),
            None => ActivityOutcome::Completed,
        };
        let context = |drafts: &[EntryDraft]| self.boundary_context(drafts);
        let agreed = self
            .extensions
            .boundary::<event::AgentBeforeSettle>(signal, outcome, AgentBeforeSettleEvent::new, context)
            .await;
        let wants = self.commit(agreed, signal).await;
        self.add_deferred_messages().await?;
        if !wants && !self.agent.has_queued_messages() {
            return Ok(false);
        }
        let can_continue = self.boundary_context(&[]).is_ok_and(|context| context.can_continue);
        if !can_continue {
            let error = "asked for another request, but the model has answered everything; add a message to go on from";
            self.report_boundary(EventKind::AgentBeforeSettle, error).await;
        }
        Ok(can_continue)
    }

    /// Appends what a boundary agreed on. Whether it goes on.
    async fn commit(&self, agreed: AtBoundary, signal: &CancellationToken) -> bool {
        for draft in agreed.entries {
            let appended = match draft {
                EntryDraft::Custom { custom_type, data } => self.manager.append_custom(custom_type, data).await,
                EntryDraft::CustomMessage { custom_type, content, display, details } => {
                    let entry = CustomMessageEntry { custom_type, content, display, details };
                    self.manager.append_custom_message(entry).await
                }
                EntryDraft::ContextEdit { target_id, replacement } => {
                    self.manager.append_context_edit(&target_id, replacement).await
                }
                EntryDraft::Compaction { summary, first_kept_entry_id, details, usage } => {
                    let tokens_before = self
                        .manager
                        .with(|session| crate::compaction::estimate_projection(session.projection()).tokens);
                    let compaction = Compaction {
                        summary,
                        first_kept_entry_id,
                        tokens_before,
                        details,
                        usage,
                        from_hook: Some(true),
                        system_message: None,
                    };
                    self.manager.append_compaction(compaction).await
                }
            };
            let told = match appended {
                Ok(appended) => self.tell_entry(&appended.id).await,
                Err(error) => Err(error.into()),
            };
            if let Err(AgentSessionError::Storage(error)) = told {
                self.fail(error);
                return false;
            }
        }
        agreed.goes_on && !signal.is_cancelled()
    }

    /// What the next request would be made from with some entries appended.
    fn boundary_context(&self, drafts: &[EntryDraft]) -> Result<BoundaryContext, ExtensionError> {
        let context_messages = match drafts {
            [] => self.manager.with(|session| session.projection().messages().to_vec()),
            drafts => {
                let entries = self.manager.with(|session| session.projection().entries().to_vec());
                self.preview(entries, drafts)?.iter().flat_map(ProjectedEntry::messages).cloned().collect()
            }
        };
        let llm_messages = CodingConverter.convert_all(&context_messages);
        let (steering, follow_up) = self.state().queued.texts();
        let is_open = llm_messages.last().is_some_and(|last| !matches!(last.role(), "assistant" | "system"));
        let can_continue = is_open || self.agent.has_queued_messages() || self.has_deferred_messages();
        let pending_messages = steering.into_iter().chain(follow_up).collect();
        Ok(BoundaryContext::new(context_messages, llm_messages, pending_messages, can_continue))
    }

    /// The entries that would count, or why drafts cannot be appended.
    fn preview(
        &self,
        mut entries: Vec<ProjectedEntry>,
        drafts: &[EntryDraft],
    ) -> Result<Vec<ProjectedEntry>, ExtensionError> {
        let drafted = |body| {
            let (id, timestamp) = (EntryId::from("draft"), self.clock.now());
            ProjectedEntry::unedited(&Entry { id, parent_id: None, timestamp, body })
        };
        let no_entry = |id: &EntryId| ExtensionError::new(format!("there is no entry {id} in the context"));
        for draft in drafts {
            match draft {
                EntryDraft::Custom { .. } => {}
                EntryDraft::CustomMessage { custom_type, content, display, details } => {
                    entries.push(drafted(EntryBody::CustomMessage(CustomMessageEntry {
                        custom_type: custom_type.clone(),
                        content: content.clone(),
                        display: *display,
                        details: details.clone(),
                    })));
                }
                EntryDraft::ContextEdit { target_id, replacement } => {
                    let at = entries.iter().position(|entry| entry.id == *target_id);
                    let at = at.ok_or_else(|| no_entry(target_id))?;
                    let editable = matches!(
                        entries[at].kind,
                        EntryKind::CustomMessage
                            | EntryKind::Message(MessageRole::User | MessageRole::Assistant | MessageRole::ToolResult)
                    );
                    if !editable {
                        return Err(ExtensionError::new(format!(
                            "entry {target_id} is no message whose content could be changed"
                        )));
                    }
                    let edit = ContextEdit { target_id: target_id.clone(), replacement: replacement.clone() };
                    entries[at] = entries[at].clone().edited_by(Some(&edit));
                }
                EntryDraft::Compaction { summary, first_kept_entry_id, .. } => {
                    let kept = match first_kept_entry_id {
                        None => Vec::new(),
                        Some(id) => {
                            let at = entries.iter().position(|entry| entry.id == *id);
                            entries.split_off(at.ok_or_else(|| no_entry(id))?)
                        }
                    };
                    let body = EntryBody::Compaction(Compaction { summary: summary.clone(), ..Compaction::default() });
                    entries = std::iter::once(drafted(body)).chain(kept).collect();
                }
            }
        }
        Ok(entries)
    }

    async fn report_boundary(&self, kind: EventKind, error: &str) {
        self.tell(super::SessionEvent::ExtensionError {
            extension: "boundary".to_owned(),
            event: kind.as_str().to_owned(),
            error: error.to_owned(),
        })
        .await;
    }
}

fn outcome_of(answer: &AssistantMessage, signal: &CancellationToken) -> ActivityOutcome {
    match answer.stop_reason {
        _ if signal.is_cancelled() => ActivityOutcome::Aborted,
        StopReason::Aborted => ActivityOutcome::Aborted,
        StopReason::Error => ActivityOutcome::Error,
        _ => ActivityOutcome::Completed,
    }
}
