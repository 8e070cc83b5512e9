//! The end of a session.

use tokio::sync::watch;

use super::{Activity, AgentSession, AgentSessionError, Inner};
use crate::extensions::event::{SessionShutdownEvent, ShutdownReason};

impl AgentSession {
    /// Ends everything in order: aborts what is running, waits for it and for commands of the user, tells the extensions,
    /// forces the record to the disk and lets go of its file (unless the application holds the
    /// [`SessionManager`](crate::session::SessionManager) too), and forgets the listeners.
    ///
    /// Other handles of the session can still be read; their prompts are refused. Ending a session twice is harmless.
    ///
    /// Dropping the last handle aborts and forces to the disk, too, but nobody can wait for it.
    ///
    /// # Errors
    /// When the record cannot be completed or forced to the disk. Everything else is done all the same.
    pub async fn dispose(self) -> Result<(), AgentSessionError> {
        self.end(SessionShutdownEvent::new(ShutdownReason::Quit, None)).await
    }

    /// As [`dispose`](Self::dispose), and the extensions are told why.
    pub(crate) async fn end(self, event: SessionShutdownEvent) -> Result<(), AgentSessionError> {
        let inner = &self.inner;
        // A prompt that somebody else begins between two steps is aborted like the first.
        while let Err(error) = inner.begin(Activity::Ended) {
            if matches!(error, AgentSessionError::Ended) {
                return Ok(());
            }
            self.abort();
            self.wait_for_idle().await;
        }
        inner.tell_shutdown(event).await;
        inner.extensions.retire();
        inner.extensions.end_tasks();
        inner.lifetime.cancel();
        inner.commands.wait().await;
        let recorded = inner.add_deferred().await;
        inner.listeners.clear();
        if let Some(models) = &inner.models {
            models.forget(&inner.manager.id());
        }
        let closed = inner.manager.close_if_last().await;
        Ok(recorded.and(closed)?)
    }

    /// Ends every command of the session and the programs of its extensions at once, with all they started; no command
    /// can be begun after it. For a program that
    /// quits without waiting for [`dispose`](Self::dispose), which ends them politely.
    pub fn kill_commands(&self) {
        self.inner.workspace.processes().kill_all();
        self.inner.extensions.kill();
    }

    /// Waits until the session does nothing.
    pub async fn wait_for_idle(&self) {
        let mut activity = self.inner.activity.subscribe();
        // An error says that the session is gone, which is as idle as it gets.
        let _ = activity.wait_for(|activity| matches!(activity, Activity::Idle | Activity::Ended)).await;
    }
}

/// Makes the session idle when it is dropped.
pub(super) struct EndActivity(pub(super) std::sync::Arc<Inner>);

impl Drop for EndActivity {
    fn drop(&mut self) {
        self.0.activity.send_replace(Activity::Idle);
    }
}

impl Inner {
    /// Takes the session for an activity.
    pub(super) fn begin(&self, activity: Activity) -> Result<(), AgentSessionError> {
        let mut refused = None;
        self.activity.send_if_modified(|current| {
            refused = match *current {
                Activity::Idle => None,
                Activity::Running => Some(AgentSessionError::Busy),
                Activity::Compacting => Some(AgentSessionError::Compacting),
                Activity::Ended => Some(AgentSessionError::Ended),
            };
            if refused.is_none() {
                *current = activity;
            }
            refused.is_none()
        });
        refused.map_or(Ok(()), Err)
    }
}

/// How many commands of the user run.
#[derive(Debug)]
pub(super) struct Commands(watch::Sender<usize>);

impl Default for Commands {
    fn default() -> Self {
        Self(watch::channel(0).0)
    }
}

impl Commands {
    /// One more runs, until the guard is dropped.
    pub(super) fn begin(&self) -> RunningCommand<'_> {
        self.0.send_modify(|running| *running += 1);
        RunningCommand(self)
    }

    async fn wait(&self) {
        // The sender is borrowed, so that it is not gone.
        let _ = self.0.subscribe().wait_for(|running| *running == 0).await;
    }
}

/// A command of the user that runs.
pub(super) struct RunningCommand<'a>(&'a Commands);

impl Drop for RunningCommand<'_> {
    fn drop(&mut self) {
        self.0.0.send_modify(|running| *running -= 1);
    }
}
