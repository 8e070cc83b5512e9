//! What commands of extensions reach of a runtime.

use std::{
    path::PathBuf,
    sync::{Arc, Weak},
};

use async_trait::async_trait;

use super::{AgentSessionRuntime, RuntimeError, Shared};
use crate::{
    agent_session::AgentSession,
    extensions::{ExtensionError, ExtensionHost, event::ForkPosition},
    session::EntryId,
};

/// A runtime as the host of the extensions of its sessions. It does not keep the runtime alive.
pub(super) struct RuntimeHost(Weak<Shared>);

impl RuntimeHost {
    pub(super) fn of(shared: &Arc<Shared>) -> Self {
        Self(Arc::downgrade(shared))
    }

    fn runtime(&self) -> Result<AgentSessionRuntime, RuntimeError> {
        self.0.upgrade().map(|shared| AgentSessionRuntime { shared }).ok_or(RuntimeError::Ended)
    }
}

/// That an extension cancelled it is an answer, anything else a failure.
fn replaced<T>(result: Result<T, RuntimeError>) -> Result<bool, ExtensionError> {
    match result {
        Ok(_) => Ok(true),
        Err(RuntimeError::Cancelled) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

#[async_trait]
impl ExtensionHost for RuntimeHost {
    fn shutdown(&self) {
        if let Some(shared) = self.0.upgrade() {
            shared.end_requested.cancel();
        }
    }

    fn session(&self) -> Option<AgentSession> {
        self.runtime().ok()?.session().ok()
    }

    async fn new_session(&self, parent_session: Option<PathBuf>) -> Result<bool, ExtensionError> {
        replaced(self.runtime()?.new_session(parent_session).await)
    }

    async fn switch_session(&self, file: PathBuf) -> Result<bool, ExtensionError> {
        replaced(self.runtime()?.switch_to(&file, None).await)
    }

    async fn fork(&self, entry: EntryId, position: ForkPosition) -> Result<bool, ExtensionError> {
        match self.runtime()?.fork(&entry, position).await {
            Ok(forked) => {
                // What was said there can be said differently now.
                if let Some(text) = forked.text {
                    forked.session.extensions().put_into_editor(text);
                }
                Ok(true)
            }
            Err(error) => replaced::<()>(Err(error)),
        }
    }

    async fn import_session(&self, file: PathBuf) -> Result<bool, ExtensionError> {
        replaced(self.runtime()?.import(&file, None).await)
    }
}
