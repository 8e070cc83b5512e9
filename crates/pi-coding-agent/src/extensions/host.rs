//! What only the program around a session can do.

use std::path::PathBuf;

use async_trait::async_trait;

use super::{ExtensionError, event::ForkPosition};
use crate::{agent_session::AgentSession, session::EntryId};

/// The program around a session: it can put another session in its place and end itself. What a program cannot do
/// answers with an error.
#[async_trait]
pub trait ExtensionHost: Send + Sync + 'static {
    /// Ends the program as soon as the session is idle.
    fn shutdown(&self) {}

    /// The session that is there now. `None`: there is none any more, or the program keeps one session.
    fn session(&self) -> Option<AgentSession> {
        None
    }

    /// Begins a new session in the place of this one; its header names the parent. `false`: an extension cancelled it.
    ///
    /// # Errors
    /// When the program keeps one session, or the new one cannot be made.
    async fn new_session(&self, _parent_session: Option<PathBuf>) -> Result<bool, ExtensionError> {
        Err(cannot("begin another session"))
    }

    /// Opens another session in the place of this one. `false`: an extension cancelled it.
    ///
    /// # Errors
    /// When the program keeps one session, or the other one cannot be opened.
    async fn switch_session(&self, _file: PathBuf) -> Result<bool, ExtensionError> {
        Err(cannot("open another session"))
    }

    /// Forks the session and goes on in the fork. `false`: an extension cancelled it.
    ///
    /// # Errors
    /// When the program keeps one session, or the fork cannot be made.
    async fn fork(&self, _entry: EntryId, _position: ForkPosition) -> Result<bool, ExtensionError> {
        Err(cannot("fork the session"))
    }

    /// Copies a session file to the program's own, and opens the copy in the place of this session. `false`: an
    /// extension cancelled it.
    ///
    /// # Errors
    /// When the program keeps one session, or the file cannot be read.
    async fn import_session(&self, _file: PathBuf) -> Result<bool, ExtensionError> {
        Err(cannot("import a session"))
    }
}

pub(super) fn cannot(what: &str) -> ExtensionError {
    ExtensionError::new(format!("the program that runs this session cannot {what}"))
}
