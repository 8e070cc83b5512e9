//! Compaction: a context that never outgrows the model, and summaries of branches that are left.
//!
//! Everything here is a function of its arguments; nothing writes to a session. A compaction goes in three steps:
//!
//! 1. Decide: [`check_context`] says what is to be done about an answer, [`should_compact`] whether a context is too
//!    large.
//! 2. Prepare: [`prepare_compaction`] says what would be summarised and what would stay.
//! 3. Run: [`compact`] asks the model and gives the entry for
//!    [`append_compaction`](crate::session::SessionManager::append_compaction). When it fails nothing has changed.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use pi_ai::{CancellationToken, Message, faux::{FauxProvider, FauxReply}};
//! use pi_coding_agent::compaction::{SummaryOptions, compact, prepare_compaction};
//! use pi_coding_agent::resources::CompactionSettings;
//! use pi_coding_agent::session::SessionManager;
//!
//! let session = SessionManager::in_memory();
//! for text in ["first question", "second question", "third question"] {
//!     session.append_message(Message::user(text)).await?;
//! }
//! let settings = CompactionSettings { enabled: true, reserve_tokens: 100, keep_recent_tokens: 1 };
//! let preparation = session.with(|session| prepare_compaction(session.projection(), &settings))?;
//!
//! let provider = FauxProvider::new([FauxReply::text("They asked two questions.")]);
//! let (model, options, signal) = (FauxProvider::model(), SummaryOptions::default(), CancellationToken::new());
//! let compaction = compact(&provider, &model, &preparation, &options, &signal).await?;
//! session.append_compaction(compaction).await?;
//! assert_eq!(session.context().messages.len(), 2);
//! # Ok(()) }
//! ```

mod branch;
mod cut;
mod estimate;
mod files;
mod prepare;
mod prompts;
mod recovery;
mod run;
mod serialize;
mod shrink;
mod summarize;
mod usage;

pub use branch::{BranchPreparation, LeftBranch, left_branch, prepare_branch, summarize_branch};
pub use cut::{CutPoint, find_cut_point};
pub use estimate::{context_tokens, estimate_context, estimate_messages, estimate_projection, estimate_tokens};
pub use files::{FileLists, FileOperations};
pub use pi_ai::api::budget::ContextEstimate;
pub use prepare::{CompactionPreparation, NothingToCompact, prepare_compaction, should_compact};
pub use recovery::{CheckTime, ContextAction, ContextCheck, RecoveryAttempt, check_context};
pub use run::{CompactionReason, CompactionResult, compact};
pub use serialize::serialize_conversation;
pub use shrink::{LargePart, largest_parts, plan_shrink};
pub use summarize::{RetryObserver, SummaryError, SummaryInstructions, SummaryOptions};
pub use usage::{ContextUsage, context_usage};
