//! How a run ends when something outside of an answer fails.

use pi_ai::{CancellationToken, ErrorKind, ProviderError};

use crate::{
    contain::{Fault, Panicked},
    hooks::HookError,
};

/// Why a run cannot go on.
#[derive(Debug)]
pub(super) struct Failure(pub(super) ProviderError);

impl Failure {
    pub(super) fn new(kind: ErrorKind, text: impl Into<String>) -> Self {
        Self(ProviderError::new(kind, text))
    }

    /// Code of others panicked: the text says whose it was, and what it panicked with.
    pub(super) fn panicked(who: &str, panic: Panicked) -> Self {
        tracing::error!(panic = panic.0, "{who} panicked");
        let mut text = format!("{who} panicked: {}", panic.0);
        if let Some(first) = text.get_mut(..1) {
            first.make_ascii_uppercase();
        }
        Self::new(ErrorKind::Other, text)
    }

    /// The stream function panicked. As with every other failure of a provider, the text is its own.
    pub(super) fn stream_panicked(panic: Panicked) -> Self {
        tracing::error!(panic = panic.0, "the stream function panicked");
        Self::new(ErrorKind::Other, panic.0)
    }

    pub(super) fn fault(who: &str, fault: Fault) -> Self {
        match fault {
            Fault::Panicked(panic) => Self::panicked(who, panic),
            Fault::Overdue => {
                tracing::warn!("{who} did not return when the run was aborted; it was dropped");
                Self::aborted()
            }
        }
    }

    pub(super) fn aborted() -> Self {
        Self(ProviderError::aborted())
    }

    /// The answer of a hook that may fail.
    pub(super) fn decided<T>(who: &str, answer: Result<Result<T, HookError>, Fault>) -> Result<T, Self> {
        match answer {
            Ok(Ok(decision)) => Ok(decision),
            Ok(Err(error)) => Err(Self::new(ErrorKind::Other, error.to_string())),
            Err(fault) => Err(Self::fault(who, fault)),
        }
    }

    /// What happens after an abort is the abort's doing.
    pub(super) fn stop_reason(&self, signal: &CancellationToken) -> pi_ai::StopReason {
        match signal.is_cancelled() || self.0.kind() == ErrorKind::Aborted {
            true => pi_ai::StopReason::Aborted,
            false => pi_ai::StopReason::Error,
        }
    }
}
