//! The one place where HTTP clients are made.

use std::{
    collections::HashMap,
    fmt, io,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use reqwest::{Client, Proxy, Url, redirect};
use rustls::{ClientConfig, RootCertStore, pki_types::CertificateDer, pki_types::pem::PemObject};

use super::proxy::ProxyRules;
use crate::{
    error::{ErrorKind, ProviderError},
    models::Environment,
};

/// Which certificate authorities are trusted, besides those of extra files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum TrustRoots {
    /// Mozilla's, which are built in.
    #[default]
    BuiltIn,
    /// Mozilla's and those of the operating system, which are read at the first request.
    Platform,
}

/// How connections are made.
#[derive(Clone, Debug, Default)]
pub(super) struct ClientSettings {
    pub(super) roots: TrustRoots,
    pub(super) root_files: Vec<PathBuf>,
    pub(super) proxies: ProxyRules,
    /// What was wrong with the settings; each request fails with it.
    pub(super) problem: Option<String>,
}

impl ClientSettings {
    pub(super) fn from_environment(environment: &Environment) -> Self {
        let files = ["SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS"].into_iter().filter_map(|name| environment.get(name));
        let platform = environment.get("NODE_USE_SYSTEM_CA").is_some_and(|value| value == "1");
        let (proxies, problem) = match ProxyRules::from_environment(environment) {
            Ok(proxies) => (proxies, None),
            Err(problem) => (ProxyRules::default(), Some(problem)),
        };
        Self {
            roots: if platform { TrustRoots::Platform } else { TrustRoots::BuiltIn },
            root_files: files.map(PathBuf::from).collect(),
            proxies,
            problem,
        }
    }
}

/// Where clients come from. They are made at the first request that needs them, and kept.
pub(super) enum Clients {
    /// One that was handed in.
    Given(Client),
    /// Ours.
    Made { settings: Box<ClientSettings>, made: Mutex<HashMap<ClientKey, Client>> },
}

/// What clients differ in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct ClientKey {
    connect: Option<Duration>,
    tls: Tls,
}

/// Whether a client is ever to speak TLS: reading certificates takes time that a plain server does not need.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Tls {
    No,
    Yes,
}

impl Clients {
    pub(super) fn made_with(settings: ClientSettings) -> Self {
        Self::Made { settings: Box::new(settings), made: Mutex::default() }
    }

    /// The proxy that requests to a server go through, as far as it is known.
    pub(super) fn proxy_for(&self, server: &Url) -> Option<&Url> {
        match self {
            Self::Given(_) => None,
            Self::Made { settings, .. } => settings.proxies.proxy_for(server),
        }
    }

    /// The client for a server.
    pub(super) async fn get(&self, server: &Url, connect: Option<Duration>) -> Result<Client, ProviderError> {
        let (settings, made) = match self {
            Self::Given(client) => return Ok(client.clone()),
            Self::Made { settings, made } => (settings, made),
        };
        let is_tls = |url: &Url| url.scheme() == "https";
        let tls = match is_tls(server) || settings.proxies.proxy_for(server).is_some_and(is_tls) {
            true => Tls::Yes,
            false => Tls::No,
        };
        let key = ClientKey { connect, tls };
        if let Some(client) = lock(made).get(&key) {
            return Ok(client.clone());
        }
        if let Some(problem) = &settings.problem {
            return Err(unusable(problem.clone()));
        }
        let client = match tls {
            // Files are read elsewhere: they may be on a slow disk.
            Tls::Yes if settings.roots == TrustRoots::Platform || !settings.root_files.is_empty() => {
                let settings = settings.clone();
                tokio::task::spawn_blocking(move || make(&settings, key))
                    .await
                    .map_err(|error| unusable(format!("The certificates could not be read: {error}")))??
            }
            _ => make(settings, key)?,
        };
        Ok(lock(made).entry(key).or_insert(client).clone())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn unusable(message: String) -> ProviderError {
    ProviderError::new(ErrorKind::Other, message)
}

fn make(settings: &ClientSettings, key: ClientKey) -> Result<Client, ProviderError> {
    let roots = match key.tls {
        Tls::Yes => trusted(settings)?,
        Tls::No => RootCertStore::empty(),
    };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut tls = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| unusable(format!("TLS could not be set up: {error}")))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let mut builder = Client::builder()
        .tls_backend_preconfigured(tls)
        .redirect(redirect::Policy::custom(follow))
        .referer(false)
        .tcp_keepalive(Duration::from_secs(60))
        // The environment was read by ourselves.
        .no_proxy();
    if let Some(connect) = key.connect {
        builder = builder.connect_timeout(connect);
    }
    if !settings.proxies.is_empty() {
        let proxies = settings.proxies.clone();
        builder = builder.proxy(Proxy::custom(move |server| proxies.proxy_for(server).cloned()));
    }
    builder
        .build()
        .map_err(|error| unusable(format!("The HTTP client could not be set up: {error}")).with_source(error))
}

/// Keys travel in headers, so that only the same server is trusted with the next request.
fn follow(attempt: redirect::Attempt<'_>) -> redirect::Action {
    const MOST: usize = 5;
    let origin = |url: &Url| (url.scheme().to_owned(), url.host_str().map(str::to_owned), url.port_or_known_default());
    let same = attempt.previous().last().is_some_and(|previous| origin(previous) == origin(attempt.url()));
    let keeps_body = matches!(attempt.status().as_u16(), 307 | 308);
    if same && keeps_body && attempt.previous().len() <= MOST { attempt.follow() } else { attempt.stop() }
}

fn trusted(settings: &ClientSettings) -> Result<RootCertStore, ProviderError> {
    let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    if settings.roots == TrustRoots::Platform {
        // What cannot be read of the system's store is left out: the built-in authorities are there.
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    }
    for file in &settings.root_files {
        let failed =
            |reason: String| unusable(format!("{}: the root certificates cannot be read: {reason}.", file.display()));
        let bytes = std::fs::read(file).map_err(|error: io::Error| failed(error.to_string()))?;
        let certificates: Vec<_> = CertificateDer::pem_slice_iter(&bytes)
            .collect::<Result<_, _>>()
            .map_err(|error| failed(format!("it is not a PEM file ({error})")))?;
        if certificates.is_empty() {
            return Err(failed("it has no PEM certificate".into()));
        }
        roots.add_parsable_certificates(certificates);
    }
    Ok(roots)
}

impl fmt::Debug for Clients {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Given(_) => f.write_str("Given"),
            Self::Made { settings, .. } => f.debug_tuple("Made").field(&settings.roots).finish_non_exhaustive(),
        }
    }
}
