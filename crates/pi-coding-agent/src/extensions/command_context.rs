//! What commands can reach beyond what handlers can.

use std::{ops::Deref, path::PathBuf, sync::Arc};

use futures::future::BoxFuture;

use super::{ExtensionContext, ExtensionError, ExtensionHost, event::ForkPosition, host::cannot};
use crate::{
    agent_session::{LeaveBehind, Navigated},
    compaction::{CompactionResult, SummaryInstructions},
    resources::SystemPromptOptions,
    session::EntryId,
};

/// What a command can reach: what a handler can, and what would have to wait for itself there.
#[derive(Clone, Debug)]
pub struct CommandContext {
    context: ExtensionContext,
}

impl Deref for CommandContext {
    type Target = ExtensionContext;

    fn deref(&self) -> &ExtensionContext {
        &self.context
    }
}

impl CommandContext {
    pub(super) fn new(context: ExtensionContext) -> Self {
        Self { context }
    }

    /// What a handler can reach.
    pub fn context(&self) -> &ExtensionContext {
        &self.context
    }

    /// Waits until the session does nothing.
    ///
    /// # Errors
    /// When the session is gone.
    pub async fn wait_for_idle(&self) -> Result<(), ExtensionError> {
        self.context.session()?.wait_for_idle().await;
        Ok(())
    }

    /// What the system prompt is made of.
    ///
    /// # Errors
    /// When the session is gone.
    pub fn system_prompt_options(&self) -> Result<SystemPromptOptions, ExtensionError> {
        Ok(self.context.session()?.system_prompt_options())
    }

    /// Summarises the beginning of the conversation.
    ///
    /// # Errors
    /// When there is nothing to shorten, or the model gives no usable summary.
    pub async fn compact(&self, instructions: SummaryInstructions) -> Result<CompactionResult, ExtensionError> {
        Ok(self.context.session()?.compact(instructions).await?)
    }

    /// Goes on from another entry of the session.
    ///
    /// # Errors
    /// While the session is busy, or when there is no such entry.
    pub async fn navigate_to(&self, target: &EntryId, leave: LeaveBehind) -> Result<Navigated, ExtensionError> {
        Ok(self.context.session()?.navigate_to(target, leave).await?)
    }

    /// Reads settings and resources and loads the extensions again. This context is stale afterwards.
    ///
    /// # Errors
    /// When the session is gone.
    pub async fn reload(&self) -> Result<(), ExtensionError> {
        self.context.session()?.reload().await;
        Ok(())
    }
}

/// Putting another session in the place of this one. The program around the session does it, see
/// [`ExtensionHost`](super::ExtensionHost); an [`AgentSessionRuntime`](crate::sdk::AgentSessionRuntime) can.
///
/// Extensions are asked first. This context, and every other of the session that ends, answers with errors afterwards.
/// What is to be done in the session that takes the place is given along as `then`: it gets a context of that session,
/// after its `session_start`, and is waited for. It is not called when an extension cancelled, or when the extension was
/// not loaded again.
impl CommandContext {
    /// Begins a new session. `false`: an extension cancelled it.
    ///
    /// # Errors
    /// When the program keeps one session, or the new one cannot be made.
    pub async fn new_session(&self) -> Result<bool, ExtensionError> {
        self.new_session_then(None, nothing_more).await
    }

    /// Begins a new session, whose header can name the one that it comes from, and goes on in it.
    ///
    /// ```
    /// # use pi_coding_agent::{agent_session::UserMessageTiming, extensions::{Command, ExtensionApi}};
    /// fn hand_over(pi: &mut ExtensionApi) {
    ///     pi.register_command(Command::new("handover", async |task, ctx| {
    ///         let parent = ctx.session_manager()?.path();
    ///         ctx.new_session_then(parent, async move |ctx| {
    ///             ctx.send_user_message(task, UserMessageTiming::WhenIdle).await
    ///         })
    ///         .await?;
    ///         Ok(())
    ///     }));
    /// }
    /// # let _ = hand_over;
    /// ```
    ///
    /// # Errors
    /// As [`new_session`](Self::new_session).
    pub async fn new_session_then(
        &self,
        parent_session: Option<PathBuf>,
        then: impl ThenInSession,
    ) -> Result<bool, ExtensionError> {
        let host = self.host("begin another session")?;
        let replacing = host.clone();
        self.replace(host, async move { replacing.new_session(parent_session).await }, then).await
    }

    /// Opens another session. `false`: an extension cancelled it.
    ///
    /// # Errors
    /// When the program keeps one session, or the other one cannot be opened.
    pub async fn switch_session(&self, file: impl Into<PathBuf>) -> Result<bool, ExtensionError> {
        self.switch_session_then(file, nothing_more).await
    }

    /// Opens another session and goes on in it.
    ///
    /// # Errors
    /// As [`switch_session`](Self::switch_session).
    pub async fn switch_session_then(
        &self,
        file: impl Into<PathBuf>,
        then: impl ThenInSession,
    ) -> Result<bool, ExtensionError> {
        let (host, file) = (self.host("open another session")?, file.into());
        let replacing = host.clone();
        self.replace(host, async move { replacing.switch_session(file).await }, then).await
    }

    /// Forks the session. `false`: an extension cancelled it.
    ///
    /// # Errors
    /// When the program keeps one session, or the fork cannot be made.
    pub async fn fork(&self, entry: EntryId, position: ForkPosition) -> Result<bool, ExtensionError> {
        self.fork_then(entry, position, nothing_more).await
    }

    /// Forks the session and goes on in the fork.
    ///
    /// # Errors
    /// As [`fork`](Self::fork).
    pub async fn fork_then(
        &self,
        entry: EntryId,
        position: ForkPosition,
        then: impl ThenInSession,
    ) -> Result<bool, ExtensionError> {
        let host = self.host("fork the session")?;
        let replacing = host.clone();
        self.replace(host, async move { replacing.fork(entry, position).await }, then).await
    }

    /// Copies a session file to the program's own and opens the copy. `false`: an extension cancelled it.
    ///
    /// # Errors
    /// When the program keeps one session, or the file cannot be read.
    pub async fn import_session(&self, file: impl Into<PathBuf>) -> Result<bool, ExtensionError> {
        self.import_session_then(file, nothing_more).await
    }

    /// Imports a session and goes on in it.
    ///
    /// # Errors
    /// As [`import_session`](Self::import_session).
    pub async fn import_session_then(
        &self,
        file: impl Into<PathBuf>,
        then: impl ThenInSession,
    ) -> Result<bool, ExtensionError> {
        let (host, file) = (self.host("import a session")?, file.into());
        let replacing = host.clone();
        self.replace(host, async move { replacing.import_session(file).await }, then).await
    }

    fn host(&self, to: &str) -> Result<Arc<dyn ExtensionHost>, ExtensionError> {
        self.context.check()?;
        self.context.runner().host().ok_or_else(|| cannot(to))
    }

    /// Runs in a task of its own: the session that this command belongs to ends meanwhile, and the command with it.
    async fn replace(
        &self,
        host: Arc<dyn ExtensionHost>,
        replacing: impl Future<Output = Result<bool, ExtensionError>> + Send + 'static,
        then: impl ThenInSession,
    ) -> Result<bool, ExtensionError> {
        let name = self.context.extension_name();
        let replaced = tokio::spawn(async move {
            if !replacing.await? {
                return Ok(false);
            }
            if let Some(session) = host.session() {
                session.extensions().run_in_session(&name, session.lifetime(), then).await;
            }
            Ok(true)
        });
        replaced
            .await
            .unwrap_or_else(|error| Err(ExtensionError::new(format!("the session was not replaced: {error}"))))
    }
}

/// What a command does in the session that took the place of its own: an `async |ctx|` closure that answers with
/// a [`Result`].
pub trait ThenInSession: AsyncFnOnce(CommandContext) -> Result<(), ExtensionError> + Send + 'static {
    /// Calls it.
    fn run(self, context: CommandContext) -> BoxFuture<'static, Result<(), ExtensionError>>;
}

impl<F, Running> ThenInSession for F
where
    F: AsyncFnOnce(CommandContext) -> Result<(), ExtensionError> + FnOnce(CommandContext) -> Running + Send + 'static,
    Running: Future<Output = Result<(), ExtensionError>> + Send + 'static,
{
    fn run(self, context: CommandContext) -> BoxFuture<'static, Result<(), ExtensionError>> {
        Box::pin(self(context))
    }
}

async fn nothing_more(_context: CommandContext) -> Result<(), ExtensionError> {
    Ok(())
}
