//! Going on from an earlier place in a record of its own.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::RuntimeError;
use crate::{
    agent_session::AgentSession,
    extensions::event::{ForkDecision, SessionBeforeForkEvent},
    session::{EntryId, NewSession, Persistence, SessionError, SessionManager},
};

/// What a fork keeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ForkPosition {
    /// What was said before a message of the user, whose text is given back for the editor.
    #[default]
    Before,
    /// Everything up to the entry.
    At,
}

/// The record of a fork.
#[derive(Clone, Debug)]
pub struct ForkedRecord {
    /// The record. A session that is made with it goes on from there.
    pub record: SessionManager,
    /// The text of the user's message that it goes back to before.
    pub text: Option<String>,
}

impl AgentSession {
    /// Makes a record that goes on from an earlier place of this session, which stays as it is. Extensions are asked
    /// first. An [`AgentSessionRuntime`](super::AgentSessionRuntime) puts the session of the fork in the place of this
    /// one, too.
    ///
    /// # Errors
    /// When an extension cancels it, there is no such entry, it is no message of the user (for
    /// [`ForkPosition::Before`]), nothing was said yet, or the fork cannot be written.
    pub async fn fork(&self, entry: &EntryId, position: ForkPosition) -> Result<ForkedRecord, RuntimeError> {
        let event = SessionBeforeForkEvent::new(entry.clone(), position);
        let asked = self.extensions().session_before_fork(event).await;
        let manager = self.session_manager();
        let (record, text) = match position {
            _ if asked == ForkDecision::Cancel => return Err(RuntimeError::Cancelled),
            _ if asked == ForkDecision::WithoutConversation => (empty_beside(manager, manager.path())?, None),
            ForkPosition::Before => {
                let fork = manager.fork_before(entry).await?;
                (fork.session, Some(fork.text))
            }
            ForkPosition::At if matches!(manager.persistence(), Persistence::Buffered { .. }) => {
                return Err(SessionError::NotSaved.into());
            }
            ForkPosition::At => (manager.branched(entry).await?, None),
        };
        Ok(ForkedRecord { record, text })
    }
}

/// An empty session where another one is kept.
pub(super) fn empty_beside(
    manager: &SessionManager,
    parent_session: Option<PathBuf>,
) -> Result<SessionManager, RuntimeError> {
    let (cwd, environment) = (manager.cwd().to_owned(), manager.environment().clone());
    let new = NewSession { cwd, parent_session, id: None };
    Ok(match manager.persistence() {
        Persistence::Memory => SessionManager::in_memory_with(new, environment),
        persistence => SessionManager::create(&folder_of(&persistence)?, new, environment)?,
    })
}

/// The folder of the session's file.
pub(super) fn folder_of(persistence: &Persistence) -> Result<PathBuf, RuntimeError> {
    persistence.path().and_then(Path::parent).map(Path::to_owned).ok_or(RuntimeError::NoFolder)
}
