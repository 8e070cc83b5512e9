//! The replay as an incremental fold.

use std::sync::OnceLock;

use indexmap::IndexMap;

use super::{TranscriptItem, render_full};
use crate::{message::SystemMessage, time::Timestamp, tool::ToolDeclaration};

/// What the system messages so far add up to.
///
/// Pushing a message costs the size of that message (nothing at all when it is no system message); reading the
/// prompt or the tools does not depend on the length of the transcript.
///
/// ```
/// use pi_ai::{Message, SystemMessage, transcript::TranscriptState};
/// let mut state = TranscriptState::default();
/// state.push(&Message::system("You help."));
/// state.push(&Message::user("hi"));
/// assert_eq!(state.prompt(), "You help.");
/// state.push_system(&SystemMessage::new("Be brief."));
/// assert_eq!(state.prompt(), "You help.\n\nBe brief.");
/// ```
#[derive(Clone, Debug, Default)]
pub struct TranscriptState {
    /// When the first system message was made; `None` before there is one.
    since: Option<Timestamp>,
    content: String,
    sections: IndexMap<String, String>,
    tools: IndexMap<String, ToolDeclaration>,
    /// The rendered prompt, made when it is first read after a change.
    prompt: OnceLock<String>,
}

impl TranscriptState {
    /// Takes the next message.
    pub fn push<T: TranscriptItem>(&mut self, message: &T) {
        if let Some(message) = message.as_system() {
            self.push_system(message);
        }
    }

    /// Takes the next system message.
    pub fn push_system(&mut self, message: &SystemMessage) {
        self.prompt = OnceLock::new();
        self.since.get_or_insert(message.timestamp);
        let text = message.content.text();
        if !text.is_empty() {
            if !self.content.is_empty() {
                self.content.push_str("\n\n");
            }
            self.content.push_str(&text);
        }
        for (name, text) in &message.sections {
            match text {
                Some(text) => drop(self.sections.insert(name.clone(), text.clone())),
                None => drop(self.sections.shift_remove(name)),
            }
        }
        for removed in &message.tools_removed {
            self.tools.shift_remove(&removed.name);
        }
        for added in &message.tools_added {
            self.tools.insert(added.name.clone(), added.clone());
        }
    }

    /// Whether there was a system message.
    pub fn has_system_message(&self) -> bool {
        self.since.is_some()
    }

    /// The whole prompt as text, sections included.
    pub fn prompt(&self) -> &str {
        self.prompt.get_or_init(|| self.system_message().map(|head| render_full(&head)).unwrap_or_default())
    }

    /// The prompt without its sections.
    pub fn content(&self) -> &str {
        &self.content
    }

    /// The sections, in order.
    pub fn sections(&self) -> &IndexMap<String, String> {
        &self.sections
    }

    /// The tools, in order.
    pub fn tools(&self) -> impl ExactSizeIterator<Item = &ToolDeclaration> {
        self.tools.values()
    }

    /// The tool of this name.
    pub fn tool(&self, name: &str) -> Option<&ToolDeclaration> {
        self.tools.get(name)
    }

    /// The one system message that says the same.
    pub fn system_message(&self) -> Option<SystemMessage> {
        Some(SystemMessage {
            content: self.content.as_str().into(),
            sections: self.sections.iter().map(|(name, text)| (name.clone(), Some(text.clone()))).collect(),
            tools_added: self.tools.values().cloned().collect(),
            tools_removed: Vec::new(),
            timestamp: self.since?,
        })
    }
}

impl<'a, T: TranscriptItem> FromIterator<&'a T> for TranscriptState {
    fn from_iter<I: IntoIterator<Item = &'a T>>(messages: I) -> Self {
        let mut state = Self::default();
        for message in messages {
            state.push(message);
        }
        state
    }
}
