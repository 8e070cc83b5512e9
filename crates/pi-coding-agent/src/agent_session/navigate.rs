//! Going to another place of the session's tree.

use std::sync::Arc;

use pi_ai::{Message, transcript::TranscriptItem};

use super::{
    Activity, AgentSession, AgentSessionError, Inner, SummarySource, compaction::observer, lifetime::EndActivity,
};
use crate::{
    compaction::{SummaryInstructions, SummaryOptions, left_branch, summarize_branch},
    extensions::{
        EventKind,
        event::{self, SessionBeforeTreeEvent, SessionTreeEvent, TreeAdjustment, TreeDecision, TreePreparation},
    },
    session::{BranchSummary, EntryBody, EntryId},
};

/// Whether what is left behind is summarised where the conversation goes on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum LeaveBehind {
    /// It is only left.
    #[default]
    Silently,
    /// The model summarises it.
    Summarized(SummaryInstructions),
}

/// Where a session was taken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Navigated {
    /// The text of the user's message that was gone back to: it is no longer said, and can be said differently.
    pub text: Option<String>,
    /// The entry of the summary, when one was made.
    pub summary: Option<EntryId>,
}

impl AgentSession {
    /// Goes on from another entry. A user's message is gone back before, and its text given back; any other entry
    /// stays said. The tools are those that the transcript there says.
    ///
    /// # Errors
    /// While the session is busy, when there is no such entry, an extension cancels it, or the model gives no usable
    /// summary. Then the session
    /// stays where it is.
    pub async fn navigate_to(&self, target: &EntryId, leave: LeaveBehind) -> Result<Navigated, AgentSessionError> {
        let inner = &self.inner;
        let entry = inner.manager.entry(target.as_str())?;
        let (leaf, text) = match &entry.body {
            EntryBody::Message(message) => match message.message.as_llm() {
                Some(Message::User(user)) => (entry.parent_id.clone(), Some(user.content.text().into_owned())),
                _ => (Some(target.clone()), None),
            },
            EntryBody::CustomMessage(custom) => (entry.parent_id.clone(), Some(custom.content.text().into_owned())),
            _ => (Some(target.clone()), None),
        };
        if leaf == inner.manager.leaf_id() {
            return Ok(Navigated { text, summary: None });
        }
        inner.begin(Activity::Compacting)?;
        let _activity = EndActivity(inner.clone());
        let old_leaf = inner.manager.leaf_id();
        let TreeAdjustment { summary: given, instructions, label } = inner.before_tree(target, &leave).await?;
        let from_extension = given.is_some();
        let leave = match (leave, instructions) {
            (LeaveBehind::Summarized(_), Some(instructions)) => LeaveBehind::Summarized(instructions),
            (leave, _) => leave,
        };
        let summary = match leave {
            LeaveBehind::Summarized(_) if let Some(given) = given => {
                let summary = BranchSummary {
                    summary: given.summary,
                    details: given.details,
                    usage: given.usage,
                    from_hook: Some(true),
                    ..BranchSummary::default()
                };
                Some(inner.manager.branch_with_summary(leaf.as_ref(), summary).await?.id)
            }
            LeaveBehind::Silently => {
                match &leaf {
                    Some(leaf) => inner.manager.branch(leaf).await?,
                    None => inner.manager.reset_leaf().await?,
                }
                None
            }
            LeaveBehind::Summarized(instructions) => {
                Some(inner.summarize_and_leave(leaf.clone(), target, instructions).await?)
            }
        };
        inner.restore_tools();
        if let (Some(label), Some(marked)) = (label, summary.as_ref().or(leaf.as_ref())) {
            self.set_label(marked, Some(&label)).await?;
        }
        inner.tell_tree(old_leaf, summary.as_ref(), from_extension).await;
        Ok(Navigated { text, summary })
    }
}

impl Inner {
    /// Asks the extensions whether the session may go there.
    async fn before_tree(&self, target: &EntryId, leave: &LeaveBehind) -> Result<TreeAdjustment, AgentSessionError> {
        if !self.extensions.has_handlers(EventKind::SessionBeforeTree) {
            return Ok(TreeAdjustment::default());
        }
        let left = self.manager.with(|session| {
            let from = session.leaf_id().map(EntryId::as_str);
            left_branch(session, from, target.as_str())
        })?;
        let entries = left.entries.iter().map(|id| self.manager.entry(id.as_str())).collect::<Result<Vec<_>, _>>()?;
        let preparation =
            TreePreparation::new(target.clone(), self.manager.leaf_id(), left.common_ancestor, entries, leave);
        let signal = self.lifetime.child_token();
        let event = SessionBeforeTreeEvent::new(preparation, signal.clone());
        match self.extensions.session_before_tree(&signal, || event).await {
            TreeDecision::Proceed => Ok(TreeAdjustment::default()),
            TreeDecision::Adjust(adjustment) => Ok(*adjustment),
            TreeDecision::Cancel => Err(AgentSessionError::Cancelled),
        }
    }

    async fn tell_tree(&self, old_leaf: Option<EntryId>, summary: Option<&EntryId>, from_extension: bool) {
        let payload = || {
            let entry = summary.and_then(|id| self.manager.entry(id.as_str()).ok());
            SessionTreeEvent::new(self.manager.leaf_id(), old_leaf, entry, from_extension)
        };
        self.extensions.notify(event::SessionTree, &self.lifetime, payload).await;
    }

    async fn summarize_and_leave(
        &self,
        leaf: Option<EntryId>,
        target: &EntryId,
        instructions: SummaryInstructions,
    ) -> Result<EntryId, AgentSessionError> {
        let (model, thinking_level) = {
            let state = self.state();
            (state.selection.model.clone().ok_or(AgentSessionError::NoModel)?, state.selection.level)
        };
        let left = self.manager.with(|session| {
            let from = session.leaf_id().map(EntryId::as_str);
            left_branch(session, from, target.as_str())
        })?;
        let entries = left.entries.iter().map(|id| self.manager.entry(id.as_str())).collect::<Result<Vec<_>, _>>()?;
        let signal = self.lifetime.child_token();
        self.state().run.begin(signal.clone());
        let settings = self.settings.settings();
        let options = SummaryOptions {
            request: self.agent.stream_options(),
            thinking_level,
            instructions,
            session_id: Some(self.manager.id()),
            retry: self.summary_retries(),
            observer: Some(observer(self.this.clone(), SummarySource::BranchSummary)),
            clock: self.clock.clone(),
            ..SummaryOptions::default()
        };
        let reserve = settings.branch_summary.reserve_tokens;
        let stream = self.stream.clone();
        let summary = summarize_branch(&*stream, &model, &entries, reserve, &options, &signal).await?;
        Ok(self.manager.branch_with_summary(leaf.as_ref(), summary).await?.id)
    }

    /// Offers the tools that the transcript says; one that says nothing changes nothing.
    fn restore_tools(&self) {
        let messages = self.manager.context().messages;
        if !messages.iter().any(|message| message.as_system().is_some()) {
            return;
        }
        let tools: Vec<Arc<dyn pi_agent_core::AgentTool>> = {
            let mut state = self.state();
            state.tools.activate_for(&self.tool_selection, &messages);
            state.tools.active_tools().map(|tool| tool.tool.clone()).collect()
        };
        self.agent.set_tools(tools);
    }
}
