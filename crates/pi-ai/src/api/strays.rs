//! Pieces of blocks that were never begun.

use super::decode::Text;
use crate::{
    message::ThinkingContent,
    stream::{BlockEnd, MessageBuilder},
};

/// Text and reasoning that came for blocks that no event had begun. Where the answer says something by its own blocks,
/// they are left out of it; where it says nothing else, they are the answer.
#[derive(Debug, Default)]
pub(super) struct Strays(Vec<Stray>);

#[derive(Debug)]
struct Stray {
    /// The provider's index of the block.
    index: Option<u64>,
    kind: StrayKind,
    text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StrayKind {
    Text,
    Thinking,
}

impl Strays {
    /// Keeps a piece.
    pub(super) fn keep(&mut self, index: Option<u64>, kind: StrayKind, piece: Text<'_>) {
        let Some(text) = piece.non_empty() else { return };
        match self.0.last_mut() {
            Some(last) if (last.index, last.kind) == (index, kind) => last.text.push_str(text),
            _ => self.0.push(Stray { index, kind, text: piece.into_string() }),
        }
    }

    /// Gives an answer that says nothing what was kept.
    pub(super) fn surface(&mut self, answer: &mut MessageBuilder) {
        let strays = std::mem::take(&mut self.0);
        if !says_nothing(answer) {
            return;
        }
        for Stray { kind, text, .. } in strays {
            match kind {
                StrayKind::Text => {
                    let block = answer.start_text();
                    answer.push_text(block, text);
                    answer.end_text(block, BlockEnd::default());
                }
                StrayKind::Thinking => {
                    let block = answer.start_thinking(ThinkingContent::default());
                    answer.push_thinking(block, text);
                    answer.end_thinking(block, BlockEnd::default());
                }
            }
        }
    }
}

/// Whether an answer has no text and no call so far.
pub(super) fn says_nothing(answer: &MessageBuilder) -> bool {
    let message = answer.message();
    message.tool_calls().next().is_none() && message.text().is_empty()
}
