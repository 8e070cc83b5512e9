//! This machine as a workspace: its files, its shell, and limits to both where they are asked for.

mod files;
pub(crate) mod launch;
mod log_writer;
pub(crate) mod program;
mod sandbox;
#[cfg(feature = "search")]
mod search;
mod shell;
#[cfg(not(unix))]
#[path = "portable/mod.rs"]
mod system;
#[cfg(unix)]
#[path = "unix/mod.rs"]
mod system;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::{Files, Search, Workspace};

pub use files::LocalFiles;
pub use sandbox::{Network, Sandbox, SandboxUnavailable};
#[cfg(feature = "search")]
pub use search::LocalSearch;
pub use system::LocalProcesses;
pub(crate) use system::LocalProgram;

/// Silence after which what a background process may still write is not waited for.
const IDLE_AFTER_EXIT: Duration = Duration::from_millis(100);
/// Longest wait for such output, however busy the process is.
const DRAIN_AFTER_EXIT: Duration = Duration::from_secs(2);

/// Environment variables by name.
pub type Environment = BTreeMap<OsString, OsString>;

/// Which files of this machine may be reached.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Access {
    /// All that the user may reach.
    #[default]
    Unrestricted,
    /// Only what the confinement lets through.
    Confined(Confinement),
}

/// A limit on files: it holds for the real place of a file, whatever links lead there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Confinement {
    /// What may be read.
    pub read: ReadScope,
    /// Directories (absolute paths) below which files may be written, and read.
    pub roots: Vec<PathBuf>,
}

/// What a confinement lets through for reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadScope {
    /// Everything.
    Anywhere,
    /// Only what is below the roots.
    Roots,
}

impl Confinement {
    /// A jail: nothing outside `root` is read or written.
    #[must_use]
    pub fn jail(root: impl Into<PathBuf>) -> Self {
        Self { read: ReadScope::Roots, roots: vec![root.into()] }
    }
}

/// How to reach this machine. Nothing here is read from the process's own surroundings.
#[derive(Clone, Debug, Default)]
pub struct LocalOptions {
    /// The working directory, an absolute path.
    pub cwd: PathBuf,
    /// What `~` means.
    pub home: Option<PathBuf>,
    /// Where files for large outputs go.
    pub temp_dir: PathBuf,
    /// Which files may be reached.
    pub access: Access,
    /// How commands run.
    pub processes: ProcessOptions,
}

/// How commands run on this machine.
#[derive(Clone, Debug, Default)]
pub struct ProcessOptions {
    /// Their environment.
    pub environment: Environment,
    /// The shell instead of bash.
    pub shell: Option<PathBuf>,
    /// A directory of our own programs, put in front of their `PATH`.
    pub bin_dir: Option<PathBuf>,
    /// What they are kept from; `None` keeps them from nothing.
    pub sandbox: Option<Sandbox>,
}

impl LocalOptions {
    /// Puts everything into a sandbox: commands and file tools write only below the working directory and the
    /// directory for temporary files, and commands reach the network only if they may.
    ///
    /// # Errors
    ///
    /// When this system or this build cannot do that.
    pub fn sandboxed(mut self, network: Network) -> Result<Self, SandboxUnavailable> {
        Sandbox::check()?;
        let roots = vec![self.cwd.clone(), self.temp_dir.clone()];
        self.access = Access::Confined(Confinement { read: ReadScope::Anywhere, roots: roots.clone() });
        self.processes.sandbox = Some(Sandbox { writable: roots, network });
        Ok(self)
    }
}

/// This machine as a workspace.
#[must_use]
pub fn local_workspace(options: LocalOptions) -> Workspace {
    let search = local_search(&options);
    let files: Arc<dyn Files> = Arc::new(LocalFiles::new(options.access, options.temp_dir));
    let processes = Arc::new(LocalProcesses::new(options.processes));
    let workspace = Workspace::new(options.cwd, files, search, processes);
    match options.home {
        Some(home) => workspace.with_home(home),
        None => workspace,
    }
}

#[cfg(feature = "search")]
fn local_search(options: &LocalOptions) -> Arc<dyn Search> {
    Arc::new(LocalSearch::new(options.access.clone(), options.home.as_deref()))
}

#[cfg(not(feature = "search"))]
fn local_search(_options: &LocalOptions) -> Arc<dyn Search> {
    Arc::new(super::NoSearch)
}
