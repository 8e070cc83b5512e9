//! Where a conversation is cut: what stays, and what a summary stands for.

use std::collections::HashSet;

use pi_ai::Message;

use super::estimate::estimate_messages;
use crate::{
    messages::SessionMessage,
    session::{EditEffect, EntryId, EntryKind, MessageRole, ProjectedEntry},
};

/// Where to cut a list of entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CutPoint {
    /// The place of the first entry that stays.
    pub first_kept: usize,
    /// When the cut falls into a turn: the place of the entry that the turn begins with.
    pub turn_start: Option<usize>,
}

impl CutPoint {
    /// Whether the cut falls into a turn.
    pub fn is_split_turn(&self) -> bool {
        self.turn_start.is_some()
    }
}

/// Finds where to cut, so that about `keep_recent_tokens` stay.
///
/// Counting from the end, the entry is found with which the budget is reached; the cut falls before the next entry
/// from there on that a request may begin with, or before the last such entry at all. A tool result is none, so that it
/// is never parted from its call. Entries directly before the cut that say nothing to the model stay too.
pub fn find_cut_point(entries: &[ProjectedEntry], keep_recent_tokens: u64) -> CutPoint {
    let may_begin: Vec<usize> = (0..entries.len()).filter(|at| can_begin_context(&entries[*at])).collect();
    let Some(first) = may_begin.first() else { return CutPoint { first_kept: 0, turn_start: None } };
    let last = may_begin.last().unwrap_or(first);
    let mut cut = *first;
    if let Some(reached) = reaching(entries, keep_recent_tokens) {
        cut = *may_begin.iter().find(|at| **at >= reached).unwrap_or(last);
        if is_closed_recovery(&entries[cut + 1..]) {
            cut += 1;
        }
    }
    while cut > 0 && says_nothing(&entries[cut - 1]) {
        cut -= 1;
    }
    let starts_turn = |at: usize| entries.get(at).is_some_and(begins_turn);
    let turn_start = if starts_turn(cut) { None } else { (0..=cut).rev().find(|at| starts_turn(*at)) };
    CutPoint { first_kept: cut, turn_start }
}

/// The place of the entry with which the budget is reached, counted from the end.
fn reaching(entries: &[ProjectedEntry], budget: u64) -> Option<usize> {
    let mut sum = 0u64;
    (0..entries.len()).rev().find(|at| {
        let tokens = estimate_messages(entries[*at].messages());
        sum = sum.saturating_add(tokens);
        tokens > 0 && sum >= budget
    })
}

/// Whether all that follows the cut is a failed attempt that was left out, with the edits that leave it out. Then the
/// input before it need not be kept: the retry sends it again. Other edits must not move the cut past input that was
/// never answered.
fn is_closed_recovery(suffix: &[ProjectedEntry]) -> bool {
    let left_out: HashSet<&EntryId> = suffix.iter().filter(|entry| entry.is_omitted()).map(|entry| &entry.id).collect();
    let replaces_others = |entry: &ProjectedEntry| match &entry.edit {
        Some(EditEffect::Replaces(target)) => !left_out.contains(target),
        Some(EditEffect::Omits(_)) | None => false,
    };
    let is_attempt =
        |entry: &ProjectedEntry| entry.kind == EntryKind::Message(MessageRole::Assistant) && entry.is_omitted();
    suffix.iter().any(is_attempt)
        && !suffix.iter().any(replaces_others)
        && suffix.iter().all(|entry| entry.kind != EntryKind::Compaction && entry.messages().is_empty())
}

fn says_nothing(entry: &ProjectedEntry) -> bool {
    entry.kind != EntryKind::Compaction && entry.messages().is_empty()
}

fn can_begin_context(entry: &ProjectedEntry) -> bool {
    let can = |message: &SessionMessage| match message {
        SessionMessage::Llm(Message::User(_) | Message::Assistant(_)) | SessionMessage::Custom(_) => true,
        SessionMessage::Llm(Message::System(_) | Message::ToolResult(_)) | SessionMessage::Unknown(_) => false,
    };
    entry.kind != EntryKind::Compaction && entry.messages().iter().any(can)
}

fn begins_turn(entry: &ProjectedEntry) -> bool {
    let begins = |message: &SessionMessage| match message {
        SessionMessage::Llm(Message::User(_)) | SessionMessage::Custom(_) => true,
        SessionMessage::Llm(Message::System(_) | Message::Assistant(_) | Message::ToolResult(_))
        | SessionMessage::Unknown(_) => false,
    };
    entry.kind != EntryKind::Compaction && entry.messages().iter().any(begins)
}
