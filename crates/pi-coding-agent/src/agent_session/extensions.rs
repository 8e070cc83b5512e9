//! What extensions do with a session.

use std::{sync::Arc, time::Duration};

use pi_ai::{CancellationToken, Timestamp};
use serde_json::Value;

use super::{
    Activity, AgentSession, AgentSessionError, CustomMessage, Delivery, Display, Inner, SessionEvent, SessionPrompt,
    SessionTool, WeakAgentSession, prompt::Opening,
};
use crate::{
    extensions::{
        ExtensionFailure, ExtensionRunner,
        event::{
            self, DiscoverReason, InputDecision, InputEvent, InputSource, ResourcesDiscoverEvent, SessionShutdownEvent,
            SessionStartEvent, ShutdownReason, StartReason,
        },
    },
    messages::{CodingMessage, CustomContent, SessionMessage},
    session::EntryId,
};

/// When something that an extension says becomes part of the conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageTiming {
    /// While a prompt is answered, it is said to the model then. Otherwise it is stored, and the model sees it with
    /// the next prompt.
    Queued(Delivery),
    /// It is answered: while a prompt is answered, by that run, otherwise by a run of its own.
    Answered(Delivery),
    /// It is stored, as soon as that splits no tool call from its result, and sets nothing off.
    Noted,
    /// It waits for the next prompt of the user and goes along with it.
    NextPrompt,
}

impl Default for MessageTiming {
    fn default() -> Self {
        Self::Queued(Delivery::Steer)
    }
}

/// When something is said in the user's place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UserMessageTiming {
    /// Now; it is refused while another prompt is answered.
    #[default]
    WhenIdle,
    /// Now, or while another prompt is answered at this point of it.
    Queued(Delivery),
}

/// What extensions said that has to wait.
#[derive(Debug, Default)]
pub(super) struct Said {
    /// What goes along with the next prompt.
    with_next_prompt: Vec<CustomContent>,
    /// What was said while the session settled, and has to be answered.
    after_settling: Vec<SessionMessage>,
    /// Whether the run is over and only its listeners are told.
    pub(super) is_settling: bool,
}

impl AgentSession {
    /// The session's extensions.
    pub fn extensions(&self) -> &ExtensionRunner {
        &self.inner.extensions
    }

    /// The time, as the session sees it.
    pub fn now(&self) -> Timestamp {
        self.inner.clock.now()
    }

    /// Over when the session is.
    pub(crate) fn lifetime(&self) -> CancellationToken {
        self.inner.lifetime.clone()
    }

    /// What the session's tools can reach.
    pub fn workspace(&self) -> &crate::workspace::Workspace {
        &self.inner.workspace
    }

    /// The folder that the session works in.
    pub fn cwd(&self) -> &std::path::Path {
        self.inner.workspace.cwd()
    }

    /// Keeps state of an application or an extension. The model never sees it.
    ///
    /// # Errors
    /// When it cannot be stored.
    pub async fn append_entry(
        &self,
        custom_type: impl Into<String>,
        data: Option<Value>,
    ) -> Result<EntryId, AgentSessionError> {
        let appended = self.inner.manager.append_custom(custom_type, data).await?;
        self.inner.tell_entry(&appended.id).await?;
        Ok(appended.id)
    }

    /// Marks an entry, or takes its mark away.
    ///
    /// # Errors
    /// When there is no such entry, or the mark cannot be stored.
    pub async fn set_label(&self, entry: &EntryId, label: Option<&str>) -> Result<(), AgentSessionError> {
        let appended = self.inner.manager.append_label_change(entry, label).await?;
        self.inner.tell_entry(&appended.id).await
    }

    /// Says something on an application's or an extension's behalf.
    ///
    /// # Errors
    /// When it cannot be stored.
    pub async fn send_message(&self, message: CustomMessage, timing: MessageTiming) -> Result<(), AgentSessionError> {
        let content = self.inner.stamped(message);
        let said: SessionMessage = CodingMessage::Custom(content.clone()).into();
        match timing {
            MessageTiming::NextPrompt => self.inner.state().said.with_next_prompt.push(content),
            MessageTiming::Queued(delivery) | MessageTiming::Answered(delivery) if self.inner.is_running() => {
                let is_settling = self.inner.state().said.is_settling;
                match (is_settling, timing, delivery) {
                    (true, MessageTiming::Answered(_), _) => self.inner.state().said.after_settling.push(said),
                    (true, ..) => self.inner.add_custom(content).await?,
                    (false, _, Delivery::Steer) => self.inner.agent.steer(said),
                    (false, _, Delivery::FollowUp) => self.inner.agent.follow_up(said),
                }
            }
            MessageTiming::Answered(_) => self.start(Opening::Messages(vec![said])).detach(),
            MessageTiming::Queued(_) | MessageTiming::Noted => self.inner.add_custom(content).await?,
        }
        Ok(())
    }

    /// Says something in the user's place and has it answered. Skills and templates in it are left as they are.
    ///
    /// # Errors
    /// While another prompt is answered, when `timing` does not say what to do then.
    pub async fn send_user_message(
        &self,
        prompt: SessionPrompt,
        timing: UserMessageTiming,
    ) -> Result<(), AgentSessionError> {
        match (self.activity(), timing) {
            (Activity::Idle, _) => {
                self.start(Opening::Said(prompt)).detach();
                Ok(())
            }
            (Activity::Running, UserMessageTiming::Queued(delivery)) => {
                self.inner.enqueue(prompt, delivery).await;
                Ok(())
            }
            (Activity::Running, UserMessageTiming::WhenIdle) => Err(AgentSessionError::Busy),
            (Activity::Compacting, _) => Err(AgentSessionError::Compacting),
            (Activity::Ended, _) => Err(AgentSessionError::Ended),
        }
    }

    /// Reads settings and resources and loads the extensions again. What they brought before is gone; sections of the
    /// system prompt that changed are announced with the next prompt.
    pub async fn reload(&self) {
        let inner = &self.inner;
        inner.tell_shutdown(SessionShutdownEvent::new(ShutdownReason::Reload, None)).await;
        let before = inner.extensions.tools();
        inner.extensions.load().await;
        self.exchange_tools(&before, inner.extensions.tools());
        inner.resources.loader.reload().await;
        inner.resources.add_to(&mut inner.state().prompt);
        self.begin(SessionStartEvent::new(StartReason::Reload)).await;
    }

    /// Takes tools of extensions away and offers others. A tool that one of them had replaced comes back.
    fn exchange_tools(&self, before: &[SessionTool], now: Vec<SessionTool>) {
        let is_gone = |tool: &&SessionTool| !now.iter().any(|other| other.name() == tool.name());
        let active: Vec<String> = {
            let mut state = self.inner.state();
            for gone in before.iter().filter(is_gone) {
                state.tools.unregister(gone.name());
                let own = self.inner.own_tools.iter().filter(|own| own.name() == gone.name());
                state.tools.register(own.cloned());
            }
            state.tools.active().to_vec()
        };
        self.set_active_tools(active);
        if !now.is_empty() {
            self.register_tools(now);
        }
    }

    /// Tells the extensions that the session begins, and asks them for resources.
    pub(crate) async fn begin(&self, event: SessionStartEvent) {
        let inner = &self.inner;
        let reason = match event.reason {
            StartReason::Reload => DiscoverReason::Reload,
            _ => DiscoverReason::Startup,
        };
        inner.extensions.notify(event::SessionStart, &inner.lifetime, || event).await;
        if inner.extensions.has_handlers(crate::extensions::EventKind::ResourcesDiscover) {
            let event = ResourcesDiscoverEvent::new(inner.workspace.cwd(), reason);
            let found = inner.extensions.resources_discover(event).await;
            if found != crate::resources::DiscoveredPaths::default() {
                inner.resources.loader.extend(found).await;
                inner.resources.add_to(&mut inner.state().prompt);
            }
        }
    }
}

impl WeakAgentSession {
    /// Tells the session's listeners that an extension failed. Gives the failure back when there are none.
    pub(crate) async fn tell_extension_failure(&self, failure: ExtensionFailure) -> Option<ExtensionFailure> {
        let Some(inner) = self.inner.upgrade().filter(|inner| !inner.listeners.is_empty()) else {
            return Some(failure);
        };
        let ExtensionFailure { extension, place, message } = failure;
        inner.tell(SessionEvent::ExtensionError { extension, event: place.to_string(), error: message }).await;
        None
    }
}

impl Inner {
    /// Tells the extensions that the session ends, and has them end what they keep running. One that does not return
    /// in time is left behind.
    pub(super) async fn tell_shutdown(&self, event: SessionShutdownEvent) {
        const PATIENCE: Duration = Duration::from_secs(5);
        let overdue = CancellationToken::new();
        let mut telling = std::pin::pin!(self.extensions.notify(event::SessionShutdown, &overdue, || event));
        let in_time = tokio::select! {
            () = &mut telling => true,
            () = tokio::time::sleep(PATIENCE) => false,
        };
        if !in_time {
            overdue.cancel();
            telling.await;
        }
        self.extensions.close().await;
    }

    pub(super) async fn tell_entry(&self, id: &EntryId) -> Result<(), AgentSessionError> {
        let entry = Box::new(self.manager.entry(id.as_str())?);
        self.tell(SessionEvent::EntryAppended { entry }).await;
        Ok(())
    }

    /// What people say goes through the extensions first. `None`: one of them dealt with it.
    pub(super) async fn take_input(
        &self,
        prompt: SessionPrompt,
        source: InputSource,
        delivery: Option<Delivery>,
    ) -> Option<SessionPrompt> {
        if !self.extensions.has_handlers(crate::extensions::EventKind::Input) {
            return Some(prompt);
        }
        let event = InputEvent::new(prompt.text.clone(), prompt.images.clone(), source, delivery);
        match self.extensions.input(event).await {
            InputDecision::Continue => Some(prompt),
            InputDecision::Transform { text, images } => {
                Some(SessionPrompt { text, images: images.unwrap_or(prompt.images) })
            }
            InputDecision::Handled => None,
        }
    }

    /// What goes along with a prompt that is said now.
    pub(super) fn take_next_prompt(&self) -> Vec<SessionMessage> {
        let waiting = std::mem::take(&mut self.state().said.with_next_prompt);
        waiting.into_iter().map(|content| CodingMessage::Custom(content).into()).collect()
    }

    /// Has answered what was said while the session settled.
    pub(super) fn answer_late_messages(self: &Arc<Self>, session: &WeakAgentSession) {
        let late = {
            let mut state = self.state();
            state.said.is_settling = false;
            std::mem::take(&mut state.said.after_settling)
        };
        if let (false, Some(session)) = (late.is_empty(), session.upgrade()) {
            session.start(Opening::Messages(late)).detach();
        }
    }
}

impl From<CustomContent> for CustomMessage {
    fn from(content: CustomContent) -> Self {
        Self {
            custom_type: content.custom_type,
            content: content.content,
            display: if content.display { Display::Shown } else { Display::Hidden },
            details: content.details,
        }
    }
}
