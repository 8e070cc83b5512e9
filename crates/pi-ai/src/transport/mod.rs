//! The one way to a server: HTTP with timeouts, retry and streaming.
//!
//! A [`Transport`] drives a [`Wire`]: encode, hooks, send, decode. There is no task and no channel behind an answer:
//! the stream reads the socket when it is polled, and closes it when the answer is complete, aborted or dropped.

mod client;
mod failure;
#[cfg(any(feature = "bedrock", feature = "vertex"))]
mod fetch;
mod host;
mod proxy;
mod send;
mod source;

use std::{fmt, path::PathBuf, sync::Arc};

pub use client::TrustRoots;
#[cfg(any(feature = "bedrock", feature = "vertex"))]
pub(crate) use fetch::Fetch;
pub(crate) use host::is_local_host;
pub(crate) use source::HttpSource;

use crate::{
    api::{Api, Wire},
    context::TranscriptContext,
    id::ApiId,
    model::Model,
    models::Environment,
    options::StreamOptions,
    stream::{AssistantStream, MessageBuilder},
    telemetry::Telemetry,
    time::{Clock, SystemClock},
};

use client::{ClientSettings, Clients};

/// How requests reach servers. A handle: clones share connections.
///
/// Clients are made at the first request that needs them. Plain servers cost no TLS set-up.
///
/// ```
/// use pi_ai::{models::{Environment, Models}, transport::Transport};
/// let environment = Environment::from([("HTTPS_PROXY", "http://proxy:3128"), ("NO_PROXY", "localhost,.corp")]);
/// let models = Models::builder().transport(Transport::from_environment(&environment)).build();
/// # let _ = models;
/// ```
#[derive(Clone)]
pub struct Transport {
    shared: Arc<Shared>,
}

struct Shared {
    clients: Clients,
    chance: Chance,
    clock: Arc<dyn Clock>,
}

/// Gives a number from 0 to 1 each time.
type Chance = Box<dyn Fn() -> f64 + Send + Sync>;

/// Makes a [`Transport`].
#[must_use = "a builder does nothing until it builds"]
pub struct TransportBuilder {
    settings: ClientSettings,
    chance: Chance,
    clock: Arc<dyn Clock>,
}

impl Default for Transport {
    fn default() -> Self {
        Self::builder().build()
    }
}

impl Transport {
    /// A transport without proxies that trusts the built-in certificate authorities.
    pub fn new() -> Self {
        Self::default()
    }

    /// Says what is to be different.
    pub fn builder() -> TransportBuilder {
        TransportBuilder { settings: ClientSettings::default(), chance: Box::new(random), clock: Arc::new(SystemClock) }
    }

    /// A transport that does what the environment says: `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY` (in
    /// upper or lower case), root certificates of `SSL_CERT_FILE` and `NODE_EXTRA_CA_CERTS` beside the built-in ones,
    /// and those of the system with `NODE_USE_SYSTEM_CA=1`.
    pub fn from_environment(environment: &Environment) -> Self {
        Self::builder().environment(environment).build()
    }

    /// A transport that sends with a client of one's own, as it is: its proxies, certificates and redirects count. The
    /// limit on connecting is the client's; until the first byte and between bytes the request's count.
    pub fn with_client(client: reqwest::Client) -> Self {
        let builder = Self::builder();
        let shared = Shared { clients: Clients::Given(client), chance: builder.chance, clock: builder.clock };
        Self { shared: Arc::new(shared) }
    }

    /// Asks a model over a wire. The options are used as they are: the key must be in them.
    pub fn stream(
        &self,
        wire: Arc<dyn Wire>,
        model: &Arc<Model>,
        context: TranscriptContext,
        options: StreamOptions,
    ) -> AssistantStream {
        let signal = options.signal.clone();
        let answer = MessageBuilder::new(model, self.shared.clock.now()).timed();
        let telemetry = Telemetry::new(model, &options);
        let prepared = std::future::ready(Ok((model.clone(), options)));
        let source = HttpSource::new(self.clone(), wire, context, Box::pin(prepared));
        AssistantStream::from_source(answer, signal, telemetry.around(source))
    }

    /// An [`Api`] that sends over this transport.
    pub fn api(&self, wire: impl Wire) -> impl Api {
        struct OverHttp {
            transport: Transport,
            wire: Arc<dyn Wire>,
        }
        impl Api for OverHttp {
            fn id(&self) -> ApiId {
                self.wire.id()
            }

            fn stream(
                &self,
                model: &Arc<Model>,
                context: TranscriptContext,
                options: StreamOptions,
            ) -> AssistantStream {
                self.transport.stream(self.wire.clone(), model, context, options)
            }
        }
        OverHttp { transport: self.clone(), wire: Arc::new(wire) }
    }
}

impl TransportBuilder {
    /// Does what the environment says, see [`Transport::from_environment`].
    pub fn environment(mut self, environment: &Environment) -> Self {
        self.settings = ClientSettings::from_environment(environment);
        self
    }

    /// Trusts these certificate authorities.
    pub fn roots(mut self, roots: TrustRoots) -> Self {
        self.settings.roots = roots;
        self
    }

    /// Trusts the root certificates of a PEM file, too. It is read at the first request that needs it.
    pub fn root_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.settings.root_files.push(path.into());
        self
    }

    /// Takes chance from here (numbers from 0 to 1), so that tests know how long a repetition waits.
    pub fn chance(mut self, chance: impl Fn() -> f64 + Send + Sync + 'static) -> Self {
        self.chance = Box::new(chance);
        self
    }

    /// Reads the time here.
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Makes the transport. Nothing is read or connected yet.
    pub fn build(self) -> Transport {
        let Self { settings, chance, clock } = self;
        Transport { shared: Arc::new(Shared { clients: Clients::made_with(settings), chance, clock }) }
    }
}

fn random() -> f64 {
    // 32 random bits.
    let bits = uuid::Uuid::new_v4().as_u128() as u32;
    f64::from(bits) / f64::from(u32::MAX)
}

impl fmt::Debug for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transport").field("clients", &self.shared.clients).finish_non_exhaustive()
    }
}

impl fmt::Debug for TransportBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TransportBuilder").field("settings", &self.settings).finish_non_exhaustive()
    }
}
