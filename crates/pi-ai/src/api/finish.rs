//! How an answer ends, once the server has said so. It is told only after the last event, because usage may follow.

use crate::{
    error::{ErrorKind, ProviderError},
    message::StopReason,
};

/// What the server said about the end.
#[derive(Debug)]
pub(super) enum Finish {
    Done(StopReason),
    Failed(ProviderError),
}

impl Finish {
    /// The answer is a failure of this class.
    pub(super) fn failed(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self::Failed(ProviderError::new(kind, message))
    }
}
