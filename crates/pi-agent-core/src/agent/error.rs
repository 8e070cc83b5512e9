//! Why an agent does not do what it was asked.

use pi_ai::ProviderError;
use thiserror::Error;

/// Why an agent does not do what it was asked, or why there is no answer.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum AgentError {
    /// A run is active.
    #[error(
        "the agent is busy with another run; queue the message with `steer` or `follow_up`, or wait with \
         `wait_for_idle` and try again"
    )]
    Busy,
    /// There are no messages to go on from.
    #[error("there is nothing to continue: the transcript has no messages besides system messages; use `prompt`")]
    NothingToContinue,
    /// The transcript ends with an answer, and nothing is queued.
    #[error("there is nothing to continue: the transcript ends with an answer and nothing is queued; use `prompt`")]
    AlreadyAnswered,
    /// The run was aborted before it had an answer.
    #[error("the run was aborted: {message}")]
    Aborted {
        /// What is known about it.
        message: String,
    },
    /// The run ended in an error.
    #[error("the run failed: {message}")]
    Failed {
        /// What went wrong.
        message: String,
        /// The typed cause, when it is known: an authentication failure, a rate limit with its delay, an overflow …
        #[source]
        cause: Option<ProviderError>,
    },
    /// The run has no answer: it ended before the model was asked.
    #[error("the run has no answer")]
    NoAnswer,
    /// The runtime was shut down during the run.
    #[error("the run was cut off: its runtime was shut down")]
    CutOff,
}
