//! Extensions that are programs, in any language, spoken to over standard input and output.
//!
//! A folder with a manifest (`extension.json`) is an extension: [`StdioExtension`] registers what the manifest declares,
//! and starts the program when something of it is used. Messages are JSON-RPC 2.0, one per line; `docs/extensions.md`
//! has every method. [`find_extensions`] looks where users and projects keep theirs.
//!
//! | Module | Idea |
//! |---|---|
//! | `manifest` | what an extension brings, read before anything runs |
//! | `find` | where extensions are looked for |
//! | `register` | the manifest's declarations, as an [`ExtensionApi`] takes them |
//! | `program` | starting, asking, restarting and ending the program |
//! | `connection` | one run of it: calls, their time, their end |
//! | `serve` | one run of it: what it says, line by line |
//! | `requests` | what it may ask of pi |
//! | `context` | what it is told of the messages of a request |
//! | `wire` | lines and messages |
//!
//! What goes wrong in the program stays there: it can crash, hang, write what is no message, write without end or leave
//! children behind, and costs its calls and itself, nothing else. It never outlives its session.

mod connection;
mod context;
mod find;
mod limits;
mod manifest;
mod program;
mod register;
mod requests;
mod serve;
mod tool;
pub(crate) mod wire;

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use async_trait::async_trait;

pub(crate) use find::extensions_in;
pub use find::{FindExtensions, FoundExtensions, find_extensions};
pub use manifest::{InvalidManifest, MANIFEST_FILE, Manifest, PROTOCOL};

use self::program::Program;
use super::{Extension, ExtensionApi, ExtensionError};
use crate::workspace::local::Environment;

/// An extension that is a program.
///
/// One value can serve several sessions: each has a program of its own. When extensions are loaded again, so is the
/// manifest.
///
/// ```no_run
/// use std::path::Path;
/// use pi_coding_agent::{extensions::stdio::StdioExtension, host::Host, sdk::SessionOptions};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let host = Host::of_process()?;
/// let audit = StdioExtension::read(Path::new("/home/ada/.pi/agent/extensions/audit"), host.variables)?;
/// let options = SessionOptions::default().extension(audit);
/// # let _ = options;
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct StdioExtension {
    path: PathBuf,
    name: String,
    manifest: Arc<Manifest>,
    environment: Arc<Environment>,
    /// The manifest as it was read first, until it was used.
    unused: Mutex<Option<Arc<Manifest>>>,
}

impl StdioExtension {
    /// Reads the manifest of an extension: a file, or its folder. Nothing is started. The program will get `environment`
    /// and what its manifest adds.
    ///
    /// # Errors
    /// When the manifest is missing or wrong; the problem names file and line.
    pub fn read(path: &Path, environment: impl Into<Arc<Environment>>) -> Result<Self, InvalidManifest> {
        let manifest = Arc::new(Manifest::read(path)?);
        Ok(Self {
            path: path.to_owned(),
            name: manifest.name().to_owned(),
            unused: Mutex::new(Some(manifest.clone())),
            manifest,
            environment: environment.into(),
        })
    }

    /// The manifest, as it was when it was read first.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }
}

#[async_trait]
impl Extension for StdioExtension {
    fn name(&self) -> &str {
        &self.name
    }

    async fn register(&self, pi: &mut ExtensionApi) -> Result<(), ExtensionError> {
        let unused = self.unused.lock().unwrap_or_else(PoisonError::into_inner).take();
        let manifest = match unused {
            Some(manifest) => manifest,
            None => {
                let path = self.path.clone();
                let reading = tokio::task::spawn_blocking(move || Manifest::read(&path));
                let read = reading.await.unwrap_or_else(|panic| std::panic::resume_unwind(panic.into_panic()));
                Arc::new(read?)
            }
        };
        let program = Program::new(manifest, self.environment.clone(), pi.weak_context());
        register::register(pi, &Arc::new(program));
        Ok(())
    }
}
