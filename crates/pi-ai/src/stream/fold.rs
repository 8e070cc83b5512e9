//! Events → message: the one place where a message grows.

use crate::{
    error::ProviderError,
    json::arguments::ArgumentsBuilder,
    message::{AssistantBlock, AssistantMessage, StopReason, TextContent, ToolCall},
    model::Model,
    stream::event::{AssistantEvent, BlockEnd},
    time::Timestamp,
};

/// The message so far, growing with each event. Applying an event costs the size of the event.
///
/// Events that do not fit (an unknown index, a delta for a block of another type, anything after the end) change
/// nothing: a stream from elsewhere cannot bring the message out of shape.
#[derive(Debug)]
pub struct MessageFold {
    message: AssistantMessage,
    /// The argument texts of the calls that are being streamed, by block.
    arguments: Vec<(usize, ArgumentsBuilder)>,
    error: Option<ProviderError>,
}

impl MessageFold {
    /// An empty message from this model.
    pub fn new(model: &Model, timestamp: Timestamp) -> Self {
        Self {
            message: AssistantMessage {
                api: model.api.clone(),
                provider: model.provider.clone(),
                model: model.id.clone(),
                stop_reason: StopReason::Pending,
                timestamp,
                ..AssistantMessage::default()
            },
            arguments: Vec::new(),
            error: None,
        }
    }

    /// The message so far.
    pub fn message(&self) -> &AssistantMessage {
        &self.message
    }

    /// The message, owned.
    pub fn into_message(self) -> AssistantMessage {
        self.message
    }

    /// Why the message ended in error.
    pub fn error(&self) -> Option<&ProviderError> {
        self.error.as_ref()
    }

    /// Whether the last event was applied.
    pub fn has_ended(&self) -> bool {
        self.message.stop_reason != StopReason::Pending
    }

    /// Applies one event.
    pub fn apply(&mut self, event: &AssistantEvent) {
        if self.has_ended() {
            return;
        }
        match event {
            AssistantEvent::Start => {}
            AssistantEvent::TextStart { index } => self.open(*index, TextContent::default().into()),
            AssistantEvent::TextDelta { index, delta } => {
                if let Some(AssistantBlock::Text(block)) = self.message.content.get_mut(*index) {
                    block.text.push_str(delta);
                }
            }
            AssistantEvent::TextEnd { index, end } => {
                if let Some(AssistantBlock::Text(block)) = self.message.content.get_mut(*index) {
                    close(&mut block.text, &mut block.text_signature, end);
                }
            }
            AssistantEvent::ThinkingStart { index, block } => {
                self.open(*index, AssistantBlock::Thinking((**block).clone()));
            }
            AssistantEvent::ThinkingDelta { index, delta } => {
                if let Some(AssistantBlock::Thinking(block)) = self.message.content.get_mut(*index) {
                    block.thinking.push_str(delta);
                }
            }
            AssistantEvent::ThinkingEnd { index, end } => {
                if let Some(AssistantBlock::Thinking(block)) = self.message.content.get_mut(*index) {
                    close(&mut block.thinking, &mut block.thinking_signature, end);
                    block.redacted = end.redacted.or(block.redacted);
                }
            }
            AssistantEvent::ToolCallStart { index, call } => {
                self.open(*index, AssistantBlock::ToolCall((**call).clone()));
            }
            AssistantEvent::ToolCallDelta { index, delta } => self.grow_arguments(*index, delta),
            AssistantEvent::ToolCallEnd { index, call } => {
                self.arguments.retain(|(open, _)| open != index);
                if let Some(AssistantBlock::ToolCall(block)) = self.message.content.get_mut(*index) {
                    *block = (**call).clone();
                }
            }
            AssistantEvent::Done { reason, completion } => {
                (**completion).clone().apply_to(&mut self.message);
                self.end(*reason);
            }
            AssistantEvent::Error { reason, error, completion } => {
                (**completion).clone().apply_to(&mut self.message);
                self.message.error_message = Some(error.message().to_owned());
                self.error = Some(error.clone());
                self.end(*reason);
            }
        }
    }

    /// What the deltas of a call came to, and forgets them: `None` when there was none.
    pub(super) fn take_arguments(&mut self, index: usize) -> Option<ArgumentsBuilder> {
        let at = self.arguments.iter().position(|(open, _)| *open == index)?;
        Some(self.arguments.swap_remove(at).1)
    }

    /// The text of a call's arguments so far.
    pub(super) fn arguments_text(&self, index: usize) -> &str {
        self.arguments.iter().find(|(open, _)| *open == index).map_or("", |(_, text)| text.text())
    }

    /// Takes the whole text of a call's arguments in place of the pieces so far.
    pub(super) fn replace_arguments(&mut self, index: usize, text: &str) {
        self.arguments.retain(|(open, _)| *open != index);
        if let Some(AssistantBlock::ToolCall(call)) = self.message.content.get_mut(index) {
            call.arguments.clear();
        }
        self.grow_arguments(index, text);
    }

    /// For whoever makes the events: what is not said by deltas.
    pub(super) fn message_mut(&mut self) -> &mut AssistantMessage {
        &mut self.message
    }

    fn open(&mut self, index: usize, block: AssistantBlock) {
        if index == self.message.content.len() {
            self.message.content.push(block);
        }
    }

    fn grow_arguments(&mut self, index: usize, delta: &str) {
        let Some(AssistantBlock::ToolCall(ToolCall { arguments, .. })) = self.message.content.get_mut(index) else {
            return;
        };
        let at = match self.arguments.iter().position(|(open, _)| *open == index) {
            Some(at) => at,
            None => {
                self.arguments.push((index, ArgumentsBuilder::default()));
                self.arguments.len() - 1
            }
        };
        self.arguments[at].1.push(arguments, delta);
    }

    fn end(&mut self, reason: StopReason) {
        self.arguments.clear();
        // A last event that says "not ended yet" would let the message grow for ever.
        self.message.stop_reason = if reason == StopReason::Pending { StopReason::Stop } else { reason };
    }
}

fn close(text: &mut String, signature: &mut Option<String>, end: &BlockEnd) {
    if let Some(whole) = &end.text {
        text.clone_from(whole);
    }
    if end.signature.is_some() {
        signature.clone_from(&end.signature);
    }
}
