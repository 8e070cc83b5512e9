//! Commands that the user runs in the session.

use pi_ai::CancellationToken;

use super::{AgentSession, AgentSessionError, Inner, SessionEvent};
use crate::{
    extensions::{
        EventKind,
        event::{UserBashDecision, UserBashEvent},
    },
    messages::BashExecution,
    tools::user_bash::{UserCommandResult, run_user_command},
    workspace::Workspace,
};

/// Whether the model sees what the user ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ForModel {
    /// It does, with the next prompt.
    #[default]
    Shown,
    /// It does not.
    Hidden,
}

impl AgentSession {
    /// Runs a command for the user, not for the model, and records it: at once, or when the prompt that is being
    /// answered is settled. Its output is told while it comes.
    ///
    /// # Errors
    /// When the command cannot be started, an extension that decides about it fails, or the record cannot be written.
    pub async fn execute_bash(
        &self,
        command: &str,
        for_model: ForModel,
        signal: CancellationToken,
    ) -> Result<UserCommandResult, AgentSessionError> {
        let inner = &self.inner;
        let _running = inner.commands.begin();
        let signal = signal.child_token();
        let result = match inner.ask_about_command(command, for_model).await? {
            UserBashDecision::Ran(result) => result,
            UserBashDecision::RunWith(processes) => {
                let workspace = inner.workspace.clone().with_processes(processes);
                inner.run_command(&workspace, command, signal).await?
            }
            UserBashDecision::RunHere => inner.run_command(&inner.workspace, command, signal).await?,
        };
        let record = BashExecution {
            command: command.to_owned(),
            output: result.output.clone(),
            exit_code: result.exit_code.map(i64::from),
            cancelled: result.cancelled,
            truncated: result.truncated,
            full_output_path: result.full_output_path.clone(),
            exclude_from_context: (for_model == ForModel::Hidden).then_some(true),
            timestamp: inner.clock.now(),
        };
        inner.add_command(record).await?;
        Ok(result)
    }
}

impl Inner {
    async fn ask_about_command(
        &self,
        command: &str,
        for_model: ForModel,
    ) -> Result<UserBashDecision, AgentSessionError> {
        if !self.extensions.has_handlers(EventKind::UserBash) {
            return Ok(UserBashDecision::RunHere);
        }
        let cwd = self.workspace.cwd().to_owned();
        let event = UserBashEvent::new(command.to_owned(), for_model == ForModel::Hidden, cwd);
        self.extensions.user_bash(event).await.map_err(AgentSessionError::Extension)
    }

    async fn run_command(
        &self,
        workspace: &Workspace,
        command: &str,
        signal: CancellationToken,
    ) -> Result<UserCommandResult, AgentSessionError> {
        let inner = self;
        let prefix = inner.settings.settings().shell_command_prefix.clone();
        let (text, mut texts) = tokio::sync::mpsc::channel::<String>(64);
        let mut pass_on = |piece: &str| {
            // A slow listener loses pieces, never the result: that is taken whole at the end.
            let _ = text.try_send(piece.to_owned());
        };
        let running = run_user_command(workspace, command, prefix.as_deref(), signal.clone(), &mut pass_on);
        let result = {
            let mut running = std::pin::pin!(running);
            loop {
                tokio::select! {
                    biased;
                    Some(delta) = texts.recv() => inner.tell(SessionEvent::BashExecutionUpdate { delta }).await,
                    () = inner.lifetime.cancelled(), if !signal.is_cancelled() => signal.cancel(),
                    result = &mut running => break result?,
                }
            }
        };
        while let Ok(delta) = texts.try_recv() {
            inner.tell(SessionEvent::BashExecutionUpdate { delta }).await;
        }
        Ok(result)
    }
}
