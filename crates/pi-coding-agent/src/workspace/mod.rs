//! What the tools can reach: files, search and processes, behind one value that a host can point elsewhere.
//!
//! A [`Workspace`] is a working directory and three capabilities, [`Files`], [`Search`] and [`Processes`].
//! [`local::local_workspace`] is this machine, with or without limits; [`memory::memory_workspace`] lives in memory. A
//! host that runs commands in a container or over SSH implements the traits and puts them in with
//! [`Workspace::with_files`] and its siblings; the tools do not change.

mod files;
pub mod local;
pub mod memory;
mod processes;
mod search;

use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use files::{
    Entry, EntryKind, FileIdentity, FileKind, FileReader, Files, Metadata, OpenedFile, TemporaryFile, read_to_end,
};
pub use processes::{
    ProcessEnd, ProcessError, ProcessOutcome, Processes, ProgramCommand, ShellCommand, ShellExit, Survivor,
};
pub use search::{
    CaseRule, FindQuery, FindResult, GrepFile, GrepLine, GrepLineKind, GrepQuery, GrepResult, GrepStop, NoSearch,
    Pattern, Search, SearchError, search_over_files,
};

/// The world that a session's tools work in. Cheap to clone.
///
/// ```
/// use pi_coding_agent::workspace::memory::memory_workspace;
///
/// let workspace = memory_workspace("/project", [("/project/a.txt", "hello\n")]);
/// assert_eq!(workspace.cwd().to_str(), Some("/project"));
/// ```
#[derive(Clone, Debug)]
pub struct Workspace {
    cwd: PathBuf,
    home: Option<PathBuf>,
    files: Arc<dyn Files>,
    search: Arc<dyn Search>,
    processes: Arc<dyn Processes>,
}

impl Workspace {
    /// A workspace at `cwd`, an absolute path.
    #[must_use]
    pub fn new(
        cwd: impl Into<PathBuf>,
        files: Arc<dyn Files>,
        search: Arc<dyn Search>,
        processes: Arc<dyn Processes>,
    ) -> Self {
        Self { cwd: cwd.into(), home: None, files, search, processes }
    }

    /// The same workspace with the directory that `~` means.
    #[must_use]
    pub fn with_home(mut self, home: impl Into<PathBuf>) -> Self {
        self.home = Some(home.into());
        self
    }

    /// The same workspace with another working directory, an absolute path.
    #[must_use]
    pub fn with_cwd(mut self, cwd: impl Into<PathBuf>) -> Self {
        self.cwd = cwd.into();
        self
    }

    /// The same workspace with other files.
    #[must_use]
    pub fn with_files(mut self, files: Arc<dyn Files>) -> Self {
        self.files = files;
        self
    }

    /// The same workspace with another search.
    #[must_use]
    pub fn with_search(mut self, search: Arc<dyn Search>) -> Self {
        self.search = search;
        self
    }

    /// The same workspace with other processes.
    #[must_use]
    pub fn with_processes(mut self, processes: Arc<dyn Processes>) -> Self {
        self.processes = processes;
        self
    }

    /// The directory that relative paths start from.
    #[must_use]
    pub fn cwd(&self) -> &Path {
        &self.cwd
    }

    /// The directory that `~` means, when there is one.
    #[must_use]
    pub fn home(&self) -> Option<&Path> {
        self.home.as_deref()
    }

    /// Reading and writing files.
    #[must_use]
    pub fn files(&self) -> &Arc<dyn Files> {
        &self.files
    }

    /// Searching trees of files.
    #[must_use]
    pub fn search(&self) -> &Arc<dyn Search> {
        &self.search
    }

    /// Running commands.
    #[must_use]
    pub fn processes(&self) -> &Arc<dyn Processes> {
        &self.processes
    }
}
