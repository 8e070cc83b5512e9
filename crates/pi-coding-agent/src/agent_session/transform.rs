//! Which messages a request is made from: what extensions make of them, and the prompt that holds for this run only.

use std::sync::Weak;

use futures::future::BoxFuture;
use pi_agent_core::TransformContext;
use pi_ai::{CancellationToken, SystemMessage, transcript::current_system_message};

use super::Inner;
use crate::{
    extensions::EventKind,
    messages::{CodingMessage, SessionMessage},
};

pub(super) struct SessionTransform(pub(super) Weak<Inner>);

impl TransformContext<CodingMessage> for SessionTransform {
    fn transform_context<'a>(
        &'a self,
        messages: Vec<SessionMessage>,
        signal: &'a CancellationToken,
    ) -> BoxFuture<'a, Vec<SessionMessage>> {
        Box::pin(async move {
            match self.0.upgrade() {
                Some(inner) => inner.transform(messages, signal).await,
                None => messages,
            }
        })
    }
}

impl Inner {
    async fn transform(&self, messages: Vec<SessionMessage>, signal: &CancellationToken) -> Vec<SessionMessage> {
        let handled = [EventKind::Context, EventKind::ContextWithSystem];
        let messages = match handled.into_iter().any(|kind| self.extensions.has_handlers(kind)) {
            true => self.extensions.context(messages, signal).await,
            false => messages,
        };
        let forced = self.state().run.prompt.as_ref().and_then(|options| options.force_system_prompt.clone());
        match forced {
            Some(prompt) => self.with_forced_prompt(prompt, messages),
            None => messages,
        }
    }

    /// The prompt is exactly this one, with the tools that hold. The record keeps its own.
    fn with_forced_prompt(&self, prompt: String, messages: Vec<SessionMessage>) -> Vec<SessionMessage> {
        let said = current_system_message(&messages);
        let timestamp = said.as_ref().map_or_else(|| self.clock.now(), |said| said.timestamp);
        let tools = said.map(|said| said.tools_added).unwrap_or_default();
        let head = SystemMessage { timestamp, ..SystemMessage::new(prompt) }.with_tools(tools);
        let rest = messages.into_iter().filter(|message| !message.is_system());
        std::iter::once(SessionMessage::from(head)).chain(rest).collect()
    }
}
