//! What handlers can reach.

use std::{
    fmt,
    path::PathBuf,
    sync::{Arc, Weak},
};

use pi_ai::{CancellationToken, Model, ThinkingLevel, Timestamp};
use serde::Serialize;
use serde_json::Value;

use super::{
    CommandInfo, ExecOptions, ExecResult, ExtensionApi, ExtensionError, ExtensionRunner, FlagValue, HandlerId, Ui,
    exec,
    runner::{Loaded, WeakRunner},
};
use crate::{
    agent_session::{
        Activity, AgentSession, CustomMessage, MessageTiming, ScopedModel, SessionPrompt, UserMessageTiming,
    },
    compaction::{ContextUsage, SummaryInstructions},
    resources::{ProjectTrust, Settings},
    session::{EntryId, SessionManager},
};

/// What a handler can reach: the session, the user, and the other extensions.
///
/// It belongs to one session and one loading of its extension: one that is kept beyond answers with errors. Clones are
/// handles.
#[derive(Clone)]
pub struct ExtensionContext {
    runner: ExtensionRunner,
    extension: Arc<Loaded>,
    signal: CancellationToken,
}

/// A context of an extension that keeps neither the extension nor its session alive.
#[derive(Clone, Debug, Default)]
pub(super) struct WeakContext {
    runner: WeakRunner,
    extension: Weak<Loaded>,
}

impl WeakContext {
    pub(super) fn new(runner: WeakRunner, extension: &Arc<Loaded>) -> Self {
        Self { runner, extension: Arc::downgrade(extension) }
    }

    /// The context, for work that ends with `signal`. `None`: the session is gone, or its extensions were loaded again.
    pub(super) fn upgrade(&self, signal: CancellationToken) -> Option<ExtensionContext> {
        let extension = self.extension.upgrade().filter(|extension| extension.is_current())?;
        Some(ExtensionContext::new(self.runner.upgrade()?, extension, signal))
    }

    /// Cancelled when the session is over. One that is not there yet is not.
    pub(super) fn lifetime(&self) -> CancellationToken {
        self.runner.upgrade().map(|runner| runner.lifetime()).unwrap_or_default()
    }

    /// The session's extensions, as long as there are any.
    pub(super) fn runner(&self) -> Option<ExtensionRunner> {
        self.runner.upgrade()
    }
}

impl ExtensionContext {
    pub(super) fn new(runner: ExtensionRunner, extension: Arc<Loaded>, signal: CancellationToken) -> Self {
        Self { runner, extension, signal }
    }

    /// The extension's name.
    pub fn extension(&self) -> &str {
        &self.extension.name
    }

    /// Cancelled when the run that the handler is part of is aborted. Whoever does not return soon after is dropped.
    pub fn signal(&self) -> &CancellationToken {
        &self.signal
    }

    pub(super) fn runner(&self) -> &ExtensionRunner {
        &self.runner
    }

    pub(super) fn extension_name(&self) -> Arc<str> {
        self.extension.name.clone()
    }

    pub(super) fn check(&self) -> Result<(), ExtensionError> {
        if self.extension.is_current() { Ok(()) } else { Err(ExtensionError::stale()) }
    }

    /// The session.
    pub(super) fn session(&self) -> Result<AgentSession, ExtensionError> {
        self.check()?;
        self.runner.session().and_then(|session| session.upgrade()).ok_or_else(ExtensionError::stale)
    }

    /// The user.
    pub fn ui(&self) -> Ui {
        Ui::new(self.runner.clone(), self.signal.clone())
    }

    /// The session's record, to read. What is appended here passes by the session's listeners: use
    /// [`append_entry`](Self::append_entry) and [`send_message`](Self::send_message).
    ///
    /// # Errors
    /// When the session is gone.
    pub fn session_manager(&self) -> Result<SessionManager, ExtensionError> {
        Ok(self.session()?.session_manager().clone())
    }

    /// The entry that the session stands on.
    pub fn leaf_id(&self) -> Option<EntryId> {
        self.session_manager().ok()?.leaf_id()
    }

    /// The folder that the session works in.
    ///
    /// # Errors
    /// When the session is gone.
    pub fn cwd(&self) -> Result<PathBuf, ExtensionError> {
        Ok(self.session()?.cwd().to_owned())
    }

    /// The time.
    pub fn now(&self) -> Timestamp {
        self.session().map(|session| session.now()).unwrap_or_default()
    }

    /// Whether the project's own settings and resources are used.
    pub fn is_project_trusted(&self) -> bool {
        self.session().is_ok_and(|session| session.settings().project_trust() == ProjectTrust::Trusted)
    }

    /// The settings as they are now.
    ///
    /// # Errors
    /// When the session is gone.
    pub fn settings(&self) -> Result<Arc<Settings>, ExtensionError> {
        Ok(self.session()?.settings().settings())
    }

    /// Whether the session does nothing.
    pub fn is_idle(&self) -> bool {
        self.session().map_or(true, |session| session.activity() == Activity::Idle)
    }

    /// Whether something waits to be said while a prompt is answered.
    pub fn has_pending_messages(&self) -> bool {
        self.session().is_ok_and(|session| session.has_queued())
    }

    /// Aborts what the session is doing.
    pub fn abort(&self) {
        if let Ok(session) = self.session() {
            session.abort();
        }
    }

    /// How full the model's context is. `None`: it is not known.
    pub fn context_usage(&self) -> Option<ContextUsage> {
        self.session().ok()?.context_usage()
    }

    /// Has the beginning of the conversation summarised. What is running is aborted first, so a handler of it does not
    /// wait: listeners and `session_compact` or `session_compact_failed` tell how it ends. A command can wait, see
    /// [`CommandContext::compact`](super::CommandContext::compact).
    ///
    /// # Errors
    /// When the session is gone.
    pub fn compact_soon(&self, instructions: SummaryInstructions) -> Result<(), ExtensionError> {
        let session = self.session()?;
        self.runner.spawn(async move {
            // The session itself tells what went wrong.
            let _ = session.compact(instructions).await;
        });
        Ok(())
    }

    /// The system prompt, as the transcript has it.
    ///
    /// # Errors
    /// When the session is gone.
    pub fn system_prompt(&self) -> Result<String, ExtensionError> {
        Ok(self.session()?.system_prompt())
    }

    /// Ends the program as soon as the session is idle, when there is a program that can be ended.
    pub fn shutdown(&self) {
        self.runner.ask_to_end();
    }
}

/// State and messages.
impl ExtensionContext {
    /// Keeps state in the session. The model never sees it.
    ///
    /// # Errors
    /// When the data cannot be written as JSON, or the entry not be stored.
    pub async fn append_entry(
        &self,
        custom_type: impl Into<String>,
        data: impl Serialize,
    ) -> Result<EntryId, ExtensionError> {
        let data = Some(serde_json::to_value(data)?).filter(|data| !data.is_null());
        Ok(self.session()?.append_entry(custom_type, data).await?)
    }

    /// Says something to the model, as the user's words. `display` and `details` are for the screen and the program,
    /// and never reach it.
    ///
    /// # Errors
    /// When it cannot be stored.
    pub async fn send_message(&self, message: CustomMessage, timing: MessageTiming) -> Result<(), ExtensionError> {
        Ok(self.session()?.send_message(message, timing).await?)
    }

    /// Says something in the user's place, which is answered. Skills and templates in it are left as they are.
    ///
    /// # Errors
    /// While another prompt is answered, when `timing` does not say what to do then.
    pub async fn send_user_message(
        &self,
        prompt: impl Into<SessionPrompt>,
        timing: UserMessageTiming,
    ) -> Result<(), ExtensionError> {
        Ok(self.session()?.send_user_message(prompt.into(), timing).await?)
    }

    /// Gives the session a name.
    ///
    /// # Errors
    /// When it cannot be stored.
    pub async fn set_session_name(&self, name: &str) -> Result<(), ExtensionError> {
        Ok(self.session()?.set_name(name).await?)
    }

    /// The session's name.
    pub fn session_name(&self) -> Option<String> {
        self.session_manager().ok()?.name()
    }

    /// Marks an entry, or takes its mark away.
    ///
    /// # Errors
    /// When there is no such entry, or the mark cannot be stored.
    pub async fn set_label(&self, entry: &EntryId, label: Option<&str>) -> Result<(), ExtensionError> {
        Ok(self.session()?.set_label(entry, label).await?)
    }
}

/// What is registered while the session runs.
impl ExtensionContext {
    /// Registers more. It counts at once.
    ///
    /// # Errors
    /// When the session is gone.
    pub fn register<T>(&self, register: impl FnOnce(&mut ExtensionApi) -> T) -> Result<T, ExtensionError> {
        let session = self.session()?;
        let mut api = ExtensionApi::default();
        let result = register(&mut api);
        let tools: Vec<_> = api.brings.tools.values().cloned().collect();
        self.runner.take_in(&self.extension, api.brings);
        if !tools.is_empty() {
            session.register_tools(tools);
        }
        Ok(result)
    }

    /// Takes a handler away. A dispatch in progress still reaches it.
    pub fn off(&self, handler: HandlerId) {
        self.runner.off(handler);
    }

    /// What a flag of the command line is set to. `None`: it is not given and has no default.
    pub fn flag(&self, name: &str) -> Option<FlagValue> {
        self.runner.flag(name)
    }

    /// Whether a flag without a value is given.
    pub fn flag_is_set(&self, name: &str) -> bool {
        self.flag(name) == Some(FlagValue::Switch(true))
    }

    /// The commands that extensions bring.
    pub fn commands(&self) -> Vec<CommandInfo> {
        self.runner.commands()
    }

    /// Says something to the other extensions that listen to a channel, and waits until they have dealt with it.
    ///
    /// # Errors
    /// When it cannot be written as JSON.
    pub async fn emit(&self, channel: &str, value: impl Serialize) -> Result<(), ExtensionError> {
        self.check()?;
        let value: Value = serde_json::to_value(value)?;
        self.runner.emit(channel, value, &self.signal).await;
        Ok(())
    }
}

/// Models, tools and programs.
impl ExtensionContext {
    /// The model that answers.
    pub fn model(&self) -> Option<Arc<Model>> {
        self.session().ok()?.model()
    }

    /// The models that the user goes through; none means all that have a key.
    pub fn scoped_models(&self) -> Vec<ScopedModel> {
        self.session().map(|session| session.scoped_models()).unwrap_or_default()
    }

    /// Has another model answer, in this session only.
    ///
    /// # Errors
    /// When the change cannot be stored.
    pub async fn set_model(&self, model: Arc<Model>) -> Result<(), ExtensionError> {
        Ok(self.session()?.set_model(model).await?)
    }

    /// How hard the model thinks.
    pub fn thinking_level(&self) -> Option<ThinkingLevel> {
        Some(self.session().ok()?.thinking_level())
    }

    /// Has the model think harder or less, in this session only. Gives the nearest level that the model supports.
    ///
    /// # Errors
    /// When the change cannot be stored.
    pub async fn set_thinking_level(&self, level: ThinkingLevel) -> Result<ThinkingLevel, ExtensionError> {
        Ok(self.session()?.set_thinking_level(level).await?)
    }

    /// The tools that the model is offered, by name.
    pub fn active_tools(&self) -> Vec<String> {
        self.session().map(|session| session.active_tools()).unwrap_or_default()
    }

    /// Every tool that it could be offered, by name.
    pub fn all_tools(&self) -> Vec<String> {
        self.session().map(|session| session.known_tools()).unwrap_or_default()
    }

    /// Offers exactly these tools from the next request on. Unknown names are left out.
    ///
    /// # Errors
    /// When the session is gone.
    pub fn set_active_tools(&self, names: impl IntoIterator<Item = impl Into<String>>) -> Result<(), ExtensionError> {
        self.session()?.set_active_tools(names.into_iter().map(Into::into));
        Ok(())
    }

    /// Runs a program, without a shell, in the session's workspace: in its sandbox when there is one, or wherever the
    /// host's commands run. It ends with the run that the handler is part of.
    ///
    /// # Errors
    /// When it cannot be started.
    pub async fn exec(
        &self,
        program: &str,
        arguments: impl IntoIterator<Item = impl Into<String>>,
        options: ExecOptions,
    ) -> Result<ExecResult, ExtensionError> {
        // The program may run for long, and must not keep the session.
        let workspace = self.session()?.workspace().clone();
        let arguments: Vec<String> = arguments.into_iter().map(Into::into).collect();
        exec::exec(&workspace, program, arguments, &options, &self.signal).await
    }
}

impl fmt::Debug for ExtensionContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExtensionContext").field("extension", &self.extension.name).finish_non_exhaustive()
    }
}
