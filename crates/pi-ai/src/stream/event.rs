//! The events of an answer.

use crate::{
    error::ProviderError,
    message::{AssistantBlock, AssistantMessage, StopReason, ThinkingContent, ToolCall},
    usage::Usage,
};

/// One step of an answer. Events carry what is new only; the message so far is
/// [`AssistantStream::partial`](super::AssistantStream::partial), so that cost stays linear in the output.
///
/// A stream is `Start`, then updates, then exactly one `Done` or `Error`; a request that fails before the provider
/// answers is a lone `Error`. Blocks may interleave: match them by `index`, their place in the message's content.
/// The events of a stream say everything about its message: [`MessageFold`](super::MessageFold) folds them.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum AssistantEvent {
    /// The provider began to answer.
    Start,
    /// A text block begins, empty.
    TextStart {
        /// Its place in the content.
        index: usize,
    },
    /// A text block grows.
    TextDelta {
        /// Its place in the content.
        index: usize,
        /// What it grows by.
        delta: String,
    },
    /// A text block is complete.
    TextEnd {
        /// Its place in the content.
        index: usize,
        /// What the deltas did not say.
        end: BlockEnd,
    },
    /// A reasoning block begins: empty, or complete when it is redacted.
    ThinkingStart {
        /// Its place in the content.
        index: usize,
        /// The block as it begins.
        block: Box<ThinkingContent>,
    },
    /// A reasoning block grows.
    ThinkingDelta {
        /// Its place in the content.
        index: usize,
        /// What it grows by.
        delta: String,
    },
    /// A reasoning block is complete.
    ThinkingEnd {
        /// Its place in the content.
        index: usize,
        /// What the deltas did not say.
        end: BlockEnd,
    },
    /// A tool call begins.
    ToolCallStart {
        /// Its place in the content.
        index: usize,
        /// The call as it begins: most often without arguments, sometimes without an id yet.
        call: Box<ToolCall>,
    },
    /// The text of a tool call's arguments grows.
    ToolCallDelta {
        /// Its place in the content.
        index: usize,
        /// What the text grows by; not complete JSON.
        delta: String,
    },
    /// A tool call is complete (not checked against the tool's schema).
    ToolCallEnd {
        /// Its place in the content.
        index: usize,
        /// The whole call.
        call: Box<ToolCall>,
    },
    /// The answer is complete.
    Done {
        /// `Stop`, `Length`, `ToolUse` or `Deferred`.
        reason: StopReason,
        /// What is known of the message besides its content.
        completion: Box<Completion>,
    },
    /// The answer failed or was aborted; what had come stays in the message.
    Error {
        /// `Error` or `Aborted`.
        reason: StopReason,
        /// Why.
        error: ProviderError,
        /// What is known of the message besides its content.
        completion: Box<Completion>,
    },
}

/// What the deltas of a block did not say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlockEnd {
    /// The block's whole text, when the provider's last word differs from the deltas.
    pub text: Option<String>,
    /// The block's signature.
    pub signature: Option<String>,
    /// Whether the block turned out to be hidden reasoning.
    pub redacted: Option<bool>,
}

/// What is known of a message besides its content, when it ends.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Completion {
    /// The model that answered, when it says another name.
    pub response_model: Option<String>,
    /// The provider's id of the answer.
    pub response_id: Option<String>,
    /// The effort that a provider applies inside the conversation.
    pub provider_thinking_level: Option<String>,
    /// What the wire wants to be known about the request.
    pub diagnostics: Option<serde_json::Value>,
    /// Tokens and price.
    pub usage: Usage,
    /// The handle of an answer that is to be fetched later.
    pub deferred: Option<serde_json::Value>,
    /// The provider's own word for why it ended.
    pub raw_stop_reason: Option<String>,
    /// Whether the provider says that the turn ends here.
    pub end_turn: Option<bool>,
    /// How long the request took.
    pub duration_ms: Option<u64>,
    /// Signatures of reasoning blocks that came after their blocks had ended, by the block's place in the content.
    pub late_signatures: Vec<(usize, String)>,
}

impl AssistantEvent {
    /// Whether this is the last event of a stream.
    pub fn is_terminal(&self) -> bool {
        matches!(self, Self::Done { .. } | Self::Error { .. })
    }

    /// The block that the event is about.
    pub fn index(&self) -> Option<usize> {
        match self {
            Self::TextStart { index }
            | Self::TextDelta { index, .. }
            | Self::TextEnd { index, .. }
            | Self::ThinkingStart { index, .. }
            | Self::ThinkingDelta { index, .. }
            | Self::ThinkingEnd { index, .. }
            | Self::ToolCallStart { index, .. }
            | Self::ToolCallDelta { index, .. }
            | Self::ToolCallEnd { index, .. } => Some(*index),
            Self::Start | Self::Done { .. } | Self::Error { .. } => None,
        }
    }
}

impl Completion {
    /// Takes what is known of a message.
    pub fn of(message: &AssistantMessage) -> Self {
        Self {
            response_model: message.response_model.clone(),
            response_id: message.response_id.clone(),
            provider_thinking_level: message.provider_thinking_level.clone(),
            diagnostics: message.diagnostics.clone(),
            usage: message.usage.clone(),
            deferred: message.deferred.clone(),
            raw_stop_reason: message.raw_stop_reason.clone(),
            end_turn: message.end_turn,
            duration_ms: message.duration_ms,
            late_signatures: Vec::new(),
        }
    }

    /// Puts what is known into a message.
    pub fn apply_to(self, message: &mut AssistantMessage) {
        message.response_model = self.response_model;
        message.response_id = self.response_id;
        message.provider_thinking_level = self.provider_thinking_level;
        message.diagnostics = self.diagnostics;
        message.usage = self.usage;
        message.deferred = self.deferred;
        message.raw_stop_reason = self.raw_stop_reason;
        message.end_turn = self.end_turn;
        message.duration_ms = self.duration_ms;
        for (index, signature) in self.late_signatures {
            if let Some(AssistantBlock::Thinking(block)) = message.content.get_mut(index) {
                block.thinking_signature = Some(signature);
            }
        }
    }
}
