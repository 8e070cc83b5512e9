//! What can be told of a session as a whole.

use std::path::Path;

use super::{AgentSession, AgentSessionError};
use crate::{
    compaction::{ContextUsage, context_usage},
    session::{ExportFormat, SessionStats, in_background},
};

impl AgentSession {
    /// Messages, tool calls, tokens and costs over the whole record, all branches. Reads it on another thread.
    ///
    /// # Errors
    /// When the record cannot be read.
    pub async fn stats(&self) -> Result<SessionStats, AgentSessionError> {
        let manager = self.inner.manager.clone();
        Ok(in_background(move || manager.with(|session| session.stats())).await?)
    }

    /// How full the model's context is; `None` without a model, or when its size is not known.
    pub fn context_usage(&self) -> Option<ContextUsage> {
        let window = self.model()?.context_window;
        self.inner.manager.with(|session| context_usage(session.projection(), window))
    }

    /// Writes the branch that the session stands on into a file that appears whole or not at all: as a session of its
    /// own, or as Markdown for people. [`ExportFormat::of_name`] tells the format that a name asks for.
    ///
    /// # Errors
    /// When the record cannot be read, or there is such a file already.
    pub async fn export_to(&self, path: impl AsRef<Path>, format: ExportFormat) -> Result<(), AgentSessionError> {
        let (manager, path) = (self.inner.manager.clone(), path.as_ref().to_owned());
        let export = move || {
            let (cwd, environment) = (manager.cwd().to_owned(), manager.environment().clone());
            manager.with(|session| session.export_to(&path, format, &cwd, &environment))
        };
        Ok(in_background(export).await?)
    }
}
