//! Making a registry.

use std::{
    fmt,
    path::PathBuf,
    sync::{Arc, RwLock},
};

use indexmap::IndexMap;

use super::{
    Environment, Models, Shared, State,
    credentials::{CredentialStore, NoCredentials},
    provider::Provider,
    template::CommandCache,
};
use crate::{
    id::ProviderId,
    time::{Clock, SystemClock},
};

/// Makes a [`Models`]. Without anything said, it has the built-in providers and no keys.
#[must_use = "a builder does nothing until it builds"]
pub struct ModelsBuilder {
    environment: Environment,
    credentials: Arc<dyn CredentialStore>,
    clock: Arc<dyn Clock>,
    models_file: Option<PathBuf>,
    providers: IndexMap<ProviderId, Provider>,
}

impl Default for ModelsBuilder {
    fn default() -> Self {
        Self {
            environment: Environment::empty(),
            credentials: Arc::new(NoCredentials),
            clock: Arc::new(SystemClock),
            models_file: None,
            providers: IndexMap::new(),
        }
    }
}

impl ModelsBuilder {
    /// Where keys and settings are read from.
    pub fn environment(mut self, environment: Environment) -> Self {
        self.environment = environment;
        self
    }

    /// Where stored credentials come from.
    pub fn credentials(mut self, credentials: impl CredentialStore) -> Self {
        self.credentials = Arc::new(credentials);
        self
    }

    /// The file of the user's own providers. It need not exist; what is wrong with it is told by
    /// [`Models::problems`].
    pub fn models_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.models_file = Some(path.into());
        self
    }

    /// Adds a provider, or replaces the built-in one of its id.
    pub fn provider(mut self, provider: Provider) -> Self {
        self.providers.insert(provider.id().clone(), provider);
        self
    }

    /// Reads the time here.
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Makes the registry, reading the file of the user's own providers if there is one.
    pub fn build(self) -> Models {
        let state = State { registered: self.providers, ..State::default() };
        let models = Models {
            shared: Arc::new(Shared {
                environment: self.environment,
                credentials: self.credentials,
                commands: CommandCache::default(),
                clock: self.clock,
                models_file: self.models_file,
                state: RwLock::new(state),
            }),
        };
        models.reload();
        models
    }
}

impl fmt::Debug for ModelsBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelsBuilder")
            .field("models_file", &self.models_file)
            .field("providers", &self.providers.keys().collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}
