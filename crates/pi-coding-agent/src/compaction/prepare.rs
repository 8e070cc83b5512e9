//! What a compaction would do, before a model is asked.

use super::{cut::find_cut_point, estimate::estimate_projection, files::FileOperations};
use crate::{
    messages::SessionMessage,
    resources::CompactionSettings,
    session::{EntryId, EntryKind, ProjectedEntry, Projection},
};

/// What a compaction would do: what it would summarise, and what it would keep.
#[derive(Clone, Debug)]
pub struct CompactionPreparation {
    /// The first entry that stays.
    pub first_kept_entry_id: EntryId,
    /// The messages that the summary stands for.
    pub messages_to_summarize: Vec<SessionMessage>,
    /// When the cut falls into a turn: the turn's messages before the cut, which are summarised for themselves.
    pub turn_prefix_messages: Vec<SessionMessage>,
    /// The context's size now, in tokens.
    pub tokens_before: u64,
    /// The summary of the compaction before, which goes into the new one.
    pub previous_summary: Option<String>,
    /// The files that the summarised messages, and those before them, read and changed.
    pub files: FileOperations,
    /// The limits that were used.
    pub settings: CompactionSettings,
}

impl CompactionPreparation {
    /// Whether the cut falls into a turn.
    pub fn is_split_turn(&self) -> bool {
        !self.turn_prefix_messages.is_empty()
    }
}

/// Why there is nothing to compact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NothingToCompact {
    /// The last thing that happened was a compaction.
    #[error("the conversation has just been compacted; there is nothing new to summarise")]
    AlreadyCompacted,
    /// All of it would stay.
    #[error("the conversation is too short to compact: all of it would be kept")]
    TooSmall,
}

/// Whether a context is so large that it should be compacted before the next request.
pub fn should_compact(context_tokens: u64, context_window: u64, settings: &CompactionSettings) -> bool {
    settings.enabled && i128::from(context_tokens) > i128::from(context_window) - i128::from(settings.reserve_tokens)
}

/// Plans the compaction of a session's context.
///
/// # Errors
/// When there is nothing to summarise.
pub fn prepare_compaction(
    projection: &Projection,
    settings: &CompactionSettings,
) -> Result<CompactionPreparation, NothingToCompact> {
    if projection.compaction().is_some() && projection.entries_since_compaction().is_empty() {
        return Err(NothingToCompact::AlreadyCompacted);
    }
    // The latest compaction leads the list, unless an edit leaves it out.
    let is_checkpoint = |entry: &ProjectedEntry| entry.kind == EntryKind::Compaction && !entry.messages().is_empty();
    let previous = projection.compaction().filter(|_| projection.entries().first().is_some_and(is_checkpoint));
    let entries = &projection.entries()[usize::from(previous.is_some())..];

    let cut = find_cut_point(entries, settings.keep_recent_tokens);
    let Some(first_kept) = entries.get(cut.first_kept) else { return Err(NothingToCompact::TooSmall) };
    let history_end = cut.turn_start.unwrap_or(cut.first_kept);
    let messages_to_summarize = said(&entries[..history_end]);
    let turn_prefix_messages = said(&entries[history_end..cut.first_kept]);
    if messages_to_summarize.is_empty() && turn_prefix_messages.is_empty() {
        return Err(NothingToCompact::TooSmall);
    }

    let mut files = FileOperations::default();
    if let Some(previous) = previous.filter(|previous| previous.from_hook != Some(true))
        && let Some(details) = &previous.details
    {
        files.add_details(details);
    }
    messages_to_summarize.iter().chain(&turn_prefix_messages).for_each(|message| files.add_message(message));
    Ok(CompactionPreparation {
        first_kept_entry_id: first_kept.id.clone(),
        messages_to_summarize,
        turn_prefix_messages,
        tokens_before: estimate_projection(projection).tokens,
        previous_summary: previous.map(|previous| previous.summary.clone()),
        files,
        settings: *settings,
    })
}

/// What was said, without prompts: those are state, which the compaction's entry keeps.
fn said(entries: &[ProjectedEntry]) -> Vec<SessionMessage> {
    let conversation = entries.iter().filter(|entry| entry.kind != EntryKind::Compaction);
    let messages = conversation.flat_map(ProjectedEntry::messages).filter(|message| !message.is_system());
    messages.cloned().collect()
}
