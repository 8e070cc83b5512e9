//! What a session tells its listeners.

use std::time::Duration;

use pi_agent_core::AgentEvent;
use pi_ai::ThinkingLevel;

use crate::{
    compaction::{CompactionReason, CompactionResult},
    messages::{CodingMessage, SessionMessage},
    session::Entry,
};

/// One thing that happened in a session. Every start has its end, and [`AgentSettled`](Self::AgentSettled) is the last
/// event of whatever a prompt set off.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum SessionEvent {
    /// Something of the loop, all but its end. A message that ended is stored by now.
    Agent(AgentEvent<CodingMessage>),
    /// A run of the loop is over. A retry or a recovery is a run of its own.
    AgentEnd {
        /// What it added to the transcript.
        messages: std::sync::Arc<[SessionMessage]>,
        /// Whether the failed turn will be tried again.
        will_retry: WillRetry,
    },
    /// Nothing automatic remains: no retry, no recovery, no queued message.
    AgentSettled {
        /// Whether it was aborted.
        outcome: Settled,
    },
    /// The queues changed.
    QueueUpdate {
        /// Texts that wait for the current turn to end.
        steering: Vec<String>,
        /// Texts that wait for the run to end.
        follow_up: Vec<String>,
    },
    /// An entry was stored that is no message.
    EntryAppended {
        /// The entry.
        entry: Box<Entry>,
    },
    /// The session's name changed.
    SessionInfoChanged {
        /// The new one.
        name: Option<String>,
    },
    /// The thinking level changed.
    ThinkingLevelChanged {
        /// The new one.
        level: ThinkingLevel,
    },
    /// The conversation is about to be compacted.
    CompactionStart {
        /// Why.
        reason: CompactionReason,
    },
    /// A compaction is over.
    CompactionEnd {
        /// Why it was made.
        reason: CompactionReason,
        /// How it went.
        outcome: CompactionOutcome,
        /// Whether the request that asked for it will be sent again.
        will_retry: WillRetry,
    },
    /// A failed turn will be tried again.
    AutoRetryStart {
        /// The attempt that will be made, from 1.
        attempt: u32,
        /// How many will be made.
        max_attempts: u32,
        /// How long until then.
        delay: Duration,
        /// Why the turn failed.
        error_message: String,
    },
    /// The attempts are over.
    AutoRetryEnd {
        /// The last attempt.
        attempt: u32,
        /// How it went.
        outcome: RetryOutcome,
    },
    /// A failed request for a summary will be tried again.
    SummarizationRetryScheduled {
        /// The attempt that will be made, from 1.
        attempt: u32,
        /// How many will be made.
        max_attempts: u32,
        /// How long until then.
        delay: Duration,
        /// Why the request failed.
        error_message: String,
    },
    /// The request for a summary is sent again.
    SummarizationRetryAttemptStart {
        /// What the summary is for.
        source: SummarySource,
    },
    /// The attempts at a summary are over.
    SummarizationRetryFinished,
    /// A command that the user runs printed something.
    BashExecutionUpdate {
        /// What it printed.
        delta: String,
    },
    /// A handler of an extension failed.
    ExtensionError {
        /// The extension's name.
        extension: String,
        /// The event that it handled.
        event: String,
        /// What went wrong.
        error: String,
    },
}

/// Whether something that failed will be tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WillRetry {
    /// It will.
    Yes,
    /// It will not.
    No,
}

/// How a session settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settled {
    /// By itself.
    Finished,
    /// It was aborted.
    Aborted,
}

/// How the attempts at a failed turn went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RetryOutcome {
    /// One succeeded.
    Succeeded,
    /// None did, or the wait was aborted.
    GaveUp {
        /// Why the last one failed.
        final_error: Option<String>,
    },
}

/// What a summary is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SummarySource {
    /// A compaction.
    Compaction(CompactionReason),
    /// A branch that is left.
    BranchSummary,
}

/// How a compaction went.
#[derive(Clone, Debug)]
pub enum CompactionOutcome {
    /// It was made.
    Done(Box<CompactionResult>),
    /// It was aborted, or an extension cancelled it.
    Aborted,
    /// It could not be made.
    Failed {
        /// Why.
        error_message: String,
    },
}
