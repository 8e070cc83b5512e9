//! Why a session refused or failed something.

use pi_ai::models::CredentialError;

use crate::{
    compaction::{NothingToCompact, SummaryError},
    resources::{InvalidSectionName, InvalidSetting, SkillCommandError},
    session::SessionError,
    workspace::ProcessError,
};

/// Why a session refused or failed something.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AgentSessionError {
    /// A prompt came while another one is answered.
    #[error("the session is answering a prompt; use steer() or follow_up(), or wait_for_idle()")]
    Busy,
    /// Something came while the conversation is compacted or a branch is summarised.
    #[error("the session is making a summary of the conversation; wait_for_idle() waits until it is done")]
    Compacting,
    /// The session was disposed of.
    #[error("the session has ended: it was disposed of; make another one")]
    Ended,
    /// No model is chosen.
    #[error(
        "no model is chosen: set a key for a provider (for example ANTHROPIC_API_KEY), name one with --model, or \
         describe one in models.json"
    )]
    NoModel,
    /// The session could not be read or written.
    #[error(transparent)]
    Storage(#[from] SessionError),
    /// A section of the system prompt has an impossible name.
    #[error(transparent)]
    Section(#[from] InvalidSectionName),
    /// A command could not be started.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// Stored credentials cannot be read.
    #[error(transparent)]
    Credentials(#[from] CredentialError),
    /// The loop refused.
    #[error(transparent)]
    Agent(#[from] pi_agent_core::AgentError),
    /// The answer ended in error or was aborted.
    #[error("{message}")]
    Failed {
        /// Why.
        message: String,
    },
    /// The model gave no value of the type that was asked for.
    #[error("the model gave no answer in the form that was asked for; it said: {said}")]
    NoAnswer {
        /// What it said last.
        said: String,
    },
    /// There is nothing that a compaction could shorten.
    #[error(transparent)]
    NothingToCompact(#[from] NothingToCompact),
    /// The model gave no usable summary.
    #[error(transparent)]
    Summary(#[from] SummaryError),
    /// A setting has an impossible value.
    #[error(transparent)]
    Setting(#[from] InvalidSetting),
    /// A skill that was called up cannot be read.
    #[error(transparent)]
    Skill(SkillCommandError),
    /// Something that calls up a command of an extension came while a prompt is answered.
    #[error("/{name} is a command of an extension and cannot wait in a queue; prompt() runs it at once")]
    CommandCannotWait {
        /// The command.
        name: String,
    },
    /// An extension that decides about it failed.
    #[error("{0}")]
    Extension(crate::extensions::ExtensionFailure),
    /// An extension stopped it.
    #[error("an extension cancelled it")]
    Cancelled,
}

impl AgentSessionError {
    /// Whether the session itself could not be read or written: then nothing may go on as if it had been.
    pub(super) fn is_storage(&self) -> bool {
        matches!(self, Self::Storage(_))
    }
}
