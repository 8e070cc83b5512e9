//! The registry of providers and models: which there are, which can be used, and how a request to one is made.

mod auth;
#[cfg(feature = "bedrock")]
mod aws;
mod builder;
mod config;
mod credentials;
mod dispatch;
mod environment;
mod glob;
#[cfg(feature = "vertex")]
mod google;
mod provider;
mod reference;
mod regular_file;
mod request;
mod scope;
mod select;
mod template;

use std::{
    collections::{HashMap, HashSet},
    fmt,
    path::PathBuf,
    sync::{Arc, PoisonError, RwLock},
};

use indexmap::IndexMap;

pub use auth::{KeySource, RequestAuth};
pub use builder::ModelsBuilder;
pub use config::{ConfigError, Problem};
pub use credentials::{AuthFile, Credential, CredentialError, CredentialStore, NoCredentials, OAuthCredential};
pub use environment::Environment;
pub use provider::{ModelHead, Provider};
pub use reference::{LevelSuffix, Matching, Reference, Resolution, UnknownModel, UnknownSuffix, resolve};
pub use scope::{Scope, ScopeWarning, ScopeWarningKind, resolve_scope};
pub use select::{InlineKey, ModelChoice, SelectError, SelectWarning, Selected};
pub use template::{Unset, ValueTemplate};

use crate::{
    api::BuiltinWires,
    catalog::{self, PREFERENCE},
    error::ProviderError,
    id::{ApiId, ProviderId, SessionId},
    model::{Model, ThinkingLevel},
    secret::Secret,
    time::Clock,
    transport::Transport,
};

use config::ModelsFile;
use dispatch::Speaker;

/// The providers and models that a program can use. A handle: clones share one registry.
///
/// ```
/// use pi_ai::models::{Environment, Models};
/// let models = Models::builder().environment(Environment::from([("GROQ_API_KEY", "gsk-…")])).build();
/// let model = models.find("groq", "openai/gpt-oss-120b").expect("a built-in model");
/// assert_eq!(model.context_window, 131_072);
/// ```
#[derive(Clone)]
pub struct Models {
    shared: Arc<Shared>,
}

struct Shared {
    environment: Environment,
    credentials: Arc<dyn CredentialStore>,
    commands: template::CommandCache,
    clock: Arc<dyn Clock>,
    models_file: Option<PathBuf>,
    speakers: HashMap<ApiId, Speaker>,
    wires: BuiltinWires,
    transport: Transport,
    #[cfg(feature = "bedrock")]
    roles: aws::RoleCredentials,
    #[cfg(feature = "vertex")]
    google: google::GoogleTokens,
    state: RwLock<State>,
}

/// What can change while a program runs.
#[derive(Clone, Default)]
struct State {
    /// As they are used, in order: built-in ones, those of the file, those of the application.
    providers: Arc<IndexMap<ProviderId, Arc<Provider>>>,
    /// Those of the application.
    registered: IndexMap<ProviderId, Provider>,
    runtime_keys: HashMap<ProviderId, Secret>,
    problems: Arc<Vec<ConfigError>>,
}

impl Models {
    /// A registry of one's own making: nothing is read from the process or its user's files unless it is said.
    pub fn builder() -> ModelsBuilder {
        ModelsBuilder::default()
    }

    /// The registry of the process's user: keys from the environment, and `models.json` and `auth.json` from
    /// `$PI_CODING_AGENT_DIR`, or else `~/.pi/agent`. For the edge of a program; what is inside takes a [`Models`].
    pub fn from_env() -> Self {
        let environment = Environment::of_process();
        let folder = environment.get("PI_CODING_AGENT_DIR").map(PathBuf::from).or_else(|| {
            let home = environment.get("HOME").or_else(|| environment.get("USERPROFILE"))?;
            Some(PathBuf::from(home).join(".pi").join("agent"))
        });
        let mut builder = Self::builder().environment(environment);
        if let Some(folder) = folder {
            builder =
                builder.models_file(folder.join("models.json")).credentials(AuthFile::new(folder.join("auth.json")));
        }
        builder.build()
    }

    /// The providers, in order.
    pub fn providers(&self) -> Vec<Arc<Provider>> {
        self.state(|state| state.providers.values().cloned().collect())
    }

    /// The provider of this id.
    pub fn provider(&self, id: &str) -> Option<Arc<Provider>> {
        self.state(|state| state.providers.get(id).cloned())
    }

    /// The model of this id at this provider.
    pub fn find(&self, provider: &str, id: &str) -> Option<Arc<Model>> {
        self.provider(provider)?.find(id)
    }

    /// Every model, in order. This decodes all of the catalog; to find one, use [`find`](Self::find) or
    /// [`select`](Self::select).
    pub fn all(&self) -> Vec<Arc<Model>> {
        self.providers().iter().flat_map(|provider| provider.models().collect::<Vec<_>>()).collect()
    }

    /// The models that can be used: those of providers with a credential. No command is run to find out.
    ///
    /// # Errors
    /// When stored credentials cannot be read: that is not the same as having none.
    pub async fn available(&self) -> Result<Vec<Arc<Model>>, CredentialError> {
        let usable = self.usable_providers().await?;
        let providers = self.providers();
        let models = providers
            .iter()
            .filter(|provider| usable.contains(provider.id()))
            .flat_map(|provider| provider.models().collect::<Vec<_>>());
        Ok(models.collect())
    }

    /// Whether a provider can be used: it has a credential, or needs none. No command is run to find out.
    ///
    /// # Errors
    /// When stored credentials cannot be read: that is not the same as having none.
    pub async fn is_usable(&self, provider: &ProviderId) -> Result<bool, CredentialError> {
        Ok(self.usable_providers().await?.contains(provider))
    }

    /// What in `models.json` is not used, and why.
    pub fn problems(&self) -> Arc<Vec<ConfigError>> {
        self.state(|state| state.problems.clone())
    }

    /// Adds a provider, or replaces the one of its id.
    pub fn register(&self, provider: Provider) {
        self.update(|state| {
            state.registered.insert(provider.id().clone(), provider);
        });
        self.reload();
    }

    /// Takes a provider away that was [registered](Self::register). A built-in one of its id comes back.
    pub fn unregister(&self, id: &str) {
        self.update(|state| {
            state.registered.shift_remove(id);
        });
        self.reload();
    }

    /// Reads `models.json` again. It is a small file; do not call this within a hot loop.
    pub fn reload(&self) {
        let file = self.shared.models_file.as_deref().map(ModelsFile::load).transpose();
        let speaks = |api: &str| self.speaker(&api.into()).is_ok();
        self.update(|state| {
            let mut problems = Vec::new();
            let file = file.unwrap_or_else(|error| {
                problems.push(error);
                None
            });
            state.providers = Arc::new(compose(file.flatten(), &state.registered, &speaks, &mut problems));
            state.problems = Arc::new(problems);
        });
    }

    /// Sets the key of a provider for as long as this registry lives. It beats every other one.
    pub fn set_api_key(&self, provider: impl Into<ProviderId>, key: impl Into<Secret>) {
        self.update(|state| {
            state.runtime_keys.insert(provider.into(), key.into());
        });
    }

    /// Where the key of a provider comes from; `None` when it has none. No command is run to find out, and a variable
    /// that a configured key needs must be set.
    ///
    /// # Errors
    /// When stored credentials cannot be read, or a stored sign-in has expired.
    pub async fn key_source(&self, provider: &Provider) -> Result<Option<KeySource>, ProviderError> {
        let found = self.find_auth(provider, None, auth::Depth::Check, provider.base_url()).await?;
        Ok(found.map(|found| found.source))
    }

    /// Forgets what wires keep of a conversation, when it is over.
    pub fn forget(&self, session: &SessionId) {
        self.shared.wires.forget(session);
    }

    /// The key of a provider and what goes with it.
    ///
    /// # Errors
    /// Of kind [`Auth`](crate::ErrorKind::Auth): there is no key (the message names the variables to set), stored
    /// credentials cannot be read, or a value has none.
    pub async fn auth(&self, provider: &Provider) -> Result<RequestAuth, ProviderError> {
        let found = self.find_auth(provider, None, auth::Depth::Resolve, provider.base_url()).await?;
        found.ok_or_else(|| auth::missing(provider, &self.shared.environment))
    }

    /// Finds the model that a person asked for: `provider/id`, an id, or a part of an id or name, with or without
    /// `:level`. Of providers that have the same model, the one with a key is meant. An id that a known provider does
    /// not list is taken as it is, with a warning.
    ///
    /// # Errors
    /// When no one model is meant, or stored credentials cannot be read.
    ///
    /// ```
    /// # use pi_ai::{ThinkingLevel, models::{Environment, ModelChoice, Models}};
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), pi_ai::models::SelectError> {
    /// let models = Models::builder().environment(Environment::from([("GROQ_API_KEY", "gsk-…")])).build();
    /// let choice = ModelChoice { model: "groq/gpt-oss-120b:high".into(), ..ModelChoice::default() };
    /// let selected = models.select(&choice).await?;
    /// assert_eq!(&*selected.model.id, "openai/gpt-oss-120b");
    /// assert_eq!(selected.level, Some(ThinkingLevel::High));
    /// # Ok(()) }
    /// ```
    pub async fn select(&self, choice: &ModelChoice) -> Result<Selected, SelectError> {
        let usable = match choice.inline_key {
            InlineKey::Given => HashSet::new(),
            InlineKey::None => self.usable_providers().await?,
        };
        let providers = self.providers();
        let heads: Vec<ModelHead<'_>> = providers.iter().flat_map(|provider| provider.heads()).collect();
        if let Some(name) = &choice.provider
            && !heads.iter().any(|head| head.provider.eq_ignore_ascii_case(name))
        {
            return Err(SelectError::UnknownProvider { name: name.clone() });
        }
        let reference = Reference { provider: choice.provider.as_deref(), ..Reference::new(&choice.model) };
        let not_found = || SelectError::NotFound { text: choice.model.clone() };
        match resolve(&reference, &heads, |provider| usable.contains(provider)) {
            Resolution::Found { model, level, warning } => Ok(Selected {
                model: self.find(model.provider, model.id).ok_or_else(not_found)?,
                level,
                warning: warning.map(SelectWarning::UnknownLevel),
            }),
            Resolution::Ambiguous { candidates, usable, .. } => {
                let candidates = candidates.iter().map(|model| format!("{}/{}", model.provider, model.id)).collect();
                Err(SelectError::ambiguous(&choice.model, candidates, usable, choice.inline_key))
            }
            Resolution::NotFound { target: None } => Err(not_found()),
            Resolution::NotFound { target: Some(target) } => {
                let sample = self.find(target.sample.provider, target.sample.id).ok_or_else(not_found)?;
                Ok(self.unlisted(&sample, target, choice.level))
            }
        }
    }

    /// A model that its provider does not list, made like the provider's default one.
    fn unlisted(&self, sample: &Model, target: UnknownModel<ModelHead<'_>>, asked: Option<ThinkingLevel>) -> Selected {
        let provider = &sample.provider;
        let usual = self.provider(provider).and_then(|provider| provider.find(provider.default_model()?));
        let (id, level) = match asked {
            Some(_) => (target.text, None),
            None => (target.id, target.level),
        };
        let mut model = usual.map_or_else(|| sample.clone(), Arc::unwrap_or_clone);
        model.id = id.clone().into();
        model.name.clone_from(&id);
        model.reasoning |= asked.or(level).is_some_and(|level| level != ThinkingLevel::Off);
        let warning = SelectWarning::Unlisted { provider: provider.clone(), id };
        Selected { model: Arc::new(model), level, warning: Some(warning) }
    }

    /// Finds the usable models that patterns stand for, see [`resolve_scope`].
    ///
    /// # Errors
    /// When stored credentials cannot be read.
    pub async fn scope(&self, patterns: &[impl AsRef<str>]) -> Result<Scope<Arc<Model>>, CredentialError> {
        let available = self.available().await?;
        let heads: Vec<ModelHead<'_>> = available
            .iter()
            .map(|model| ModelHead { provider: &model.provider, id: &model.id, name: &model.name })
            .collect();
        let Scope { models, warnings } = resolve_scope(patterns, &heads);
        let find = |head: ModelHead<'_>| {
            available.iter().find(|model| model.provider == *head.provider && model.id == *head.id).cloned()
        };
        let models = models.into_iter().filter_map(|(head, level)| Some((find(head)?, level))).collect();
        Ok(Scope { models, warnings })
    }

    /// The model to take when nobody says which: the default one of the first preferred provider with a key, else the
    /// first model that can be used.
    ///
    /// # Errors
    /// When stored credentials cannot be read.
    pub async fn default_model(&self) -> Result<Option<Arc<Model>>, CredentialError> {
        let usable = self.usable_providers().await?;
        let preferred = PREFERENCE.into_iter().filter(|id| usable.contains(*id)).find_map(|id| {
            let provider = self.provider(id)?;
            provider.find(provider.default_model()?)
        });
        match preferred {
            Some(model) => Ok(Some(model)),
            None => Ok(self.available().await?.into_iter().next()),
        }
    }

    /// The providers whose configuration names a key, whether or not there is a value for it.
    pub fn providers_with_named_keys(&self) -> Vec<Arc<Provider>> {
        self.state(|state| state.providers.values().filter(|provider| provider.auth.key.is_some()).cloned().collect())
    }

    /// The providers that can be used: they have a key, or need none.
    async fn usable_providers(&self) -> Result<HashSet<ProviderId>, CredentialError> {
        let stored = self.shared.credentials.providers().await?;
        let (providers, mut usable) =
            self.state(|state| (state.providers.clone(), state.runtime_keys.keys().cloned().collect::<HashSet<_>>()));
        for id in stored {
            let Some(provider) = providers.get(&id) else { continue };
            // A stored key that cannot be read or has expired counts: using it tells what is wrong.
            let complete = match provider.auth.required {
                [] => true,
                _ => !matches!(self.key_source(provider).await, Ok(None)),
            };
            if complete {
                usable.insert(id);
            }
        }
        let environment = &self.shared.environment;
        for (id, provider) in &*providers {
            let own = || {
                auth::has_own_key(provider, environment)
                    || auth::is_open(provider, request::server(provider.base_url()))
            };
            if !usable.contains(id) && own() {
                usable.insert(id.clone());
            }
        }
        Ok(usable)
    }

    /// Who speaks a wire.
    fn speaker(&self, api: &ApiId) -> Result<Speaker, ProviderError> {
        match self.shared.speakers.get(api) {
            Some(speaker) => Ok(speaker.clone()),
            None => Ok(Speaker::Wire(self.shared.wires.get(api)?)),
        }
    }

    fn state<T>(&self, read: impl FnOnce(&State) -> T) -> T {
        read(&self.shared.state.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn update(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.shared.state.write().unwrap_or_else(PoisonError::into_inner));
    }
}

impl fmt::Debug for Models {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let providers = self.providers();
        let ids: Vec<_> = providers.iter().map(|provider| provider.id().as_str()).collect();
        f.debug_struct("Models").field("providers", &ids).finish_non_exhaustive()
    }
}

/// The providers as they are used. Built-in ones that the file changes keep their place.
fn compose(
    file: Option<ModelsFile>,
    registered: &IndexMap<ProviderId, Provider>,
    speaks: &dyn Fn(&str) -> bool,
    problems: &mut Vec<ConfigError>,
) -> IndexMap<ProviderId, Arc<Provider>> {
    let built_in = catalog::providers().iter().map(Provider::built_in);
    let mut providers: IndexMap<ProviderId, Provider> =
        built_in.chain(registered.values().cloned()).map(|provider| (provider.id().clone(), provider)).collect();
    if let Some(file) = file {
        for (id, entry) in &file.providers {
            if let Some((at, api)) = entry.apis().find(|(_, api)| !speaks(api)) {
                let problem = Problem {
                    line: entry.line,
                    at: format!("providers.{id}.{at}"),
                    expected: "the name of an API that this program speaks, such as openai-completions".into(),
                    found: format!("`{api}`"),
                };
                problems.push(ConfigError::Incomplete { path: file.path.clone(), problem });
                continue;
            }
            match Provider::configured(providers.get(id.as_str()), id, entry, &file) {
                Ok(provider) => {
                    providers.insert(id.as_str().into(), provider);
                }
                Err(problem) => problems.push(problem),
            }
        }
    }
    providers.into_iter().map(|(id, provider)| (id, Arc::new(provider))).collect()
}
