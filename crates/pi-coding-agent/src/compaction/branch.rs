//! Summaries of branches that the conversation comes back from.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use pi_ai::{CancellationToken, Model, StreamFn};

use super::{
    estimate::estimate_tokens,
    files::FileOperations,
    prompts,
    summarize::{Summarizer, SummaryError, SummaryInstructions, SummaryOptions, Task, window_of},
};
use crate::{
    messages::{CodingConverter, SessionMessage},
    session::{
        BranchSummary, ContextEdit, Entry, EntryBody, EntryId, EntryKind, MessageRole, ProjectedEntry, Session,
        SessionError,
    },
};

/// The entries that are left behind when a session goes from one entry to another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeftBranch {
    /// The entries, from the oldest.
    pub entries: Vec<EntryId>,
    /// Where the two ways part; `None` when they have nothing in common.
    pub common_ancestor: Option<EntryId>,
}

/// The entries that are left behind when a session goes from `from` to `to`: those from `from` back to where the two
/// ways part, compactions or not.
///
/// # Errors
/// When there is no such entry.
pub fn left_branch(session: &Session, from: Option<&str>, to: &str) -> Result<LeftBranch, SessionError> {
    let Some(from) = from else { return Ok(LeftBranch::default()) };
    let way = session.branch_to(from)?;
    let other: HashSet<EntryId> = session.branch_to(to)?.into_iter().map(|entry| entry.id).collect();
    let common = way.iter().rposition(|entry| other.contains(&entry.id));
    let left = &way[common.map_or(0, |common| common + 1)..];
    Ok(LeftBranch {
        entries: left.iter().map(|entry| entry.id.clone()).collect(),
        common_ancestor: common.map(|common| way[common].id.clone()),
    })
}

/// What a summary of a branch is made from.
#[derive(Clone, Debug, Default)]
pub struct BranchPreparation {
    /// The messages, from the oldest.
    pub messages: Vec<SessionMessage>,
    /// The files that were read and changed.
    pub files: FileOperations,
    /// The size of the messages, estimated.
    pub total_tokens: u64,
}

/// Chooses what of a branch is summarised: the newest messages that fit, without tool results. `token_budget` 0 means
/// that everything fits.
pub fn prepare_branch(entries: &[Entry], token_budget: u64) -> BranchPreparation {
    let mut preparation = BranchPreparation::default();
    let mut edits = HashMap::<&EntryId, &ContextEdit>::new();
    for entry in entries {
        match &entry.body {
            EntryBody::BranchSummary(summary) if summary.from_hook != Some(true) => {
                if let Some(details) = &summary.details {
                    preparation.files.add_details(details);
                }
            }
            EntryBody::ContextEdit(edit) => drop(edits.insert(&edit.target_id, edit)),
            _ => {}
        }
    }
    for entry in entries.iter().rev() {
        let Some(message) = message_of(entry, edits.get(&entry.id).copied()) else { continue };
        preparation.files.add_message(&message);
        let tokens = estimate_tokens(&message);
        let fits = token_budget == 0 || preparation.total_tokens.saturating_add(tokens) <= token_budget;
        // An earlier summary says so much that it may go a little over.
        let is_summary = matches!(entry.body, EntryBody::Compaction(_) | EntryBody::BranchSummary(_));
        if fits || (is_summary && u128::from(preparation.total_tokens) * 10 < u128::from(token_budget) * 9) {
            preparation.messages.push(message);
            preparation.total_tokens = preparation.total_tokens.saturating_add(tokens);
        }
        if !fits {
            break;
        }
    }
    preparation.messages.reverse();
    preparation
}

fn message_of(entry: &Entry, edit: Option<&ContextEdit>) -> Option<SessionMessage> {
    let edit = match entry.body.kind() {
        EntryKind::Message(MessageRole::ToolResult) => return None,
        EntryKind::Message(_) | EntryKind::CustomMessage => edit,
        // Edits are of messages: what stands for a whole branch is told all the same.
        _ => None,
    };
    let projected = ProjectedEntry::unedited(entry).edited_by(edit);
    projected.messages().last().cloned()
}

/// Asks the model for a summary of a branch. Gives the entry to append (its `from_id` is set when it is); nothing is
/// written here. `reserve_tokens` are kept free for instructions and answer.
///
/// # Errors
/// When the model gives no usable summary, or the signal is cancelled. Then nothing has changed.
pub async fn summarize_branch(
    stream: &dyn StreamFn,
    model: &Arc<Model>,
    entries: &[Entry],
    reserve_tokens: u64,
    options: &SummaryOptions,
    signal: &CancellationToken,
) -> Result<BranchSummary, SummaryError> {
    // Without any room to plan with, everything is tried: what is too large is summarised in pieces.
    let budget = window_of(model).saturating_sub(reserve_tokens);
    let preparation = prepare_branch(entries, budget);
    if preparation.messages.is_empty() {
        return Ok(BranchSummary { summary: prompts::EMPTY_BRANCH.into(), ..BranchSummary::default() });
    }
    let instructions = match &options.instructions {
        SummaryInstructions::Instead(instructions) => instructions.clone(),
        other => other.apply(prompts::branch()),
    };
    let update = match &options.instructions {
        SummaryInstructions::Instead(instructions) => instructions.clone(),
        other => other.apply(prompts::update()),
    };
    let task = Task {
        what: "the branch",
        instructions: &instructions,
        update_instructions: &update,
        previous: None,
        reserve_tokens,
    };
    let summarizer = Summarizer { stream, model, options, signal };
    let summary = summarizer.summarize(&CodingConverter.convert_all(&preparation.messages), &task).await?;
    if signal.is_cancelled() {
        return Err(SummaryError::Aborted);
    }
    let files = preparation.files.lists();
    Ok(BranchSummary {
        summary: format!("{}{}{}", prompts::BRANCH_LEAD, summary.text, files.text()),
        details: serde_json::to_value(&files).ok(),
        usage: Some(summary.usage),
        ..BranchSummary::default()
    })
}
