//! The guide's answer as a stream, a few words at a time.

use std::task::{Context, Poll};

use pi_ai::{
    StopReason, ToolCall,
    stream::{Advance, BlockEnd, MessageBuilder, Source},
};
use serde_json::Value;

use super::desk::Call;

/// What the guide says and does in one answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Reply {
    pub(super) text: String,
    pub(super) calls: Vec<Call>,
    /// Makes the ids of the calls unlike all earlier ones.
    pub(super) number: usize,
}

/// Makes the reply when the stream is first polled, then writes it piece by piece.
pub(super) struct ReplySource<F> {
    think: Option<F>,
    input_tokens: u64,
    reply: Reply,
    /// Bytes of the text that were written.
    written: usize,
    text_block: Option<usize>,
    next_call: usize,
}

impl<F: FnOnce() -> Reply + Send + 'static> ReplySource<F> {
    pub(super) fn new(think: F, input_tokens: u64) -> Self {
        Self { think: Some(think), input_tokens, reply: Reply::default(), written: 0, text_block: None, next_call: 0 }
    }
}

impl<F: FnOnce() -> Reply + Send + Unpin + 'static> Source for ReplySource<F> {
    fn poll_advance(&mut self, _: &mut Context<'_>, answer: &mut MessageBuilder) -> Poll<Advance> {
        if let Some(think) = self.think.take() {
            answer.start();
            self.reply = think();
            return Poll::Ready(Advance::More);
        }
        let rest = self.reply.text.get(self.written..).unwrap_or_default();
        if !rest.is_empty() {
            let block = *self.text_block.get_or_insert_with(|| answer.start_text());
            let piece = next_piece(rest);
            self.written += piece.len();
            answer.push_text(block, piece);
            return Poll::Ready(Advance::More);
        }
        if let Some(block) = self.text_block.take() {
            answer.end_text(block, BlockEnd::default());
            return Poll::Ready(Advance::More);
        }
        if let Some(call) = self.reply.calls.get(self.next_call) {
            let id = format!("guide-{}-{}", self.reply.number, self.next_call + 1);
            self.next_call += 1;
            let index =
                answer.start_tool_call(ToolCall { id: id.into(), name: call.tool.clone(), ..ToolCall::default() });
            answer.push_arguments(index, Value::Object(call.arguments.clone()).to_string());
            answer.end_tool_call(index);
            return Poll::Ready(Advance::More);
        }
        let output: usize = self.reply.text.len()
            + self
                .reply
                .calls
                .iter()
                .map(|call| Value::Object(call.arguments.clone()).to_string().len())
                .sum::<usize>();
        let usage = answer.usage_mut();
        usage.input = self.input_tokens;
        usage.output = tokens(output);
        usage.total_tokens = usage.input + usage.output;
        answer.done(if self.reply.calls.is_empty() { StopReason::Stop } else { StopReason::ToolUse });
        Poll::Ready(Advance::Exhausted)
    }
}

/// About four bytes are a token.
pub(super) fn tokens(bytes: usize) -> u64 {
    (bytes as u64).div_ceil(4)
}

/// A few words; always something.
fn next_piece(text: &str) -> &str {
    const LEAST: usize = 12;
    let end = text
        .char_indices()
        .skip_while(|(at, _)| *at < LEAST)
        .find(|(_, c)| c.is_whitespace())
        .map_or(text.len(), |(at, c)| at + c.len_utf8());
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_into_pieces_that_make_it_up_again() {
        for text in [
            "",
            "a",
            "one two three four five six seven",
            "no-blanks-at-all-in-this-very-long-word",
            "ä ö ü ".repeat(20).as_str(),
        ] {
            let (mut rest, mut all) = (text, String::new());
            while !rest.is_empty() {
                let piece = next_piece(rest);
                assert!(!piece.is_empty());
                all.push_str(piece);
                rest = &rest[piece.len()..];
            }
            assert_eq!(all, text);
        }
    }
}
