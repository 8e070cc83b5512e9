//! Making a session: every boundary can be supplied, and all of them have defaults.
//!
//! ```
//! use pi_ai::faux::{FauxProvider, FauxReply};
//! use pi_coding_agent::{sdk::{SessionOptions, create_agent_session}, session::SessionManager};
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let options = SessionOptions::default()
//!     .stream_fn(FauxProvider::new([FauxReply::text("All good.")]))
//!     .model(FauxProvider::model())
//!     .session_manager(SessionManager::in_memory());
//! let session = create_agent_session(options).await?;
//! assert_eq!(session.prompt("How are things?").await?.into_text()?, "All good.");
//! session.dispose().await?;
//! # Ok(()) }
//! ```

mod fork;
mod runtime;

use std::{
    fmt,
    path::PathBuf,
    sync::{Arc, OnceLock},
};

use pi_agent_core::AgentTool;
use pi_ai::{
    Clock, IdSource, Model, StreamFn, ThinkingLevel,
    id::RandomIds,
    models::{AuthFile, CredentialError, Models},
    time::SystemClock,
};

pub use fork::{ForkPosition, ForkedRecord};
pub use runtime::{AgentSessionRuntime, Forked, RuntimeError, RuntimeSubscription, SessionStart, StartReason};

use crate::{
    agent_session::{
        AgentSession, AgentSessionError, Parts, PromptSource, Recorded, ScopedModel, Selection, SessionResources,
        SessionTool, WeakAgentSession,
    },
    extensions::{
        Extension, ExtensionRunner, ExtensionUi, FlagValues,
        event::{ProjectTrustEvent, SessionStartEvent, TrustDecision},
    },
    guide::GuideModel,
    host::Host,
    resources::{
        DefaultResourceLoader, ProjectTrust, ResourceLoader, ResourceLoaderOptions, SandboxMode, Settings,
        SettingsManager, SystemPromptOptions,
    },
    session::{NewSession, SessionEnvironment, SessionError, SessionFolder, SessionManager},
    tool_selection::{ToolOrigin, ToolSelection},
    tools::{
        builtin::{BuiltinTool, ToolSetup},
        read::ReadImages,
        session_facts::FactsSource,
    },
    workspace::{
        Workspace,
        local::{LocalOptions, Network, ProcessOptions, SandboxUnavailable, local_workspace},
    },
};

/// What a session is made with. Every field has a default; setters take it by value.
#[derive(Default)]
pub struct SessionOptions {
    host: Option<Host>,
    cwd: Option<PathBuf>,
    agent_dir: Option<PathBuf>,
    trust: Option<ProjectTrust>,
    settings: Option<Arc<SettingsManager>>,
    models: Option<Models>,
    stream: Option<Arc<dyn StreamFn>>,
    model: Option<Arc<Model>>,
    recorded: Recorded,
    level: Option<ThinkingLevel>,
    scope: Vec<ScopedModel>,
    manager: Option<SessionManager>,
    start: SessionStart,
    selection: ToolSelection,
    tools: Vec<SessionTool>,
    workspace: Option<Workspace>,
    sandbox: Option<Network>,
    prompt: Option<SystemPromptOptions>,
    resources: Option<Arc<dyn ResourceLoader>>,
    extensions: Vec<Arc<dyn Extension>>,
    flags: FlagValues,
    ui: Option<Arc<dyn ExtensionUi>>,
    clock: Option<Arc<dyn Clock>>,
    ids: Option<Arc<dyn IdSource>>,
}

impl SessionOptions {
    /// The surroundings. Default: those of this process, in the folder that the
    /// [`session_manager`](Self::session_manager) says.
    #[must_use]
    pub fn host(mut self, host: Host) -> Self {
        self.host = Some(host);
        self
    }

    /// The working folder, absolute. Default: that of the [`host`](Self::host).
    #[must_use]
    pub fn cwd(mut self, cwd: impl Into<PathBuf>) -> Self {
        self.cwd = Some(cwd.into());
        self
    }

    /// Where settings, sessions and credentials lie, absolute. Default: that of the [`host`](Self::host).
    #[must_use]
    pub fn agent_dir(mut self, agent_dir: impl Into<PathBuf>) -> Self {
        self.agent_dir = Some(agent_dir.into());
        self
    }

    /// Whether the project's own settings and resources are used. Default: no.
    #[must_use]
    pub fn trust(mut self, trust: ProjectTrust) -> Self {
        self.trust = Some(trust);
        self
    }

    /// The settings. Default: the user's, and the project's when it is trusted.
    #[must_use]
    pub fn settings(mut self, settings: impl Into<Arc<SettingsManager>>) -> Self {
        self.settings = Some(settings.into());
        self
    }

    /// The models, which also answer. Default: those that the user's keys and `models.json` give.
    #[must_use]
    pub fn models(mut self, models: Models) -> Self {
        self.models = Some(models);
        self
    }

    /// What answers, instead of the models' own providers. It needs a [`model`](Self::model) to be asked for.
    #[must_use]
    pub fn stream_fn(mut self, stream: impl StreamFn) -> Self {
        self.stream = Some(Arc::new(stream));
        self
    }

    /// The model. Default: the session's own, else that of the settings, else the first one that has a key.
    #[must_use]
    pub fn model(mut self, model: Arc<Model>) -> Self {
        self.model = Some(model);
        self
    }

    /// A model that answers without being recorded as the session's choice, so that another one takes over as soon as
    /// it can be had.
    #[must_use]
    pub fn stand_in_model(mut self, model: Arc<Model>) -> Self {
        self.recorded = Recorded::No;
        self.model(model)
    }

    /// The models that [`cycle_model`](AgentSession::cycle_model) goes through; the first one that has a key answers when
    /// neither [`model`](Self::model) nor the session says otherwise. Default: all that have a key.
    #[must_use]
    pub fn scoped_models(mut self, models: impl IntoIterator<Item = ScopedModel>) -> Self {
        self.scope = models.into_iter().collect();
        self
    }

    /// How hard the model thinks. Default: the session's own, else that of the settings, else medium; clamped to what
    /// the model supports.
    #[must_use]
    pub fn thinking_level(mut self, level: ThinkingLevel) -> Self {
        self.level = Some(level);
        self
    }

    /// The session on disk or in memory. Default: a new one on disk.
    #[must_use]
    pub fn session_manager(mut self, manager: SessionManager) -> Self {
        self.manager = Some(manager);
        self
    }

    /// How the session comes to be, as an [`AgentSessionRuntime`] tells its factory. Default: at the host's start.
    #[must_use]
    pub fn session_start(mut self, start: SessionStart) -> Self {
        self.start = start;
        self
    }

    /// Which tools are offered. Default: read, bash, edit, write and the application's own.
    #[must_use]
    pub fn tool_selection(mut self, selection: ToolSelection) -> Self {
        self.selection = selection;
        self
    }

    /// What the built-in tools can reach. Default: this machine, from the host's working folder.
    #[must_use]
    pub fn workspace(mut self, workspace: Workspace) -> Self {
        self.workspace = Some(workspace);
        self
    }

    /// Keeps commands and file tools in a sandbox: they write only below the host's working folder and its folder for
    /// temporary files, and commands reach the network only if they may. Default: as the settings say.
    ///
    /// It is for this machine: with a [`workspace`](Self::workspace) of the application's own the session is refused.
    #[must_use]
    pub fn sandbox(mut self, network: Network) -> Self {
        self.sandbox = Some(network);
        self
    }

    /// Adds a tool of the application. One with the name of a built-in tool takes its place.
    #[must_use]
    pub fn tool(self, tool: impl AgentTool) -> Self {
        self.session_tool(SessionTool::custom(tool))
    }

    /// Adds a tool with what the system prompt says of it.
    #[must_use]
    pub fn session_tool(mut self, tool: SessionTool) -> Self {
        self.tools.push(tool);
        self
    }

    /// Where skills, prompt templates and instructions come from. Whoever makes a loader also has it load. Default: the
    /// user's files, and the project's when it is trusted.
    #[must_use]
    pub fn resource_loader(mut self, loader: impl ResourceLoader) -> Self {
        self.resources = Some(Arc::new(loader));
        self
    }

    /// Adds an extension. They are loaded in this order when the session is made, and bound to it at once.
    #[must_use]
    pub fn extension(mut self, extension: impl Extension) -> Self {
        self.extensions.push(Arc::new(extension));
        self
    }

    /// What the command line says about the flags of extensions, by name.
    #[must_use]
    pub fn flag_values(mut self, flags: FlagValues) -> Self {
        self.flags = flags;
        self
    }

    /// Lets extensions ask the user. Default: there is nobody to ask. It can be changed later with
    /// [`ExtensionRunner::set_ui`].
    #[must_use]
    pub fn ui(mut self, ui: impl ExtensionUi) -> Self {
        self.ui = Some(Arc::new(ui));
        self
    }

    /// What the system prompt is made of. Default: the usual sections with what the resources add.
    #[must_use]
    pub fn system_prompt(mut self, prompt: SystemPromptOptions) -> Self {
        self.prompt = Some(prompt);
        self
    }

    /// Tells the time. Default: the operating system.
    #[must_use]
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Some(Arc::new(clock));
        self
    }

    /// Makes ids. Default: at random.
    #[must_use]
    pub fn ids(mut self, ids: impl IdSource) -> Self {
        self.ids = Some(Arc::new(ids));
        self
    }
}

impl fmt::Debug for SessionOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionOptions")
            .field("model", &self.model.as_ref().map(|model| (&model.provider, &model.id)))
            .field("tools", &self.tools)
            .finish_non_exhaustive()
    }
}

/// Why a session could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CreateSessionError {
    /// The process's surroundings cannot be used.
    #[error(transparent)]
    Host(#[from] std::io::Error),
    /// A sandbox was asked for and cannot be had.
    #[error(transparent)]
    Sandbox(#[from] SandboxUnavailable),
    /// The session cannot be read or written.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// Stored credentials cannot be read.
    #[error(transparent)]
    Credentials(#[from] CredentialError),
    /// The session refused what it was made with.
    #[error(transparent)]
    AgentSession(#[from] AgentSessionError),
    /// What the application makes its sessions with could not be had.
    #[error(transparent)]
    Application(Box<dyn std::error::Error + Send + Sync>),
}

/// Makes a session.
///
/// # Errors
/// When the surroundings, the session's file or stored credentials cannot be read. A session without a model is made
/// all the same: its prompts say what is missing.
pub async fn create_agent_session(options: SessionOptions) -> Result<AgentSession, CreateSessionError> {
    let host = host_of(&options)?;
    let locations = host.locations();
    let extensions = ExtensionRunner::new(options.extensions, options.flags);
    if let Some(ui) = options.ui {
        extensions.set_ui(ui);
    }
    extensions.load().await;
    let trust = match options.trust {
        Some(trust) => trust,
        None => match extensions.project_trust(ProjectTrustEvent::new(&host.cwd)).await {
            TrustDecision::Trust(_) => ProjectTrust::Trusted,
            TrustDecision::Distrust(_) | TrustDecision::Undecided => ProjectTrust::Untrusted,
        },
    };
    let settings = options.settings.unwrap_or_else(|| Arc::new(SettingsManager::load(&locations, trust)));
    let clock = options.clock.unwrap_or_else(|| Arc::new(SystemClock));
    let ids = options.ids.unwrap_or_else(|| Arc::new(RandomIds));
    let manager = match options.manager {
        Some(manager) => manager,
        None => {
            let sync = settings.settings().session_sync.into();
            let environment = SessionEnvironment { clock: clock.clone(), ids, sync, ..SessionEnvironment::default() };
            let folder = SessionFolder::usual(&host.agent_dir, &host.cwd);
            let new = NewSession { cwd: host.cwd.clone(), ..NewSession::default() };
            SessionManager::create(folder.path(), new, environment)?
        }
    };
    let models = match (&options.stream, options.models) {
        (_, Some(models)) => Some(models),
        // Who brings both an answerer and a model needs no registry.
        (Some(_), None) if options.model.is_some() => None,
        (_, None) => Some(models_of(&host)),
    };
    if let Some(models) = &models {
        extensions.bind_models(models);
    }
    let chosen = choose_model(options.model, models.as_ref(), &options.scope, &settings, &manager).await?;
    let selection = match chosen.model {
        Some(model) => {
            let level = choose_level(options.level.or(chosen.level), &model, &settings, &manager);
            Selection { model: Some(model), level, recorded: options.recorded }
        }
        None => Selection::default(),
    };
    let loader = match options.resources {
        Some(loader) => loader,
        None => {
            let options = ResourceLoaderOptions::new(locations, (*settings).clone());
            Arc::new(DefaultResourceLoader::open(options).await)
        }
    };
    let (prompt, source) = match options.prompt {
        Some(prompt) => (prompt, PromptSource::Application),
        None => {
            (SystemPromptOptions { cwd: host.cwd.clone(), ..SystemPromptOptions::default() }, PromptSource::Resources)
        }
    };
    let resources = SessionResources { loader, prompt: source };
    let facts = FactsSlot::default();
    let workspace = match (options.workspace, options.sandbox) {
        (Some(workspace), None) => workspace,
        (Some(_), Some(_)) => {
            return Err(
                SandboxUnavailable { reason: "the application brings a workspace of its own".to_owned() }.into()
            );
        }
        (None, sandbox) => workspace_of(&host, &settings.settings(), sandbox)?,
    };
    let mut tools = builtin_tools(&workspace, &settings.settings(), &facts);
    tools.extend(options.tools);
    let stream: Arc<dyn StreamFn> = match (options.stream, &models) {
        (Some(stream), _) => stream,
        (None, Some(models)) => Arc::new(models.clone()),
        (None, None) => Arc::new(models_of(&host)),
    };
    let parts = Parts {
        manager,
        stream,
        models,
        scope: options.scope,
        model_notice: chosen.notice,
        start: options.start,
        settings,
        resources,
        extensions: extensions.clone(),
        workspace,
        clock,
        selection,
        tools,
        tool_selection: options.selection,
        prompt,
    };
    let session = AgentSession::new(parts);
    // The slot is new, so that nobody has filled it.
    let _ = facts.0.set(session.downgrade());
    extensions.bind(session.downgrade(), session.lifetime());
    session.record_start().await?;
    session.begin(SessionStartEvent::from(session.start_of_session().clone())).await;
    Ok(session)
}

/// The surroundings that the options ask for.
fn host_of(options: &SessionOptions) -> Result<Host, std::io::Error> {
    let mut host = match &options.host {
        Some(host) => host.clone(),
        None => {
            let mut host = Host::of_process()?;
            // A session goes on where it worked, so that relative paths never change their meaning unseen.
            if let Some(manager) = options.manager.as_ref().filter(|manager| manager.cwd().is_absolute()) {
                manager.cwd().clone_into(&mut host.cwd);
            }
            host
        }
    };
    host.cwd = options.cwd.clone().unwrap_or(host.cwd);
    host.agent_dir = options.agent_dir.clone().unwrap_or(host.agent_dir);
    Ok(host)
}

/// Where the built-in tools ask what session they run in. It is empty until the session is made.
#[derive(Clone, Default)]
struct FactsSlot(Arc<OnceLock<WeakAgentSession>>);

impl FactsSlot {
    fn source(&self) -> FactsSource {
        let slot = self.0.clone();
        FactsSource::new(move || slot.get().and_then(WeakAgentSession::facts).unwrap_or_default())
    }
}

/// This machine, as the host sees it, in a sandbox where one is asked for.
fn workspace_of(host: &Host, settings: &Settings, sandbox: Option<Network>) -> Result<Workspace, SandboxUnavailable> {
    let mut processes = ProcessOptions {
        environment: host.variables.clone(),
        shell: settings.shell(host.home.as_deref()),
        ..ProcessOptions::default()
    };
    // What tells a child that an agent runs it.
    for (name, value) in [("AI_AGENT", "pi"), ("PI_CODING_AGENT", "true")] {
        processes.environment.insert(name.into(), value.into());
    }
    let options = LocalOptions {
        cwd: host.cwd.clone(),
        home: host.home.clone(),
        temp_dir: host.temp_dir.clone(),
        processes,
        ..LocalOptions::default()
    };
    let sandbox = sandbox.or(match settings.sandbox {
        SandboxMode::Off => None,
        SandboxMode::On => Some(Network::Denied),
        SandboxMode::Network => Some(Network::Allowed),
    });
    Ok(local_workspace(match sandbox {
        Some(network) => options.sandboxed(network)?,
        None => options,
    }))
}

fn builtin_tools(workspace: &Workspace, settings: &Settings, facts: &FactsSlot) -> Vec<SessionTool> {
    let mut setup = ToolSetup::new(workspace.clone());
    setup.bash.command_prefix.clone_from(&settings.shell_command_prefix);
    setup.bash.facts = facts.source();
    setup.images = if settings.images.auto_resize { ReadImages::FitModel } else { ReadImages::AsTheyAre };
    BuiltinTool::ALL
        .into_iter()
        .map(|builtin| {
            let prompt = builtin.prompt();
            SessionTool {
                tool: builtin.build(&setup),
                snippet: Some(prompt.snippet.to_owned()),
                guidelines: prompt.guidelines.iter().map(ToString::to_string).collect(),
                origin: ToolOrigin::Builtin,
            }
        })
        .collect()
}

/// The models that the user's keys and `models.json` give.
pub fn models_of(host: &Host) -> Models {
    Models::builder()
        .environment(host.environment())
        .models_file(host.agent_dir.join("models.json"))
        .credentials(AuthFile::new(host.agent_dir.join("auth.json")))
        .build()
}

/// Who answers, and why it is not who answered before.
#[derive(Default)]
struct ChosenModel {
    model: Option<Arc<Model>>,
    level: Option<ThinkingLevel>,
    notice: Option<String>,
}

async fn choose_model(
    asked: Option<Arc<Model>>,
    models: Option<&Models>,
    scope: &[ScopedModel],
    settings: &SettingsManager,
    manager: &SessionManager,
) -> Result<ChosenModel, CreateSessionError> {
    let (Some(models), None) = (models, &asked) else {
        return Ok(ChosenModel { model: asked, ..ChosenModel::default() });
    };
    let usable = async |provider: &str, id: &str| -> Result<Option<Arc<Model>>, CredentialError> {
        match models.find(provider, id) {
            Some(model) if models.is_usable(&model.provider).await? => Ok(Some(model)),
            _ => Ok(None),
        }
    };
    let mut lost = None;
    let recorded = manager.context().model;
    if let Some(choice) = recorded.filter(|choice| choice.provider != *GuideModel::PROVIDER) {
        match usable(&choice.provider, &choice.model_id).await? {
            Some(model) => return Ok(ChosenModel { model: Some(model), ..ChosenModel::default() }),
            None => lost = Some(format!("{}/{}", choice.provider, choice.model_id)),
        }
    }
    let settings = settings.settings();
    let default = settings.default_provider.as_deref().zip(settings.default_model.as_deref());
    let in_scope = |provider: &str, id: &str| {
        scope.iter().find(|scoped| scoped.model.provider == *provider && scoped.model.id == *id)
    };
    let mut chosen = ChosenModel::default();
    // The settings' model comes first where it is one of the scope.
    let preferred = default.and_then(|(provider, id)| in_scope(provider, id));
    for ScopedModel { model, level } in preferred.into_iter().chain(scope) {
        if models.is_usable(&model.provider).await? {
            chosen = ChosenModel { model: Some(model.clone()), level: *level, notice: None };
            break;
        }
    }
    if let (None, Some((provider, id))) = (&chosen.model, default) {
        chosen.model = usable(provider, id).await?;
    }
    if chosen.model.is_none() {
        chosen.model = models.default_model().await?;
    }
    chosen.notice = lost.map(|lost| match &chosen.model {
        Some(model) => {
            format!("The session's model {lost} cannot be used now; {}/{} answers instead.", model.provider, model.id)
        }
        None => format!("The session's model {lost} cannot be used now, and there is no other that can."),
    });
    Ok(chosen)
}

fn choose_level(
    asked: Option<ThinkingLevel>,
    model: &Model,
    settings: &SettingsManager,
    manager: &SessionManager,
) -> ThinkingLevel {
    let settings = settings.settings();
    let recorded = manager.with(|session| session.projection().chosen_thinking_level());
    let level = asked
        .or(recorded)
        .or_else(|| settings.model_thinking_levels.get(&format!("{}/{}", model.provider, model.id)).copied())
        .or(settings.default_thinking_level)
        .unwrap_or(ThinkingLevel::Medium);
    model.clamp(level)
}
