//! Carrying out a compaction.

use std::sync::Arc;

use pi_ai::{CancellationToken, Model, StreamFn, Usage};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    prepare::CompactionPreparation,
    prompts,
    summarize::{Summarizer, SummaryError, SummaryOptions, Task},
};
use crate::{
    messages::{CodingConverter, SessionMessage},
    session::{Compaction, EntryId},
};

/// Why a conversation is compacted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum CompactionReason {
    /// The user asked for it.
    Manual,
    /// The context has grown near the model's limit.
    Threshold,
    /// A request was larger than the model's context, or left no room for the answer.
    Overflow,
}

/// A compaction that was carried out, as events tell it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CompactionResult {
    /// The summary.
    pub summary: String,
    /// The first entry that stays.
    pub first_kept_entry_id: EntryId,
    /// The context's size before, in tokens.
    pub tokens_before: u64,
    /// The context's size after, estimated.
    pub estimated_tokens_after: u64,
    /// What the summary cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// The files that were read and changed, or what an extension keeps with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
}

/// Asks the model for the summary that a compaction needs. Gives the entry to append; nothing is written here.
///
/// # Errors
/// When the model gives no usable summary, or the signal is cancelled. Then nothing has changed.
pub async fn compact(
    stream: &dyn StreamFn,
    model: &Arc<Model>,
    preparation: &CompactionPreparation,
    options: &SummaryOptions,
    signal: &CancellationToken,
) -> Result<Compaction, SummaryError> {
    let summarizer = Summarizer { stream, model, options, signal };
    let reserve_tokens = preparation.settings.reserve_tokens;
    let (first, update) =
        (options.instructions.apply(prompts::summary()), options.instructions.apply(prompts::update()));
    let previous = preparation.previous_summary.as_deref();
    let history =
        Task { what: "the conversation", instructions: &first, update_instructions: &update, previous, reserve_tokens };
    let mut usage = None;
    let mut summary = match (&preparation.messages_to_summarize[..], preparation.is_split_turn()) {
        ([], true) => previous.unwrap_or(prompts::NO_HISTORY).to_owned(),
        (messages, _) => {
            let summary = summarizer.summarize(&converted(messages), &history).await?;
            usage = Some(summary.usage);
            summary.text
        }
    };
    if preparation.is_split_turn() {
        let turn = options.instructions.apply(prompts::turn_prefix());
        let task = Task {
            what: "the beginning of the current turn",
            instructions: &turn,
            update_instructions: &turn,
            previous: None,
            reserve_tokens,
        };
        let prefix = summarizer.summarize(&converted(&preparation.turn_prefix_messages), &task).await?;
        summary += prompts::TURN_HEADING;
        summary += &prefix.text;
        match &mut usage {
            None => usage = Some(prefix.usage),
            Some(usage) => usage.add(&prefix.usage),
        }
    }
    if signal.is_cancelled() {
        return Err(SummaryError::Aborted);
    }
    let files = preparation.files.lists();
    summary += &files.text();
    Ok(Compaction {
        summary,
        first_kept_entry_id: Some(preparation.first_kept_entry_id.clone()),
        tokens_before: preparation.tokens_before,
        details: serde_json::to_value(&files).ok(),
        usage,
        from_hook: None,
        system_message: None,
    })
}

fn converted(messages: &[SessionMessage]) -> Vec<pi_ai::Message> {
    CodingConverter.convert_all(messages)
}
