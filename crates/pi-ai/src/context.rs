//! What a request is made of, before and after it is normalised.

use crate::{message::Message, tool::ToolDeclaration, transcript::create_initial_system_message};

/// What a caller hands in: messages, and optionally a prompt and tools beside them.
///
/// No provider takes this type. [`Context::normalize`] folds prompt and tools into the transcript, where they belong.
///
/// ```
/// use pi_ai::{Context, Message};
/// let context = Context { system_prompt: Some("Be brief.".into()), ..Context::from(vec![Message::user("hi")]) };
/// let transcript = context.normalize();
/// assert_eq!(transcript.messages().len(), 2);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Context {
    /// A prompt that goes before everything else.
    pub system_prompt: Option<String>,
    /// The conversation.
    pub messages: Vec<Message>,
    /// Tools that the model may call.
    pub tools: Vec<ToolDeclaration>,
}

/// A transcript that says everything about a request: prompt and tools are in its system messages.
///
/// Only [`Context::normalize`] makes one, and every provider-facing function takes one, so that a raw [`Context`]
/// cannot reach a wire:
///
/// ```compile_fail,E0451
/// let forged = pi_ai::TranscriptContext { messages: Vec::new() };
/// ```
///
/// while the proper way compiles:
///
/// ```
/// let context = pi_ai::Context::default().normalize();
/// # assert!(context.messages().is_empty());
/// ```
#[derive(Clone, Debug)]
pub struct TranscriptContext {
    messages: Vec<Message>,
}

impl Context {
    /// Folds prompt and tools into one leading system message.
    pub fn normalize(self) -> TranscriptContext {
        let mut messages = self.messages;
        let prompt = self.system_prompt.unwrap_or_default();
        if let Some(head) = create_initial_system_message(&prompt, self.tools) {
            messages.insert(0, head.into());
        }
        TranscriptContext { messages }
    }
}

impl From<Vec<Message>> for Context {
    fn from(messages: Vec<Message>) -> Self {
        Self { messages, ..Self::default() }
    }
}

impl TranscriptContext {
    /// The messages, system messages among them.
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// The messages, owned.
    pub fn into_messages(self) -> Vec<Message> {
        self.messages
    }
}
