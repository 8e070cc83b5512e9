//! Parts of a context that are too large to be kept whole.

use std::fmt;

use pi_ai::{Content, InputBlock, Message};

use super::{
    estimate::{estimate_messages, estimate_projection},
    serialize::head_and_tail,
};
use crate::{
    messages::{CodingMessage, SessionMessage},
    session::{EntryId, ProjectedEntry, Projection, Replacement},
};

/// A part of a context, with its size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LargePart {
    /// The entry that it comes from.
    pub entry: EntryId,
    /// What it is, for people: `result of read`, `message of the user`.
    pub what: String,
    /// Its size, estimated.
    pub tokens: u64,
}

impl fmt::Display for LargePart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}, about {} tokens)", self.what, self.entry, self.tokens)
    }
}

/// The largest parts of a context, the largest first.
pub fn largest_parts(projection: &Projection, count: usize) -> Vec<LargePart> {
    let mut parts: Vec<LargePart> = projection.entries().iter().filter_map(part).collect();
    parts.sort_by_key(|part| std::cmp::Reverse(part.tokens));
    parts.truncate(count);
    parts
}

fn part(entry: &ProjectedEntry) -> Option<LargePart> {
    let what = match entry.messages().first()? {
        SessionMessage::Llm(Message::System(_)) => "prompt and tools".into(),
        SessionMessage::Llm(Message::User(_)) => "message of the user".into(),
        SessionMessage::Llm(Message::Assistant(_)) => "answer of the model".into(),
        SessionMessage::Llm(Message::ToolResult(result)) => format!("result of {}", result.tool_name),
        SessionMessage::Custom(custom) => match &**custom {
            CodingMessage::BashExecution(bash) => format!("output of `{}`", bash.command),
            CodingMessage::Custom(custom) => format!("message of extension {}", custom.custom_type),
            CodingMessage::BranchSummary(_) => "summary of a branch".into(),
            CodingMessage::CompactionSummary(_) => "summary of the conversation".into(),
        },
        SessionMessage::Unknown(unknown) => format!("message of role {}", unknown.role),
    };
    Some(LargePart { entry: entry.id.clone(), what, tokens: estimate_messages(entry.messages()) })
}

/// What to cut so that a context has at most `limit` tokens: the largest tool results and messages, each to its
/// beginning and its end, as context edits. Empty when the context is small enough, or when that would not make it so.
///
/// It is for what a compaction has to keep: a single result that is larger than the model's context would make every
/// request fail.
pub fn plan_shrink(projection: &Projection, limit: u64) -> Vec<(EntryId, Replacement)> {
    /// A part is cut to no less than this.
    const LEAST: u64 = 500;
    let total = estimate_projection(projection).tokens.max(estimate_messages(projection.messages()));
    let Some(mut excess) = total.checked_sub(limit).filter(|excess| *excess > 0) else { return Vec::new() };
    let mut large: Vec<(&ProjectedEntry, u64, String)> = projection
        .entries()
        .iter()
        .filter_map(|entry| Some((entry, estimate_messages(entry.messages()), text_to_cut(entry)?)))
        .filter(|(_, tokens, _)| *tokens > LEAST)
        .collect();
    large.sort_by_key(|(_, tokens, _)| std::cmp::Reverse(*tokens));
    let mut edits = Vec::new();
    for (entry, tokens, text) in large {
        // The note between beginning and end takes a few tokens itself.
        const NOTE: u64 = 20;
        let left = tokens.saturating_sub(excess.saturating_add(NOTE)).max(LEAST);
        let units = usize::try_from((left - NOTE) * 4).unwrap_or(usize::MAX);
        edits.push((entry.id.clone(), Replacement::text(head_and_tail(&text, units))));
        excess = excess.saturating_sub(tokens - left);
        if excess == 0 {
            return edits;
        }
    }
    Vec::new()
}

/// The text of a message that may be cut: all of its content, when that is text.
fn text_to_cut(entry: &ProjectedEntry) -> Option<String> {
    let [message] = entry.messages() else { return None };
    let texts = |blocks: &[InputBlock]| -> Option<String> {
        let texts: Option<Vec<&str>> = blocks.iter().map(InputBlock::as_text).collect();
        texts.map(|texts| texts.join("\n"))
    };
    match message {
        SessionMessage::Llm(Message::ToolResult(result)) => texts(&result.content),
        SessionMessage::Llm(Message::User(user)) => match &user.content {
            Content::Text(text) => Some(text.clone()),
            Content::Blocks(blocks) => texts(blocks),
        },
        _ => None,
    }
}
