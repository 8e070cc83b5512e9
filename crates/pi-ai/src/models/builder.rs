//! Making a registry.

use std::{
    collections::HashMap,
    fmt,
    path::PathBuf,
    sync::{Arc, RwLock},
};

use indexmap::IndexMap;

use super::{
    Environment, Models, Shared, State,
    credentials::{CredentialStore, NoCredentials},
    dispatch::Speaker,
    provider::Provider,
    template::CommandCache,
};
use crate::{
    api::{Api, BuiltinWires, Wire},
    id::{ApiId, ProviderId},
    time::{Clock, SystemClock},
    transport::Transport,
};

/// Makes a [`Models`]. Without anything said, it has the built-in providers and no keys.
#[must_use = "a builder does nothing until it builds"]
pub struct ModelsBuilder {
    environment: Environment,
    credentials: Arc<dyn CredentialStore>,
    clock: Arc<dyn Clock>,
    models_file: Option<PathBuf>,
    providers: IndexMap<ProviderId, Provider>,
    speakers: HashMap<ApiId, Speaker>,
    transport: Option<Transport>,
}

impl Default for ModelsBuilder {
    fn default() -> Self {
        Self {
            environment: Environment::empty(),
            credentials: Arc::new(NoCredentials),
            clock: Arc::new(SystemClock),
            models_file: None,
            providers: IndexMap::new(),
            speakers: HashMap::new(),
            transport: None,
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

    /// Adds a protocol over HTTP, or replaces the built-in one of its name. Transport, timeouts, retry and hooks are
    /// those of the built-in ones.
    pub fn wire(mut self, wire: impl Wire) -> Self {
        self.speakers.insert(wire.id(), Speaker::Wire(Arc::new(wire)));
        self
    }

    /// Adds a protocol of any kind, or replaces the built-in one of its name. It gets requests as the built-in ones
    /// do: with key, headers and server filled in.
    pub fn api(mut self, api: impl Api) -> Self {
        self.speakers.insert(api.id(), Speaker::Api(Arc::new(api)));
        self
    }

    /// How requests reach servers. Without it, proxies and certificates are as the
    /// [environment](Self::environment) says.
    pub fn transport(mut self, transport: Transport) -> Self {
        self.transport = Some(transport);
        self
    }

    /// Reads the time here.
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Makes the registry, reading the file of the user's own providers if there is one.
    pub fn build(self) -> Models {
        let transport = self.transport.unwrap_or_else(|| Transport::from_environment(&self.environment));
        let state = State { registered: self.providers, ..State::default() };
        let models = Models {
            shared: Arc::new(Shared {
                environment: self.environment,
                credentials: self.credentials,
                commands: CommandCache::default(),
                clock: self.clock,
                models_file: self.models_file,
                speakers: self.speakers,
                wires: BuiltinWires::default(),
                transport,
                #[cfg(feature = "bedrock")]
                roles: super::aws::RoleCredentials::default(),
                #[cfg(feature = "vertex")]
                google: super::google::GoogleTokens::default(),
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
